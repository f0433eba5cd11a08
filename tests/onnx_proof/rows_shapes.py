"""Rows of operators that move elements or make new tensors: shapes, slices, pads, generators."""
import math

import numpy as np
from onnx import helper, numpy_helper
from onnx_draw import ALL, FLOATS, INT, LONG, NUMBERS, SINGLE, WIDE, Row, Skip


def factors(d, count, parts):
    """Sizes with this product."""
    sizes = []
    for _ in range(parts - 1):
        sizes.append(d.pick([n for n in range(1, count + 1) if count % n == 0]))
        count //= sizes[-1]
    return d.random.permutation([*sizes, count]).tolist()


def reshape(d, dtype):
    x = d.tensor(dtype)
    shape, count = d.shape(x), math.prod(d.shape(x))
    if count == 0:
        if not shape or d.chance(0.5):
            return [x, d.const([0] * len(shape))], {}  # 0: the same size as before
        return [x, d.const([*shape[::-1]])], {"allowzero": 1} if d.opset >= 14 else {}
    target = factors(d, count, d.int(1, 4)) if count > 1 or d.chance(0.5) else []
    if target and d.chance(0.4):
        target[d.int(0, len(target) - 1)] = -1
    return [x, d.either(target)], {}


def flatten(d, dtype):
    x = d.tensor(dtype)
    rank = len(d.shape(x))
    return [x], d.optional(axis=d.int(-rank, rank)) if rank else {"axis": 0}


def squeeze(d, dtype):
    x = d.tensor(dtype, shape=[1 if d.chance(0.5) else n for n in d.dims(1)])
    ones = [k - (len(d.shape(x)) if d.chance(0.3) else 0) for k, n in enumerate(d.shape(x)) if n == 1]
    return ([x, d.either([ones[k] for k in d.some(ones, 1)])] if ones and d.chance(0.7) else [x]), {}


def unsqueeze(d, dtype):
    x = d.tensor(dtype, most=3)
    rank = len(d.shape(x)) + 1
    if rank < 4 and d.chance(0.3):
        return [x, d.either(d.random.choice(rank + 1, 2, replace=False).tolist())], {}
    return [x, d.either([d.axis(rank)])], {}


def transpose(d, dtype):
    x = d.tensor(dtype)
    return [x], d.optional(perm=d.random.permutation(len(d.shape(x))).tolist() or None)


def concat(d, dtype):
    x = d.tensor(dtype, least=1)
    shape = list(d.shape(x))
    axis = d.axis(len(shape))
    others = []
    for _ in range(d.int(0, 3)):
        shape[axis] = d.size()
        others.append(d.tensor(dtype, shape=shape))
    return [x, *others], {"axis": axis}


def split(d, dtype):
    x = d.tensor(dtype, least=1)
    axis = d.axis(len(d.shape(x)))
    n = d.shape(x)[axis]
    if d.opset >= 18 and n and d.chance(0.5):
        return [x], {"axis": axis, "num_outputs": d.pick([k for k in range(1, n + 1) if -(-n // k) * (k - 1) < n])}
    sizes = np.diff([0, *sorted(d.int(0, n) for _ in range(d.int(0, 2))), n])
    return [x, d.const(sizes)], {"axis": axis}


def expand(d, dtype):
    x = d.tensor(dtype, most=3)
    shape = [d.size() if n == 1 else d.pick([1, n]) for n in d.shape(x)]
    return [x, d.either([d.size()] * (len(shape) < 3 and d.chance(0.4)) + shape)], {}


def tile(d, dtype):
    x = d.tensor(dtype)
    return [x, d.either([d.pick([0, 1, 2, 3] if d.zeros else [1, 2, 3]) for _ in d.shape(x)])], {}


def shape_of(d, dtype):
    x = d.tensor(dtype)
    return [x], d.optional(start=d.int(-5, 5), end=d.int(-5, 5)) if d.opset >= 15 else {}


def blocks(whole):
    def make(d, dtype):
        b, (n, c, h, w) = d.int(1, 3), (d.size() for _ in range(4))
        x = d.new(dtype, (n, c * b * b, h, w) if not whole else (n, c, h * b, w * b))
        return [x], {"blocksize": b} | ({} if whole else d.optional(mode=d.pick(["DCR", "CRD"])))
    return make


def slices(d, dtype):
    x = d.tensor(dtype, least=1)
    shape = d.shape(x)
    axes = d.some(range(len(shape)), 1)
    steps = [d.pick([1, 1, 2, -1, -2]) for _ in axes]
    far = [2**31 - 1, 2**63 - 1, -2**31, -2**63 + 1]  # with a negative step "to the end" is a negative number

    def limit(n, step, end):
        return d.pick(far[2 * (end and step < 0):]) if d.chance(0.15) else d.int(-n - 2, n + 2 if step > 0 else n)
    limits = [[limit(shape[a], s, end) for a, s in zip(axes, steps)] for end in (False, True)]
    kind = d.pick([LONG, INT])
    clipped = [np.clip(v, np.iinfo(kind).min, np.iinfo(kind).max) for v in limits]
    constant = d.chance(0.8)
    given = [d.add(np.array(v, kind), constant) for v in (*clipped, [a - (len(shape) if d.chance(0.3) else 0) for a in axes], steps)]
    return [x, *given], {}


def pad(d, dtype):
    mode = d.pick(["constant", "edge", "reflect"] + (["wrap"] if d.opset >= 19 else []))
    x = d.tensor(dtype, least=1, fits=lambda v: v.size > 0 or mode == "constant")
    shape = d.shape(x)
    axes = d.some(range(len(shape)), 1) if d.opset >= 18 and d.chance(0.4) else None
    sizes = [shape[a] for a in axes] if axes else shape
    most = {"constant": lambda n: 2, "edge": lambda n: 2, "reflect": lambda n: n - 1, "wrap": lambda n: n}[mode]
    pads = [d.int(0, most(n)) for n in (*sizes, *sizes)]
    if d.chance(0.2) and mode == "constant":
        pads[0] = -min(1, sizes[0])
    value = [d.add(d.array(dtype, (), "plain"), d.chance(0.5))] if mode == "constant" and d.chance(0.6) else []
    axes = [*(value or [""]), d.const([a - len(shape) * d.chance(0.3) for a in axes])] if axes else value
    return [x, d.const(pads), *axes], {"mode": mode}


def crop(d, dtype):
    x = d.tensor(dtype, least=1)
    axes = d.some(range(len(d.shape(x))), 1)
    return [x, d.const([d.int(1, 6) for _ in axes])], {"axes": axes}


def trilu(d, dtype):
    x = d.tensor(dtype, least=2)
    return [x, *([d.either(d.int(-3, 3))] if d.chance(0.6) else [])], d.optional(upper=d.int(0, 1))


def eye(d, dtype):
    to = d.pick(NUMBERS)
    return [d.tensor(dtype, least=2, most=2)], d.optional(k=d.int(-3, 3), dtype=helper.np_dtype_to_tensor_dtype(to))


def numbered(d, dtype):
    start, delta = d.int(-4, 4), d.pick([-2, -1, 1, 2])
    if dtype.kind == "f":
        start, delta = start + 0.5, delta / 4
    return [d.const(v, dtype) for v in (start, start + d.int(-3, 6), delta)], {}


def filled(d, dtype):
    given = {"value": numpy_helper.from_array(np.atleast_1d(d.array(dtype, (1,))), "value")} if d.chance(0.8) else {}
    return [d.const(d.dims())], given


def one_hot(d, dtype):
    depth = d.int(1, 4)
    x = d.tensor(d.pick([LONG, INT]), most=3, kind="small") if d.chance(0.5) else d.add(d.random.integers(-depth, depth, d.dims(0, 3)))
    on = d.add(d.array(dtype, (2,), "plain"))
    return [x, d.const(depth), on], d.optional(axis=d.axis(len(d.shape(x)), 1))


def reverse(d, dtype):
    batch, (rows, columns) = d.int(0, 1), (max(d.size(), 1), d.size())
    x = d.tensor(dtype, shape=(columns, rows, *d.dims(0, 2)) if batch else (rows, columns, *d.dims(0, 2)))
    steps, count = (d.shape(x)[1 - batch], d.shape(x)[batch])
    if steps == 0:
        raise Skip
    return [x, d.add(d.random.integers(1, steps + 1, count))], {"batch_axis": batch, "time_axis": 1 - batch}


def col2im(d, dtype):
    image, block = [d.int(2, 5) for _ in range(2)], [d.int(1, 2) for _ in range(2)]
    attributes = d.optional(strides=[d.int(1, 2)] * 2, dilations=[d.int(1, 2)] * 2, pads=[d.int(0, 1)] * 4)
    counts = [(n + 2 * attributes.get("pads", [0])[0] - attributes.get("dilations", [1])[0] * (k - 1) - 1) //
              attributes.get("strides", [1])[0] + 1 for n, k in zip(image, block)]
    if min(counts) < 1:
        raise Skip
    x = d.new(dtype, (d.size(), max(d.size(), 1) * math.prod(block), math.prod(counts)))
    return [x, d.const(image), d.const(block)], attributes


ROWS = [
    Row("Reshape", ALL, reshape), Row("Flatten", ALL, flatten), Row("Squeeze", ALL, squeeze), Row("Unsqueeze", ALL, unsqueeze),
    Row("Transpose", ALL, transpose), Row("Concat", ALL, concat), Row("Expand", ALL, expand), Row("Tile", ALL, tile),
    Row("Split", ALL, split, results=lambda d, operands, attributes: attributes.get("num_outputs") or len(d.values[operands[1]])),
    Row("Shape", ALL, shape_of), Row("Size", ALL, lambda d, dtype: ([d.tensor(dtype)], {})),
    Row("DepthToSpace", ALL, blocks(False)), Row("SpaceToDepth", ALL, blocks(True)), Row("Slice", ALL, slices), Row("Pad", ALL, pad),
    Row("CenterCropPad", ALL, crop, 18), Row("Trilu", ALL, trilu, 14), Row("EyeLike", NUMBERS, eye),
    Row("Range", [LONG, INT, SINGLE, *WIDE], numbered), Row("ConstantOfShape", ALL, filled), Row("OneHot", NUMBERS, one_hot),
    Row("ReverseSequence", ALL, reverse), Row("Col2Im", FLOATS, col2im, 18),
]
