"""keel.custom_gradient: eagerly, traced, saved, and as gradients of gradients; variables created on a first trace."""
import keel
import numpy as np
import pytest


@keel.custom_gradient
def clipped(x):
    return keel.identity(x), lambda dy: keel.clamp(dy, -1, 1)


def test_gradients_are_the_functions_own_eagerly_and_traced():
    f = lambda x: keel.reduce_sum(clipped(x) * [5., 0.5])
    for g in (keel.grad(f), keel.function(keel.grad(f)), keel.grad(keel.function(f))):
        assert g(keel.array([1., 2.])).tolist() == [1, 0.5]
    assert clipped(keel.array([3.])).tolist() == [3] and clipped.__name__ == "clipped"


def test_several_arguments_and_results_in_structures():
    seen = []

    @keel.custom_gradient
    def both(a, b, n):
        def grad(d):
            seen.append({k: v if v is None else v.type for k, v in d.items()})
            return d["sum"] * 10, None, None
        return {"sum": a + b, "n": n + 1}, grad
    a, b = keel.array([1., 2.]), keel.array([3., 4.])
    with keel.Tape() as tape:
        tape.watch(a), tape.watch(b)
        out = both(a, b, 7)
    assert out["sum"].tolist() == [4, 6] and out["n"].item() == 8 and seen == [{"sum": "f32[2]", "n": None}]
    assert [g.tolist() for g in tape.gradient(out["sum"], (a, b))] == [[10, 10], [0, 0]]


def test_what_the_way_back_takes_from_around_it_counts_but_not_for_gradients_of_gradients():
    def exp(x):
        y = keel.exp(x)
        return y, lambda dy: dy * y
    alone, apart = keel.custom_gradient(exp), keel.custom_gradient(keel.exp, lambda x, y, dy: dy * y)
    for f, second in ((alone, 0), (apart, np.exp(2.))):
        g = keel.grad(f)
        np.testing.assert_allclose([g(2.).item(), keel.function(g)(keel.array(2.)).item()], np.exp(2.), rtol=1e-6)
        for twice in (keel.grad(g), keel.function(keel.grad(g))):
            np.testing.assert_allclose(twice(keel.array(2.)).item(), second, rtol=1e-6)


def test_saved_graphs_carry_it(tmp_path):
    f = keel.function(lambda x: keel.reduce_sum(clipped(x) * 5.), name="f")
    keel.save(tmp_path / "f.keel", gradients=True, f=f.concrete(keel.f32[2]))
    assert keel.Session(tmp_path / "f.keel", entry="f.gradient").run("d_x", {"x": [1., 2.]}).tolist() == [1, 1]


def test_variables_are_read_and_trained_through_it():
    w = keel.Variable([2., 3.])
    straight = keel.custom_gradient(keel.round, lambda x, y, dy: dy, name="straight")
    with keel.Tape() as tape:
        loss = keel.reduce_sum(straight(w * 0.7) * [1., 10.])
    np.testing.assert_allclose(tape.gradient(loss, w), [0.7, 7], rtol=1e-6)


def broken(x):
    raise KeyError("mine")


@pytest.mark.parametrize("code, backward, kind, message", [
    (lambda x: x * 2, None, keel.InvalidError, "must return a value and a gradient function"), (lambda x: (x * 2, 3), None, keel.InvalidError, "must return a value and a gradient function"),
    (lambda x: (x * 2, broken), None, KeyError, "mine"), (broken, None, KeyError, "mine"),
    (lambda x: x * 2, lambda x, y, dy: (dy, dy), keel.InvalidError, "2 gradients for 1 arguments"),
    (lambda x: x * 2, lambda x, y, dy: keel.reduce_sum(dy), keel.InvalidError, r"is f32\[\], but the argument is f32\[2\]"),
    (lambda x: x * 2, lambda x, y, dy: "a", TypeError, "str"), (lambda x: (x * 2, lambda dy: dy.item()), None, keel.PreconditionError, "no value")])
def test_wrong_gradients_are_named(code, backward, kind, message):
    x = keel.array([1., 2.])
    f = keel.custom_gradient(code, backward)
    for call in (lambda: keel.grad(f)(x), lambda: keel.function(f)(x)):
        with pytest.raises(kind, match=message):
            call()


def test_functions_make_variables_on_their_first_trace():
    kept = {}

    @keel.function
    def count(x):
        if "n" not in kept:
            kept["n"] = keel.Variable(keel.zeros(x.shape), name="n")
        kept["n"].assign_add(x)
        return kept["n"].value()
    one = keel.array([1., 2.])
    assert [count(one).tolist() for _ in range(3)] == [[1, 2], [2, 4], [3, 6]] and kept["n"].tolist() == [3, 6]
    assert count.traces()[0]["variables"] == ["n"]
    again = keel.function(lambda x: keel.Variable(x.shape[0] * 1.).value() + x)
    again(one)
    with pytest.raises(keel.PreconditionError, match="creates a variable"):
        again(keel.ones(3))
    with pytest.raises(keel.InvalidError, match="initial value"):
        keel.function(lambda x: keel.Variable(x).value())(one)


@pytest.mark.parametrize("way", [lambda f: f, keel.function])
def test_variables_and_tensors_that_the_code_uses_get_the_gradient_of_its_ops(way):
    w, watched = keel.Variable([2., 3.]), keel.array([5., 7.])

    @keel.custom_gradient
    def scaled(x):
        return {"y": x * w * watched, "n": keel.array(1)}, lambda dy: dy["y"] * 10

    def f(x):
        with keel.Tape() as tape:
            tape.watch(x), tape.watch(watched)
            loss = keel.reduce_sum(scaled(x)["y"] * [1., 2.])
        return tape.gradient(loss, [x, w, watched])
    assert [g.tolist() for g in way(f)(keel.array([1., 4.]))] == [[10, 20], [5, 56], [2, 24]]

    @keel.custom_gradient
    def stopped(x):
        return x * keel.stop_gradient(w), lambda dy: dy

    def g(x):
        with keel.Tape() as tape:
            loss = keel.reduce_sum(stopped(x * w))
        return tape.gradient(loss, w)
    assert way(g)(keel.array([1., 4.])).tolist() == [1, 4]


def recomputed(f):
    """f with a gradient that recomputes it (checkpointing to save memory)."""
    @keel.custom_gradient
    def call(x):
        def grad(dy):
            with keel.Tape() as tape:
                tape.watch(x)
                y = f(x)
            return dy * tape.gradient(y, x)
        return f(x), grad
    return call


def loss_of(f, x):
    with keel.Tape() as tape:
        tape.watch(x)
        y = keel.reduce_sum(f(x))
    return tape.gradient(y, x)


def in_a_branch(x):
    return keel.cond(x[0] > 0, lambda: loss_of(recomputed(keel.exp), x), lambda: x)


def in_a_loop(x):
    return keel.scan(keel.zeros(2), keel.zeros(3), lambda s, _: (s + loss_of(recomputed(keel.exp), x) / 3, s))[0]


@pytest.mark.parametrize("f", [
    lambda x: loss_of(recomputed(keel.exp), x), lambda x: loss_of(recomputed(recomputed(keel.exp)), x), in_a_branch, in_a_loop])
def test_a_way_back_that_computes_again_works_eagerly_and_traced(f):
    x = np.array([1., 2.], "f4")
    for way in (f, keel.function(f)):
        np.testing.assert_allclose(way(keel.array(x)), np.exp(x), rtol=1e-6)


def test_a_tape_of_a_body_watches_values_around_it():
    def f(x):
        def inside():
            with keel.Tape() as tape:
                tape.watch(x)
                y = x * x
            return tape.gradient(y, x)
        return keel.cond(x > 0, inside, lambda: x)
    assert [f(keel.array(3.)).item(), keel.function(f)(keel.array(3.)).item()] == [6, 6]
