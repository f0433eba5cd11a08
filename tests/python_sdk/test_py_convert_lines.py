"""Tracebacks, failed runs and gradients of converted code name the line of the program."""
import re
import sys
import traceback

import keel
import pytest

ONE, ROWS = keel.array(1.), keel.array([[1., 2.], [3., 4.]])


def fails_in_a_branch(x):
    for row in ROWS:
        if x > 0:
            x = x + keel.reduce_sum(keel.matmul(row, x))
    return x


def fails_in_python(x):
    if x > 0:
        if x > 1:
            return {}["key"]
    return x


@pytest.mark.parametrize("f, line, kind", [(fails_in_a_branch, 3, keel.ShapeError), (fails_in_python, 3, KeyError)])
def test_tracebacks_show_the_lines_of_the_program(f, line, kind):
    with pytest.raises(kind) as caught:
        keel.function(f)(ONE)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno) == (__file__, f.__code__.co_firstlineno + line)
    notes = [note for note in getattr(caught.value, "__notes__", []) if "both branches are traced" in note]
    assert len(notes) == (f is fails_in_python and sys.version_info >= (3, 11)), notes
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not any("convert/branches" in f or "convert/runtime" in f for f in files)


@keel.function
def while_fails(x):
    i = 0
    while x @ x > 0:  # here
        i = i + 1
    return i


@keel.function
@keel.convert.skip
def skipped(x):
    y = x
    return y @ x  # here


@keel.function(any_after=2,
               max_traces=3)
def comprehension_fails(x):
    rows = [1, 2]
    return [r for r in rows
            if x @ x > r]  # here


@keel.function
def second_line_of_while_fails(x):
    n = 0
    while (n < 3 and
           keel.reduce_max(x, axes=[5]) > 0):  # here
        n = n + 1
    return n


@pytest.mark.parametrize("f", [while_fails, skipped, comprehension_fails, second_line_of_while_fails])
def test_tracebacks_of_decorated_functions_show_the_lines_of_the_program(f):
    with pytest.raises((keel.ShapeError, keel.RangeError)) as caught:
        f(ONE)
    lines = open(__file__).read().split("\n")
    frames = [e for e in traceback.extract_tb(caught.value.__traceback__) if e.filename == __file__]
    wrong = [e for e in frames[1:] if not (e.name in ("<listcomp>", "test", "<lambda>") or f.__name__ == e.name)]
    assert lines[frames[-1].lineno - 1].endswith("# here") and not wrong, frames
    first = next(e for e in frames if e.name == f.__name__)
    assert f.__code__.co_firstlineno < first.lineno <= frames[-1].lineno if hasattr(f, "__code__") else True


# Each fails at run time, in the line with "here".
def gathers(x, i):
    y = x * 2
    return keel.gather(y, i) + 1  # here


def divides(x, i):
    z = i * 2
    return (z - i + 1) // (i - i)  # here


def asserts(x, i):
    assert keel.reduce_max(x) > 100, f"too small: {x}"  # here
    return x


def asserts_in_a_loop(x, i):
    n = i[0]
    while n > 0:
        n = n - 1
        assert n > 3, "left"  # here
    return n


def gathers_in_a_branch(x, i):
    if x[0] > 0:
        x = keel.gather(x, i)  # here
    return x


def gathers_in_a_comprehension(x, i):
    return [keel.gather(x, i + k)  # here
            for k in range(2)]


class Layer:
    def __init__(self):
        self.w = keel.Variable([1., 2.])

    def __call__(self, x, i):
        self.w += 1
        return self.w[i[0]] if False else keel.gather(self.w, i)  # here


def calls_another(x, i):
    return INNER(x, i) * 2


INNER = keel.function(gathers)
FAILING = [gathers, divides, asserts, asserts_in_a_loop, gathers_in_a_branch, gathers_in_a_comprehension, Layer(), calls_another]


@pytest.mark.parametrize("f", FAILING, ids=lambda f: getattr(f, "__name__", "method"))
def test_failed_runs_name_the_line_of_the_program_also_from_a_file(f, tmp_path):
    lines, x, i = open(__file__).read().split("\n"), keel.array([1., 2.]), keel.array([7, 8])
    made = keel.function(f, name="f")
    module = made.concrete(x, i)
    keel.save(tmp_path / "f.keel", module)
    loaded = keel.load(tmp_path / "f.keel")
    joined = keel.join(g=loaded)
    ways = (lambda: made(x, i), lambda: module(x, i), lambda: loaded(x, i), lambda: loaded["f"](x, i), lambda: joined(x, i),
            lambda: keel.Session(loaded, level=0).run(x=x, i=i), lambda: keel.function(lambda x: loaded["f"](x, i))(x))
    for way in ways:
        with pytest.raises(keel.Error) as caught:
            way()
        found = re.search(r"\((\S+):(\d+)\)$", caught.value.message)
        assert found and found[1] == __file__, caught.value.message
        assert lines[int(found[2]) - 1].endswith("# here"), caught.value.message


def test_sizes_that_do_not_fit_when_a_graph_runs_name_the_line():
    @keel.function(signature="x: f32[a], y: f32[b]")
    def f(x, y):
        z = x * 2
        return z + y  # here
    line = f.__wrapped__.__code__.co_firstlineno + 3
    module = f.concrete(keel.zeros(2), keel.zeros(2))
    for options in ({}, {"level": 0}):
        with pytest.raises(keel.Error, match=rf"{re.escape(__file__)}:{line}\)"):
            keel.Session(module, **options).run(x=keel.zeros(2), y=keel.zeros(3))


def test_gradients_name_the_line_of_the_op_that_they_belong_to():
    def f(x, i):
        with keel.Tape() as tape:
            tape.watch(x)
            y = keel.reduce_sum(keel.gather(x, i))  # here
        return tape.gradient(y, x)
    with pytest.raises(keel.Error, match=rf"{re.escape(__file__)}:{f.__code__.co_firstlineno + 3}\)"):
        keel.function(f)(keel.array([1., 2.]), keel.array([7]))


def test_columns_are_those_of_the_program():
    if sys.version_info < (3, 11):
        pytest.skip("tracebacks have no columns")
    with pytest.raises(keel.ShapeError) as caught:
        keel.function(fails_in_a_branch)(ONE)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    line = open(__file__, "rb").read().split(b"\n")[last.lineno - 1]
    assert line[last.colno:last.end_colno] == b"keel.matmul(row, x)"
