"""Small programs with decisions on tensors: converted code gives the same results as plain Python on eager tensors."""
import functools
import importlib
import runpy
import sys

import keel
import numpy as np
import pytest

OFFSET = 10


def early(x, n):
    if x > 10:
        return x
    if n > 2:
        y = x + n
    elif n == 0:
        return -x
    else:
        y = x
    y += 1
    return y * 2


def partly(x, n):
    if x > 0:
        if n > 2:
            return 100
        x = x + 1
    x = x * 2
    return x


def collatz(x, n):
    steps = 0
    while x > 1 and steps < 100:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    return steps, x


def first_above(x, n):
    xs = keel.stack([x, n, x + n, x * n])
    for k, row in enumerate(xs):
        if row > 5:
            return k, row
    return -1, 0


def broken_or_not(x, n):
    for i in range(n):
        if i * i > x:
            break
    else:
        return -1
    return x


def skips(x, n):
    total = 0
    for i in range(1, 3 * n, 2):
        if i % 3 == 0:
            continue
        total += i * x
    return total


def continues_inside(x, n):
    for i in range(n):
        if i < 3:
            if x > 2:
                x = x - 1
                continue
            y = i
        else:
            y = x
        x = 2 * y + 5
    return x


def forever(x, n):
    while True:
        x = x + 2
        if x > n * n:
            break
    return x


def python_loop(x, n):
    for k in (1, 5, 2):
        if k * x > n:
            return k
        x = x + k
    return x


def long_python_loop(x, n):
    for k in range(60):
        if x > 3 * k:
            continue
        x = x + 1
        if x + n > 40:
            break
    else:
        x = -x
    return x


def nested_loops(x, n):
    found = 0
    for i in range(n):
        for j in range(i):
            if i * j == x:
                found = i
                break
        else:
            continue
        break
    return found


def operators(x, n):
    a = (x > 0 and n > 0) or not (x == n)
    b = 0 < x <= n < 9
    c = x if x > n else n
    return (1 if a else 0) + (2 if b else 4) + c


def temporaries_of_other_types(x, n):
    t = "text"
    if x > 0:
        t = x * 2
        y = t
    else:
        t = keel.stack([x, x])
        y = t[0]
    for t in range(n):
        y = y + t
    return y


def structures(x, n):
    if x > n:
        pair = {"a": (x, 1), "b": None}
    else:
        pair = {"a": (n, 2), "b": None}
    while pair["a"][1] < 4:
        pair = {"a": (pair["a"][0] + 1, pair["a"][1] + 1), "b": None}
    return pair


def extremes(x, n):
    return max(x, n, 3), min(x, n), abs(x), int(x), sum([x, n])


def with_blocks(x, n):
    with keel.no_record():
        if x > 2:
            return x
        x = x + n
    try:
        if x < 0:
            raise_never = x
            return raise_never - 1
    finally:
        OTHERS.append("finally")
    return x


OTHERS = []


def helper_with_default(x, n, *, step=2):
    return x + step if x < n else x


def calls(x, n):
    def inner(y, by=3):
        nonlocal count
        count = count + 1
        return y * by if y < n else y
    count = 0
    double = lambda v: v * 2 if v > 4 else v  # noqa: E731
    out = inner(x) + double(x) + helper_with_default(x, n) + helper_with_default(n, x, step=5) + OFFSET
    out = out + functools.partial(helper_with_default, step=7)(x, n)
    assert count == 1
    return out


def shared_with_closures(x, n):
    y, readers, numbers = 0, [], [1, 2, 3]

    def read():
        return y
    if x > 0:
        y = x
        z = read()
    else:
        z = read() - 1
        y = n
    for k in numbers:
        readers.append(lambda: k)
        y += k
    return y, z, read(), readers[0]()


def walrus(x, n):
    while (y := x * x) < n:
        x = x + 1
    return y


def matched(x, n):
    for kind in ("a", ["b", 2], 3):
        match_value = kind if isinstance(kind, list) else [kind]
        if match_value[0] == "b" and x > n:
            x = x - match_value[1]
    return x


PROGRAMS = [early, partly, collatz, first_above, broken_or_not, skips, continues_inside, forever, python_loop,
            long_python_loop, nested_loops, operators, temporaries_of_other_types, structures, extremes, with_blocks,
            calls, walrus, shared_with_closures, matched]
VALUES = [(x, n) for x in (-3, 0, 1, 4, 6, 27) for n in (0, 1, 3, 5)]


def same(a, b):
    assert keel._keel.structure(a) == keel._keel.structure(b)
    for p, q in zip(keel._keel.leaves(a), keel._keel.leaves(b), strict=True):
        np.testing.assert_array_equal(p, q)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(f):
    graph = keel.function(f)
    for x, n in VALUES:
        args = keel.array(x), keel.array(n)
        same(graph(*args), f(*args))
    assert graph.trace_count == 1


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_python_values_run_as_python(f):
    graph = keel.function(f)
    for x, n in VALUES[::5]:
        same(graph(x, n), f(x, n))
        text = graph.concrete(x, n).text()
        assert "stack" in f.__code__.co_names or "cond" not in text and "while" not in text


def test_a_module_that_is_edited_and_loaded_again_runs_its_new_source(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(factor):
        (tmp_path / "edited_program.py").write_text(f"def f(x):\n    if x > 0:\n        x = x * {factor}\n    return x\n", encoding="utf-8")
    write(2)
    module = importlib.import_module("edited_program")
    assert keel.function(module.f)(keel.array(1)).item() == 2
    write(300)
    importlib.reload(module)
    assert keel.function(module.f)(keel.array(1)).item() == module.f(1) == 300


def test_deep_code_that_two_files_have_is_converted_at_once(tmp_path):
    """The code objects are equal but not identical."""
    depth = 30
    lines = [f"{'    ' * k}if x > {k}:" for k in range(1, depth)]
    for name in ("one.py", "two.py"):
        path = tmp_path / name
        path.write_text("\n".join(["def f(x):", *lines, "    " * depth + "x = x * 2", "    return x", ""]), encoding="utf-8")
        assert keel.function(runpy.run_path(str(path))["f"])(keel.array(100)).item() == 200
