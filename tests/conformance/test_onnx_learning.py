"""Operators of ai.onnx.ml on numbers, results of normalisations that ONNX's node tests leave out, bodies within bodies that read values
of the graphs around them, and clipped LSTMs. Oracle: ONNX Runtime; NumPy where a result is only a formula. Then refusals.
"""
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import DEVICES, assert_refused, assert_similar, run_model
from test_onnx_families import agrees, cell, model_of, normal

F, L = np.float32, np.int64
X = normal(3, 4)
GAPS = np.array([[1, np.nan, 3], [np.nan, 5, 6]], F)
ROUND = np.array([[-1, 2, -1], [4, -1, 7]], L)
KEYS = np.array([3, 7, 9, 3], L)


def learned(op, inputs, attributes, version=3):
    model, inputs = model_of(op, inputs, 17, attributes, domain="ai.onnx.ml")
    model.opset_import[1].version = version
    return model, inputs


def tensor(array):
    return numpy_helper.from_array(np.asarray(array))


LEARNING = [
    ("Scaler", [X], {"offset": [0.5, 1, -2, 3], "scale": [2.0, 0.25, 1, -1]}), ("Scaler", [X], {"offset": [0.5], "scale": [2.0]}),
    ("Scaler", [np.arange(8).reshape(2, 4)], {"offset": [1.0, 2, 3, 4], "scale": [2.0, 0.5, 1, 3]}),
    *[("Normalizer", [X], {"norm": norm}) for norm in ("MAX", "L1", "L2")], ("Normalizer", [-np.abs(X)], {"norm": "L1"}),
    ("Normalizer", [np.array([[0, 0, 0], [1, 2, 2]], F)], {"norm": "L2"}), ("Normalizer", [normal(4)], {"norm": "L1"}),
    ("Imputer", [GAPS], {"imputed_value_floats": [10.0, 20, 30], "replaced_value_float": float("nan")}),
    ("Imputer", [GAPS], {"imputed_value_floats": [9.0], "replaced_value_float": 3.0}),
    ("Imputer", [ROUND], {"imputed_value_int64s": [7, 8, 9], "replaced_value_int64": -1}),
    ("LinearRegressor", [X], {"coefficients": [0.5, -1, 2, 3], "intercepts": [0.25]}),
    ("LinearRegressor", [X], {"coefficients": [float(k) for k in range(8)], "intercepts": [1.0, -1], "targets": 2}),
    ("LinearRegressor", [X], {"coefficients": [float(k) for k in range(8)], "targets": 2}),
    ("LabelEncoder", [KEYS], {"keys_int64s": [3, 9], "values_floats": [0.5, 1.5], "default_float": -2.0}),
    ("LabelEncoder", [KEYS.astype(F)], {"keys_floats": [9.0, 3.0], "values_int64s": [4, 5], "default_int64": 6}),
    ("LabelEncoder", [KEYS.reshape(2, 2)], {"keys_int64s": [3, 9, 7], "values_int64s": [30, 90, 70]}),
    ("LabelEncoder", [np.array([np.nan, 1], F)], {"keys_floats": [float("nan")], "values_int64s": [8]}),
    ("LabelEncoder", [KEYS], {"keys_tensor": tensor(np.array([7, 3], L)), "values_tensor": tensor(np.array([1, 2], L)),
                              "default_tensor": tensor(np.array([-5], L))}),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op, inputs, attributes", LEARNING, ids=[f"{case[0]}-{k}" for k, case in enumerate(LEARNING)])
def test_learned_operators(context, device, op, inputs, attributes):
    agrees(context, device, *learned(op, inputs, attributes, 4 if op == "LabelEncoder" else 3))


WEIGHTS = [0.5, -1.0, 2.0, 3.0, -0.25, 1.0, 1.5, -2.0, 0.75, 0.0, -1.0, 2.5]
CLASSIFIERS = [{"coefficients": WEIGHTS, "intercepts": [0.25, -1.0, 0.5], "classlabels_ints": [4, -1, 9]},
               {"coefficients": WEIGHTS, "intercepts": [0.0, 0.0, 0.0], "classlabels_ints": [0, 1, 2], "post_transform": "SOFTMAX"},
               {"coefficients": WEIGHTS[:8], "intercepts": [0.25, -0.5], "classlabels_ints": [0, 1], "post_transform": "LOGISTIC"},
               {"coefficients": WEIGHTS[:4], "intercepts": [0.25], "classlabels_ints": [7, 8]},
               {"coefficients": WEIGHTS[:4], "intercepts": [0.25], "classlabels_ints": [7, 8], "post_transform": "LOGISTIC"}]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("attributes", CLASSIFIERS, ids=range(len(CLASSIFIERS)))
def test_linear_classifiers(context, device, attributes):
    for x in (X, X.astype(np.float64), np.arange(8).reshape(2, 4)):
        model, inputs = learned("LinearClassifier", [x], attributes, 1)
        agrees(context, device, labels_and_scores(model), inputs)


def labels_and_scores(model):
    """The model with both results of its node."""
    name = model.graph.node[0].output[0]
    model.graph.node[0].output.append("scores")
    del model.graph.output[:]
    model.graph.output.extend([helper.make_tensor_value_info(name, TensorProto.INT64, None), helper.make_tensor_value_info("scores", TensorProto.FLOAT, None)])
    return model


@pytest.mark.parametrize("attributes, code, words", [
    ({"coefficients": WEIGHTS[:7], "classlabels_ints": [0, 1]}, "INVALID", ["7 coefficients", "4 features", "2 classes"]),
    ({"coefficients": WEIGHTS[:8], "intercepts": [1.0], "classlabels_ints": [0, 1]}, "INVALID", ["1 intercepts", "2"]),
    ({"coefficients": WEIGHTS[:4], "classlabels_ints": [1]}, "UNIMPLEMENTED", ["1 class labels"]),
    ({"coefficients": WEIGHTS[:4], "classlabels_strings": ["a", "b"], "classlabels_ints": [0, 1]}, "INVALID", ["classlabels_strings", "one of them"]),
    ({"coefficients": WEIGHTS[:8], "classlabels_ints": [0, 1], "post_transform": "PROBIT"}, "UNIMPLEMENTED", ["PROBIT"])], ids=range(5))
def test_refused_classifiers(context, attributes, code, words):
    assert_refused(context, *learned("LinearClassifier", [X], attributes, 1), code, words)


# ---- normalisations of ONNX Runtime's exports

A, B, ROW = normal(2, 3, 8), normal(2, 3, 8), normal(8)
NORMS = [("SkipLayerNormalization", [A, B, ROW, normal(8), normal(8)]), ("SkipLayerNormalization", [A, B, ROW]),
         ("SkipSimplifiedLayerNormalization", [A, B, ROW, normal(8)])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op, inputs", NORMS, ids=range(len(NORMS)))
def test_sum_of_skip_connections_is_a_result(context, device, op, inputs):
    model, inputs = model_of(op, inputs, 17, {"epsilon": 1e-5}, 4, "com.microsoft")
    model.graph.node[0].output[1] = model.graph.node[0].output[2] = ""
    del model.graph.output[1:3]
    agrees(context, device, model, inputs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("attributes", [{}, {"axis": 2, "epsilon": 0.1}])
def test_simplified_layer_normalization(context, device, attributes):
    model, inputs = model_of("SimplifiedLayerNormalization", [A, ROW], 17, attributes)
    agrees(context, device, model, inputs, rtol=1e-3, atol=1e-4)
    want = A / np.sqrt((A * A).mean(-1, keepdims=True) + attributes.get("epsilon", 1e-5)) * ROW
    assert_similar([want.astype(F)], run_model(context, device, model, inputs), 1e-3, 1e-4)


# ---- clipped recurrent cells


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op, options", [("LSTM", {"clip": 0.3}), ("LSTM", {"clip": 0.2, "directions": 2, "lengths": [2, 5]}), ("RNN", {"clip": 0.1})],
                         ids=range(3))
def test_clipped_cells(context, device, op, options):
    agrees(context, device, *cell(op, **options))


# ---- bodies within bodies

value = helper.make_tensor_value_info
VECTOR = [3]


def whole(nodes, results, constants=()):
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, VECTOR), value("step", TensorProto.FLOAT, [])],
                              [helper.make_empty_tensor_value_info(name) for name in results],
                              [numpy_helper.from_array(np.array(v), name) for name, v in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    return model


def loop_body(name, nodes, carried, result):
    nodes = [*nodes, helper.make_node("Identity", [f"go_{name}"], [f"on_{name}"])]
    return helper.make_graph(nodes, name, [value(f"i_{name}", TensorProto.INT64, []), value(f"go_{name}", TensorProto.BOOL, []),
                                           value(carried, TensorProto.FLOAT, VECTOR)],
                             [value(f"on_{name}", TensorProto.BOOL, []), value(result, TensorProto.FLOAT, VECTOR)])


COUNTS = [("two", L(2)), ("three", L(3)), ("true", True), ("zero", F(0)), ("half", F(0.5))]


def loop_in_loop():
    """The inner body reads the outer body's carried value and counter, and the whole graph's step."""
    inner = loop_body("inner", [helper.make_node("Cast", ["i_outer"], ["k"], to=TensorProto.FLOAT), helper.make_node("Mul", ["v", "half"], ["small"]),
                                helper.make_node("Add", ["w", "small"], ["w1"]), helper.make_node("Add", ["w1", "k"], ["w2"]),
                                helper.make_node("Add", ["w2", "step"], ["w3"])], "w", "w3")
    outer = loop_body("outer", [helper.make_node("Loop", ["two", "true", "v"], ["v1"], body=inner)], "v", "v1")
    return whole([helper.make_node("Loop", ["three", "true", "x"], ["y"], body=outer)], ["y"], COUNTS)


def branch_in_loop():
    """Branches read the body's value and the whole graph's; the condition is data of the body."""
    grow = helper.make_graph([helper.make_node("Add", ["v", "step"], ["a"])], "grow", [], [value("a", TensorProto.FLOAT, VECTOR)])
    shrink = helper.make_graph([helper.make_node("Mul", ["v", "half"], ["b"])], "shrink", [], [value("b", TensorProto.FLOAT, VECTOR)])
    body = loop_body("body", [helper.make_node("ReduceSum", ["v"], ["sum"], keepdims=0), helper.make_node("Less", ["sum", "zero"], ["p"]),
                              helper.make_node("If", ["p"], ["v1"], then_branch=grow, else_branch=shrink)], "v", "v1")
    return whole([helper.make_node("Loop", ["three", "true", "x"], ["y"], body=body)], ["y"], COUNTS)


def scan_in_branch():
    """A scan within a branch adds up rows and a value of the whole graph."""
    body = helper.make_graph([helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Add", ["t", "step"], ["s1"]),
                              helper.make_node("Mul", ["s1", "two_f"], ["o"])], "body",
                             [value("s", TensorProto.FLOAT, []), value("e", TensorProto.FLOAT, [])],
                             [value("s1", TensorProto.FLOAT, []), value("o", TensorProto.FLOAT, [])])
    yes = helper.make_graph([helper.make_node("Scan", ["zero", "x"], ["last", "all"], body=body, num_scan_inputs=1)], "yes", [],
                            [value("all", TensorProto.FLOAT, VECTOR)])
    no = helper.make_graph([helper.make_node("Mul", ["x", "half"], ["h"])], "no", [], [value("h", TensorProto.FLOAT, VECTOR)])
    nodes = [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), helper.make_node("Less", ["zero", "sum"], ["p"]),
             helper.make_node("If", ["p"], ["y"], then_branch=yes, else_branch=no)]
    return whole(nodes, ["y"], [*COUNTS, ("two_f", F(2))])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("made", [loop_in_loop, branch_in_loop, scan_in_branch], ids=lambda made: made.__name__)
@pytest.mark.parametrize("sign", [1, -1])
def test_bodies_within_bodies(context, device, made, sign):
    agrees(context, device, made(), [np.array([1, 2, 3], F) * F(sign), np.array(1.5, F)])


# ---- refusals

REFUSED = [
    (lambda: learned("Normalizer", [X], {"norm": "L3"}), "INVALID", ["L3", "MAX, L1 or L2"]),
    (lambda: learned("Imputer", [X], {"replaced_value_float": 1.0}), "INVALID", ["imputed_value_floats"]),
    (lambda: learned("Imputer", [X], {"imputed_value_floats": [1.0, 2], "replaced_value_float": 1.0}), "INVALID", ["2 values", "4 features"]),
    (lambda: learned("Scaler", [X], {"offset": [1.0, 2], "scale": [1.0, 2]}), "INVALID", ["offset has 2 values", "4 features"]),
    (lambda: learned("LinearRegressor", [X], {"coefficients": [1.0, 2, 3], "targets": 2}), "INVALID", ["3 coefficients", "2 targets"]),
    (lambda: learned("LinearRegressor", [X], {"coefficients": [1.0, 2, 3]}), "INVALID", ["coefficients has 3 values", "4 features"]),
    (lambda: learned("LinearRegressor", [X], {"coefficients": [1.0] * 4, "post_transform": "PROBIT"}), "UNIMPLEMENTED", ["PROBIT"]),
    (lambda: learned("LabelEncoder", [KEYS], {"keys_int64s": [3, 9], "values_floats": [0.5]}), "INVALID", ["2 keys", "1 values"]),
    (lambda: learned("LabelEncoder", [KEYS], {"keys_floats": [3.0], "values_floats": [0.5]}), "INVALID", ["i64", "f32"]),
    (lambda: learned("LabelEncoder", [KEYS], {"keys_strings": ["a"], "values_int64s": [3]}), "INVALID", ["operand 0 is i64", "strings"]),
    (lambda: learned("LabelEncoder", [KEYS], {"keys_int64s": [3], "values_strings": ["a\0b"]}), "UNIMPLEMENTED", ["zero byte"]),
    (lambda: model_of("SkipLayerNormalization", [A, B, ROW], 17, {}, 2, "com.microsoft"), "UNIMPLEMENTED", ["result 1", "training"]),
    (lambda: model_of("SimplifiedLayerNormalization", [A, normal(3, 8)], 17, {"axis": 1}), "UNIMPLEMENTED", ["axis", "last"]),
]


@pytest.mark.parametrize("made, code, words", REFUSED, ids=range(len(REFUSED)))
def test_learning_refusals_name_the_reason(context, made, code, words):
    assert_refused(context, *made(), code, words)
