"""Sequences, optionals and unrolled loops of the ONNX importer: models of sequence_models.py against ONNX Runtime, or literal
answers for optionals. ONNX's own tests are in test_onnx_nodes.py, bad models in test_onnx_sequence_errors.py.
"""
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_cases import DEVICES, assert_similar, flat_values, onnxruntime_run, run_model
from sequence_models import RANDOM, F, L, constant, elements, gathering_loop, model_of, node, optional, sequence, tensor


def agrees(context, device, model, inputs, rtol=1e-5, atol=1e-6):
    expected = flat_values(onnxruntime_run(model, inputs, optimised=False))
    assert_similar(expected, run_model(context, device, model, inputs), rtol, atol)


POSITIONS = {0: [], 1: [0, -1], 3: [0, 2, -1, -3]}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_elements_move(context, device, count):
    model = model_of([node("SequenceInsert", "s x", "longer"), node("SequenceLength", "longer", "n"), node("Identity", "s", "same"),
                      constant("zero", L(0)), node("SequenceInsert", "s x zero", "front"), node("SequenceErase", "front", "shorter")],
                     [sequence("s"), tensor("x", ["k", 2])],
                     [sequence("longer"), tensor("n", [], TensorProto.INT64), sequence("same"), sequence("front"), sequence("shorter")])
    agrees(context, device, model, [elements(count, 2), RANDOM.random((4, 2)).astype(F)])
    for at in POSITIONS[count]:
        model = model_of([constant("at", L(at)), node("SequenceAt", "s at", "y"), node("SequenceErase", "s at", "rest"),
                          node("SequenceInsert", "s y at", "more")], [sequence("s")], [tensor("y"), sequence("rest"), sequence("more")])
        agrees(context, device, model, [elements(count, 2)])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("axis, fresh", [(0, 0), (-1, 0), (0, 1), (2, 1), (-1, 1)])
def test_one_tensor_of_a_sequence(context, device, count, axis, fresh):
    model = model_of([node("ConcatFromSequence", "s", "y", axis=axis, new_axis=fresh)], [sequence("s")], [tensor("y")])
    given = [RANDOM.random((2, 3)).astype(F) for _ in range(count)] if fresh or axis else elements(count, 3)
    agrees(context, device, model, [given])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("axis, split, keep", [(0, None, 1), (0, None, 0), (1, None, 0), (1, L(4), 1), (-1, np.array([1, 3, 2], L), 1)])
def test_a_sequence_of_one_tensor(context, device, axis, split, keep):
    nodes = [constant("split", split)] if split is not None else []
    nodes += [node("SplitToSequence", "x split" if nodes else "x", "s", axis=axis, keepdims=keep), constant("at", L(-1)), node("SequenceAt", "s at", "y")]
    agrees(context, device, model_of(nodes, [tensor("x", [3, 6])], [sequence("s"), tensor("y")]), [RANDOM.random((3, 6)).astype(F)])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_body_for_each_element(context, device, count):
    body = helper.make_graph([node("Add", "a b", "ab"), node("Mul", "ab outer", "y"), node("Shape", "a", "shape")], "body",
                             [tensor("a"), tensor("b")], [tensor("y", ["k"]), tensor("shape", [1], TensorProto.INT64)])
    model = model_of([node("SequenceMap", "s t", "ys shapes", body=body), node("SequenceMap", "ys ys", "zs unused", body=body)],
                     [sequence("s"), tensor("t", [1]), tensor("outer", [1])],
                     [sequence("ys"), sequence("shapes", TensorProto.INT64), sequence("zs")])
    agrees(context, device, model, [elements(count), np.array([2], F), np.array([3], F)])


X = np.arange(1, 6, dtype=F)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_loops_that_carry_a_sequence(context, device, count, trips):
    agrees(context, device, gathering_loop(trips), [elements(count), X])


@pytest.mark.parametrize("device", DEVICES)
def test_a_loop_ends_by_a_condition_that_is_known(context, device):
    until = [constant("two", L(2)), node("Less", "k two", "c2")]
    agrees(context, device, gathering_loop(100, inner=until), [elements(1), X])
    agrees(context, device, gathering_loop(100, condition=False, inner=until), [elements(2), X])


@pytest.mark.parametrize("device", DEVICES)
def test_a_trip_count_given_at_import(context, device):
    loop = gathering_loop(0)
    del loop.graph.node[0]
    loop.graph.input.append(tensor("n", [], TensorProto.INT64))
    agrees(context, device, loop, [elements(1), X, np.array(2, L)])


@pytest.mark.parametrize("device", DEVICES)
def test_nested_loops(context, device):
    """The inner loop's trip count is the outer's iteration; both carry the sequence."""
    kinds = [tensor("j", [], TensorProto.INT64), tensor("d", [], TensorProto.BOOL), sequence("t")]
    inner = helper.make_graph([node("Identity", "d", "d2"), node("SequenceLength", "t", "m"), node("Cast", "m", "nf", to=TensorProto.FLOAT),
                               node("Add", "nf x", "y"), node("SequenceInsert", "t y", "t2")], "inner", kinds,
                              [tensor("d2", [], TensorProto.BOOL), sequence("t2")])
    outer = helper.make_graph([node("Identity", "c", "c2"), node("Loop", "k c s", "s2", body=inner)], "outer",
                              [tensor("k", [], TensorProto.INT64), tensor("c", [], TensorProto.BOOL), sequence("s")],
                              [tensor("c2", [], TensorProto.BOOL), sequence("s2")])
    model = model_of([constant("n", L(4)), constant("go", np.array(True)), node("Loop", "n go s0", "s9", body=outer)],
                     [sequence("s0"), tensor("x", [2])], [sequence("s9")])
    agrees(context, device, model, [elements(1), np.array([1, 2], F)])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("flag", [True, False])
def test_branches_on_data_return_sequences_of_one_type(context, device, flag):
    def branch(op):
        return helper.make_graph([node(op, "x", op + "a"), node("SequenceAt", "s zero", op + "b"), node("SequenceConstruct", f"{op}a {op}b", op)], op, [],
                                 [sequence(op)])
    model = model_of([constant("zero", L(0)), node("If", "flag", "y", then_branch=branch("Relu"), else_branch=branch("Neg"))],
                     [tensor("flag", [], TensorProto.BOOL), tensor("x", [3]), sequence("s")], [sequence("y")])
    agrees(context, device, model, [np.array(flag), np.array([1, -2, 3], F), elements(2)])


@pytest.mark.parametrize("device", DEVICES)
def test_a_body_reads_a_sequence_of_the_graph_around(context, device):
    """A loop on data, whose body captures a sequence and takes a fixed element."""
    body = helper.make_graph([node("SequenceAt", "s last", "e"), node("Add", "y e", "y2"), node("ReduceMax", "y2", "most", keepdims=0),
                              node("Less", "most limit", "c2")], "body",
                             [tensor("k", [], TensorProto.INT64), tensor("c", [], TensorProto.BOOL), tensor("y", [2])],
                             [tensor("c2", [], TensorProto.BOOL), tensor("y2", [2])])
    model = model_of([constant("last", L(-1)), constant("go", np.array(True)), node("Loop", " go y0".replace(" ", "", 1), "y9", body=body)],
                     [sequence("s"), tensor("y0", [2]), tensor("limit", [])], [tensor("y9", [2])])
    model.graph.node[2].input.insert(0, "")
    agrees(context, device, model, [[np.array([9, 9], F), np.array([1, 2], F)], np.array([0, 1], F), np.array(10, F)])


@pytest.mark.parametrize("device", DEVICES)
def test_optionals(context, device):
    model = model_of([node("OptionalHasElement", "o", "has"), node("OptionalGetElement", "o", "y"), node("Optional", "y", "again"),
                      node("OptionalGetElement", "again", "z")],
                     [optional("o")], [tensor("has", [], TensorProto.BOOL), tensor("y", [2]), tensor("z", [2])], opset=18)
    given = np.array([1, 2], F)
    assert_similar([np.array(True), given, given], run_model(context, device, model, [given]), 0, 0)
    model = model_of([node("OptionalHasElement", "o", "has")], [optional("o")], [tensor("has", [], TensorProto.BOOL)], opset=18)
    for value in (None, given):
        assert_similar([np.array(value is not None)], run_model(context, device, model, [value]), 0, 0)
    listed = optional("o", helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2])))
    model = model_of([node("OptionalHasElement", "o", "has"), node("Identity", "o", "p")], [listed], [tensor("has", [], TensorProto.BOOL), listed], opset=18)
    model.graph.output[1].name = "p"
    for value in (None, [], [given]):
        assert_similar([np.array(value is not None), *(value or [])], run_model(context, device, model, [value]), 0, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_rows_that_data_choose_in_unrolled_loops_and_known_branches(context, device):
    """NonZero, Compress, Unique and NonMaxSuppression, which no body can run, are inlined."""
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]]], F)
    inner = [node("NonZero", "x", "places"), node("Cast", "places", "pf", to=TensorProto.FLOAT), node("ReduceSum", "pf", "total", keepdims=0),
             node("Greater", "x total", "mask"), node("Compress", "x mask", "chosen"), node("ReduceSum", "chosen", "chosen_sum", keepdims=0),
             node("Unique", "x", "u", axis=0), node("ReduceSum", "u", "u_sum", keepdims=0),
             node("NonMaxSuppression", "boxes scores most", "best"), node("Cast", "best", "bf", to=TensorProto.FLOAT),
             node("ReduceSum", "bf", "b_sum", keepdims=0), node("Sum", "scaled total chosen_sum u_sum b_sum", "all"), node("SequenceInsert", "s all", "s1"),
             node("Identity", "s1", "s3")]
    model = gathering_loop(2, inner=inner)
    model.graph.node.insert(0, constant("boxes", boxes))
    model.graph.node.insert(0, constant("scores", np.array([[[0.9, 0.8, 0.7]]], F)))
    model.graph.node.insert(0, constant("most", np.array([3], L)))
    agrees(context, device, model, [elements(1), np.array([0, 3, 0, 9, 3], F)])
    branch = helper.make_graph([node("NonZero", "x", "y")], "b", [], [tensor("y", None, TensorProto.INT64)])
    other = helper.make_graph([node("Shape", "x", "z")], "c", [], [tensor("z", None, TensorProto.INT64)])
    model = model_of([constant("yes", np.array(True)), node("If", "yes", "y", then_branch=branch, else_branch=other)], [tensor("x", [5])],
                     [tensor("y", None, TensorProto.INT64)])
    agrees(context, device, model, [np.array([0, 3, 0, 9, 3], F)])


@pytest.mark.parametrize("device", DEVICES)
def test_sizes_that_floats_give(context, device):
    """A resize as older exporters write it: floor(size * scale) is a size."""
    model = model_of([node("Shape", "x", "n"), node("Cast", "n", "nf", to=TensorProto.FLOAT), constant("scale", F(1.7)), node("Mul", "nf scale", "m"),
                      node("Floor", "m", "mf"), node("Cast", "mf", "size", to=TensorProto.INT64), constant("one", np.array([1], F)),
                      node("Expand", "one size", "y")], [tensor("x", [3, 7])], [tensor("y")])
    agrees(context, device, model, [np.zeros((3, 7), F)])
