"""Rows of normalisations, recurrent cells, losses, samples, signals, attention and control flow."""
import numpy as np
from onnx import TensorProto, helper
from onnx_draw import HALF, LONG, SINGLE, WIDE, Row, Skip, finite

HALVES = [*WIDE, HALF]


def channels(d, dtype, least=2, n=None):
    """An image [n, c, ...] and its channels."""
    x = d.tensor(dtype, least=least, fits=lambda v: v.size > 0 and finite(v) and (n is None or v.shape[1] % n == 0))
    return x, d.shape(x)[1]


def batch_norm(d, dtype):
    x, c = channels(d, dtype)
    given = [d.new(dtype, (c,), "plain") for _ in range(3)]
    return [x, *given, d.new(dtype, (c,), "positive")], d.optional(epsilon=1e-3)


def layer_norm(bias):
    def make(d, dtype):
        kind = "plain" if dtype == HALF else "any"  # the squares of large halves overflow on reference
        x = d.tensor(dtype, least=1, kind=kind, fits=lambda v: v.size > 0 and finite(v))
        axis = d.axis(len(d.shape(x)))
        shape = d.shape(x)[axis:]
        more = [d.new(dtype, shape, "plain")] if bias and d.chance(0.6) else []
        return [x, d.new(dtype, shape, "plain"), *more], {"axis": axis} | d.optional(epsilon=1e-3)
    return make


def instance_norm(d, dtype):
    x, c = channels(d, dtype, 3)
    return [x, d.new(dtype, (c,), "plain"), d.new(dtype, (c,), "plain")], d.optional(epsilon=1e-3)


def group_norm(d, dtype):
    groups = d.int(1, 2)
    x, c = channels(d, dtype, 3, groups)
    return [x, d.new(dtype, (c,), "plain"), d.new(dtype, (c,), "plain")], {"num_groups": groups} | d.optional(epsilon=1e-3)


def lrn(d, dtype):
    x = d.tensor(dtype, least=3, kind="plain", fits=lambda v: v.size > 0)
    return [x], {"size": d.pick([1, 3, 5])} | d.optional(alpha=0.1, beta=0.5, bias=2.0)


def mean_variance(d, dtype):
    x = d.tensor(dtype, least=4, most=4, fits=lambda v: v.size > 0, kind="plain")
    return [x], d.optional(axes=d.some(range(4), 1))


def lp_norm(d, dtype):
    x = d.tensor(dtype, least=1, fits=lambda v: v.size > 0)
    return [x], {"axis": d.axis(len(d.shape(x)))} | d.optional(p=d.int(1, 2))


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def cell(op):
    def make(d, dtype):
        steps, batch, inputs, hidden, gates = max(d.size(), 1), max(d.size(), 1), d.int(1, 3), d.int(1, 3), GATES[op]
        direction = d.pick(["forward", "reverse", "bidirectional"])
        n = 2 if direction == "bidirectional" else 1
        unit = lambda *shape: d.new(dtype, shape, "unit")  # noqa: E731
        operands = [unit(steps, batch, inputs), unit(n, gates * hidden, inputs), unit(n, gates * hidden, hidden)]
        operands.append(unit(n, 2 * gates * hidden) if d.chance(0.6) else "")
        operands.append(d.add(d.random.integers(1, steps + 1, batch).astype(np.int32)) if d.chance(0.4) else "")
        states = d.chance(0.5)
        operands.append(unit(n, batch, hidden) if states else "")
        if op == "LSTM":
            operands.append(unit(n, batch, hidden) if states else "")
            operands.append(unit(n, 3 * hidden) if d.chance(0.3) else "")
        more = {"linear_before_reset": d.int(0, 1)} if op == "GRU" else {}
        while operands[-1] == "":
            operands.pop()
        return operands, {"hidden_size": hidden, "direction": direction} | d.optional(**more)
    return make


def loss_dims(d):
    n, c = max(d.size(), 1), d.int(1, 4)
    return n, c, tuple(max(s, 1) for s in d.dims(0, 2))


def loss(d, dtype):
    n, c, more = loss_dims(d)
    target = d.add(d.random.integers(0, c, (n, *more)), d.chance(0.5))
    weight = [d.new(dtype, (c,), "positive")] if d.chance(0.5) else []
    attributes = d.optional(reduction=d.pick(["none", "sum", "mean"]), ignore_index=d.int(0, c))
    return [d.tensor(dtype, shape=(n, c, *more), kind="plain"), target, *weight], attributes


def resize(d, dtype):
    rank = d.int(1, 2)
    x = d.tensor(dtype, shape=[max(d.size(), 1) for _ in range(rank + 2)], kind="plain")
    shape = d.shape(x)
    mode = d.pick(["nearest", "linear", "cubic"] if rank == 2 else ["nearest", "linear"])
    how = d.pick(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"])
    attributes = {"mode": mode, "coordinate_transformation_mode": how}
    if mode == "nearest":
        attributes["nearest_mode"] = d.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attributes |= d.optional(cubic_coeff_a=-0.5, exclude_outside=d.int(0, 1))
    if d.chance(0.5):
        sizes = [*shape[:2], *(d.int(1, 7) for _ in range(rank))]
        return [x, "", "", d.const(sizes)], attributes
    scales = [1, 1, *(d.pick([0.5, 1, 1.5, 2, 3]) for _ in range(rank))]
    results = [int(n * s) for n, s in zip(shape, scales)]
    if min(results) < 1 or (mode == "cubic" and how == "pytorch_half_pixel" and 1 in results[2:]):  # neither oracle has the latter
        raise Skip
    return [x, "", d.const(scales, np.float32)], attributes


def grid_sample(d, dtype):
    n, c, h, w = (max(d.size(), 1) for _ in range(4))
    grid = d.new(dtype, (n, d.int(1, 3), d.int(1, 3), 2), "unit")
    linear, cubic = ("linear", "cubic") if d.opset >= 20 else ("bilinear", "bicubic")
    return [d.tensor(dtype, shape=(n, c, h, w), kind="plain"), grid], d.optional(
        mode=d.pick([linear, "nearest", cubic]), padding_mode=d.pick(["zeros", "border", "reflection"]), align_corners=d.int(0, 1))


def affine_grid(d, dtype):
    n = d.int(1, 3)
    image = [d.int(1, 4) for _ in range(d.int(2, 3))]
    aligned = d.int(0, 1) if min(image) > 1 else 0  # one cell has no two corners
    return [d.new(dtype, (n, len(image), len(image) + 1), "plain"), d.const([n, 2, *image])], d.optional(align_corners=aligned)


def dft(d, dtype):
    x = d.tensor(dtype, shape=(max(d.size(), 1), d.int(1, 6), max(d.size(), 1), d.int(1, 2)), kind="plain")
    onesided = d.int(0, 1) if d.shape(x)[-1] == 1 else 0
    attributes = d.optional(inverse=0 if onesided else d.int(0, 1)) | {"onesided": onesided}
    axis = d.pick([1, 2, -2, -3])
    length = d.const(d.int(1, 6)) if d.chance(0.4) else ""
    return ([x, length, d.const(axis)], attributes) if d.opset >= 20 else ([x, length] if length else [x], attributes | {"axis": axis % 4})


def attention(d, dtype):
    batch, heads, group, keys, queries, size, wide = d.int(1, 2), d.int(1, 2), d.int(1, 2), d.int(1, 4), d.int(1, 4), d.pick([2, 4]), d.int(1, 4)
    unit = lambda *shape: d.new(dtype, shape, "unit")  # noqa: E731
    operands = [unit(batch, heads * group, queries, size), unit(batch, heads, keys, size), unit(batch, heads, keys, wide)]
    if d.chance(0.5):
        operands.append(d.add(d.array(bool, (queries, keys)) | np.eye(queries, keys, dtype=bool) | (np.arange(keys) == 0)) if d.chance(0.5) else
                        unit(queries, keys))
    return operands, d.optional(is_causal=d.int(0, 1), scale=0.5, softcap=d.pick([0.0, 2.0]))


def rotary(d, dtype):
    batch, heads, steps, half = d.int(1, 2), d.int(1, 3), d.int(1, 4), d.int(1, 3)
    x = d.new(dtype, (batch, heads, steps, 2 * half), "plain")
    return [x, *(d.new(dtype, (batch, steps, half), "unit") for _ in range(2))], d.optional(interleaved=d.int(0, 1))


def branch(d, dtype):
    """Both branches read outer values; the results have one type."""
    x = d.tensor(dtype)
    y = d.tensor(dtype, shape=d.shape(x))
    n = len(d.graph.nodes)

    def body(op, name):
        kind = helper.np_dtype_to_tensor_dtype(dtype)
        return helper.make_graph([helper.make_node(op, [x, y], [name])], name, [], [helper.make_tensor_value_info(name, kind, list(d.shape(x)))])
    return [d.add(np.array(d.chance(0.5)))], {"then_branch": body("Add", f"t{n}"), "else_branch": body("Mul", f"e{n}")}


def loop(d, dtype):
    """Carries a sum and stacks it."""
    x = d.tensor(dtype)
    n, kind, shape = len(d.graph.nodes), helper.np_dtype_to_tensor_dtype(dtype), list(d.shape(x))
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", [f"v{n}", x], [f"w{n}"]), helper.make_node("Identity", [f"p{n}"], [f"q{n}"]),
             helper.make_node("Neg", [f"w{n}"], [f"s{n}"])]
    body = helper.make_graph(nodes, f"body{n}", [value(f"i{n}", TensorProto.INT64, []), value(f"p{n}", TensorProto.BOOL, []), value(f"v{n}", kind, shape)],
                             [value(f"q{n}", TensorProto.BOOL, []), value(f"w{n}", kind, shape), value(f"s{n}", kind, shape)])
    return [d.const(d.int(0 if d.zeros else 1, 4)), d.const(True, bool), d.tensor(dtype, shape=shape)], {"body": body}


def scan(d, dtype):
    x = d.tensor(dtype, least=1, fits=lambda v: v.shape[0] > 0)
    n, kind, shape = len(d.graph.nodes), helper.np_dtype_to_tensor_dtype(dtype), list(d.shape(x)[1:])
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", [f"a{n}", f"b{n}"], [f"f{n}"]), helper.make_node("Mul", [f"a{n}", f"b{n}"], [f"g{n}"])]
    body = helper.make_graph(nodes, f"body{n}", [value(f"a{n}", kind, shape), value(f"b{n}", kind, shape)],
                             [value(f"f{n}", kind, shape), value(f"g{n}", kind, shape)])
    return [d.tensor(dtype, shape=shape), x], {"body": body, "num_scan_inputs": 1} | d.optional(
        scan_input_directions=[d.int(0, 1)], scan_output_directions=[d.int(0, 1)])


NUMERIC = [*WIDE, np.dtype("i"), LONG]
ROWS = [
    Row("BatchNormalization", HALVES, batch_norm), Row("LayerNormalization", HALVES, layer_norm(True), 17),
    Row("RMSNormalization", HALVES, layer_norm(False), 23), Row("InstanceNormalization", HALVES, instance_norm),
    Row("GroupNormalization", HALVES, group_norm, 21), Row("LRN", [SINGLE], lrn), Row("MeanVarianceNormalization", WIDE, mean_variance),
    Row("LpNormalization", WIDE, lp_norm), Row("RNN", [SINGLE], cell("RNN"), results=2), Row("GRU", [SINGLE], cell("GRU"), results=2),
    Row("LSTM", [SINGLE], cell("LSTM"), results=3), Row("NegativeLogLikelihoodLoss", WIDE, loss), Row("SoftmaxCrossEntropyLoss", WIDE, loss, results=2),
    Row("Resize", HALVES, resize), Row("GridSample", WIDE, grid_sample, 16), Row("AffineGrid", WIDE, affine_grid, 20), Row("DFT", WIDE, dft, 17),
    Row("Attention", HALVES, attention, 23), Row("RotaryEmbedding", HALVES, rotary, 23), Row("If", NUMERIC, branch),
    Row("Loop", NUMERIC, loop, results=2), Row("Scan", NUMERIC, scan, results=2),
    *[Row(op, [np.dtype("i"), LONG], lambda d, dtype: ([d.const(d.int(1, 9), dtype)], d.optional(periodic=d.int(0, 1))), 17)
      for op in ("HannWindow", "HammingWindow", "BlackmanWindow")],
]
