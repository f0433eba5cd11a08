"""Sequences, optionals and unrolled loops that the ONNX importer refuses, with the whole message."""
import numpy as np
import onnx
import pytest
from keel_abi import KeelError
from onnx import TensorProto, helper
from onnx_cases import run_model
from sequence_models import F, L, constant, elements, gathering_loop, model_of, node, optional, sequence, tensor

X = np.arange(1, 6, dtype=F)


def refused(context, model, inputs, code, message):
    with pytest.raises(KeelError) as caught:
        run_model(context, "reference", model, inputs)
    assert (caught.value.code, caught.value.message.split("model.onnx: ")[-1]) == (code, message)


def at(position):
    return model_of([constant("at", L(position)), node("SequenceAt", "s at", "y")], [sequence("s")], [tensor("y")])


TWO = [np.zeros(2, F), np.zeros(2, F)]


def test_bad_positions(context):
    refused(context, at(2), [TWO], "INVALID", "node 'y' (SequenceAt): position 2 is not in [-2, 1]; the sequence has 2 elements")
    refused(context, at(-3), [TWO], "INVALID", "node 'y' (SequenceAt): position -3 is not in [-2, 1]; the sequence has 2 elements")
    refused(context, at(0), [[]], "INVALID", "node 'y' (SequenceAt): the sequence is empty")
    insert = model_of([constant("at", L(3)), node("SequenceInsert", "s x at", "y")], [sequence("s"), tensor("x", [2])], [sequence("y")])
    refused(context, insert, [TWO, TWO[0]], "INVALID", "node 'y' (SequenceInsert): position 3 is not in [-2, 2]; the sequence has 2 elements")
    erase = model_of([node("SequenceErase", "s", "y")], [sequence("s")], [sequence("y")])
    refused(context, erase, [[]], "INVALID", "node 'y' (SequenceErase): the sequence is empty")
    data = model_of([node("ArgMax", "x", "at", keepdims=0), node("SequenceAt", "s at", "y")], [sequence("s"), tensor("x", [2])], [tensor("y")])
    refused(context, data, [TWO, TWO[0]], "UNIMPLEMENTED",
            "node 'y' (SequenceAt): the position ('at') depends on data; expected one number that is known while importing")


def test_elements_that_do_not_fit(context):
    ragged = model_of([node("ConcatFromSequence", "s", "y", axis=0)], [sequence("s")], [tensor("y")])
    refused(context, ragged, [[np.zeros((2, 3), F), np.zeros((2, 4), F)]], "INVALID",
            "node 'y' (ConcatFromSequence): dim 1 of element 1 is 4, but it is 3 in element 0")
    refused(context, ragged, [[np.zeros((2, 3), F), np.zeros(2, F)]], "INVALID",
            "node 'y' (ConcatFromSequence): element 1 has 1 dims, but element 0 has 2")
    refused(context, ragged, [[]], "INVALID", "node 'y' (ConcatFromSequence): the sequence is empty")
    mixed = model_of([node("SequenceConstruct", "a b", "y")], [tensor("a", [1]), tensor("b", [1], TensorProto.INT64)], [sequence("y")])
    refused(context, mixed, [np.zeros(1, F), np.zeros(1, L)], "INVALID",
            "node 'y' (SequenceConstruct): operand 1 ('b') is i64; the sequence's elements are f32")
    empty = model_of([node("SequenceEmpty", "", "s", dtype=TensorProto.FLOAT), node("SequenceInsert", "s b", "y")],
                     [tensor("b", [1], TensorProto.INT64)], [sequence("y")])
    refused(context, empty, [np.zeros(1, L)], "INVALID", "node 'y' (SequenceInsert): operand 1 ('b') is i64; the sequence's elements are f32")
    body = helper.make_graph([node("Add", "a b", "y")], "body", [tensor("a"), tensor("b")], [tensor("y")])
    mapped = model_of([node("SequenceMap", "s t", "y", body=body)], [sequence("s"), sequence("t")], [sequence("y")])
    refused(context, mapped, [TWO, TWO[:1]], "INVALID",
            "node 'y' (SequenceMap): operand 1 is a sequence of 1, but operand 0 is a sequence of 2")


def test_sequences_in_place_of_tensors(context):
    relu = model_of([node("Relu", "s", "y")], [sequence("s")], [tensor("y")])
    refused(context, relu, [TWO], "INVALID", "node 'y' (Relu): operand 0 ('s') is a sequence of 2; expected a tensor")
    length = model_of([node("SequenceLength", "x", "y")], [tensor("x", [2])], [tensor("y")])
    refused(context, length, [TWO[0]], "INVALID", "node 'y' (SequenceLength): operand 0 ('x') is a tensor; expected a sequence")
    absent = model_of([node("OptionalGetElement", "o", "y")], [optional("o")], [tensor("y")], opset=18)
    refused(context, absent, [None], "INVALID", "node 'y' (OptionalGetElement): the optional ('o') has no element")
    relu = model_of([node("Relu", "o", "y")], [optional("o")], [tensor("y")], opset=18)
    refused(context, relu, [None], "INVALID", "node 'y' (Relu): operand 0 ('o') is an absent optional; expected a tensor")


def test_lengths_that_are_not_known(context, tmp_path):
    def message(model, **options):
        onnx.save(model, tmp_path / "m.onnx")
        with pytest.raises(KeelError) as caught:
            context.import_file(tmp_path / "m.onnx", **options)
        return caught.value.code, caught.value.message.split("m.onnx: ")[-1]

    both = model_of([node("SequenceLength", "s", "n")], [sequence("s"), optional("o")], [tensor("n")], opset=18)
    assert message(both) == ("PRECONDITION", "the import needs the length of 's', a sequence, with --length s=3; 'o', an optional, with "
                                             "--length o=1 or none (import option length.NAME)")
    known = {"length.o": "none"}
    for wrong in ("-1", "3.0", "none", "", "4097", "99999999999999999999"):
        assert message(both, **{"length.s": wrong}, **known) == (
            "INVALID", f"the length of 's', a sequence: got '{wrong}'; expected a number from 0 to 4096")
    assert message(both, **{"length.s": "1", "length.o": "2"}) == (
        "INVALID", "the length of 'o', an optional: got '2'; expected 1 or none")
    assert message(both, **{"length.s": "1", "length.q": "2"}, **known) == (
        "NOT_FOUND", "the model has no sequence or optional 'q'; it has 's', 'o'")
    assert message(both, **{"length.s": "1"}, **known) == ("UNIMPLEMENTED", "parameter 's_0' has no shape; Keel needs at least its rank")
    clash = model_of([node("SequenceLength", "s", "n")], [sequence("s"), tensor("s_0", [1])], [tensor("n")])
    assert message(clash, **{"length.s": "1"}) == ("INVALID", "'s_0', an element of the input 's', has another input's name")
    clash = model_of([node("Identity", "s", "y"), node("Relu", "x", "y_0")], [sequence("s"), tensor("x", [1])], [sequence("y"), tensor("y_0")])
    assert message(clash, **{"length.s": "1", "shape.s": "2"}) == ("INVALID", "two results of the model would have the name 'y_0'")
    split = model_of([node("SplitToSequence", "x", "s")], [tensor("x", ["rows", 2])], [sequence("s")])
    assert message(split) == ("UNIMPLEMENTED", "node 's' (SplitToSequence): the length of the sequence depends on a symbolic dim; give it "
                                               "a number with --dim or --shape")
    assert message(split, **{"dim.rows": "4097"}) == ("UNIMPLEMENTED", "node 's' (SplitToSequence): a sequence of 4097 elements; at most 4096")


def test_loops_that_cannot_be_unrolled(context):
    computed = gathering_loop(3)
    computed.graph.node[0].CopyFrom(node("ArgMax", "x", "n", keepdims=0))  # the trip count
    why = "node 's9' (Loop): operand 2 ('s0') is a sequence of 1, so the loop is unrolled, and "
    refused(context, computed, [elements(1), X], "UNIMPLEMENTED", why + "its trip count must be known while importing, but depends on data")
    ends = gathering_loop(5, inner=[constant("limit", F(3)), node("ReduceSum", "part", "sum", keepdims=0), node("Less", "sum limit", "c2")])
    refused(context, ends, [elements(1), X], "UNIMPLEMENTED", why + "the condition after iteration 0 must be known while importing, but depends on data")
    refused(context, gathering_loop(2 ** 40), [elements(1), X], "UNIMPLEMENTED",
            "node 's9/4095/s2' (SequenceInsert): a sequence of 4097 elements; at most 4096")
    idle = helper.make_graph([node("Identity", "c", "c2"), node("Identity", "s", "s2")], "body",
                             [tensor("k", [], TensorProto.INT64), tensor("c", [], TensorProto.BOOL), sequence("s")],
                             [tensor("c2", [], TensorProto.BOOL), sequence("s2")])
    long = model_of([constant("n", L(2 ** 60)), constant("go", np.array(True)), node("Loop", "n go s0", "s9", body=idle)],
                    [sequence("s0")], [sequence("s9")])
    refused(context, long, [elements(1)], "OOM", "the model has more than a million nodes when its functions and loops are inlined")
