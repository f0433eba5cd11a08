"""Ops that `ahead` hoists from scans, by the number of ops left outside and inside; the results are equal, in f64 up to one
rounding, in integers exactly, for sequences of every length, in whole plans too."""
import re

import numpy as np
import pytest
from optimizer import dump, optimize
from test_loops import ops

# (title, @main's parameters and body, ops outside, ops inside); "same": no change
CASES = [
    ("of an entry and what is captured", """(h: f32[1, 3], w: f32[4, 3], x: f32[n, 1, 4]) {
  y = scan(h, w, x){carry=1, invariants=1}
    body(s, w, v) {
      p = matmul(v, w)
      t = tanh(add(p, s))
      yield t
    }
  return y
}""", "matmul scan{carry=1, invariants=1}", "add tanh"),
    ("of a constant, turned; backwards; the entry is read by others too", """(h: f32[2, 2], x: f32[5, 2, 2]) {
  y, z = scan(h, x){carry=1, reverse=true}
    body(s, v) {
      p = matmul(v, k){ta=true, tb=true}
      t = mul(add(p, s), v)
      yield t, s
    }
  return y, z
}""", "matmul scan{carry=1, reverse=true}", "add mul"),
    ("two products of one entry, of which one is a result", """(h: f32[1, 3], a: f32[3, 3], b: f32[3, 3], x: f32[n, 1, 3]) {
  y, z = scan(h, a, b, x){carry=1, invariants=2}
    body(s, a, b, v) {
      p = matmul(v, a)
      q = matmul(v, b)
      t = add(p, s)
      yield t, q
    }
  return y, z
}""", "matmul matmul scan{carry=1, invariants=2}", "add"),
    ("of what is carried", """(h: f32[1, 3], w: f32[3, 3], x: f32[n, 1, 3]) {
  y = scan(h, w, x){carry=1, invariants=1}
    body(s, w, v) {
      p = matmul(s, w)
      t = add(p, v)
      yield t
    }
  return y
}""", "same", None),
    ("by weights that change", """(h: f32[3, 3], x: f32[n, 1, 3]) {
  y, z = scan(h, x){carry=1}
    body(s, v) {
      p = matmul(v, s)
      t = add(s, p)
      yield t, p
    }
  return y, z
}""", "same", None),
    ("rows: all of them would be one matrix, which is another product", """(h: f32[3], w: f32[3, 3], x: f32[n, 3]) {
  y = scan(h, w, x){carry=1, invariants=1}
    body(s, w, v) {
      r = reshape(v){to=[1, 3]}
      p = matmul(r, w)
      t = add(s, reshape(p){to=[3]})
      yield t
    }
  return y
}""", "same", None),
    ("weights in more dims", """(h: f32[2, 1, 3], w: f32[2, 4, 3], x: f32[n, 2, 1, 4]) {
  y = scan(h, w, x){carry=1, invariants=1}
    body(s, w, v) {
      p = matmul(v, w)
      t = add(p, s)
      yield t
    }
  return y
}""", "same", None),
    ("much larger than the entries", """(h: f32[1, 100], w: f32[2, 100], x: f32[n, 1, 2]) {
  y = scan(h, w, x){carry=1, invariants=1}
    body(s, w, v) {
      p = matmul(v, w)
      t = add(p, s)
      yield t
    }
  return y
}""", "same", None),
    ("of which only the first are run", """(h: f32[1, 3], w: f32[4, 3], x: f32[n, 1, 4], c: i64[]) {
  y = scan(h, w, x, c){carry=1, invariants=1, counted=true}
    body(s, w, v) {
      p = matmul(v, w)
      t = add(p, s)
      yield t
    }
  return y
}""", "same", None),
    ("it prints", """(h: f32[1, 3], w: f32[4, 3], x: f32[n, 1, 4]) {
  y = scan(h, w, x){carry=1, invariants=1}
    body(s, w, v) {
      p = matmul(v, w)
      print(p)
      t = add(p, s)
      yield t
    }
  return y
}""", "same", None),
]
CONSTANT = "const k: f32[2, 2] = [1.0, 2.0, 3.0, 4.0]"


def whole(main):
    names = ", ".join(re.findall(r"(\w+):", main.split(") {")[0]))
    return f"keel 1\n{CONSTANT}\nfn @main{main}\n\nentry main = @main ({names})\n"


def drawn(main, rng, n, dtype):
    for kind in re.findall(r": f32\[([^\]]*)\]", main.split(") {")[0]):
        dims = [n if d.strip() == "n" else int(d) for d in kind.split(",")]
        yield rng.integers(-9, 9, dims).astype(dtype) if dtype == "int32" else rng.standard_normal(dims).astype(dtype)


def fits(before, after, outside, inside):
    """The remaining ops of the texts before and after."""
    left, was = (text.split("fn @main(")[1].split("\n}")[0] for text in (after, before))
    if outside == "same":
        assert left == was
    else:
        assert (ops(left, 2, True), ops(left, 6, False)) == (outside, inside), left


def rewrites(folder, text, device, name, outside, inside):
    """The pass leaves these ops, and a second run changes nothing."""
    before, after, again = (folder / f"{part}.keelt" for part in ("before", "after", "again"))
    before.write_text(text)
    optimize(before, after, device, only=name)
    optimize(after, again, device, only=name)
    assert dump(again) == dump(after), "a second run changed something"
    fits(dump(before), dump(after), outside, inside)


@pytest.mark.parametrize("main, outside, inside", [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_taken_out(tmp_path, main, outside, inside):
    rewrites(tmp_path, whole(main), "reference", "ahead", outside, inside)


@pytest.mark.parametrize("dtype, word", [("float64", "f64"), ("float32", "f32"), ("int32", "i32")])
@pytest.mark.parametrize("main", [pytest.param(c[1], id=c[0]) for c in CASES if c[2] != "same"])
def test_the_same_comes_out(context, main, dtype, word):
    text = whole(main).replace("f32", word)
    if word == "i32":
        text = text.replace("tanh(", "neg(").replace("[1.0, 2.0, 3.0, 4.0]", "[1, 2, 3, 4]")
    rng = np.random.default_rng(5)
    for n in (0, 1, 2, 33) if "[n," in main else (5,):
        given = list(drawn(main, rng, n, dtype))
        plain = context.parse(text).session("reference", level=0).prepare().run(*given)
        for device, options in (("reference", {"passes": "ahead"}), ("cpu", {}), ("cpu", {"threads": 2, "lanes": "all"})):
            plan = context.parse(text).session(device, **options).prepare()
            launches = [launch["op"] for launch in plan.report(*given)["launches"] if "body_of" not in launch]
            assert "scan" in launches and len(launches) > 1, "the product is outside"
            for got, wanted in zip(plan.run(*given), plain, strict=True):
                if word == "i32":
                    np.testing.assert_array_equal(got, wanted)
                else:
                    eps = np.finfo(dtype).eps
                    np.testing.assert_allclose(got, wanted, rtol=64 * eps, atol=64 * eps)
