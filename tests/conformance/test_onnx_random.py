"""Operators that draw random numbers: shapes, dtypes, moments and ranges; each run of a session draws others, each session the same ones.

Bounds of moments are six standard deviations of the sample's.
"""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import DEVICES, assert_refused

N = 40000
F = np.float32


def model(op, inputs, n_out=1, opset=17, constants=(), **attrs):
    """A model of one node; constants: numbers of the operands that are not inputs."""
    node = helper.make_node(op, [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(n_out)], **attrs)
    given = [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for i, x in enumerate(inputs)
             if i not in constants]
    graph = helper.make_graph([node], "random", given, [helper.make_empty_tensor_value_info(f"y{i}") for i in range(n_out)],
                              [numpy_helper.from_array(inputs[i], f"x{i}") for i in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.fixture
def runs(context, tmp_path):
    """Runs a model as often as asked for, in one session."""
    def run(device, proto, inputs=(), times=2):
        onnx.save(proto, tmp_path / "m.onnx")
        plan = context.import_file(tmp_path / "m.onnx").session(device).prepare()
        return [[np.array(y) for y in plan.run(*inputs)] for _ in range(times)]
    return run


def assert_moments(x, mean, deviation):
    x = x.astype(np.float64)
    assert abs(x.mean() - mean) < 6 * deviation / np.sqrt(x.size)
    assert abs(x.std() - deviation) < 6 * deviation / np.sqrt(x.size)


def assert_fresh(a, b):
    """Independent: they correlate by chance only."""
    a, b = a.ravel().astype(np.float64), b.ravel().astype(np.float64)
    assert abs(np.corrcoef(a, b)[0, 1]) < 6 / np.sqrt(a.size)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float16, F, np.float64], ids=lambda t: t.__name__)
def test_normal_and_uniform_numbers(runs, device, dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    for (a,), (b,) in (runs(device, model("RandomNormal", [], shape=[200, N // 200], dtype=kind, mean=3.0, scale=0.5)),
                       runs(device, model("RandomNormalLike", [np.zeros((200, N // 200), dtype)], mean=3.0, scale=0.5), [np.zeros((200, N // 200), dtype)])):
        assert a.dtype == dtype and a.shape == (200, N // 200)
        assert_moments(a, 3, 0.5)
        assert_fresh(a, b)
    for (a,), (b,) in (runs(device, model("RandomUniform", [], shape=[N], dtype=kind, low=-1.0, high=3.0)),
                       runs(device, model("RandomUniformLike", [np.zeros(N, np.int32)], dtype=kind, low=-1.0, high=3.0), [np.zeros(N, np.int32)])):
        assert a.dtype == dtype and a.min() >= -1 and a.max() <= 3
        assert_moments(a, 1, 4 / np.sqrt(12))
        assert_fresh(a, b)


@pytest.mark.parametrize("device", DEVICES)
def test_bernoulli_and_multinomial(runs, device):
    p = np.linspace(0, 1, 11, dtype=F).repeat(4000).reshape(11, 4000)
    (a,), (b,) = runs(device, model("Bernoulli", [p], dtype=TensorProto.INT32), [p])
    assert a.dtype == np.int32 and set(np.unique(a)) == {0, 1} and not a[0].any() and a[10].all()
    assert np.abs(a.mean(1) - p[:, 0]).max() < 6 * 0.5 / np.sqrt(4000) and (a != b).any()
    odds = np.array([[0.5, 0.3, 0.2], [1, 0, 0]])
    with np.errstate(divide="ignore"):
        logits = (np.log(odds) + 7).astype(F)
    (a,), (b,) = runs(device, model("Multinomial", [logits], sample_size=N), [logits])
    assert a.dtype == np.int32 and a.shape == (2, N) and not a[1].any() and (a != b).any()
    assert np.abs(np.bincount(a[0], minlength=3) / N - odds[0]).max() < 6 * 0.5 / np.sqrt(N)
    (a,), _ = runs(device, model("Multinomial", [logits], dtype=TensorProto.INT64), [logits])
    assert a.dtype == np.int64 and a.shape == (2, 1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ratio", [0.25, None])
def test_dropout_in_training(runs, device, ratio):
    x = np.linspace(1, 2, N, dtype=F)
    feeds = [x, np.asarray(F(0.5 if ratio is None else ratio)), np.asarray(True)]
    for constants in ((1, 2), (2,)):  # the ratio is a constant, or fed
        fed = [f for i, f in enumerate(feeds) if i not in constants]
        (y, mask), (other, _) = runs(device, model("Dropout", feeds, n_out=2, constants=constants), fed)
        kept = 1 - feeds[1]
        assert mask.dtype == bool and abs(mask.mean() - kept) < 6 * 0.5 / np.sqrt(N)
        np.testing.assert_allclose(y, np.where(mask, x / kept, 0), rtol=1e-6)
        assert (y != other).any()


def test_a_session_that_starts_again_draws_the_same_numbers(runs):
    proto = model("RandomNormal", [], shape=[50])
    first, second = runs("cpu", proto), runs("cpu", proto)
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(first, second)) and not np.array_equal(first[0][0], first[1][0])


def test_seeds_and_nodes_differ(runs):
    seeded = {s: runs("cpu", model("RandomNormal", [], shape=[5000], seed=s), times=1)[0][0] for s in (1.0, 2.0, -0.5)}
    for a, b in ((1.0, 2.0), (1.0, -0.5)):
        assert_fresh(seeded[a], seeded[b])
    assert np.array_equal(seeded[1.0], runs("cpu", model("RandomNormal", [], shape=[5000], seed=1.0), times=1)[0][0])
    nodes = [helper.make_node("RandomNormal", [], [y], shape=[5000]) for y in ("a", "b")]
    both = helper.make_model(helper.make_graph(nodes, "two", [], [helper.make_empty_tensor_value_info(y) for y in ("a", "b")]),
                             opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert_fresh(*runs("cpu", both, times=1)[0])


def test_in_a_loop_each_iteration_draws_others(runs):
    body = helper.make_graph(
        [helper.make_node("RandomUniform", [], ["drawn"], shape=[2000]), helper.make_node("Identity", ["go"], ["on"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_empty_tensor_value_info("drawn")])
    nodes = [helper.make_node("Constant", [], ["n"], value=helper.make_tensor("v", TensorProto.INT64, [], [3])),
             helper.make_node("Loop", ["n", ""], ["y"], body=body)]
    proto = helper.make_model(helper.make_graph(nodes, "g", [], [helper.make_empty_tensor_value_info("y")]),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (y,), (z,) = runs("cpu", proto)
    assert y.shape == (3, 2000)
    for a, b in ((y[0], y[1]), (y[1], y[2]), (y[0], z[0]), (y[2], z[0])):
        assert_fresh(a, b)


def test_bad_input(context):
    x = np.zeros((2, 3), np.int32)
    for proto, feeds, words in [
            (model("RandomNormalLike", [x]), [x], ["random numbers of i32; expected a float dtype"]),
            (model("Multinomial", [x[0].astype(F)]), [x[0].astype(F)], ["its operand has 1 dims; expected [batch, classes]"]),
            (model("Multinomial", [x.astype(F)], sample_size=0), [x.astype(F)], ["sample_size is 0; expected 1 or more"]),
            (model("RandomUniform", [], shape=[2, -1]), [], ["shape contains -1; expected sizes"])]:
        assert_refused(context, proto, feeds, "UNIMPLEMENTED" if "dtype" in words[0] else "INVALID", words)
