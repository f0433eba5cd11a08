"""Branches, loops and effects in Python: the same results eagerly and traced, and error messages."""
import keel
import numpy as np
import pytest


def both(f):
    """f eagerly and traced, on the same arguments; they must agree."""
    traced = keel.function(f)

    def run(*args):
        args = [keel.array(a) for a in args]
        eager, graph = f(*args), traced(*args)
        for a, b in zip(keel._keel.leaves(eager), keel._keel.leaves(graph), strict=True):
            np.testing.assert_array_equal(a, b)
        assert keel._keel.structure(eager) == keel._keel.structure(graph)
        return graph
    return run


def test_cond_takes_one_branch():
    relu = both(lambda x: keel.cond(x > 0, lambda: x, lambda: 0 * x))
    assert [relu(v).item() for v in (1, -1, 1.5, -2.5)] == [1, 0, 1.5, 0]
    pair = both(lambda x: keel.cond(x > 0, lambda: {"a": x, "b": (x + 1, None)}, lambda: {"a": -x, "b": (x, None)}))
    assert pair(2.)["b"][0].item() == 3 and pair(-2.)["a"].item() == 2


def test_literals_of_branches_take_the_others_dtype():
    f = keel.function(lambda x: keel.cond(x > 0, lambda: x, lambda: 0))
    assert f(keel.array(-1.)).dtype is keel.f32 and f(keel.array(-1)).dtype is keel.i32
    g = keel.function(lambda x: keel.cond(x > 0, lambda: (1, x), lambda: (0.5, 2)))
    assert [r.item() for r in g(keel.array(1.))] == [1, 1] and [r.item() for r in g(keel.array(-1.))] == [.5, 2]


@pytest.mark.parametrize("then, otherwise", [
    (lambda x: x, lambda x: x.astype("i32")), (lambda x: x, lambda x: (x,)), (lambda x: x, lambda x: keel.stack([x, x])),
    (lambda x: [x, x], lambda x: [x]), (lambda x: x, lambda x: 1j), (lambda x: x, lambda x: None)])
def test_branches_of_different_types_are_errors(then, otherwise):
    with pytest.raises((keel.InvalidError, TypeError)):
        keel.function(lambda x: keel.cond(x > 0, lambda: then(x), lambda: otherwise(x)))(keel.array(1.))
    assert keel.add(1, 1).item() == 2 and keel.executing_eagerly()


@pytest.mark.parametrize("p", [1, 1., [True], keel.array([True, False])])
def test_predicates_are_one_bool(p):
    with pytest.raises(keel.InvalidError, match="predicate is .*expected bool"):
        keel.cond(p, lambda: 1, lambda: 2)
    with pytest.raises(keel.InvalidError):
        keel.function(lambda q: keel.cond(q, lambda: 1, lambda: 2))(keel.array(p))


def test_exceptions_leave_branches_unchanged():
    def boom():
        raise KeyError("own")
    for f in (lambda x: keel.cond(x > 0, boom, lambda: x), lambda x: keel.while_loop(x, lambda v: v < 3, lambda v: boom())):
        with pytest.raises(KeyError, match="own"):
            keel.function(f)(keel.array(1.))
    assert keel.function(lambda x: x + 1)(keel.array(1.)).item() == 2


def test_switch():
    f = both(lambda i: keel.switch(i, [lambda: 10, lambda: 20, lambda: i * 0 + 30]))
    assert [f(k).item() for k in (0, 1, 2)] == [10, 20, 30]
    for g in (f, lambda i: keel.switch(i, [lambda: 1]), keel.function(lambda i: keel.switch(i, [lambda: 1]))):
        with pytest.raises(keel.RangeError):
            g(keel.array(3))
    with pytest.raises(keel.InvalidError):
        keel.switch(1.5, [lambda: 1, lambda: 2])


def test_while_loops():
    def collatz(start):
        def step(n, steps):
            return keel.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), steps + 1
        return keel.while_loop((start, 0), lambda n, _: n > 1, step)[1]
    assert both(collatz)(27).item() == 111
    assert both(lambda x: keel.while_loop({"v": x}, lambda c: keel.reduce_sum(c["v"]) < 9, lambda c: {"v": c["v"] * 2}))([1., 1.])["v"].tolist() == [8, 8]
    assert both(lambda x: keel.while_loop(x, lambda v: v < 0, lambda v: v + 1))(5).item() == 5
    assert both(lambda x: keel.while_loop(x, lambda v: v > 0, lambda v: 0))(5.).dtype is keel.f32


@pytest.mark.parametrize("body", [lambda i: i.astype("f32") + 5, lambda i: (i, i),
                                  lambda i: keel.stack([i, i]), lambda i: None])
def test_what_a_loop_carries_keeps_its_type(body):
    def loop(x):
        return keel.while_loop(x, lambda i: keel.reduce_max(i) < 3, body)
    for f in (loop, keel.function(loop)):
        with pytest.raises((keel.InvalidError, TypeError)):
            f(keel.array(1))


def test_scans():
    x = np.arange(6., dtype="f4").reshape(3, 2)
    f = both(lambda x: keel.scan(keel.zeros(2), x, lambda s, row: (s + row, s * 2)))
    last, ys = f(x)
    np.testing.assert_array_equal(last, x.sum(0))
    np.testing.assert_array_equal(ys, 2 * np.concatenate([np.zeros((1, 2)), x.cumsum(0)[:-1]]))
    back = both(lambda x: keel.scan(keel.zeros(2), x, lambda s, row: (s + row, s), reverse=True))
    np.testing.assert_array_equal(back(x)[1], np.concatenate([x[::-1].cumsum(0)[:-1][::-1], np.zeros((1, 2))]))
    counted = both(lambda k: keel.scan(k, None, lambda c, _: (c + 1, (c, None)), length=4))
    assert counted(2)[0].item() == 6 and counted(2)[1][0].tolist() == [2, 3, 4, 5]
    none, stacked = both(lambda x: keel.scan(0., x, lambda s, row: (s, row)))(np.zeros((0, 2), "f4"))
    assert none.item() == 0 and stacked.shape == (0, 2)


def test_wrong_scans_are_errors():
    for wrong in (lambda: keel.scan(0., 1., lambda s, r: (s, r)), lambda: keel.scan(0., None, lambda s, r: (s, s)),
                  lambda: keel.scan(0., ([1.], [1., 2.]), lambda s, r: (s, s)), lambda: keel.scan(0., [1.], lambda s, r: (s > 0, s))):
        with pytest.raises(keel.InvalidError):
            wrong()


def test_print_and_assert_happen_when_the_program_comes_by(capfd):
    def f(x):
        keel.print("x is {} of {}", x, 3)
        keel.assert_(keel.reduce_all(x > 0) if hasattr(keel, "reduce_all") else keel.reduce_min(x) > 0, "not positive", x)
        keel.print(x, stream="out")
        return x + 1
    traced = keel.function(f)
    for g in (f, traced, traced):
        assert g(keel.array([1, 2])).tolist() == [2, 3]
    out, err = capfd.readouterr()
    assert err == "x is [1 2] of 3\n" * 3 and out == "[1 2]\n" * 3
    for g in (f, traced):
        with pytest.raises(keel.Error, match="not positive"):
            g(keel.array([0, 2]))
    out, err = capfd.readouterr()
    assert err == "x is [0 2] of 3\n" * 2 and out == ""
