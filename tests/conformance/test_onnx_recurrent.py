"""LSTM, GRU and RNN of usual sizes, with weights that are constants or operands: several panels of columns, batches that are few or many
rows, NaN and infinities. Oracle: ONNX Runtime."""
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import DEVICES, assert_similar, onnxruntime_run, run_model

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
