"""Rows of operators that choose or place elements by index, reduce along axes, or run along an axis."""
import numpy as np
from onnx_draw import ALL, FLOATS, INT, LONG, NUMBERS, SIGNED, WIDE, Row, Skip, finite


def indices(d, shape, n, dtype=None, unique=False):
    """Of both signs, for an axis of n elements."""
    if n == 0 and np.prod(shape) != 0:
        raise Skip
    made = d.random.integers(-n, n, shape) if n else np.zeros(shape)
    return d.add(np.asarray(made).astype(dtype or d.pick([LONG, INT])), d.chance(0.5))


def gather(d, dtype):
    x = d.tensor(dtype, least=1, most=3)
    axis = d.axis(len(d.shape(x)))
    return [x, indices(d, d.dims(0, 2), d.shape(x)[axis])], {"axis": axis}


def gather_elements(d, dtype):
    x = d.tensor(dtype, least=1)
    axis = d.axis(len(d.shape(x)))
    shape = [d.int(min(1, n), n) for n in d.shape(x)]
    shape[axis] = d.size()
    return [x, indices(d, shape, d.shape(x)[axis])], {"axis": axis}


def gather_nd(d, dtype):
    x = d.tensor(dtype, least=1)
    shape = d.shape(x)
    batch = d.int(0, min(1, len(shape) - 1))
    depth = d.int(1, len(shape) - batch)
    rows = (*shape[:batch], *d.dims(0, 2))
    if 0 in shape[batch:batch + depth]:
        raise Skip
    index = np.stack([np.asarray(d.random.integers(-n, n, rows)) for n in shape[batch:batch + depth]], -1)
    return [x, d.add(index.astype(np.int64), d.chance(0.5))], {"batch_dims": batch}


REDUCTIONS = ["none", "add", "mul", "max", "min"]


def reduction(d, dtype):
    known = REDUCTIONS if d.opset >= 18 else REDUCTIONS[:3] if d.opset >= 16 else REDUCTIONS[:1]
    return d.pick(known if dtype.kind != "b" else known[:1])


def combining(how):
    """What updates may be: a NaN among those of max and min counts or not, as the order of the oracles' comparisons has it."""
    return lambda updates: how not in ("max", "min") or not np.isnan(updates.astype(np.float64)).any()


def scatter_elements(d, dtype):
    x = d.tensor(dtype, least=1)
    shape = list(d.shape(x))
    axis, how = d.axis(len(shape)), reduction(d, dtype)
    sizes = [d.int(min(1, n), n) for n in shape]
    n = shape[axis]
    if how == "none":  # an element written twice is undefined
        lines = [d.random.permutation(n)[:sizes[axis]] for _ in range(int(np.prod(sizes)) // max(sizes[axis], 1))]
        rest = [s for k, s in enumerate(sizes) if k != axis % len(sizes)]
        index = np.moveaxis(np.array(lines, np.int64).reshape(*rest, sizes[axis]), -1, axis) if 0 not in sizes else np.zeros(sizes, np.int64)
        index = d.add(index, d.chance(0.5))
    else:
        index = indices(d, sizes, n)
    return [x, index, d.tensor(dtype, shape=sizes, fits=combining(how))], {"axis": axis} | ({} if how == "none" else {"reduction": how})


def scatter_nd(d, dtype):
    x = d.tensor(dtype, least=1)
    shape, how = d.shape(x), reduction(d, dtype)
    depth = d.int(1, len(shape))
    cells = int(np.prod(shape[:depth]))
    if cells == 0:
        raise Skip
    count = d.int(0 if d.zeros else 1, min(cells, 4))
    flat = d.random.permutation(cells)[:count] if how == "none" else d.random.integers(0, cells, count)
    index = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64)
    if d.chance(0.3):
        index -= np.array(shape[:depth])
    return [x, d.add(index, d.chance(0.5)), d.tensor(dtype, shape=(count, *shape[depth:]), fits=combining(how))], {} if how == "none" else {"reduction": how}


def axes_given(d, x, opset):
    """Axes as an operand, an attribute, or none."""
    rank = len(d.shape(x))
    axes = [a - (rank if d.chance(0.3) else 0) for a in d.some(range(rank))]
    attributes = d.optional(keepdims=d.int(0, 1))
    if d.opset >= opset:
        if d.chance(0.2):
            attributes["noop_with_empty_axes"] = d.int(0, 1)
        return ([x, d.const(axes)] if axes or d.chance(0.3) else [x]), attributes
    return [x], attributes | ({"axes": axes} if axes else {})


def reduce(opset, bounded=False, least=0):
    """bounded: no large integers, which overflow in one way or another."""
    def make(d, dtype):
        kind = "small" if bounded and dtype.kind in "iu" else "any"
        return axes_given(d, d.tensor(dtype, kind=kind, fits=lambda v: least <= v.size < 200), opset)
    return make


def nonempty_reduce(opset, bounded=False):
    return reduce(opset, bounded, 1)


def arg(d, dtype):
    x = d.tensor(dtype, least=1, fits=lambda v: v.size > 0)
    return [x], d.optional(axis=d.axis(len(d.shape(x))), keepdims=d.int(0, 1), select_last_index=d.int(0, 1))


def top_k(d, dtype):
    x = d.tensor(dtype, least=1, fits=finite)
    axis = d.axis(len(d.shape(x)))
    return [x, d.const([d.int(0, d.shape(x)[axis])])], {"axis": axis} | d.optional(largest=d.int(0, 1))


def running(d, dtype):
    x = d.tensor(dtype, least=1)
    axis = d.axis(len(d.shape(x)))
    return [x, d.const(axis, d.pick([LONG, INT]))], d.optional(exclusive=d.int(0, 1), reverse=d.int(0, 1))


def compress(d, dtype):
    x = d.tensor(dtype, least=1)
    axis = d.axis(len(d.shape(x))) if d.chance(0.6) else None
    n = int(np.prod(d.shape(x))) if axis is None else d.shape(x)[axis]
    return [x, d.add(d.array(bool, (d.int(0, n),)))], {} if axis is None else {"axis": axis}


def unique(d, dtype):
    x = d.tensor(dtype, least=1, kind="small", fits=lambda v: v.size > 0)
    return [x], d.optional(axis=d.axis(len(d.shape(x))), sorted=1)


REDUCED = FLOATS[:2] + [np.dtype(x) for x in "il"] + FLOATS[2:]
ROWS = [
    Row("Gather", ALL, gather), Row("GatherElements", ALL, gather_elements), Row("GatherND", ALL, gather_nd),
    Row("ScatterElements", ALL, scatter_elements), Row("ScatterND", ALL, scatter_nd),
    Row("ReduceSum", REDUCED, reduce(13)),
    *[Row("Reduce" + op, REDUCED, reduce(18, True)) for op in ("Prod", "L1", "L2")],
    Row("ReduceSumSquare", REDUCED, nonempty_reduce(18, True)),
    Row("ReduceMean", REDUCED, nonempty_reduce(18, True)), *[Row("Reduce" + op, REDUCED, nonempty_reduce(18)) for op in ("Max", "Min")],
    *[Row("Reduce" + op, FLOATS, lambda d, dtype: axes_given(d, d.tensor(dtype, fits=lambda v: v.size > 0 and finite(v)), 18))
      for op in ("LogSum", "LogSumExp")],
    *[Row("Reduce" + op, [np.dtype("b"), np.dtype("B")], nonempty_reduce(18)) for op in ("Max", "Min")],
    *[Row("Reduce" + op, [np.dtype(bool)], nonempty_reduce(18), 20) for op in ("Max", "Min")],
    *[Row(op, NUMBERS, arg) for op in ("ArgMax", "ArgMin")],
    Row("TopK", WIDE + FLOATS[2:3] + SIGNED, top_k, results=2), Row("CumSum", [*WIDE, INT, LONG], running),
    Row("NonZero", ALL, lambda d, dtype: ([d.tensor(dtype, least=1)], {})), Row("Compress", ALL, compress),
    Row("Unique", WIDE + [np.dtype("b"), LONG], unique, results=4),
]
