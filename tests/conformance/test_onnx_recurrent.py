"""LSTM, GRU and RNN of usual sizes, with weights that are constants or operands: several panels of columns, batches that are few or many
rows, NaN and infinities, sequence_lens. Oracle: ONNX Runtime."""
import numpy as np
import onnxruntime
import pytest
from keel_abi import KeelError
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import DEVICES, assert_refused, assert_similar, onnxruntime_run, run_model

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
SIZES = [(1, 1, 1), (40, 6, 1), (40, 1, 3), (33, 3, 16), (70, 2, 33)]  # hidden, steps, batch


def model(op, hidden, steps, batch, inputs, constant, random):
    shapes = [(steps, batch, inputs), (1, GATES[op] * hidden, inputs), (1, GATES[op] * hidden, hidden), (1, 2 * GATES[op] * hidden)]
    arrays = [(random.standard_normal(s) * s[-1]**-0.5).astype(np.float32) for s in shapes]
    names, results = ["x", "w", "r", "b"], ["y", "h"] + ["c"] * (op == "LSTM")
    node = helper.make_node(op, names, results, hidden_size=hidden)
    first = 1 if constant else len(arrays)
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in zip(names[:first], arrays)]
    weights = [numpy_helper.from_array(a, n) for n, a in zip(names[first:], arrays[first:])]
    graph = helper.make_graph([node], "g", given, [helper.make_empty_tensor_value_info(n) for n in results], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    made.ir_version = 10
    return made, arrays[:first]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("hidden, steps, batch", SIZES)
@pytest.mark.parametrize("op", GATES)
def test_cells_of_usual_sizes(context, device, op, hidden, steps, batch, constant):
    made, arrays = model(op, hidden, steps, batch, 9, constant, np.random.default_rng(hidden))
    assert_similar(onnxruntime_run(made, arrays, optimised=False), run_model(context, device, made, arrays), 1e-4, 1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("steps, batch", [(0, 2), (3, 0)])
@pytest.mark.parametrize("op", GATES)
def test_no_steps_give_the_initial_states_and_no_batch_gives_nothing(context, device, op, steps, batch):  # ONNX Runtime crashes
    y, *states = run_model(context, device, *model(op, 40, steps, batch, 9, True, np.random.default_rng(2)))
    assert y.shape == (steps, 1, batch, 40) and all(np.array_equal(state, np.zeros((1, batch, 40))) for state in states)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", GATES)
def test_nan_and_infinities_stay_in_their_row_of_the_batch(context, device, op):
    made, (x, ) = model(op, 40, 4, 5, 9, True, np.random.default_rng(1))
    clean = run_model(context, device, made, [x])
    x[1, 2, 3], x[2, 4, 0] = np.nan, np.inf
    faulty = run_model(context, device, made, [x])
    for before, after in zip(clean, faulty):
        rows = [0, 1, 3]
        np.testing.assert_array_equal(before[..., rows, :], after[..., rows, :])
    assert np.isnan(faulty[0][1:, 0, 2]).all() and not np.isnan(faulty[0][0]).any()


STEPS = 6


def limited(op, lengths, constant=True, steps=STEPS, direction="forward"):
    """One of two sequences may end early; its length is a constant or fed, the number of steps a number or a symbol."""
    made, (x, ) = model(op, 8, STEPS, 2, 9, True, np.random.default_rng(4))
    made.graph.node[0].input.append("lens")
    lens = np.array(lengths, np.int32)
    if constant:
        made.graph.initializer.append(numpy_helper.from_array(lens, "lens"))
    else:
        made.graph.input.append(helper.make_tensor_value_info("lens", TensorProto.INT32, [2]))
    made.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, 2, 9]))
    return made, [x] if constant else [x, lens]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("constant, steps", [(True, STEPS), (False, STEPS), (True, "t"), (False, "t")])
@pytest.mark.parametrize("op", GATES)
def test_lengths_from_0_to_all_steps(context, device, op, constant, steps):
    made, inputs = limited(op, [0, STEPS], constant, steps)
    assert_similar(onnxruntime_run(made, inputs, optimised=False), run_model(context, device, made, inputs), 1e-5, 1e-6)


@pytest.mark.parametrize("lengths, at", [([2, STEPS + 1], 1), ([-1, 2], 0), ([-2**31, 2**31 - 1], 0)])
@pytest.mark.parametrize("op", GATES)
def test_lengths_that_a_sequence_does_not_have(context, op, lengths, at):
    made, inputs = limited(op, lengths)
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, match="sequence_lens"):
        onnxruntime_run(made, inputs, optimised=False)
    assert_refused(context, made, inputs, "INVALID", [f"({op})", f"sequence_lens ('lens') has {lengths[at]} at index {at}; expected lengths from 0 to 6"])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("constant, steps", [(False, STEPS), (True, "t"), (False, "t")])
@pytest.mark.parametrize("op", GATES)
def test_lengths_that_a_run_finds_wrong(context, device, op, constant, steps):
    made, inputs = limited(op, [2, STEPS + 1], constant, steps)
    words = rf"node 'y' \({op}\): sequence_lens \('lens'\)\W+index 7 is not in \[0, 7\)"
    with pytest.raises(KeelError, match=words) as caught:
        run_model(context, device, made, inputs)
    assert caught.value.code == "RANGE"


def test_lengths_that_no_number_of_steps_has(context):
    made, inputs = limited("GRU", [2, -1], steps="t")
    assert_refused(context, made, inputs, "INVALID", ["has -1 at index 1; expected lengths from 0 to t"])


@pytest.mark.parametrize("lens", [np.array([2, 3]), np.array([2], np.int32), np.array([[2, 3]], np.int32)])
def test_lengths_of_another_type(context, lens):
    made, inputs = limited("LSTM", [1, 2])
    made.graph.initializer[-1].CopyFrom(numpy_helper.from_array(lens, "lens"))
    assert_refused(context, made, inputs, "INVALID", ["sequence_lens ('lens') is i", "expected i32[2]"])
