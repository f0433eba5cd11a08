"""Saved graphs in Python: files, sessions by feeds and fetches, plans, checkpoints, and wrong input for each."""
import json
import pickle
import subprocess
import sys
import threading

import keel
import numpy as np
import pytest


@pytest.fixture
def path(tmp_path):
    w = keel.Variable([[1., 2.], [3., 4.]], name="w")
    serve = keel.function(lambda x: {"y": x @ w, "sum": keel.reduce_sum(x)})
    half = keel.function(lambda x: x / 2)
    keel.save(tmp_path / "m.keel", gradients=True, serve=serve.concrete(keel.f32[3, 2]), half=half.concrete(keel.f32[()]))
    return tmp_path / "m.keel"


X = np.arange(6, dtype="f4").reshape(3, 2)
Y = X @ np.array([[1, 2], [3, 4]], "f4")


def test_sessions_run_by_names(path, device):
    session = keel.Session(path, device, entry="serve")
    assert session.parameters == [("x", keel.f32, (3, 2))] and [r[0] for r in session.results] == ["sum", "y"]
    np.testing.assert_array_equal(session.run(x=X)["y"], Y)
    got = session.run({"a": ["y", "sum"], "b": "y"}, {"x": X.astype("f8")})  # cast within their kind
    np.testing.assert_array_equal(got["b"], Y)
    assert got["a"][1].item() == 15 and session.run("sum", {"sum": 7.}).item() == 7  # a fed value cuts the graph


def test_a_run_of_the_whole_entry_has_its_effects_and_one_with_fetches_has_not(capfd):
    w = keel.Variable(0.)

    @keel.function
    def step(x):
        w.assign_add(x)
        keel.print("step {}", x)
        return x * 2
    for module, results in ((step.concrete(keel.f32[()]), 1), (keel.function(lambda x: w.assign_add(x)).concrete(keel.f32[()]), 0)):
        w.assign(0.)
        session = keel.Session(module)
        assert len(session.run(x=3.)) == results and w.item() == 3
        module(x=4.), session.run([], {"x": 4.})
        assert w.item() == 7
    order = keel.parse("keel 1\nfn @f(x: f32[]) -> z: f32[], a: f32[] {\n  z = sin(x) : f32[]\n  a = neg(x) : f32[]\n  return z, a\n}\nentry f = @f (x) -> (z, a)\n")
    for got in (keel.Session(order).run(x=0.5), keel.Session(order).run({"z": "z", "a": "a"}, {"x": 0.5}), order(0.5)._asdict()):
        assert list(got) == ["z", "a"] and got["a"].item() == -0.5 and 0 < got["z"].item() < 0.5
    assert session.run({"a": []}) == {"a": []} and capfd.readouterr().err == "step 3\nstep 4\n"


@pytest.mark.parametrize("call, kind", [
    (lambda s: s.run(), keel.Error), (lambda s: s.run(x=X[:2]), keel.Error), (lambda s: s.run(x=X.astype("i4") > 0, z=1), keel.Error),
    (lambda s: s.run("nothing", {"x": X}), LookupError), (lambda s: s.run(y="a"), TypeError),
    (lambda s: s.run(x=[["ab", "cd"]] * 3), TypeError), (lambda s: s.prepare(["nothing"]), LookupError)])
def test_wrong_feeds_and_fetches_are_errors(path, call, kind):
    with pytest.raises(kind):
        call(keel.Session(path, entry="serve"))


def test_options_that_are_on_or_off_take_true_and_false(path):
    for on in (True, False, 1, "0"):
        session = keel.Session(path, entry="serve", strict=on, exact_convolution=on)
        assert pickle.loads(pickle.dumps(session)).results == session.results
        assert keel.function(lambda x: x * 2, exact_convolution=on)(keel.array(2.)).item() == 4
    for wrong in (2, "yes", None):
        with pytest.raises(keel.InvalidError, match='option "exact_convolution": got .*, expected 0 or 1'):
            keel.Session(path, entry="serve", exact_convolution=wrong)


def test_lists_place_nodes_and_name_fallbacks_and_passes():
    module = keel.parse("keel 1\nfn @main(x: f32[3]) -> f32[3] {\n  a = exp(x)\n  b = tanh(a)\n  y = neg(b)\n  return y\n}\nentry main = @main (x) -> (y)\n")
    for place in (["a=reference", "b=reference"], ("a=reference", "b=reference"), "?=reference"):
        session = keel.Session(module, "cpu", place=place, fallback=["reference", "cpu"], passes=("-map", "-fold"))
        report = json.loads(session.prepare()._report())
        placed = {p["node"]: p["device"] for p in report["placement"]}
        assert placed["a"] == placed["b"] == "reference:0" and placed["y"] == ("reference:0" if place == "?=reference" else "cpu:0")
        np.testing.assert_allclose(session.run("y", x=[1, 2, 3]).numpy(), -np.tanh(np.exp([1, 2, 3])), rtol=1e-6)
    assert json.loads(keel.Session(module, "cpu", place=[], fallback=[]).prepare()._report())["device"] == "cpu:0"
    with pytest.raises(keel.errors.DeviceError, match='no device "nosuch"'):
        keel.Session(module, "cpu", fallback=["reference", "nosuch"])


def test_exact_convolution_counts_in_bodies_calls_and_saved_graphs(tmp_path):
    random = np.random.default_rng(0)
    x, w = random.normal(size=(1, 64, 14, 14)).astype("f4"), random.normal(size=(64, 64, 3, 3)).astype("f4")
    fixed = keel.array(w)

    def directly(x, w):  # weights that are not constants
        return keel.relu(keel.conv(x, w, lo=[1, 1], hi=[1, 1]))

    def net(x):
        return directly(x, fixed)
    ways = {"alone": net, "branch": lambda x: keel.cond(keel.reduce_sum(x) > -1e30, lambda: net(x), lambda: x),
            "loop": lambda x: keel.while_loop((0, x), lambda i, y: i < 1, lambda i, y: (i + 1, net(y)))[1], "call": keel.function(net)}
    with keel.device("cpu"):
        want = keel.function(directly)(x, w)
        assert not keel.same(keel.function(net)(x), want)
        for name, code in ways.items():
            assert keel.same(keel.function(code, exact_convolution=True)(x), want), name
            keel.save(tmp_path / "net.keel", keel.function(code).concrete(keel.f32[x.shape]))
            for level in (0, 2):
                made, = keel.Session(tmp_path / "net.keel", exact_convolution=True, level=level).run(None, {"x": x}).values()
                assert keel.same(made, want), (name, level)


def test_wrong_sessions_are_errors(path, tmp_path):
    (tmp_path / "bad.keel").write_bytes(b"KEEL" * 100)
    for wrong, kind in ((lambda: keel.Session(tmp_path / "no.keel"), keel.NotFoundError), (lambda: keel.load(tmp_path / "bad.keel"), keel.InvalidError),
                        (lambda: keel.Session(path, entry="no"), keel.Error), (lambda: keel.Session(path, "tpu", "half"), keel.DeviceError),
                        (lambda: keel.Session(path), keel.Error), (lambda: keel.Session(path, entry="half", nonsense=1), keel.Error),
                        (lambda: keel.parse("keel 1\nfn"), keel.InvalidError)):
        with pytest.raises(kind):
            wrong()


def test_other_threads_go_on_while_a_plan_runs():
    """Also after fast calls of the same plan with as few numbers: the count of a loop is not a size."""
    count = keel.function(lambda n: keel.while_loop(0, lambda i: i < n, lambda i: i + 1))
    plan = keel.Session(count.concrete(keel.i32[()])).prepare()
    assert [plan(n).item() for n in (3, 4, 5)] == [3, 4, 5]
    seen, over = [], threading.Event()

    def watch():
        while not over.wait(0.001):
            seen.append(1)
    watcher = threading.Thread(target=watch)
    watcher.start()
    before = len(seen)
    plan(100_000_000)
    during = len(seen) - before
    over.set(), watcher.join()
    assert during >= 2


def test_a_plan_is_quick_with_few_numbers_and_right_with_many():
    double = keel.function(lambda x: x + x, signature="x: f32[n]")
    plan = keel.Session(double.concrete(keel.zeros(3))).prepare()
    for n in (1, 1, 1, 0, 5000, 1, 5000, 7):
        np.testing.assert_array_equal(plan(np.arange(n, dtype="f4")).numpy(), 2 * np.arange(n, dtype="f4"))
    with pytest.raises(keel.InvalidError):
        plan(keel.zeros((1, 1)))
    with pytest.raises(TypeError, match="positional inputs"):
        plan(x=keel.zeros(1))
    with pytest.raises(TypeError, match="prepare"):
        keel.Plan()


def test_plans_take_inputs_in_order_from_many_threads(path):
    plan = keel.Session(path, entry="serve").prepare()
    assert (plan.inputs, plan.outputs) == (1, 2)
    wrong = []

    def work(k):
        for _ in range(100):
            if not np.array_equal(plan(X * k)[1], Y * k):
                wrong.append(k)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not wrong
    assert keel.Session(path, entry="half").prepare()(5.).item() == 2.5
    for call in (lambda: plan(), lambda: plan(X, X), lambda: plan(X[:2]), lambda: plan(x=X), lambda: plan("a")):
        with pytest.raises((keel.Error, TypeError)):
            call()


def test_files_run_without_their_source_and_carry_gradients(path):
    code = ("import sys, keel; s = keel.Session(sys.argv[1], entry='half'); print(s.run(x=5.));"
            "print(keel.Session(sys.argv[1], entry='half.gradient').run('d_x', {'x': 5.}))")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 0 and done.stdout.endswith("0.5\n") and "2.5" in done.stdout, done.stderr


def test_literals_are_fed_as_exactly_as_the_parameter_holds_them():
    module = keel.function(lambda x: x / 2).concrete(keel.f64[()])
    session = keel.Session(module)
    assert session.run({"y": session.results[0][0]}, {"x": 0.1})["y"].item() == 0.05


def test_modules_tell_what_they_hold(path):
    module = keel.load(path)
    assert {e["name"] for e in module.info()["entries"]} >= {"serve", "half"} and "serve(x)" in module.signatures()
    assert module.variable("w").tolist() == [[1, 2], [3, 4]] and json.loads(module._info()) == module.info()
    module.variable("w").assign([[0., 0.], [0., 0.]])
    assert keel.Session(module, entry="serve").run(x=X)["y"].tolist() == [[0, 0]] * 3


def test_sessions_survive_pickle(path):
    for session in (keel.Session(path, "cpu", "half"), keel.Session(keel.load(path), "reference", "half")):
        back = pickle.loads(pickle.dumps(session))
        assert back.device == session.device and back.run("v1" if False else {"y": back.results[0][0]}, {"x": 3.})["y"].item() == 1.5


def test_checkpoints_keep_variables_by_path(tmp_path):
    def model(k):
        return {"layers": [{"w": keel.Variable([k, 2 * k])}, {"w": keel.Variable(3 * k)}], "rate": 0.1, "named": [keel.Variable(4 * k, name="bias")]}
    a, b = model(1.), model(0.)
    keel.save_checkpoint(tmp_path / "a.ckpt", a)
    keel.load_checkpoint(tmp_path / "a.ckpt", b)
    assert b["layers"][0]["w"].tolist() == [1, 2] and b["layers"][1]["w"].item() == 3
    bias = keel.Variable(0.)
    keel.load_checkpoint(tmp_path / "a.ckpt", {"named": [{"bias": bias}][0:0], "named/bias": bias})
    assert bias.item() == 4
    with pytest.raises(keel.Error):
        keel.load_checkpoint(tmp_path / "a.ckpt", {"other": keel.Variable(1.)})
    with pytest.raises(keel.Error):
        keel.load_checkpoint(tmp_path / "no.ckpt", b)
    assert b["layers"][1]["w"].item() == 3


def test_importing_is_quick_and_loads_no_plugin():
    code = "import time; t = time.perf_counter(); import keel; print(time.perf_counter() - t); print(open('/proc/self/maps').read())"
    env = {"PYTHONPATH": ":".join(sys.path)}
    outs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout for _ in range(3)]
    assert "keel-cpu" not in outs[0] and "libkeel" in outs[0] and "numpy" not in outs[0]
    assert min(float(out.split("\n", 1)[0]) for out in outs) < 0.25
