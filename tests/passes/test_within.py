"""Products of all entries that `within` returns into scans whose steps the cpu device takes as one launch, and those that stay outside.
The results are equal up to rounding, for sequences of every length, in whole plans too."""
import numpy as np
import pytest
from test_ahead import drawn, rewrites

NET = """  p = matmul(x, w){tb=true}
  last, y = scan(%s){carry=1, invariants=%s%s}
    body(%s, q) {
      s = matmul(h, r)
      t = tanh(add(add(q, b), s))
      yield t, t
    }
  return last, y
}"""
ARGUMENTS = ("h, r, b, p", "2", "", "h, r, b")
CONSTANTS = """const w: f32[3, 4] = [0.5, 1.0, -1.0, 0.25, -0.5, 0.75, 0.25, 0.5, 1.0, -0.25, 0.5, -1.0]
const r: f32[3, 3] = [0.5, -1.0, 0.25, 0.75, 0.5, -0.25, 1.0, 0.5, -0.5]
const b: f32[1, 3] = [0.5, -0.25, 1.0]
const v: f32[2, 3, 4] = [0.5, 1.0, -1.0, 0.25, -0.5, 0.75, 0.25, 0.5, 1.0, -0.25, 0.5, -1.0, 1.0, 0.5, 0.25, -0.5, 0.75, -0.25, 0.5, 1.0, -1.0, 0.5, 0.25, -0.5]"""
# (title, @main's parameters and body, ops outside, ops inside); "same": no change
CASES = [
    ("a net", "(h: f32[1, 3], x: f32[n, 1, 4]) {\n" + NET % ARGUMENTS, "scan{carry=1, invariants=3}", "matmul matmul add add tanh"),
    ("backwards", "(h: f32[1, 3], x: f32[n, 1, 4]) {\n" + NET % ("h, r, b, p", "2", ", reverse=true", "h, r, b"),
     "scan{carry=1, invariants=3, reverse=true}", "matmul matmul add add tanh"),
    ("weights that are no constants", "(h: f32[1, 3], x: f32[n, 1, 4], w: f32[3, 4]) {\n" + NET % ARGUMENTS, "same", None),
    ("other weights that are no constants", "(h: f32[1, 3], x: f32[n, 1, 4], r: f32[3, 3]) {\n" + NET % ARGUMENTS, "same", None),
    ("a product with another use", "(h: f32[1, 3], x: f32[n, 1, 4]) {\n" + (NET % ARGUMENTS).replace("return last, y", "return p, y"), "same", None),
    ("an op that is not elementwise", "(h: f32[1, 3], x: f32[n, 1, 4]) {\n" + (NET % ARGUMENTS).replace("tanh(", "softmax("), "same", None),
    ("two products of the same entries", """(h: f32[1, 3], x: f32[n, 1, 4], y: f32[n, 1, 3]) {
  p = matmul(x, w){tb=true}
  q = matmul(x, w){tb=true}
  last, z = scan(h, r, p, q, y){carry=1, invariants=1}
    body(h, r, p, q, y) {
      t = tanh(add(add(p, mul(q, y)), matmul(h, r)))
      yield t, t
    }
  return last, z
}""", "scan{carry=1, invariants=2}", "matmul matmul mul add matmul add tanh"),
    ("a product of transposed entries", "(h: f32[1, 3], x: f32[n, 4, 1]) {\n" + (NET % ARGUMENTS).replace("tb=true", "ta=true, tb=true"), "same", None),
    ("entries of two dims", "(h: f32[1, 3], x: f32[n, 4]) {\n" + (NET % ARGUMENTS).replace("{tb=true}", "{tb=true}\n  p2 = reshape(p){to=[n, 1, 3]}")
     .replace("b, p)", "b, p2)"), "same", None),
    ("weights of each entry", "(h: f32[1, 3], x: f32[2, 1, 4]) {\n" + (NET % ARGUMENTS).replace("matmul(x, w)", "matmul(x, v)"), "same", None),
    ("only the first entries are run", "(h: f32[1, 3], x: f32[n, 1, 4], c: i64[]) {\n" + NET % ("h, r, b, p, c", "2", ", counted=true", "h, r, b"), "same", None),
    ("it prints", "(h: f32[1, 3], x: f32[n, 1, 4]) {\n" + (NET % ARGUMENTS).replace("      yield", "      print(s)\n      yield"), "same", None),
    ("nothing is carried", """(h: f32[1, 3], x: f32[n, 1, 4]) {
  p = matmul(x, w){tb=true}
  y = scan(h, r, p){carry=0, invariants=2}
    body(h, r, p) {
      t = tanh(add(p, matmul(h, r)))
      yield t
    }
  return y
}""", "same", None),
    ("a few rows: launches are faster", "(h: f32[4, 3], x: f32[n, 4, 4]) {\n" + NET % ARGUMENTS, "same", None),
]


def whole(main):
    names = ", ".join(part.split(":")[0] for part in main.split(") {")[0][1:].split(", ") if ":" in part)
    given = "\n".join(line for line in CONSTANTS.split("\n") if line.split()[1] + " " not in main.split(") {")[0].replace("(", ", ").replace(", ", " "))
    return f"keel 1\n{given}\nfn @main{main}\n\nentry main = @main ({names})\n"


@pytest.mark.parametrize("main, outside, inside", [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_returned(tmp_path, main, outside, inside):
    rewrites(tmp_path, whole(main), "cpu", "within", outside, inside)


def test_nothing_changes_for_a_device_that_runs_bodies_op_by_op(tmp_path):
    rewrites(tmp_path, whole(CASES[0][1]), "reference", "within", "same", None)


@pytest.mark.parametrize("main", [pytest.param(c[1], id=c[0]) for c in CASES])
def test_the_same_comes_out(context, main):
    rng = np.random.default_rng(5)
    for n in (0, 1, 2, 33):
        given = [*drawn(main, rng, n, "float32"), *([np.int64(n // 2)] if "c: i64[]" in main else [])]
        plain = context.parse(whole(main)).session("reference", level=0).prepare().run(*given)
        for options in ({}, {"passes": "within"}, {"threads": 2, "lanes": "all"}):
            plan = context.parse(whole(main)).session("cpu", **options).prepare()
            for got, wanted in zip(plan.run(*given), plain, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
