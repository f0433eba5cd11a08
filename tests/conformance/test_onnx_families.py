"""Operators that the importer writes in ops of the catalogue: recurrent cells, loops, branches, einsum, signals, samples, quantised
products, training, contrib. Oracle: ONNX Runtime, or onnx.reference where it lacks the operator; attributes and shapes that ONNX's own
node tests leave out. Then what is refused, with the words of the message.
"""
import numpy as np
import onnx
import pytest
from keel_abi import KeelError
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import DEVICES, assert_refused, assert_similar, onnxruntime_run, run_model

F, L = np.float32, np.int64
RANDOM = np.random.default_rng(28)
HIDDEN, INPUTS, BATCH, STEPS = 4, 3, 2, 5


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(F)


def model_of(op, inputs, opset, attributes, n_out=1, domain=""):
    names = [f"x{k}" if value is not None else "" for k, value in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{k}" for k in range(n_out)], domain=domain, **attributes)
    given = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
             for name, value in zip(names, inputs) if name]
    graph = helper.make_graph([node], "g", given, [helper.make_empty_tensor_value_info(f"y{k}") for k in range(n_out)])
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = 10
    return model, [value for value in inputs if value is not None]


def agrees(context, device, model, inputs, rtol=1e-4, atol=1e-5):
    assert_similar(onnxruntime_run(model, inputs, optimised=False), run_model(context, device, model, inputs), rtol, atol)


def cell(op, directions=1, lengths=None, peepholes=False, states=True, layout=0, **attributes):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    x = normal(BATCH, STEPS, INPUTS) if layout else normal(STEPS, BATCH, INPUTS)
    state = (BATCH, directions, HIDDEN) if layout else (directions, BATCH, HIDDEN)
    inputs = [x, normal(directions, gates * HIDDEN, INPUTS), normal(directions, gates * HIDDEN, HIDDEN),
              normal(directions, 2 * gates * HIDDEN), None if lengths is None else np.array(lengths, np.int32),
              normal(*state) if states else None]
    if op == "LSTM":
        inputs += [normal(*state) if states else None, normal(directions, 3 * HIDDEN) if peepholes else None]
    while inputs[-1] is None:
        inputs.pop()
    names = {1: {"direction": attributes.pop("direction", "forward")}, 2: {"direction": "bidirectional"}}[directions]
    return model_of(op, inputs, 14, {"hidden_size": HIDDEN, **names, **({"layout": 1} if layout else {}), **attributes},
                    3 if op == "LSTM" else 2)


CELLS = [("RNN", {}), ("GRU", {}), ("LSTM", {}), ("RNN", {"lengths": [3, 5]}), ("GRU", {"lengths": [5, 2], "direction": "reverse"}),
         ("LSTM", {"lengths": [1, 4], "directions": 2}), ("LSTM", {"peepholes": True, "direction": "reverse"}),
         ("GRU", {"linear_before_reset": 1, "directions": 2}), ("LSTM", {"states": False}),
         ("RNN", {"activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.1]}),
         ("RNN", {"activations": ["LeakyRelu"], "activation_alpha": [0.3]}), ("RNN", {"activations": ["Softsign"]}),
         ("RNN", {"activations": ["ScaledTanh"], "activation_alpha": [0.7], "activation_beta": [1.2]}),
         ("RNN", {"activations": ["Elu"], "activation_alpha": [0.5]}), ("RNN", {"activations": ["Relu"]}),
         ("GRU", {"activations": ["HardSigmoid", "Softsign"], "activation_alpha": [0.3], "activation_beta": [0.4]}),
         ("LSTM", {"activations": ["Sigmoid", "Relu", "Tanh"]}), ("GRU", {"clip": 0.4})]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op, options", CELLS, ids=[f"{op}-{k}" for k, (op, _) in enumerate(CELLS)])
def test_recurrent_cells(context, device, op, options):
    agrees(context, device, *cell(op, **options))


EQUATIONS = [("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bjk,bkl->bil", [(2, 3, 4), (2, 4, 5), (2, 5, 2)]), ("ii->i", [(4, 4)]),
             ("ii", [(3, 3)]), ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]), ("i,j->ji", [(2,), (3,)]), ("ij->", [(2, 3)]),
             ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]), ("ij,kj", [(2, 3), (4, 3)]), ("aij,ai->aj", [(2, 3, 4), (2, 3)]),
             ("ij,jk,kl->il", [(5, 6), (6, 7), (7, 1)]), ("i,ij,j,jk,k->", [(3,), (3, 4), (4,), (4, 5), (5,)]), ("i,j,k->kij", [(2,), (3,), (4,)]),
             ("ab,bc,cd,de,ea->bd", [(2, 9), (9, 2), (2, 8), (8, 3), (3, 2)]), ("ij,jk->ik", [(0, 3), (3, 2)]),
             (",".join("abcdefghijkl") + "->ca", [(2,)] * 12), ("...i,i...,...->i...", [(2, 3), (3, 2), (2,)])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("equation, shapes", EQUATIONS, ids=[equation for equation, _ in EQUATIONS])
def test_einsum(context, device, equation, shapes):
    operands = [normal(*shape) for shape in shapes]
    model, inputs = model_of("Einsum", operands, 12, {"equation": equation})
    assert_similar([np.asarray(np.einsum(equation, *operands))], run_model(context, device, model, inputs), 1e-4, 1e-5)


@pytest.mark.parametrize("n", [10, 11, 64, 70])
def test_einsum_of_many_operands(context, n):
    operands = [RANDOM.uniform(0.9, 1.1, (2, 3)).astype(F) for _ in range(n)]
    model, inputs = model_of("Einsum", operands, 12, {"equation": ",".join(["ab"] * n) + "->b"})
    assert_similar([np.prod(operands, axis=0).sum(0)], run_model(context, "reference", model, inputs), 1e-4, 1e-5)


@pytest.mark.parametrize("equation, shapes, most", [("ij,jk,kl->il", [(64, 64), (64, 64), (64, 1)], 64), ("ij,jk,kl->il", [(1, 64), (64, 64), (64, 64)], 64),
                                                    ("ij,kl,jk->il", [(64, 64), (64, 1), (64, 64)], 64)])
def test_einsum_takes_the_order_of_the_fewest_multiplications(context, tmp_path, equation, shapes, most):
    model, inputs = model_of("Einsum", [normal(*shape) for shape in shapes], 12, {"equation": equation})
    onnx.save(model, tmp_path / "m.onnx")
    report = context.import_file(tmp_path / "m.onnx").session("reference").prepare().report(*inputs)
    assert 0 < report["unshared_bytes"] <= most * 4



IMAGE = normal(2, 3, 5, 6)
GRID = (RANDOM.random((2, 4, 3, 2)) * 3 - 1.5).astype(F)
ROIS = np.array([[0.5, 0.5, 4.2, 3.1], [1, 0, 5.5, 4.5], [-1, -1, 2, 2]], F)
U8 = lambda *shape: RANDOM.integers(0, 255, shape).astype(np.uint8)  # noqa: E731
OTHERS = [
    *[("GridSample", 16, [IMAGE, GRID], {"mode": mode, "padding_mode": border, "align_corners": align})
      for mode in ("nearest", "bilinear", "bicubic") for border in ("zeros", "border", "reflection") for align in (0, 1)],
    *[("RoiAlign", 16, [IMAGE, ROIS, np.array([0, 1, 1], L)],
       {"output_height": 2, "output_width": 3, "sampling_ratio": 2, "spatial_scale": 0.9, "coordinate_transformation_mode": mode})
      for mode in ("half_pixel", "output_half_pixel")],
    *[("MaxRoiPool", 1, [IMAGE, np.array([[0, 0, 0, 5, 4], [1, 1, 2, 3, 3], [1, 7, 1, 3, 9], [0, -2, 0.5, 1, 1.5]], F)],
       {"pooled_shape": shape, "spatial_scale": scale}) for shape, scale in (([2, 3], 1.0), ([4, 4], 0.5), ([1, 1], 2.0))],
    ("DFT", 17, [normal(2, 7, 1)], {"axis": 1}), ("DFT", 17, [normal(2, 8, 1)], {"onesided": 1}),
    ("DFT", 17, [normal(2, 6, 2)], {"inverse": 1}), ("STFT", 17, [normal(2, 20, 1), np.array(4, L), normal(8)], {}),
    ("MatMulInteger", 10, [U8(3, 4), U8(4, 5), np.array(7, np.uint8), np.array(9, np.uint8)], {}),
    ("ConvInteger", 10, [U8(1, 2, 5, 5), U8(3, 2, 3, 3), np.array(3, np.uint8), np.array(5, np.uint8)], {"strides": [2, 1], "pads": [1, 1, 0, 1]}),
    ("QLinearMatMul", 10, [U8(3, 4), F(0.1), np.uint8(3), U8(4, 5), F(0.2), np.uint8(5), F(4), np.uint8(100)], {}),
    ("QLinearConv", 10, [U8(1, 2, 5, 5), F(0.1), np.uint8(3), U8(4, 1, 3, 3), normal(4) ** 2 + F(0.1), np.full(4, 5, np.uint8), F(9), np.uint8(90),
                         np.arange(4, dtype=np.int32)], {"group": 2}),
    ("ReverseSequence", 10, [normal(4, 3, 2), np.array([1, 4, 2], L)], {}),
    *[(op, 7, [np.array([-1, -0.7, -1e-4, 0, 1e-3, 0.5, 0.99, 1], F)], {}) for op in ("Asin", "Acos", "Atan")],
    ("Atan", 7, [np.array([-np.inf, -1e9, -2.5, -0.5, 0.7, 2.4, 3, 1e20, np.inf], F)], {}),
    ("Det", 11, [normal(3, 4, 4)], {}), ("Det", 11, [np.array([[0, 1], [1, 0]], F)], {}), ("HannWindow", 17, [np.array(9, L)], {"periodic": 0}),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op, opset, inputs, attributes", OTHERS, ids=[f"{case[0]}-{k}" for k, case in enumerate(OTHERS)])
def test_written_in_ops_of_the_catalogue(context, device, op, opset, inputs, attributes):
    agrees(context, device, *model_of(op, [np.asarray(x) for x in inputs], opset, attributes), rtol=1e-3, atol=1e-4)


X, ROW = normal(2, 3, 8), normal(8)
CONTRIB = [("FusedMatMul", [normal(3, 4), normal(5, 4)], {"transB": 1, "alpha": 0.5}, 1), ("Gelu", [X], {}, 1), ("FastGelu", [X, ROW], {}, 1),
           ("BiasGelu", [X, ROW], {}, 1), ("QuickGelu", [X], {"alpha": 1.5}, 1),
           ("SkipLayerNormalization", [X, normal(2, 3, 8), ROW, normal(8), normal(8)], {"epsilon": 1e-5}, 1),
           ("SkipSimplifiedLayerNormalization", [X, normal(2, 3, 8), ROW], {"epsilon": 1e-5}, 1),
           ("EmbedLayerNormalization", [np.array([[1, 2, 0]], np.int32), np.array([[0, 1, 1]], np.int32), normal(4, 8), normal(3, 8), normal(2, 8),
                                        ROW, normal(8)], {"epsilon": 1e-5}, 1)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op, inputs, attributes, n_out", CONTRIB, ids=[case[0] for case in CONTRIB])
def test_contrib_operators(context, device, op, inputs, attributes, n_out):
    model, inputs = model_of(op, inputs, 17, attributes, n_out, "com.microsoft")
    if op == "EmbedLayerNormalization":  # its result 1 is a mask, which ONNX Runtime always has
        node = model.graph.node[0]
        reference = helper.make_model(model.graph, opset_imports=model.opset_import)
        reference.ir_version = 10
        reference.graph.node[0].output.append("mask")
        assert node.op_type == op
        want = onnxruntime_run(reference, inputs, optimised=False)[:1]
        assert_similar(want, run_model(context, device, model, inputs), 1e-3, 1e-4)
    else:
        agrees(context, device, model, inputs, rtol=1e-3, atol=1e-4)


# ---- graphs as attributes

value = helper.make_tensor_value_info
SCALAR, VECTOR = [], [3]


def looping(condition, stacked, trips=4):
    """x doubles in each round; with `condition`, only while its sum is below 20; `stacked`: also the values before each round. The body
    reads `step` of the enclosing graph."""
    nodes = [helper.make_node("Add", ["v", "step"], ["next"]),
             helper.make_node("ReduceSum", ["next"], ["total"], keepdims=0), helper.make_node("Less", ["total", "limit"], ["small"]),
             helper.make_node("Identity", ["small" if condition else "go"], ["on"]), helper.make_node("Identity", ["v"], ["before"])]
    outputs = [value("on", TensorProto.BOOL, SCALAR), value("next", TensorProto.FLOAT, VECTOR)]
    if stacked:
        outputs.append(value("before", TensorProto.FLOAT, VECTOR))
    body = helper.make_graph(nodes, "body", [value("i", TensorProto.INT64, SCALAR), value("go", TensorProto.BOOL, SCALAR),
                                             value("v", TensorProto.FLOAT, VECTOR)], outputs,
                             [numpy_helper.from_array(np.array(20, F), "limit")])
    results = ["y", "all"] if stacked else ["y"]
    graph = helper.make_graph([helper.make_node("Loop", ["trips" if trips else "", "true", "x"], results, body=body)], "g",
                              [value("x", TensorProto.FLOAT, VECTOR), value("step", TensorProto.FLOAT, SCALAR)],
                              [helper.make_empty_tensor_value_info(name) for name in results],
                              [numpy_helper.from_array(np.array(trips, L), "trips"), numpy_helper.from_array(np.array(True), "true")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    return model


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("condition, stacked, trips", [(False, True, 4), (False, False, 3), (True, False, 9), (True, False, 2), (True, False, 0)])
def test_loops(context, device, condition, stacked, trips):
    agrees(context, device, looping(condition, stacked, trips), [np.array([1, 2, 3], F), np.array(1.5, F)])


def branching(other=VECTOR):
    branch = lambda op: helper.make_graph([helper.make_node(op, ["x", "x"], [op])], op, [], [value(op, TensorProto.FLOAT, VECTOR)])  # noqa: E731
    no = branch("Mul") if other == VECTOR else helper.make_graph([helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0)], "s", [],
                                                                 [value("s", TensorProto.FLOAT, SCALAR)])
    nodes = [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), helper.make_node("Greater", ["sum", "zero"], ["p"]),
             helper.make_node("If", ["p"], ["y"], then_branch=branch("Add"), else_branch=no)]
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, VECTOR)], [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(np.array(0, F), "zero")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    return model


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sign", [1, -1])
def test_branches_on_data(context, device, sign):
    agrees(context, device, branching(), [np.array([1, 2, 3], F) * F(sign)])


@pytest.mark.parametrize("device", DEVICES)
def test_branches_that_read_one_constant(context, device):
    model = branching()
    for attribute in model.graph.node[2].attribute:
        attribute.g.node[0].input[1] = "zero"
    agrees(context, device, model, [np.array([1, 2, 3], F)])


def chosen_by_a_rate(sizes=(6,)):
    """One branch fits six numbers, the other eight; a parameter decides, or the size itself if the rate is none."""
    branch = lambda n: helper.make_graph([helper.make_node("Reshape", ["x", f"rows of {n}"], [f"y{n}"])], f"b{n}", [],  # noqa: E731
                                         [value(f"y{n}", TensorProto.FLOAT, [2, n])])
    nodes = [helper.make_node("Equal", ["rate", "eight"], ["p"]), helper.make_node("If", ["p"], ["y"], then_branch=branch(4), else_branch=branch(3))]
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, sizes), value("rate", TensorProto.INT64, [])],
                              [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(np.array([2, n], L), f"rows of {n}") for n in (3, 4)] +
                              [numpy_helper.from_array(np.array(8, L), "eight")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    return model


@pytest.mark.parametrize("rate, size", [(8, 8), (6, 6)])
def test_the_value_that_rules_out_a_branch_which_does_not_fit_is_demanded(context, tmp_path, rate, size):
    path, x, r = tmp_path / "m.onnx", normal(size), np.array(rate, L)
    model = chosen_by_a_rate([size])
    onnx.save(model, path)
    with pytest.raises(KeelError) as caught:
        context.import_file(path)
    assert caught.value.code == "PRECONDITION" and "'rate': i64[]" in caught.value.message, caught.value.message
    got = context.import_file(path, fixed={"rate": r}).session("cpu").prepare().run(x)
    assert_similar(onnxruntime_run(model, [x, r], optimised=False), got, 0, 0)


def test_a_branch_which_does_not_fit_is_invalid_where_data_decide(context):
    model = chosen_by_a_rate()
    model.graph.node.insert(0, helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0))
    model.graph.node.insert(1, helper.make_node("Cast", ["sum"], ["whole"], to=TensorProto.INT64))
    model.graph.node[2].input[0] = "whole"
    assert_refused(context, model, [normal(6), L(8)], "INVALID", ["reshape", "[2, 4]"])


def test_branches_that_open_sizes_choose_name_the_options(context):
    """As PyTorch exports squeeze(1): with a number for n the branch is known."""
    branch = lambda op, *more: helper.make_graph([helper.make_node(op, ["x", *more], [op])], op, [],  # noqa: E731
                                                 [helper.make_empty_tensor_value_info(op)])
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "one"], ["n"]),
             helper.make_node("Equal", ["n", "one"], ["p"]),
             helper.make_node("If", ["p"], ["y"], then_branch=branch("Squeeze", "one"), else_branch=branch("Identity"))]
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [2, "n"])], [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(np.array([1], L), "one")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    assert_refused(context, model, [normal(2, 1)], "UNIMPLEMENTED", ["open sizes", "dim.NAME"])
    for n in (1, 3):
        x = normal(2, n)
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = n
        assert_similar([x[:, 0] if n == 1 else x], run_model(context, "cpu", model, [x]), 0, 0)


# ---- what is refused

def endless():
    model = looping(False, False, 0)
    model.graph.node[0].input[0] = ""
    return model, [np.zeros(3, F), np.array(1, F)]


REFUSED = [
    (lambda: model_of("Einsum", [normal(2, 3)], 12, {"equation": "ij,jk->ik"}), "INVALID", ["2 terms", "1 operands"]),
    (lambda: model_of("Einsum", [normal(2, 3)], 12, {"equation": "i->i"}), "INVALID", ["'i'", "names 1"]),
    (lambda: model_of("Einsum", [normal(2, 3)], 12, {"equation": "ij->k"}), "INVALID", ["'k'"]),
    (lambda: model_of("Einsum", [normal(2, 3), normal(4, 2)], 12, {"equation": "ij,jk->ik"}), "INVALID", ["'j'", "3 and 4"]),
    (lambda: model_of("GridSample", [IMAGE, GRID], 16, {"mode": "spline"}), "INVALID", ["spline", "nearest"]),
    (lambda: model_of("RoiAlign", [IMAGE, ROIS, np.zeros(3, L)], 16, {}), "UNIMPLEMENTED", ["sampling_ratio"]),
    (lambda: model_of("DFT", [normal(2, 4, 3)], 17, {}), "INVALID", ["real"]),
    (lambda: model_of("Det", [normal(2, 3)], 11, {}), "INVALID", ["square"]),
    (lambda: model_of("Col2Im", [normal(1, 4, 4), np.array([3, 3], L), np.array([2, 0], L)], 18, {}), "INVALID", ["block_shape"]),
    (lambda: model_of("ReverseSequence", [normal(2, 3), np.ones(2, L)], 10, {"batch_axis": 0, "time_axis": 0}), "INVALID", ["time_axis"]),
    (lambda: model_of("BitCast", [normal(2)], 26, {"to": TensorProto.DOUBLE}), "INVALID", ["32 bits", "f64 have 64"]),
    (lambda: model_of("BitCast", [np.zeros(2, np.int8)], 26, {"to": TensorProto.INT32}), "INVALID", ["8 bits", "i32 have 32"]),
    (lambda: cell("RNN", activations=["Sinus"]), "UNIMPLEMENTED", ["Sinus"]),
    (lambda: cell("GRU", activations=["Tanh"]), "INVALID", ["activations", "expected 2"]),
    (lambda: cell("LSTM", direction="sideways"), "INVALID", ["sideways", "bidirectional"]),
    (lambda: (looping(True, True), [np.zeros(3, F), np.array(1, F)]), "UNIMPLEMENTED", ["iterations", "data"]),
    (endless, "INVALID", ["no end"]),
    (lambda: (branching(SCALAR), [np.zeros(3, F)]), "UNIMPLEMENTED", ["branches", "result 0"]),
    (lambda: model_of("Gelu", [X], 17, {"unknown": 1}, 1, "com.microsoft"), "UNIMPLEMENTED", ["attribute unknown of Gelu"]),
    (lambda: model_of("Momentum", [F([1]), L([1]), X, X], 17, {"mode": "standard"}, 2, "ai.onnx.preview.training"), "INVALID", ["4 operands"]),
]


@pytest.mark.parametrize("made, code, words", REFUSED, ids=range(len(REFUSED)))
def test_refusals_name_the_reason(context, made, code, words):
    assert_refused(context, *made(), code, words)
