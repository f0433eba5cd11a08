"""Errors for code that cannot be converted name the file, the line, the variable and the fix."""
import importlib.util
import re
import sys
import traceback

import keel
import pytest
from keel.convert import source

ONE, ROWS = keel.array(1.), keel.array([[1., 2.], [3., 4.]])


def one_branch(x):
    if x > 0:  # here
        y = x
    return y


def one_branch_unused(x):
    if x > 0:
        y = x
        x = y * 2
    return x


def other_dtype(x):
    if x > 0:  # here
        y = x
    else:
        y = x.astype("i32")
    return y


def other_shape(x):
    if x > 0:  # here
        return {"a": [x, x]}
    return {"a": [x, keel.zeros(3)]}


def other_structure(x):
    if x > 0:  # here
        return x, x
    return x


def no_return(x):
    if x > 0:  # here
        return x


def float_for_integer(x):
    n = keel.array(1)
    if x > 0:  # here
        n = 0.5
    return n


def other_text(x):
    how = "a"
    if x > 0:  # here
        how = "b"
    return x if how == "a" else -x


def loop_dtype(x):
    y = keel.array(1)
    while x < 9:  # here
        x = x + 1
        y = y.astype("f32")
    return y


def loop_shape(x):
    while keel.reduce_sum(x) < 9:  # here
        x = keel.stack([x, x])
    return x


def loop_literal_shape(x):
    total = 0
    for row in ROWS:  # here
        total = total + row
    return total


def loop_none(x):
    best = None
    for row in ROWS:  # here
        best = row if best is None else keel.maximum(best, row)
    return best


def loop_sets(x):
    n = x.astype("i32")
    for i in range(n):  # here
        y = i
    return y


def appends(x):
    ys = []
    for row in ROWS:  # here
        ys.append(row)
    return keel.stack(ys)


def sets_item(x):
    found = {}
    if x > 0:  # here
        found["x"] = x * 2
    return x


def vector(x):
    if ROWS[0] * x > 0:  # here
        return x
    return -x


def comprehension(x):
    n = x.astype("i32")
    return keel.stack([x * k for k in range(n)])  # here


def numbered_comprehension(x):
    n = x.astype("i32")
    return keel.stack([k * row for k, row in zip(range(n), ROWS)])  # here


def calls_itself(x):
    return x if x > 100 else calls_itself(x * 2)  # here


CASES = [
    (one_branch, keel.InvalidError, "`y` is set in one branch of an `if` only.* before the `if`"),
    (other_dtype, keel.DTypeError, r"`y` differs.*f32\[\] where the test is true, i32\[\] where it is false.*astype"),
    (other_shape, keel.ShapeError, r"the returned value\.a\[1\] differs.*f32\[\] .*f32\[3\]"),
    (other_structure, keel.InvalidError, r"the returned value differs.*\(f32\[\], f32\[\]\) .*f32\[\]"),
    (no_return, keel.InvalidError, r"the returned value differs.*nothing where it is false.*the other must do so"),
    (float_for_integer, keel.DTypeError, r"`n` differs.*0\.5 where.*i32\[\] where"),
    (other_text, keel.InvalidError, "`how` differs.*'b' where.*'a' where"),
    (loop_dtype, keel.DTypeError, r"`y` changes its type.*i32\[\] before, f32\[\] after"),
    (loop_shape, keel.ShapeError, r"`x` changes its type.*f32\[\] before, f32\[2\] after.*keel\.zeros"),
    (loop_literal_shape, keel.ShapeError, r"`total` changes its type.*0 before, f32\[2\] after"),
    (loop_none, keel.InvalidError, r"`best` changes its type.*nothing before, f32\[2\] after"),
    (loop_sets, keel.InvalidError, "`y` is set only in a loop of a graph.*set y before the loop"),
    (appends, keel.InvalidError, r"a tensor is put into `ys`, a list.*keel\.scan\(init, xs, body\)"),
    (sets_item, keel.InvalidError, "a tensor is put into `found`, a dict"),
    (vector, keel.ShapeError, r"a condition is one value, but this tensor is bool\[2\].*keel\.reduce_min"),
    (comprehension, keel.PreconditionError, r"cannot iterate over range\(\) of a traced tensor.*`for i in range\(n\):`, which becomes a loop.*keel.scan"),
    (numbered_comprehension, keel.PreconditionError, r"cannot iterate over range\(\) of a traced tensor"),
    (calls_itself, keel.InvalidError, "is nested in 32 others.* at most 32 levels.*keel.while_loop"),
]


def line_of(f):
    lines = open(__file__, encoding="utf-8").read().split("\n")
    start = f.__code__.co_firstlineno
    return start + next(k for k, line in enumerate(lines[start - 1:]) if line.endswith("# here"))


@pytest.mark.parametrize("f, kind, message", CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_errors_name_what_is_wrong_and_where(f, kind, message):
    with pytest.raises(kind) as caught:
        keel.function(f)(ONE)
    assert type(caught.value) is kind
    text = str(caught.value)
    assert re.search(message, text, re.DOTALL), text
    assert text.startswith(f"{__file__}:{line_of(f)}: "), text
    assert keel.add(1, 1).item() == 2 and keel.executing_eagerly()


def chain(tmp_path, first):
    """A file with 40 cases in chains of elif, the first with `first`, and its f(x)."""
    lines = ["def f(x):", "    y, found = -x, True"]
    for k in range(40):
        if k == first:
            lines += ["    else:", "        found = False", "    if not found:"]
        indent = "    " if k < first else "        "
        lines += [f"{indent}{'if' if k in (0, first) else 'elif'} x == {k}:", f"{indent}    y = x * 100 + {k}"]
    path = tmp_path / "chain.py"
    path.write_text("\n".join([*lines, "    return y", ""]), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("chain", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return path, keel.function(module.f)


def test_long_chains_of_elif_say_how_to_cut_them(tmp_path):
    path, f = chain(tmp_path, 40)
    with pytest.raises(keel.InvalidError, match=f"(?s){path}:67: .*elif.* 32 others.*keel.switch.*`if not found`"):
        f(keel.array(5))
    _, f = chain(tmp_path, 20)
    assert [f(keel.array(k)).item() for k in (0, 5, 19, 20, 39, 40)] == [0, 505, 1919, 2020, 3939, -40]


def test_what_nobody_reads_may_differ():
    assert keel.function(one_branch_unused)(ONE).item() == 2


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


def test_code_without_a_source_says_what_to_write():
    space = {}
    exec("def f(x):\n  return x if x > 0 else -x\ndef g(x):\n  y = 0\n  while x > y: y = y + 1\n  return y", space)
    for f in (space["f"], space["g"], eval("lambda x: x if x > 0 else -x"), lambda x: space["f"](x),
              lambda x: keel.function(space["f"])(x)):
        with pytest.raises(keel.PreconditionError) as caught:
            keel.function(f)(ONE)
        for word in ("keel.cond", "keel.while_loop", "keel.scan", "was not converted: its source was not found"):
            assert str(caught.value).count(word) == 1


def generates(x):
    if x > 0:
        yield x


def test_generators_that_tensors_decide_say_why_not():
    with pytest.raises(keel.PreconditionError, match="generates was not converted: it is a generator"):
        keel.function(lambda x: keel.stack(list(generates(x))))(ONE)


def test_sources_that_changed_are_not_used(tmp_path):
    path = tmp_path / "changed.py"
    path.write_text("def f(x):\n  return x if x > 0 else -x\n")
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    path.write_text("def other(x, y):\n  return x\n")
    with pytest.raises(keel.PreconditionError, match="does not match the code"):
        keel.function(space["f"])(ONE)


def test_libraries_run_as_they_are(tmp_path, monkeypatch):
    """A library function with decisions on tensors is not converted; a user function decorated by a library is."""
    folder = tmp_path / "site"
    folder.mkdir()
    path = folder / "library.py"
    path.write_text("def f(x):\n  return x if x > 0 else -x\n")
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    monkeypatch.setattr(source, "_libraries", lambda: (str(folder) + "/",))
    with pytest.raises(keel.PreconditionError, match="f was not converted"):
        keel.function(lambda x: space["f"](x))(ONE)
    assert keel.function(space["f"])(-ONE).item() == 1


def test_exceptions_leave_variables_as_python_does():
    def f(x, fail):
        y = 0
        try:
            for k in range(3):
                y = y + k
                if k == fail:
                    raise KeyError(k)
        except KeyError as e:
            y = y + 10 * (1 + e.args[0])
        return x + y
    for fail in (0, 1, 2, 5):
        assert keel.function(f)(ONE, fail).item() == f(1., fail)

    def g(x):
        y = x
        try:
            if x > 0:
                y = x + 1
                raise KeyError
        except KeyError:
            y = y + 5
        return y
    assert keel.function(g)(ONE).item() == 6  # the branch is rolled back, with all its assignments
