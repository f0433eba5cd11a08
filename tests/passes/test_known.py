"""cse and loop on text with bodies and effects: merged and spliced nodes, by the number of nodes left in @main; the results are
the same."""
import numpy as np
import pytest
from operands import same_bits
from optimizer import dump, optimize

VAR = "var v: f32[] = [2.0]\nvar w: f32[] = [3.0]\n"
# (title, pass, head, body of @main(p, x), op to count, expected count)
CASES = [
    ("reads without a write between", "cse", VAR, "a = read(v)\nb = read(v)\nreturn a + b * x", "read(", 1),
    ("a write between", "cse", VAR, "a = read(v)\nassign(v, x)\nb = read(v)\nreturn a + b * x", "read(", 2),
    ("a write of another variable", "cse", VAR, "a = read(v)\nassign(w, x)\nb = read(v)\nreturn a + b * x", "read(", 1),
    ("reads of two variables", "cse", VAR, "a = read(v)\nb = read(w)\nreturn a + b * x", "read(", 2),
    ("two reads behind a write", "cse", VAR,
     "a = read(v)\nassign(v, x)\nb = read(v)\nc = read(v)\nreturn a + b * x + c", "read(", 2),
    ("prints", "cse", "", "print(x)\nprint(x)\nreturn x", "print(", 2),
    ("a write within a body", "cse", VAR, "a = read(v)\ny = cond(p, x)\n  then(x) { assign(v, x)\n yield x }\n"
     "  else(x) { yield x }\nb = read(v)\nreturn a + b * y", "= read(", 2),
    ("a condition that is not known", "loop", "", "y = cond(p, x)\n  then(x) { a = exp(x)\n yield a }\n"
     "  else(x) { yield x }\nreturn y", "= cond(", 1),
    ("a branch that writes stays where it is listed", "loop", VAR, "y = cond(true, x)\n  then(x) { assign(v, x)\n yield x }\n"
     "  else(x) { yield x }\nreturn y", "= cond(", 1),
    ("a branch that reads", "loop", VAR, "y = cond(true, x)\n  then(x) { a = read(v)\n b = a * x\n yield b }\n"
     "  else(x) { yield x }\nreturn y", "cond(", 0),
    ("one condition in the other", "loop", "", "y = cond(true, x)\n  then(x) { z = cond(false, x) then(x) { yield x }\n"
     "    else(x) { a = exp(x)\n yield a }\n yield z }\n  else(x) { yield x }\nreturn y", "cond(", 0),
    ("a branch that is not there", "loop", "", "y = switch(7, x)\n  branches(x) { yield x }\nreturn y", "switch(", 1),
]


@pytest.mark.parametrize("only, head, body, counted, left", [pytest.param(*c[1:], id=f"{c[1]}: {c[0]}") for c in CASES])
def test_counts(context, tmp_path, only, head, body, counted, left):
    before, after, again = (tmp_path / f"{name}.keelt" for name in ("before", "after", "again"))
    before.write_text(f"keel 1\n{head}\nfn @main(p: bool[], x: f32[]) {{\n{body}\n}}\nentry main = @main (p, x)\n")
    optimize(before, after, "reference", only=only)
    optimize(after, again, "reference", only=only)
    assert dump(again) == dump(after), "a second run changed something"
    assert dump(after).split("\n}")[0].count(counted) == left, dump(after)
    if "switch(7" in body:
        return
    for p in (False, True):
        got = [context.parse(dump(path)).session("reference", level=0).prepare().run(np.array(p), np.float32(1.5))
               for path in (before, after)]
        assert all(same_bits(np.array(a), np.array(b)) for a, b in zip(*got, strict=True))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_constant_that_is_fed_is_none(context, level):
    """A run may feed a constant: neither its ones nor the equal bytes of another constant determine its value."""
    module = context.parse("keel 1\nconst p: f32[2] = [1.0, 1.0]\nconst q: f32[2] = [1.0, 1.0]\nfn @main(x: f32[2]) {\n"
                           "  a = mul(x, p)\n  b = mul(x, q)\n  y = add(a, b)\n  return y\n}\nentry main = @main (x) -> (y)\n")
    plan = module.session("reference", level=level).prepare(["x", "p"], ["y"])
    assert np.array(plan.run(np.float32([1, 2]), np.float32([10, 10]))[0]).tolist() == [11, 22]
