"""`keel eval`: statements, NumPy's print format, literals, and errors that point into the statement."""
import json

import numpy as np
import pytest


@pytest.mark.parametrize("text, out", [
    ('print "hello, {}", matmul([[2.]], [[2.]])', "hello, [[4.]]"),
    ("3 + 5", "8"),
    ("x = [[1, 2], [3, 4]]; x * (x + 1)", "[[ 2  6]\n [12 20]]"),
    ("x = [1, 2]\nprint x, x + 0, 7", "[1 2] [1 2] 7"),
    ("a, b = split([1, 2, 3]){sizes=[1, 2]}; print \"{} and {}\", b, a", "[2 3] and [1]"),
    ("reduce_sum([[1, 2], [3, 4]]){axes=[0]}", "[4 6]"),
    ("maximum(0., [1, -1])", "[1. 0.]"),
    ("x = cast([1, 2]){to=f64}; x * [0.5, 0.25]", "[0.5 0.5]"),
    ("select([true, false], [1, 2], [3, 4])", "[1 4]"),
    ("x = [1.5, -2.5]  # a comment; not a statement\nx > 0", "[ True False]"),
    ("x = 5.5\nx", "5.5"),
    ('print "a \\"quote\\" # no comment; {}", "and = a text"', 'a "quote" # no comment; and = a text'),
    ('print "no value"', "no value"),
    ("2. * [1.5] - 0.5 + 1e2", "[102.5]"),
    ("f = add(1, 2)\nf == 3", "True"),
    ("add([1,\n     2],\n    [3, 4])", "[4 6]"),
    ("v0 = 3; v1 = v0 + 1; v0 * v1", "12"),
    ("printed = 2; printed + 1", "3"),
    ("gather([[1, 2], [3, 4]], 1)", "[3 4]"),
    ("[[], []]", "[]"),
])
def test_statements_print(keel, text, out):
    for device in ("reference", "cpu"):
        assert keel("eval", text, "-d", device).out == out + "\n"


def test_prints_as_numpy_does(keel):
    x = np.linspace(-1, 3, 7, dtype="f4").reshape(7, 1) * np.float32([1, 100])
    text = "[" + ", ".join("[" + ", ".join(repr(float(v)) for v in row) + "]" for row in x) + "]"
    assert keel("eval", text).out == str(x) + "\n"
    assert keel("eval", "iota(){dims=[40]} * 3").out == str(np.arange(40) * 3) + "\n"


def test_reads_files_and_stdin(keel, tmp_path):
    (tmp_path / "s.txt").write_text("x = [1, 2]\n\n# nothing here\nprint \"{}\", x\n")
    assert keel("eval", "-f", "s.txt", "x + 1").out == "[1 2]\n[2 3]\n"
    assert keel("eval", "-f", "-", stdin=b"1 + 1\n").out == "2\n"


def test_json(keel):
    done = json.loads(keel("eval", "x = [1, 2]; print x", "--json").out)
    assert done == {"schema": "keel.eval/1", "printed": ["[1 2]"],
                    "values": {"x": {"dtype": "i32", "shape": [2], "data": [1, 2]}}}


@pytest.mark.parametrize("text, code, message, at", [
    ("x = [1, 2]\ny = x + [1, 2, 3]", 5, "line 2: add: shapes [2] and [3] do not broadcast", "+"),
    ("1 + nowhere", 2, "there is no value 'nowhere'", "nowhere"),
    ("[1, 2] + [3, 4] * nowhere", 2, "there is no value 'nowhere'", "nowhere"),
    ("cast([1, 2]){to=i32} + 1.5", 5, "b is a float literal but i32 is expected", "+"),
    ("[1, [2]]", 5, "rows of a literal differ", None),
    ("[1, x]", 5, "a list contains numbers", "x]"),
    ("x = [1]; x[0]", 2, "indexing is not supported", "[0]"),
    ("gather([1, 2], 7)", 5, "index 7 is not in [0, 2)", None),
    ('print "{} {}", 1', 2, "more {} than the 1 values", None),
    ('print "{}", 1, 2', 2, "2 values, but the text has 1 {}", None),
    ("1x = 2", 2, "expected a name, or names separated by commas, before '='", "1x"),
    ("x =", 2, "expected an expression", None),
    ('print "open', 5, "missing closing quote", '"open'),
    ("(1 + 2", 5, "line 1", None),
    ("1 + 2)", 5, "unmatched ')'", ")"),
    ("[1, 2", 5, "missing closing bracket", None),
    ("a, b = add(1, 2)", 5, "line 1: add has 1 results but got 2 names", None),
    ("split([1, 2]){sizes=[1, 1]}", 5, "line 1", None),
    ("[99999999999999999999]", 5, "too large", None),
    ("", 2, "nothing to evaluate", None),
])
def test_errors_point_into_the_statement(keel, text, code, message, at):
    arguments = [text] if text else []
    done = keel("eval", *arguments, "-d", "reference", code=code)
    assert message in done.err, done.err
    if at is not None:
        lines = done.err.splitlines()
        mark = next(i for i, line in enumerate(lines) if line.strip(" |") == "^")
        assert lines[mark - 1][lines[mark].index("^"):].startswith(at), done.err
