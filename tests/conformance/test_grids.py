"""Grids of attributes and shapes for ops that ONNX's own suite hardly tests: convolution, pooling, batch normalisation, matrix
products, broadcasts. Oracles: NumPy where it has the op, else ONNX Runtime.

A builder draws one case with a random source of fixed seed; each case is one model of one node. Each list starts with unusual
cases by hand: empty dims, dims of size one.
"""
import random

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_cases import DEVICES, assert_similar, onnxruntime_run, run_model

TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float64): TensorProto.DOUBLE,
         np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int64): TensorProto.INT64}


def one_node(op, inputs, outputs=1, opset=19, **attrs):
    """A model of one node; the dims of its results are undefined."""
    attrs = {k: v for k, v in attrs.items() if v is not None}
    names = [f"x{i}" for i in range(len(inputs))]
    results = [f"y{i}" for i in range(outputs)]
    kinds = [TYPES[inputs[0].dtype], TensorProto.INT64]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attrs)], "grid",
        [helper.make_tensor_value_info(n, TYPES[x.dtype], x.shape) for n, x in zip(names, inputs)],
        [helper.make_tensor_value_info(n, kinds[i], None) for i, n in enumerate(results)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def floats(rng, shape, dtype=np.float32):
    count = int(np.prod(shape))
    return np.array([rng.uniform(-1, 1) for _ in range(count)], dtype).reshape(shape)


def draw_window(rng, dims, dilated=True):
    """Returns spatial sizes, kernel, strides, dilations, pads; the window fits at least once."""
    while True:
        size = [rng.choice([1, 2, 3, 5, 7, 8, 11]) for _ in range(dims)]
        kernel = [rng.choice([1, 2, 3, 4, 5]) for _ in range(dims)]
        strides = [rng.choice([1, 1, 2, 3]) for _ in range(dims)]
        dilations = [rng.choice([1, 1, 2, 3]) if dilated else 1 for _ in range(dims)]
        pads = [rng.randrange(0, k) for k in kernel * 2]
        reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel)]
        if all(s + a + b >= r for s, a, b, r in zip(size, pads, pads[dims:], reach)):
            return size, kernel, strides, dilations, pads


def draw_conv(rng):
    dims, groups = rng.choice([1, 2, 2, 2, 3]), rng.choice([1, 1, 2, 3, 4])
    size, kernel, strides, dilations, pads = draw_window(rng, dims)
    auto = rng.choice([None, None, None, "SAME_UPPER", "SAME_LOWER", "VALID"])
    if auto == "VALID" and any(s < d * (k - 1) + 1 for s, d, k in zip(size, dilations, kernel)):
        auto = None
    if auto and auto.startswith("SAME"):
        dilations = [1] * dims  # ONNX Runtime supports no other
    channels = groups * rng.choice([1, 2, 3])
    made = groups * rng.choice([1, 2, 5])
    inputs = [floats(rng, (rng.choice([1, 2, 3]), channels, *size)), floats(rng, (made, channels // groups, *kernel))]
    if rng.random() < 0.5:
        inputs.append(floats(rng, (made,)))
    return "Conv", inputs, {"strides": strides, "dilations": dilations, "group": groups, "auto_pad": auto,
                            "pads": None if auto else pads}


def conv_by_hand():
    rng = random.Random(0)
    for x, w, attrs in [((0, 3, 5, 5), (4, 3, 3, 3), {}), ((1, 1, 1, 1), (1, 1, 1, 1), {}),
                        ((2, 8, 6, 6), (8, 1, 3, 3), {"group": 8, "pads": [1, 1, 1, 1]}),
                        ((1, 16, 9, 9), (32, 1, 3, 3), {"group": 16, "strides": [2, 2]}),
                        ((1, 64, 7, 7), (64, 64, 1, 1), {}), ((1, 17, 13, 5), (33, 17, 3, 5), {"pads": [1, 2, 1, 2]}),
                        ((1, 2, 1, 9), (3, 2, 1, 4), {"dilations": [1, 2]}), ((3, 5, 4), (7, 5, 4), {})]:
        yield "Conv", [floats(rng, x), floats(rng, w)], attrs


def draw_pool(rng, op):
    dims, peak = rng.choice([1, 2, 2, 2, 3]), op == "MaxPool"
    size, kernel, strides, dilations, pads = draw_window(rng, dims)
    auto = rng.choice([None, None, None, "SAME_UPPER", "SAME_LOWER"])
    if auto:
        dilations, pads = [1] * dims, None
        strides = [min(s, k) for s, k in zip(strides, kernel)]  # ONNX Runtime does not allow gaps here
    attrs = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads, "auto_pad": auto}
    if not auto and all(p == 0 for p in pads):
        attrs["ceil_mode"] = rng.choice([0, 1])
    if not peak:
        attrs["count_include_pad"] = rng.choice([0, 1])
    return op, [floats(rng, (rng.choice([0, 1, 2]) if peak else 1, rng.choice([1, 3, 8]), *size))], attrs


def draw_norm(rng):
    shape = (rng.choice([0, 1, 2, 5]), rng.choice([1, 3, 16]), *[rng.choice([1, 2, 7]) for _ in range(rng.randrange(4))])
    scale, bias, mean = (floats(rng, shape[1:2]) for _ in range(3))
    var = np.abs(floats(rng, shape[1:2])) + np.float32(0.01)
    return "BatchNormalization", [floats(rng, shape), scale, bias, mean, var], {"epsilon": rng.choice([1e-5, 1e-3, 0.5])}


def cases(seed, count, draw, *args, by_hand=()):
    rng = random.Random(seed)
    return [*by_hand, *(draw(rng, *args) for _ in range(count))]


def title(case):
    op, inputs, attrs = case
    return f"{op}-{'-'.join('x'.join(map(str, x.shape)) or '0d' for x in inputs)}-" + "-".join(
        f"{k[:4]}{''.join(map(str, v)) if isinstance(v, list) else v}" for k, v in attrs.items() if v is not None)


WINDOWED = [*cases(1, 60, draw_conv, by_hand=conv_by_hand()), *cases(2, 40, draw_pool, "MaxPool"),
            *cases(3, 40, draw_pool, "AveragePool"), *cases(4, 20, draw_norm)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", WINDOWED, ids=title)
def test_windows_and_norm(context, case, device):
    op, inputs, attrs = case
    model = one_node(op, inputs, **attrs)
    assert_similar(onnxruntime_run(model, inputs), run_model(context, device, model, inputs), 1e-4, 1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 7), (1, 5, 4, 9), (2, 2, 3, 1, 5)], ids=str)
@pytest.mark.parametrize("op,reduce", [("GlobalAveragePool", np.mean), ("GlobalMaxPool", np.max)])
def test_global_pool(context, op, reduce, shape, device):
    x = floats(random.Random(5), shape)
    want = reduce(x.astype(np.float64), axis=tuple(range(2, x.ndim)), keepdims=True).astype(np.float32)
    assert_similar([want], run_model(context, device, one_node(op, [x]), [x]), 1e-5, 1e-6)


MATMULS = [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((1, 1), (1, 1)), ((2, 3), (3, 4)), ((17, 33), (33, 9)),
           ((65, 129), (129, 31)), ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (3, 0)), ((5, 2, 3), (3, 4)),
           ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 2, 3), (1, 3, 4)),
           ((2, 1, 2, 3), (1, 5, 3, 4)), ((4, 1, 3, 2, 1), (1, 5, 1, 1, 7)), ((0, 2, 3), (1, 3, 4)), ((6, 1, 3), (3,)),
           ((3,), (6, 3, 1)), ((1, 256), (256, 3)), ((128, 1), (1, 128))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("left,right", MATMULS, ids=str)
def test_matmul(context, left, right, dtype, device):
    rng = random.Random(6)
    a, b = (np.rint(20 * floats(rng, s)).astype(dtype) if np.dtype(dtype).kind == "i" else floats(rng, s, dtype)
            for s in (left, right))
    want = np.asarray(np.matmul(a, b))
    assert_similar([want], run_model(context, device, one_node("MatMul", [a, b]), [a, b]), 1e-4, 1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("bias", [None, (), (1,), (5,), (1, 5), (3, 1), (3, 5)], ids=str)
@pytest.mark.parametrize("trans", [(0, 0), (0, 1), (1, 0), (1, 1)], ids=str)
@pytest.mark.parametrize("alpha,beta", [(1.0, 1.0), (0.5, -2.0)])
def test_gemm(context, alpha, beta, trans, bias, device):
    rng = random.Random(7)
    a, b = floats(rng, (4, 3) if trans[0] else (3, 4)), floats(rng, (5, 4) if trans[1] else (4, 5))
    inputs = [a, b] + ([] if bias is None else [floats(rng, bias)])
    want = np.float32(alpha) * ((a.T if trans[0] else a) @ (b.T if trans[1] else b))
    if bias is not None:
        want = want + np.float32(beta) * inputs[2]
    model = one_node("Gemm", inputs, alpha=alpha, beta=beta, transA=trans[0], transB=trans[1])
    assert_similar([want], run_model(context, device, model, inputs), 1e-5, 1e-6)


BROADCASTS = [((), ()), ((), (3,)), ((1,), (0,)), ((0,), (0,)), ((3, 1), (1, 4)), ((2, 3, 4), (4,)), ((2, 3, 4), (3, 1)),
              ((2, 1, 4), (1, 3, 1)), ((5, 1, 1), (5, 2, 3)), ((0, 3), (1, 3)), ((2, 0, 4), (4,)), ((1, 1, 1, 7), (7,)),
              ((2, 3, 5, 7), (1, 3, 1, 1)), ((1000,), (1000,)), ((33, 17), (33, 1))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Pow"])
@pytest.mark.parametrize("left,right", BROADCASTS, ids=str)
def test_broadcasts(context, op, left, right, device):
    rng = random.Random(8)
    a, b = np.abs(floats(rng, left)) + np.float32(0.1), floats(rng, right) + np.float32(1.5)
    ufunc = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power}[op]
    got = run_model(context, device, one_node(op, [a, b]), [a, b])
    assert_similar([np.asarray(ufunc(a, b))], got, 1e-5, 1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape,axis", [((1,), 0), ((3,), -1), ((2, 5), 0), ((2, 5), 1), ((3, 1, 4), 1), ((2, 3, 4), -1),
                                        ((0, 3), 1), ((2, 33, 7), 1), ((5, 1000), -1)], ids=str)
def test_softmax(context, shape, axis, device):
    x = 30 * floats(random.Random(9), shape)
    e = np.exp((x - x.max(axis=axis, keepdims=True)).astype(np.float64)) if x.size else x
    want = (e / e.sum(axis=axis, keepdims=True)).astype(np.float32)
    assert_similar([want], run_model(context, device, one_node("Softmax", [x], axis=axis), [x]), 1e-5, 1e-7)
