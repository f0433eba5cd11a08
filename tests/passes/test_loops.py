"""Ops that `loop` hoists from loops, by the number of ops left outside and inside; results keep their bits, and a second run
changes nothing."""
import re

import numpy as np
import pytest
from keel_abi import KeelError
from optimizer import dump, keel, optimize
from operands import operands, same_bits

HEAD = "const w: f32[3] = [1.0, 2.0, 3.0]\nvar v: f32[] = [2.0]\n"
WHILE = """i, a = while(i32(0), x, y, n){carry=2}
    test(i, a, y, n) {
      TEST
    }
    body(i, a, y, n) {
      j = add(i, 1)
      BODY
    }
  return a"""
ONE_OF_THREE = """a, c, d = scan(x, y, y, z){carry=3}
    body(a, c, d, z) {
      b = add(a, z)
      e = mul(d, 0.5)
      f = add(c, e)
      yield b, e, f
    }
  return a"""
SCAN = """a, s = scan(x, y, z){carry=1, invariants=1}
    body(a, y, z) {
      BODY
    }
  return a, s"""


def loop(body, test="t = less(i, n)\n yield t"):
    return WHILE.replace("TEST", test).replace("BODY", body)


def scan(body):
    return SCAN.replace("BODY", body)


# (title, body of @main(x, y: f32[3], z: f32[n, 3], n: i32), ops outside, ops inside); "same": no change
CASES = [
    ("computed from captures", loop("e = exp(y)\n b = mul(a, e)\n yield j, b"), "exp while", "less add mul"),
    ("a chain, of which only the end goes in", loop("e = exp(y)\n f = mul(e, w)\n b = mul(a, f)\n yield j, b"),
     "exp mul while", "less add mul"),
    ("two ends", loop("e = exp(y)\n f = neg(e)\n b = mul(a, f)\n c = add(b, e)\n yield j, c"), "exp neg while", "less add mul add"),
    ("in the test", loop("b = mul(a, 2.0)\n yield j, b", "m = mul(n, 2)\n t = less(i, m)\n yield t"), "mul while", "less add mul"),
    ("in both", loop("e = exp(y)\n b = mul(a, e)\n yield j, b", "m = mul(n, 2)\n t = less(i, m)\n yield t"),
     "exp mul while", "less add mul"),
    ("what only spreads stays", loop("e = broadcast_to(y){dims=[2, 3]}\n f = reduce_sum(e){axes=[0]}\n g = reshape(y){to=[1, 3]}\n"
                                     " h = mul(a, w)\n b = add(h, reshape(g){to=[3]})\n c = add(b, f)\n yield j, c"),
     "broadcast_to reduce_sum while", "less add reshape mul reshape add add"),
    ("varying nodes stay", loop("b = mul(a, y)\n yield j, b"), "same", None),
    ("nodes that may fail stay", loop("k = div(n, n)\n e = cast(k){to=f32}\n b = mul(mul(a, e), y)\n yield j, b"), "same", None),
    ("reads of variables stay", loop("r = read(v)\n e = exp(r)\n b = mul(mul(a, e), y)\n yield j, b"), "same", None),
    ("prints stay", loop("print(y)\n e = exp(y)\n b = mul(a, e)\n yield j, b"), "same", None),
    ("from constants only: fold's", loop("e = exp(w)\n b = mul(mul(a, e), y)\n yield j, b"), "same", None),
    ("of a scan", scan("e = exp(y)\n b = add(mul(a, e), z)\n yield b, e"), "exp scan", "mul add"),
    ("entries change", scan("e = exp(z)\n b = add(mul(a, y), e)\n yield b, e"), "same", None),
    ("a branch", scan("q = reduce_sum(y)\n p = less(q, 0.0)\n e = cond(p, y)\n  then(y) { g = exp(y)\n yield g }\n"
                      "  else(y) { yield y }\n b = add(mul(a, e), z)\n yield b, b"), "reduce_sum less cond scan", "mul add"),
    ("a loop that may not end", scan("e = while(y){carry=1}\n  test(y) { q = reduce_sum(y)\n t = less(q, 5.0)\n yield t }\n"
                                     "  body(y) { g = add(y, 1.0)\n yield g }\n b = add(mul(a, e), z)\n yield b, b"), "same", None),
    ("carried, but never changed", """i, a, c = while(i32(0), x, y, n){carry=3}
    test(i, a, c, n) {
      t = less(i, n)
      yield t
    }
    body(i, a, c, n) {
      j = add(i, 1)
      b = mul(a, c)
      yield j, b, c
    }
  return a, c""", "while{carry=2}", "less add mul"),
    ("unused carry", """i, a, c = while(i32(0), x, y, n){carry=3}
    test(i, a, c, n) {
      t = less(i, n)
      yield t
    }
    body(i, a, c, n) {
      j = add(i, 1)
      b = mul(a, 0.5)
      d = mul(c, a)
      yield j, b, d
    }
  return a""", "while{carry=2}", "less add mul"),
    ("two that only need each other", ONE_OF_THREE, "scan{carry=1}", "add"),
    ("carried for one that is asked for", ONE_OF_THREE + ", c", "same", None),
    ("carried for the test", """i, a, k = while(i32(0), x, n){carry=3}
    test(i, a, k) {
      t = less(i, k)
      yield t
    }
    body(i, a, k) {
      j = add(i, 1)
      b = mul(a, 0.5)
      m = sub(k, 1)
      yield j, b, m
    }
  return a""", "same", None),
    ("unused stack", """a, s, t = scan(x, z){carry=1}
    body(a, z) {
      b = add(a, z)
      e = exp(b)
      f = neg(b)
      yield b, e, f
    }
  return a, t""", "scan{carry=1}", "add neg"),
    ("unused capture", """a, s = scan(x, y, y, z){carry=1, invariants=2}
    body(a, c, d, z) {
      b = add(mul(a, d), z)
      yield b, b
    }
  return a, s""", "scan{carry=1, invariants=1}", "mul add"),
    ("from the last to the first, and not all", """k = cast(n){to=i64}
  l = minimum(k, 1)
  a, s = scan(x, y, z, l){carry=1, invariants=1, reverse=true, counted=true}
    body(a, y, z) {
      e = exp(y)
      b = add(mul(a, e), z)
      yield b, b
    }
  return a, s""", "cast minimum exp scan{carry=1, counted=true, invariants=1, reverse=true}", "mul add"),
    ("beside a write", "q = reduce_sum(x)\n  assign(v, q)\n  " + loop("e = exp(y)\n b = mul(a, e)\n yield j, b"),
     "reduce_sum exp while", "less add mul"),
    ("one entry, or none", """k = cast(n){to=i64}
  l = minimum(k, 1)
  r = reshape(y){to=[1, 3]}
  a, s = scan(x, r, l){carry=1, counted=true}
    body(a, r) {
      b = mul(a, r)
      yield b, b
    }
  return a, s""", "same", None),
    ("twice, which is known", """i, a = while(i32(0), x, i32(2)){carry=2}
    test(i, a, k) {
      t = less(i, k)
      yield t
    }
    body(i, a, k) {
      j = add(i, 1)
      b = mul(a, 0.5)
      yield j, b
    }
  return a""", "same", None),
    ("once, but counted too deep to follow", """i, a = while(i32(4), x){carry=2}
    test(i, a) {
      t = less(i, 5)
      yield t
    }
    body(i, a) {
      j = DEEP
      b = mul(a, 0.5)
      yield j, b
    }
  return a""".replace("DEEP", "add(1, " * 10 + "i" + ")" * 10), "same", None),
    ("how often is an attribute", """a = scan(x, y){carry=1, invariants=1, length=4}
    body(a, y) {
      e = exp(y)
      b = mul(a, e)
      yield b
    }
  return a""", "exp scan{carry=1, invariants=1, length=4}", "mul"),
    ("a loop that does not begin stays if its body checks sizes", """i, a = while(i32(5), z){carry=2}
    test(i, a) {
      t = less(i, 5)
      yield t
    }
    body(i, a) {
      j = add(i, 1)
      b = exp(a)
      yield j, b
    }
  return a""", "same", None),
]


def text(body):
    return f"keel 1\n{HEAD}fn @main(x: f32[3], y: f32[3], z: f32[m, 3], n: i32[]) {{\n  {body}\n}}\nentry main = @main (x, y, z, n)\n"


def ops(main, depth, attributes):
    """The ops of lines at this depth; with `attributes`, a loop with its numbers."""
    found = re.findall(rf"(?m)^{' ' * depth}\S.* = (\w+)\([^\n]*?\)((?:\{{[^\n]*\}})?)(?: :|$)", main)
    return " ".join(op + (kept if attributes and op in ("while", "scan") else "") for op, kept in found)


def results(context, source, inputs):
    return [np.array(y) for y in context.parse(source).session("reference", level=0).prepare().run(*inputs)]


def fits(before, after, outside, inside):
    """The remaining ops of the texts before and after; returns whether the pass changed anything."""
    main, was = (text.split("fn @main(")[1].split("\n}")[0] for text in (after, before))
    if outside == "same":
        assert main == was
        return False
    assert ops(main, 2, "{" in outside) == outside, main
    assert ops(main, 6, False) == inside, main
    return True


@pytest.mark.parametrize("body, outside, inside", [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_taken_out(context, tmp_path, body, outside, inside):
    before, after, again = (tmp_path / f"{name}.keelt" for name in ("before", "after", "again"))
    before.write_text(text(body))
    optimize(before, after, "reference", only="loop")
    optimize(after, again, "reference", only="loop")
    assert dump(again) == dump(after), "a second run changed something"
    if not fits(dump(before), dump(after), outside, inside):
        return
    random = np.random.default_rng(1)
    for times in (0, 1, 3):
        for special in (False, True):
            inputs = operands(dump(before), random, special, times)
            inputs[3] = np.int32(times)
            got = [results(context, dump(path), inputs) for path in (before, after)]
            assert all(same_bits(a, b) for a, b in zip(*got, strict=True)), inputs


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("title", [c[0] for c in CASES])
def test_at_once(context, title, device):
    """The same in a session, with all passes: rebuilt bodies are optimized and run like others."""
    body = next(c[1] for c in CASES if c[0] == title)
    if "print(" in body:
        pytest.skip("prints while the tests run")
    random = np.random.default_rng(2)
    for times in (0, 1, 3):
        inputs = operands(text(body), random, False, times)
        inputs[3] = np.int32(times)
        expected = results(context, text(body), inputs)
        got = [np.array(y) for y in context.parse(text(body)).session(device).prepare().run(*inputs)]
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("fuel", range(8))
def test_any_number_of_edits_means_the_same(context, tmp_path, fuel):
    body = next(c[1] for c in CASES if c[0] == "in both")
    before, after = tmp_path / "before.keelt", tmp_path / "after.keelt"
    before.write_text(text(body))
    keel("optimize", before, "-o", after, "-d", "reference", "--passes", "loop", "--fuel", fuel)
    inputs = operands(dump(before), np.random.default_rng(3), True, 2)
    inputs[3] = np.int32(2)
    assert all(same_bits(a, b) for a, b in zip(*(results(context, dump(p), inputs) for p in (before, after)), strict=True))


def test_a_new_body_is_optimized(tmp_path):
    before, after = tmp_path / "before.keelt", tmp_path / "after.keelt"
    before.write_text(text(loop("e = exp(y)\n b = mul(mul(a, e), 1.0)\n yield j, b")))
    optimize(before, after, "reference", only="loop,simplify")
    assert ops(dump(after).split("fn @main(")[1].split("\n}")[0], 6, False) == "less add mul"


@pytest.mark.parametrize("depth", [1, 2])
def test_a_simpler_body_frees_its_loop(tmp_path, depth):
    """A loop that does not begin goes at once, although only the passes on its body remove the nodes that check sizes there."""
    body, result = """b = cond(i32(1) == i32(0), a)
      then(a) {
        e = exp(a)
        yield e
      }
      else(a) {
        yield a
      }""", "b"
    for level in range(depth):
        body = loop(f"{body}\n yield j, {result}", "t = less(i, 0)\n yield t").removesuffix("\n  return a")
        body = body.replace("i, a = while(i32(0), x, y", f"k{level}, a{level} = while(i32(0), a, y")
        result = f"a{level}"
    before, after, again = (tmp_path / f"{name}.keelt" for name in ("before", "after", "again"))
    before.write_text(text("a = exp(z)\n" + body + f"\n return {result}"))
    optimize(before, after, "reference", only="loop,fold,simplify")
    assert ops(dump(after).split("fn @main(")[1].split("\n}")[0], 2, False) == "exp"
    optimize(after, again, "reference", only="loop,fold,simplify")
    assert dump(again) == dump(after), "a second run changed something"


SIZED = """keel 1
const no: bool[] = false
fn @main(x: f32[n], s: f32[{entries}m]) {{
  c = {loop}
    body(c, s) {{
      d = add(c, s)
      e = reshape(d){{to=[n]}}
      yield e
    }}
  return c
}}
entry main = @main (x, s)
"""


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("entries, loop", [("0, ", "scan(x, s){carry=1}"), ("", "while(x, s){carry=1}\n    test(c, s) {\n      yield no\n    }")])
def test_sizes_in_a_loop_that_never_runs_must_fit(context, entries, loop, level):
    plan = context.parse(SIZED.format(entries=entries, loop=loop)).session("reference", level=level).prepare()
    x = np.ones(3, np.float32)
    fitting, other = (np.ones((0, n) if entries else n, np.float32) for n in (3, 4))
    assert np.array_equal(plan.run(x, fitting)[0], x)
    with pytest.raises(KeelError, match="n and m must be equal"):
        plan.run(x, other)
