"""Forms of opsets 1 to 6: broadcasting by attributes, attributes in place of operands, dtypes by name, `consumed_inputs`, `is_test`.

Oracle: a formula in NumPy; ONNX Runtime, too, on the model itself or as onnx.version_converter makes it, where one of them can: both must
agree with the formula. A case is operator, opset, operands, attributes, formula.
"""
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, version_converter
from onnx_cases import DEVICES, assert_refused, assert_similar, onnxruntime_run, run_model
from test_onnx_families import BATCH, HIDDEN, INPUTS, STEPS

F, L = np.float32, np.int64
RANDOM = np.random.default_rng(16)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(F)


X, C, LAST = normal(2, 3, 4, 5), normal(3), normal(5)
P = np.abs(X) + F(0.5)
M, N = normal(2, 3), normal(3, 4)
column = lambda v: v.reshape(-1, 1, 1)  # noqa: E731
USED = {"consumed_inputs": [0, 0]}
ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
COMPARED = {"Equal": np.equal, "Less": np.less, "Greater": np.greater}
LOGIC = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
UNARY = {"Neg": np.negative, "Abs": np.abs, "Floor": np.floor, "Ceil": np.ceil, "Exp": np.exp, "Tanh": np.tanh, "Relu": lambda x: np.maximum(x, 0),
         "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "LeakyRelu": lambda x: np.where(x < 0, x * F(0.01), x),
         "Elu": lambda x: np.where(x < 0, np.exp(x) - 1, x), "HardSigmoid": lambda x: np.clip(x * F(0.2) + F(0.5), 0, 1),
         "Selu": lambda x: F(1.0507) * np.where(x < 0, F(1.6732) * (np.exp(x) - 1), x)}
POSITIVE = {"Sqrt": np.sqrt, "Log": np.log, "Reciprocal": np.reciprocal}
BITS, BIT = RANDOM.random((2, 3, 4)) < 0.5, np.array([True, False, True])


def batch_normalised(x, scale, bias, mean, variance, epsilon=1e-5):
    return (x - column(mean)) / np.sqrt(column(variance) + F(epsilon)) * column(scale) + column(bias)


def instance_normalised(x, scale, bias):
    mean, variance = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    return (x - mean) / np.sqrt(variance + F(1e-5)) * column(scale) + column(bias)


def averaged(x):
    return (x[..., :-1, :-1] + x[..., :-1, 1:] + x[..., 1:, :-1] + x[..., 1:, 1:]) / 4


VARIANCE = np.abs(normal(3)) + F(0.5)
STATISTICS = [C, normal(3), normal(3), VARIANCE]
CASES = [
    *[(op, opset, [X, P], USED if opset == 1 else {}, f) for op, f in ARITHMETIC.items() for opset in (1, 6)],
    *[(op, 6, [X, LAST + F(9)], {"broadcast": 1}, f) for op, f in ARITHMETIC.items()],
    *[(op, 6, [X, C + F(9)], {"broadcast": 1, "axis": 1}, lambda a, b, f=f: f(a, column(b))) for op, f in ARITHMETIC.items()],
    ("Add", 6, [X, normal(3, 4)], {"broadcast": 1, "axis": 1}, lambda a, b: a + b[..., None]),
    ("Add", 6, [X, normal(2)], {"broadcast": 1, "axis": 0}, lambda a, b: a + b.reshape(2, 1, 1, 1)),
    ("Add", 6, [X, normal(3, 1)], {"broadcast": 1, "axis": 1}, lambda a, b: a + b[..., None]),
    ("Add", 6, [X, normal(1)], {"broadcast": 1}, np.add), ("Add", 6, [X, F(2)], {"broadcast": 1}, np.add),
    ("Add", 6, [X, C], {"broadcast": 1, "axis": -3}, lambda a, b: a + column(b)),
    ("Pow", 1, [P, F(2)], {"broadcast": 1}, np.power), ("Pow", 1, [P, C], {"broadcast": 1, "axis": 1}, lambda a, b: a ** column(b)),
    *[(op, 1, [BITS, BITS[::-1].copy()], {}, f) for op, f in LOGIC.items()],
    *[(op, 1, [BITS, BIT], {"broadcast": 1, "axis": 1}, lambda a, b, f=f: f(a, b[:, None])) for op, f in LOGIC.items()],
    ("Not", 1, [BITS], {}, np.logical_not),
    *[(op, 1, [np.round(X), np.round(C)] if op != "Equal" else [np.round(X).astype(L), np.round(C).astype(L)], {"broadcast": 1, "axis": 1},
       lambda a, b, f=f: f(a, column(b))) for op, f in COMPARED.items()],
    *[(op, 1, [X], {"consumed_inputs": [0]}, f) for op, f in UNARY.items()], *[(op, 1, [P], {}, f) for op, f in POSITIVE.items()],
    ("Selu", 1, [X], {"alpha": 2.0, "gamma": 3.0}, lambda x: F(3) * np.where(x < 0, F(2) * (np.exp(x) - 1), x)),
    *[(op, opset, [X, P, -X], {}, f) for opset in (1, 6) for op, f in
      (("Sum", lambda *v: sum(v)), ("Max", lambda *v: np.max(v, 0)), ("Min", lambda *v: np.min(v, 0)), ("Mean", lambda *v: sum(v) / F(3)))],
    ("Clip", 1, [X], {"min": -0.5, "max": 0.25, "consumed_inputs": [0]}, lambda x: np.clip(x, -0.5, 0.25)),
    ("Clip", 6, [X], {"max": 0.25}, lambda x: np.minimum(x, F(0.25))),
    ("PRelu", 1, [X, C], {}, lambda x, s: np.where(x < 0, x * column(s), x)), ("PRelu", 6, [X, normal(1)], {}, lambda x, s: np.where(x < 0, x * s, x)),
    ("Reshape", 1, [X], {"shape": [0, -1, 5]}, lambda x: x.reshape(2, 12, 5)), ("Reshape", 4, [X], {"shape": [-1]}, lambda x: x.reshape(-1)),
    ("Cast", 1, [X], {"to": "INT64"}, lambda x: x.astype(L)), ("Cast", 5, [X], {"to": "DOUBLE"}, lambda x: x.astype(np.float64)),
    ("Cast", 1, [X], {"to": "BOOL"}, lambda x: x != 0),
    ("Concat", 1, [X, P], {}, lambda a, b: np.concatenate([a, b], 1)), ("Concat", 3, [X, P], {"axis": 3}, lambda a, b: np.concatenate([a, b], 3)),
    ("Gemm", 1, [M, N, normal(2, 4)], {"alpha": 0.5}, lambda a, b, c: F(0.5) * (a @ b) + c),
    ("Gemm", 6, [M, N.T.copy(), normal(4)], {"broadcast": 1, "transB": 1}, lambda a, b, c: a @ b.T + c),
    ("Pad", 1, [M], {"paddings": [1, 0, 2, 3], "value": 1.5}, lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=1.5)),
    ("Pad", 1, [X], {"paddings": [0, 0, 1, 2, 0, 0, 1, 1], "mode": "reflect"}, lambda x: np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 1)), mode="reflect")),
    ("Pad", 2, [M], {"pads": [1, 0, 2, 3]}, lambda x: np.pad(x, ((1, 2), (0, 3)))),
    ("BatchNormalization", 1, [X, *STATISTICS], {"is_test": 1, "consumed_inputs": [0, 0, 0, 1, 1], "epsilon": 0.01},
     lambda *v: batch_normalised(*v, epsilon=0.01)),
    ("BatchNormalization", 6, [X, *STATISTICS], {"is_test": 1, "spatial": 1}, batch_normalised),
    ("InstanceNormalization", 1, [X, C, C], {"consumed_inputs": [0]}, instance_normalised), ("InstanceNormalization", 6, [X, C, C], {}, instance_normalised),
    ("Dropout", 1, [X], {"is_test": 1, "ratio": 0.3, "consumed_inputs": [0]}, lambda x: x), ("Dropout", 6, [X], {"ratio": 0.0}, lambda x: x),
    ("AveragePool", 1, [X], {"kernel_shape": [2, 2]}, averaged),
    ("LpPool", 1, [X], {"kernel_shape": [2, 2], "p": 1.5}, lambda x: (averaged(np.abs(x) ** F(1.5)) * 4) ** F(1 / 1.5)),
    ("GlobalLpPool", 1, [X], {"p": 3.0}, lambda x: (np.abs(x) ** 3).sum((2, 3), keepdims=True) ** F(1 / 3)),
    ("GlobalLpPool", 1, [X], {}, lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True))),
    ("Upsample", 1, [X], {"height_scale": 2.0, "width_scale": 3.0, "mode": "nearest"}, lambda x: x.repeat(2, 2).repeat(3, 3)),
    ("Softmax", 1, [M], {}, lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)), ("Transpose", 1, [M], {}, lambda x: x.T),
    ("Flatten", 1, [X], {}, lambda x: x.reshape(2, -1)), ("ReduceSum", 1, [X], {"axes": [1], "keepdims": 0}, lambda x: x.sum(1)),
    ("Squeeze", 1, [X[:1]], {"axes": [0]}, lambda x: x[0]), ("Slice", 1, [X], {"starts": [1], "ends": [3], "axes": [2]}, lambda x: x[:, :, 1:3]),
    ("MatMul", 1, [M, N], {}, np.matmul), ("Gather", 1, [X, np.array([2, 0], L)], {"axis": 1}, lambda x, i: x[:, i]),
    ("ArgMax", 1, [X], {"axis": 1}, lambda x: x.argmax(1)[:, None]), ("Identity", 1, [X], {}, lambda x: x),
]


def model_of(op, opset, inputs, attributes, results=1, constants=()):
    names = [f"x{k}" for k in range(len(inputs))]
    outputs = [f"y{k}" for k in range(results)]
    graph = helper.make_graph([helper.make_node(op, names, outputs, **attributes)], "first",
                              [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(names, inputs)],
                              [helper.make_empty_tensor_value_info(n) for n in outputs],
                              [numpy_helper.from_array(inputs[k], names[k]) for k in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


def second_opinions(model, inputs):
    """The answers of ONNX Runtime to the model as it is and as converted; none where it or the converter refuses."""
    answers = []
    for convert in (lambda m: m, lambda m: version_converter.convert_version(m, 8)):
        try:
            answers.append(onnxruntime_run(convert(model), inputs, optimised=False))
        except Exception:  # noqa: BLE001: of either library, without a common base
            continue
    return answers


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]}-{case[1]}-{k}" for k, case in enumerate(CASES)])
def test_as_the_formula(context, device, case):
    op, opset, inputs, attributes, formula = case
    inputs = [np.ascontiguousarray(x) if np.ndim(x) else np.asarray(x) for x in inputs]
    want, model = [np.asarray(formula(*inputs))], model_of(op, opset, inputs, attributes)
    for answer in second_opinions(model, inputs):
        assert_similar(want, answer, 1e-4, 1e-5)
    got = run_model(context, device, model, inputs)
    assert got[0].dtype == want[0].dtype
    assert_similar(want, got, 1e-4, 1e-5)


def test_most_forms_have_a_second_opinion():
    """So that the formulas are not alone."""
    seen = [bool(second_opinions(model_of(*case[:4]), case[2])) for case in CASES]
    assert sum(seen) >= len(CASES) // 2, f"{sum(seen)} of {len(seen)}"


def test_forms_with_constant_operands(context):
    split = model_of("Split", 1, [X, np.array([1, 4], L)], {"axis": 3}, 2, constants=[1])
    assert_similar([X[..., :1], X[..., 1:]], run_model(context, "reference", split, [X]), 0, 0)
    parts = model_of("Split", 1, [X], {"axis": 2}, 2)
    assert_similar([X[:, :, :2], X[:, :, 2:]], run_model(context, "reference", parts, [X]), 0, 0)
    tile = model_of("Tile", 1, [M, np.array(3, F), np.array(1, F)], {}, constants=[1, 2])
    assert_similar([np.tile(M, (1, 3))], run_model(context, "reference", tile, [M]), 0, 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op, gates", [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_cells_of_opset_1(context, device, op, gates):
    """As cells of opset 7, without output_sequence."""
    inputs = [normal(STEPS, BATCH, INPUTS), normal(1, gates * HIDDEN, INPUTS), normal(1, gates * HIDDEN, HIDDEN), normal(1, 2 * gates * HIDDEN)]
    want = onnxruntime_run(model_of(op, 7, inputs, {"hidden_size": HIDDEN}, 2), inputs, optimised=False)
    model = model_of(op, 1, inputs, {"hidden_size": HIDDEN, "output_sequence": 1}, 2)
    assert_similar(want, run_model(context, device, model, inputs), 1e-4, 1e-5)


def test_sizes_are_computed_at_import(context):
    """Shape, its product with 2 and a Reshape by it, in opset 5, with a broadcast along an axis."""
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Mul", ["s", "by"], ["t"], broadcast=1, axis=0),
             helper.make_node("Reshape", ["y", "t"], ["z"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
                                           helper.make_tensor_value_info("y", TensorProto.FLOAT, [24])],
                              [helper.make_empty_tensor_value_info("z")], [numpy_helper.from_array(np.array(2, L), "by")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 5)], ir_version=3)
    y = normal(24)
    assert_similar([y.reshape(4, 6)], run_model(context, "reference", model, [M, y]), 0, 0)


REFUSED = [
    (("Add", 6, [X, LAST], {}), "INVALID", ["dims", "broadcast"]), (("Add", 6, [X, C], {"broadcast": 1}), "INVALID", ["add", "broadcast"]),
    (("Add", 6, [X, normal(4, 5)], {"broadcast": 1, "axis": 3}), "INVALID", ["2 dims from axis 3", "4 dims"]),
    (("Add", 6, [M, X], {"broadcast": 1}), "INVALID", ["operand 0 has 2 dims"]), (("Add", 6, [X, C], {"broadcast": 1, "axis": 9}), "INVALID", ["axis 9"]),
    (("Cast", 1, [X], {"to": "FLOAT128"}), "INVALID", ["FLOAT128", "INT64"]), (("Cast", 1, [X], {"to": 7}), "INVALID", ["'to'"]),
    (("Reshape", 1, [X], {}), "INVALID", ["shape is missing"]), (("Reshape", 1, [M], {"shape": [2, 3, 0]}), "INVALID", ["index 2", "2 dims"]),
    (("BatchNormalization", 6, [X, *STATISTICS], {}), "UNIMPLEMENTED", ["is_test", "training"]), (("Dropout", 6, [X], {}), "UNIMPLEMENTED", ["is_test"]),
    (("Pad", 1, [M], {"paddings": [1, 2]}), "INVALID", ["pads", "2 entries"]), (("LpPool", 1, [X], {"kernel_shape": [2, 2], "p": 0.0}), "INVALID", ["p is 0"]),
    (("Neg", 6, [X], {"consumed_inputs": [0]}), "UNIMPLEMENTED", ["consumed_inputs of Neg"]),
    (("Tile", 1, [M, F(2), F(1)], {}), "UNIMPLEMENTED", ["tiles"]), (("Split", 1, [X, np.array([1, 4], L)], {"axis": 3}), "INVALID", ["2 sizes", "1 results"]),
    (("Tile", 1, [M, F(np.nan), F(1)], {}), "INVALID", ["tiles is nan"]),
    (("Reshape", 1, [M], {"shape": [2, -(2**62) - 5]}), "INVALID", ["at index 1"]), (("Split", 1, [M], {"split": [-1]}), "INVALID", ["a size is -1"]),
    (("Erf", 6, [X], {}), "UNIMPLEMENTED", ["Erf of opset 6"]),
]


@pytest.mark.parametrize("case, code, words", REFUSED, ids=range(len(REFUSED)))
def test_refused_forms_name_the_reason(context, case, code, words):
    op, opset, inputs, attributes = case
    inputs = [np.asarray(x) for x in inputs]
    constants = (1, 2) if op == "Tile" and np.isnan(inputs[1]) else ()
    assert_refused(context, model_of(op, opset, inputs, attributes, constants=constants), [x for k, x in enumerate(inputs) if k not in constants], code, words)
