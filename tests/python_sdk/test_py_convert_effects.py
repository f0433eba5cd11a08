"""keel.function converts effects of Python: variables, attributes, closures and globals, print, assert."""
import keel
import pytest
from convert_check import same

OFFSET = 10


def test_variables_are_written_in_the_branch_taken():
    v, log = keel.Variable(0.), []

    @keel.function
    def f(x):
        log.append("traced")
        for row in x:
            if row > 0:
                v.assign_add(row)
        if v > 10:
            v.assign(keel.array(-1.))
        return v.value()
    rows = ([1., -2., 3.], [1., 0., 2.], [4., 4., 4.])
    assert [f(keel.array(r)).item() for r in rows] == [4, 7, -1] and log == ["traced"]


def test_attributes_that_branches_and_loops_set():
    class State:
        def __init__(self, x):
            self.__hidden = x

        def doubled(self, by):
            for _ in range(by):
                if self.__hidden < 100:
                    self.__hidden = self.__hidden * 2
            return self.__hidden

    def f(x):
        s = State(x)
        s.total, s.best = x, 0
        for i in range(3):
            s.total = s.total + i
        while s.total < 20:
            s.total = s.total * 2
            if s.total > 5:
                s.best = s.total
        return s.total, s.best, s.doubled(x)
    for v in (1, 9, 40):
        same(keel.function(f)(keel.array(v)), tuple(map(keel.array, f(keel.array(v)))))


def test_closures_share_their_cells_and_globals_are_live():
    global OFFSET
    scale = keel.array(2)

    def outer(x):
        nonlocal scale
        if x > 0:
            scale = x
        else:
            scale = -x
        return scale + OFFSET
    # A value that a trace leaves in a variable belongs to the trace; the function itself sees the same cell.
    inner = keel.function(lambda x: x * scale + OFFSET if x > 0 else x)
    assert inner(keel.array(3)).item() == 16
    scale, OFFSET = keel.array(5), 20
    try:
        assert keel.function(lambda x: x * scale + OFFSET if x > 0 else x)(keel.array(3)).item() == 35
        assert keel.function(outer)(keel.array(-4)).item() == 24 and scale.symbolic
    finally:
        OFFSET = 10


def test_python_prints_once_for_a_trace(capsys):
    @keel.function
    def f(x):
        print("tracing")
        for i in range(x):
            print("body", end=" ")
            if i > 1:
                print("branch", end=" ")
        return x
    f(keel.array(5)), f(keel.array(3))
    assert capsys.readouterr().out == "tracing\nbody branch "


def test_asserts_fail_when_the_graph_runs():
    @keel.function
    def f(x):
        assert x > 0, "not positive"
        assert len("ab") == 2, "of Python"
        return x
    assert f(keel.array(1)).item() == 1
    with pytest.raises(keel.Error, match="not positive"):
        f(keel.array(-1))
    with pytest.raises(AssertionError, match="mine"):
        keel.function(check_python)(1)


def check_python(x):
    assert x > 1, "mine"


def test_messages_of_asserts_show_what_only_a_run_knows():
    w = keel.Variable(7., name="w")

    @keel.function
    def f(x, n):
        assert keel.reduce_min(x) > 0, f"step {n}: {x[-1]:.3f} or {keel.reduce_min(x)!r} is not over {w}, {{ever}}"
        return x
    assert f(keel.array([1., 2.]), 3).tolist() == [1, 2]
    with pytest.raises(keel.Error, match=r"step 3: x\[-1\] or keel.reduce_min\(x\) is not over w, {ever}: 4, -2, 7 \(.*test_py_convert_effects.py:\d+\)$"):
        f(keel.array([-2., 4.]), 3)

    @keel.function
    def shows_a_tensor(x):
        assert x > 0, x
        return x
    with pytest.raises(keel.Error, match="does not hold: -1.5"):
        shows_a_tensor(keel.array(-1.5))
    with pytest.raises(AssertionError, match="got 1 of"):
        keel.function(check_formatted)(1)


def check_formatted(x):
    assert x > 1, f"got {x} of a number"
