"""Optimizers in Python, against PyTorch's formulas in NumPy and, if installed, PyTorch itself; eagerly and in traced functions.
"""
import json
import subprocess
import sys
from pathlib import Path

import keel
import numpy as np
import pytest

STEPS = 12


def sgd(w, gradients, lr, momentum=0, nesterov=False, weight_decay=0):
    velocity = None
    for k, g in enumerate(gradients):
        g = g + weight_decay * w
        if momentum:
            velocity = g.copy() if velocity is None else momentum * velocity + g
            g = g + momentum * velocity if nesterov else velocity
        w = w - (lr(k) if callable(lr) else lr) * g
    return w


def adam(w, gradients, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0):
    m, v = np.zeros_like(w), np.zeros_like(w)
    for k, g in enumerate(gradients):
        rate = lr(k) if callable(lr) else lr
        w = w * (1 - rate * weight_decay)
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        w = w - rate * (m / (1 - beta1 ** (k + 1))) / (np.sqrt(v / (1 - beta2 ** (k + 1))) + eps)
    return w


CASES = [("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}), ("SGD", {"lr": 0.1, "weight_decay": 0.05}),
         ("SGD", {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01}), ("SGD", {"lr": lambda k: 0.2 / (k + 1)}),
         ("Adam", {"lr": 0.01}), ("Adam", {"lr": 0.02, "beta1": 0.8, "beta2": 0.99, "eps": 1e-4, "weight_decay": 0.1}),
         ("Adam", {"lr": 0.01, "beta1": 0, "beta2": 0.9}), ("Adam", {"lr": lambda k: 0.01 * 0.9 ** k, "weight_decay": 0.1})]
FORMULAS = {"SGD": sgd, "Adam": adam}


@pytest.fixture(params=[(False, "f4"), (True, "f4"), (True, "f8")], ids=["eager", "traced", "traced f64"])
def trained(request):
    """For a kind and options: the weights after some steps in Keel, the initial weights, and the gradients."""
    traced, dtype = request.param

    def run(kind, options):
        rng = np.random.default_rng(3)
        w = [rng.normal(size=shape).astype(dtype) for shape in ((3, 2), (4,))]
        gradients = [[rng.normal(size=x.shape).astype(dtype) for _ in range(STEPS)] for x in w]
        variables = {"a": keel.Variable(w[0], name="a"), "b": [keel.Variable(w[1], name="b")]}
        optimizer = getattr(keel.optim, kind)(**options)

        def step(a, b):
            optimizer.apply({"a": a, "b": [b]}, variables)
        f = keel.function(step) if traced else step
        for a, b in zip(*gradients):
            f(keel.array(a), keel.array(b))
        if traced:
            assert f.trace_count == 1
        return [variables["a"], variables["b"][0]], w, gradients
    run.precision = {"f4": 2e-6, "f8": 1e-14}[dtype]
    return run


@pytest.mark.parametrize("kind, options", CASES)
def test_steps_are_those_of_the_formulas(trained, kind, options):
    for got, w, gradients in zip(*trained(kind, options)):
        want = FORMULAS[kind](w.astype("f8"), [g.astype("f8") for g in gradients], **options)
        np.testing.assert_allclose(got.numpy(), want, rtol=trained.precision * 10, atol=trained.precision)


PEER = """
import sys, json
try:
    import torch
except ImportError:
    sys.exit(3)
ends = []
for kind, options, w, gradients in json.loads(sys.argv[1]):
    w = torch.tensor(w, dtype=torch.float64, requires_grad=True)
    if "beta1" in options: options["betas"] = (float(options.pop("beta1")), float(options.pop("beta2")))
    make = {"SGD": torch.optim.SGD, "Adam": torch.optim.AdamW}[kind]
    optimizer = make([w], **{"weight_decay": 0, **options})
    for g in gradients:
        w.grad = torch.tensor(g, dtype=torch.float64)
        optimizer.step()
    ends.append(w.detach().tolist())
print(json.dumps(ends))
"""


def test_the_formulas_are_those_of_torch():
    rng = np.random.default_rng(3)
    w, gradients = rng.normal(size=4), rng.normal(size=(STEPS, 4))
    cases = [case for case in CASES if not callable(case[1]["lr"])]
    asked = json.dumps([[kind, options, w.tolist(), gradients.tolist()] for kind, options in cases])
    peer = Path(__file__).resolve().parents[2] / "build/peers/bin/python"
    done = subprocess.run([peer if peer.exists() else sys.executable, "-c", PEER, asked], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("PyTorch is not installed (tools/bench/peers.py brings it)")
    assert done.returncode == 0, done.stderr
    for (kind, options), end in zip(cases, json.loads(done.stdout), strict=True):
        np.testing.assert_allclose(FORMULAS[kind](w, gradients, **options), end, rtol=1e-12, err_msg=f"{kind} {options}")


def test_the_rate_may_be_a_variable_that_changes_without_a_trace():
    rate, w = keel.Variable(1.), keel.Variable([0., 0.])
    optimizer = keel.optim.SGD(rate)
    step = keel.function(lambda g: optimizer.apply(g, w))
    step(keel.array([1., 2.]))
    rate.assign(0.5)
    step(keel.array([1., 2.]))
    assert w.tolist() == [-1.5, -3] and step.trace_count == 1


def test_adam_counts_its_first_steps_exactly():
    for dtype, precision in (("f4", 1e-6), ("f8", 1e-13)):
        w = keel.Variable(np.zeros(1, dtype))
        keel.optim.Adam(1., beta2=0.999999, eps=0).apply([keel.array(np.ones(1, dtype))], [w])
        np.testing.assert_allclose(w.numpy(), -1, rtol=precision)


def test_what_an_optimizer_remembers_goes_into_checkpoints(tmp_path):
    def begin():
        w = {"w": keel.Variable([1., 2.], name="w"), "b": keel.Variable([0.5], name="b")}
        return w, keel.optim.Adam(0.1)

    def go(w, optimizer, steps):
        for k in range(steps):
            optimizer.apply({"w": keel.array([1., -1.]), "b": keel.array([float(k)])}, w)
    w, optimizer = begin()
    go(w, optimizer, 3)
    state = optimizer.state(w)
    assert [v.name for v in state["mean"]] == ["b/mean", "w/mean"] and state["steps"].item() == 3
    keel.save_checkpoint(tmp_path / "a.ckpt", {"model": w, "optimizer": state})
    other, fresh = begin()
    keel.load_checkpoint(tmp_path / "a.ckpt", {"model": other, "optimizer": fresh.state(other)})
    go(w, optimizer, 2), go(other, fresh, 2)
    assert all(keel.same(w[k].value(), other[k].value()) for k in w)
    third, blank = begin()
    keel.load_checkpoint(tmp_path / "a.ckpt", {"model": third})
    go(third, blank, 2)
    assert not keel.same(w["b"].value(), third["b"].value())
    assert keel.optim.SGD(0.1).state(w) == {} and list(keel.optim.SGD(0.1, momentum=0.5).state(w)) == ["momentum"]


def test_slots_are_made_on_the_first_trace_only():
    optimizer, w = keel.optim.SGD(0.1, momentum=0.9), [keel.Variable(1.), keel.Variable(2.)]
    step = keel.function(lambda k, g: optimizer.apply(g, w[k]))
    step(0, 1.)
    with pytest.raises(keel.PreconditionError, match="creates a variable"):
        step(1, 1.)
    optimizer.state(w)
    step(1, 1.)
    np.testing.assert_allclose([v.item() for v in w], [0.9, 1.9])


@pytest.mark.parametrize("call, message", [
    (lambda w: keel.optim.SGD(0.1).apply([None, 1.], [w, w]), "variable w has no gradient"),
    (lambda w: keel.optim.SGD(0.1).apply([1.], [w, w]), "1 gradients for 2 variables"),
    (lambda w: keel.optim.SGD(0.1).apply([1.], [keel.array(1.)]), "variables, got Tensor"),
    (lambda w: keel.optim.SGD(0.1).apply([keel.ones(3)], [w]), r"f32\[3\]"),
    (lambda w: keel.optim.SGD(0.1).apply({"v": 1.}, {"w": w}), r"a gradient is at \.v, variable w at \.w"),
    (lambda w: keel.optim.SGD(0.1).apply([1., 2.], {"a": w, "b": keel.Variable(1.)}), r"a gradient is at \[0\], variable w at \.a"),
    (lambda w: keel.optim.SGD(-0.1), "lr is -0.1"), (lambda w: keel.optim.SGD(0.1, nesterov=True), "requires a momentum"),
    (lambda w: keel.optim.Adam(beta2=1), "beta2 is 1"), (lambda w: keel.optim.clip_by_global_norm([None], 1.), "no gradients")])
def test_wrong_steps_are_named_and_change_nothing(call, message):
    w = keel.Variable(2., name="w")
    with pytest.raises(keel.InvalidError, match=message):
        call(w)
    assert w.item() == 2


@pytest.mark.parametrize("lr", ["fast", None, [0.1]])
def test_learning_rates_are_numbers_or_give_them(lr):
    with pytest.raises(TypeError, match="lr is a number, a tensor, a variable or a function"):
        keel.optim.SGD(lr)


def test_clipping_keeps_the_direction():
    g = {"a": keel.array([3., 0.]), "b": [keel.array([[4.]]), None]}
    clipped, norm = keel.optim.clip_by_global_norm(g, 1.)
    np.testing.assert_allclose(clipped["a"], [0.6, 0]), np.testing.assert_allclose(clipped["b"][0], [[0.8]])
    assert norm.item() == 5 and clipped["b"][1] is None
    same, norm = keel.optim.clip_by_global_norm(g, 5.)
    assert same["a"].tolist() == [3, 0] and norm.item() == 5
    zero, _ = keel.function(lambda x: keel.optim.clip_by_global_norm([x], 1.))(keel.zeros(2))
    assert zero[0].tolist() == [0, 0]
