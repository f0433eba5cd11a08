"""Errors for code that cannot be converted name the file, the line, the variable and the fix."""
import importlib.util
import re

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
