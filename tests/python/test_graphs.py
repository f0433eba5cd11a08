"""Graphs built in code, sessions and plans through the C ABI: feeds, fetches, targets, symbolic dims, threads.

`mlp` is the graph of most tests: h = relu(x @ w), y = h + b, sum = reduce_sum(y), x: f32[n, 3].
"""
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from keel_abi import KeelError

W = np.array([[1, -2], [0.5, 3], [-1, 0.25]], np.float32)
B = np.array([10, 20], np.float32)


def rows(n):
    return np.arange(3 * n, dtype=np.float32).reshape(n, 3) - 4


def hidden(x):
    return np.maximum(x @ W, 0)


@pytest.fixture
def mlp(context):
    module = context.module()
    graph = module.graph("main")
    x = graph.param("x", np.float32, [module.dim("n"), 3])
    h = graph.node("relu", graph.node("matmul", x, graph.constant(W, "w"), name="product"), name="h")
    y = graph.node("add", h, graph.constant(B, "b"), name="y")
    total = graph.node("reduce_sum", y, axes=[0, 1], name="sum")
    graph.result("y", y)
    graph.result("sum", total)
    module.entry("main", graph)
    assert graph.type(y) == (np.float32, [-1, 2]) and graph.type(total) == (np.float32, [])
    return module


def test_entry(mlp, device):
    y, total = mlp.session(device).prepare().run(rows(4))
    np.testing.assert_array_equal(y, hidden(rows(4)) + B)
    np.testing.assert_array_equal(total, (hidden(rows(4)) + B).sum())


def test_one_plan_serves_every_batch(mlp, device):
    plan = mlp.session(device).prepare()
    for n in (0, 1, 7, 64, 1, 0):
        y, total = plan.run(rows(n))
        assert y.shape == (n, 2) and total.shape == ()
        np.testing.assert_allclose(y, hidden(rows(n)) + B, rtol=1e-6)
        np.testing.assert_allclose(total, y.sum(), rtol=1e-6)


def test_fetch_between(mlp, device):
    h, product = mlp.session(device).run({"x": rows(2)}, ["h", "product"])
    np.testing.assert_array_equal(h, hidden(rows(2)))
    np.testing.assert_array_equal(product, rows(2) @ W)


@pytest.mark.parametrize("fed", ["x", "product", "h", "y"])
def test_any_value_may_be_fed(mlp, device, fed):
    x = rows(2)
    values = {"x": x, "product": x @ W, "h": hidden(x), "y": hidden(x) + B}
    total, = mlp.session(device).run({fed: values[fed]}, ["sum"])
    np.testing.assert_array_equal(total, values["y"].sum())


def test_a_constant_may_be_fed(mlp, device):
    y, = mlp.session(device).run({"x": rows(2), "b": B + 1}, ["y"])
    np.testing.assert_array_equal(y, hidden(rows(2)) + B + 1)


def test_what_is_not_fetched_is_pruned(mlp, device):
    launches = {step["node"] for step in mlp.session(device).prepare(["x"], ["h"]).report(rows(1))["launches"]}
    assert "h" in launches and not launches & {"y", "sum"}
    # with h fed, x is not needed and may be omitted
    y, = mlp.session(device).run({"h": np.zeros((1, 2), np.float32)}, ["y"])
    np.testing.assert_array_equal(y, [B])


def test_targets_are_computed_and_not_returned(context, device):
    module = context.module()
    graph = module.graph("main")
    a, b = graph.param("a", np.int32, [2]), graph.param("b", np.int32, [2])
    quotient = graph.node("div", a, b, name="quotient")
    graph.result("c", graph.node("add", a, b, name="c"))
    module.entry("main", graph)
    session, feeds = module.session(device), {"a": np.int32([6, 8]), "b": np.int32([2, 0])}
    c, = session.run(feeds, ["c"])
    assert c.tolist() == [8, 8]
    with pytest.raises(KeelError, match="division by zero"):
        session.run(feeds, ["c"], targets=["quotient"])
    assert session.run({**feeds, "b": np.int32([2, 4])}, [], targets=["quotient"]) == []
    assert graph.type(quotient) == (np.int32, [2])


def run_watched(plan, x):
    """Returns (op, shape of its first result) of each launch, and the results."""
    import ctypes as C

    import keel_abi as k

    class Event(C.Structure):
        _fields_ = [("struct_size", C.c_uint32), ("n_in", C.c_uint32), ("n_out", C.c_uint32), ("index", C.c_uint32),
                    ("node", C.c_char_p), ("op", C.c_char_p), ("impl", C.c_char_p), ("inputs", C.c_void_p),
                    ("out", C.POINTER(C.POINTER(k.Tensor))), ("out_names", C.c_void_p)]
    seen = []

    @C.CFUNCTYPE(C.c_int32, C.c_void_p, C.POINTER(Event))
    def observer(_, event):
        tensor = event[0].out[0][0]
        seen.append((event[0].op.decode(), [tensor.shape[i] for i in range(tensor.ndim)]))
        return 0
    keep, inputs = k.pointers(plan.keep[0].context, [x])
    out = (C.c_void_p * 2)()
    k.call("keel_plan_run_observed", plan, inputs, 1, out, 2, observer, None)
    return seen, [k.Array(C.c_void_p(p), plan).numpy() for p in out]


def test_a_profiled_plan_is_the_plain_one(mlp, device):
    plain, profiled, observed = (mlp.session(device, level=0, **options).prepare()
                                 for options in ({}, {"profile": 1}, {"observe": 1}))
    seen, (y, total) = run_watched(profiled, rows(4))
    np.testing.assert_array_equal(y, hidden(rows(4)) + B)
    assert profiled.report(rows(4)) == plain.report(rows(4))
    assert [op for op, _ in seen] == [launch["op"] for launch in plain.report()["launches"]]
    assert seen[0] == ("matmul", [4, 2]) and seen[-1] == ("reduce_sum", []) and total == y.sum()
    assert run_watched(observed, rows(4))[0] == seen
    with pytest.raises(KeelError, match="the plan cannot be observed"):
        run_watched(plain, rows(4))
    with pytest.raises(KeelError, match='"profile": got "yes", expected 0 or 1'):
        mlp.session(device, profile="yes")


def test_one_plan_in_eight_threads(mlp, device):
    plan = mlp.session(device).prepare()

    def work(n):
        return all(np.allclose(plan.run(rows(n))[0], hidden(rows(n)) + B) for _ in range(50))
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, [1, 2, 3, 5, 8, 13, 0, 21]))


def test_results_belong_to_the_caller(mlp, device):
    plan = mlp.session(device).prepare()
    first = plan.run(rows(3))[0]
    kept = first.copy()
    for _ in range(5):
        plan.run(-rows(3))
    np.testing.assert_array_equal(first, kept)


def test_inputs_stay_as_they_are(mlp, device):
    x = rows(3)
    mlp.session(device).prepare().run(x)
    np.testing.assert_array_equal(x, rows(3))


def test_related_symbols(context, device):
    module = context.module()
    graph = module.graph("main")
    a = graph.param("a", np.float32, [module.dim("n"), module.dim("2*n")])
    graph.result("b", graph.node("reshape", a, to=[module.dim("2*n*n")], name="b"))
    module.entry("main", graph)
    plan = module.session(device).prepare()
    assert plan.run(np.ones((3, 6), np.float32))[0].shape == (18,)
    assert plan.run(np.ones((0, 0), np.float32))[0].shape == (0,)
    with pytest.raises(KeelError, match='"a".*2.n'):
        plan.run(np.ones((3, 5), np.float32))


def test_file_and_text_keep_the_meaning(context, mlp, device, tmp_path):
    mlp.save(tmp_path / "m.keel")
    text = mlp.to_text()
    again = context.parse(text)
    assert again.to_text() == text
    data = (tmp_path / "m.keel").read_bytes()
    for module in (again, context.load(tmp_path / "m.keel"), context.load_bytes(data)):
        np.testing.assert_array_equal(module.session(device).prepare().run(rows(4))[0], hidden(rows(4)) + B)
    entry = mlp.info()["entries"][0]
    assert (entry["name"], entry["params"][0]["name"]) == ("main", "x")
    assert [r["name"] for r in entry["results"]] == ["y", "sum"]


def test_devices_and_plugins_are_reported(context):
    assert {"reference", "cpu"} <= {name.partition(":")[0] for name in context.devices()}
    assert {d["name"] for d in context.report("devices")} == set(context.devices())
    assert any(p["verdict"] == "taken" for p in context.report("plugins"))
    assert {"add", "conv", "softmax"} <= {op["name"] for op in context.report("ops")}
    assert any("onnx" in i["name"] for i in context.report("importers"))


def test_a_call_with_two_results_that_have_no_names(context, device):
    """Outlined values get unique names: a pass whose call returns two results is not reported as faulty."""
    text = """keel 1

fn @main(x: f32[1, 3, 8, 8], w: f32[4, 3, 3, 3]) -> f32[1, 4, 6, 6], f32[1, 4, 6, 6] {
  v0 = conv(x, w)
  v1 = relu(v0)
  v2 = exp(v1)
  return v1, v2
}
"""
    plan = context.parse(text).session(device).prepare()
    report = plan.report()
    assert [run for run in report["passes"] if "error" in run] == []
