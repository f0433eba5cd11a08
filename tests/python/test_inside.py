"""Values in the memory of other values: slices, splits and concatenations along the first dim other than 1 copy nothing if the
parts are aligned to 64 bytes; results do not change. NumPy is the oracle."""
import numpy as np
import pytest

WIDTH = 16  # f32: 64 bytes


def plan_of(context, body, params, results, device="cpu", **options):
    typed = ", ".join(f"{n}: f32[{', '.join(map(str, a.shape))}]" for n, a in params.items())
    types = ", ".join(f"f32[{', '.join(map(str, s))}]" for s in results.values())
    text = f"keel 1\nfn @main({typed}) -> {types} {{\n{body}  return {', '.join(results)}\n}}\n"
    text += f"entry main = @main ({', '.join(params)}) -> ({', '.join(results)})\n"
    return context.parse(text).session(device, **{"level": 0, "lanes": "off", **options}).prepare()


def place(report, name):
    """Returns (kind, offset) of a value."""
    for launch in report["launches"]:
        for v in launch["out"]:
            if v["name"] == name:
                return v["place"], v.get("offset")


X = np.arange(64 * WIDTH, dtype=np.float32).reshape(64, WIDTH) / 64


def test_parts_of_a_split_lie_in_it(context):
    body = "  e = exp(x)\n  a, b = split(e){sizes=[48, 16]}\n  c = neg(a)\n  d = neg(b)\n"
    plan = plan_of(context, body, {"x": X}, {"c": (48, WIDTH), "d": (16, WIDTH)})
    report = plan.report()
    (_, e), (_, a), (_, b) = (place(report, n) for n in "eab")
    assert (a - e, b - e) == (0, 48 * WIDTH * 4)
    c, d = plan.run(X)
    np.testing.assert_allclose(np.concatenate([c, d]), -np.exp(X), rtol=1e-6)


def test_small_slices_that_together_make_up_their_operand(context):
    """As the gates of a recurrent cell; alone, a small slice is copied (below)."""
    body = "  e = exp(x)\n  a = slice(e){stop=[16, 16]}\n  b = slice(e){start=[16, 0], stop=[40, 16]}\n  c = neg(a)\n  d = neg(b)\n"
    plan = plan_of(context, body, {"x": X}, {"c": (16, WIDTH), "d": (24, WIDTH)})
    report = plan.report()
    (_, e), (_, a), (_, b) = (place(report, n) for n in "eab")
    assert (a - e, b - e) == (0, 16 * WIDTH * 4) and report["still"] == 2
    c, d = plan.run(X)
    np.testing.assert_allclose(np.concatenate([c, d]), -np.exp(X[:40]), rtol=1e-6)


def test_operands_of_a_concatenation_are_computed_into_it(context):
    body = "  a = exp(x)\n  b = neg(x)\n  y = concat(a, b)\n  s = reduce_sum(y)\n"
    plan = plan_of(context, body, {"x": X}, {"s": ()})
    report = plan.report()
    (_, y), (_, a), (_, b) = (place(report, n) for n in "yab")
    assert (a - y, b - y) == (0, X.nbytes) and report["arena_bytes"] == 2 * X.nbytes
    np.testing.assert_allclose(plan.run(X)[0], np.exp(X).sum(dtype=np.float64) - X.sum(dtype=np.float64), rtol=1e-5)


def test_into_a_result_and_out_of_a_feed(context):
    body = "  a = slice(x){stop=[48, 16]}\n  b = neg(a)\n  c = exp(b)\n  y = concat(b, c)\n"
    plan = plan_of(context, body, {"x": X}, {"y": (96, WIDTH)})
    report = plan.report()
    assert place(report, "a")[0] == "feed" and place(report, "b")[0] == place(report, "c")[0] == "result"
    for _ in range(2):  # a different result array each time
        np.testing.assert_allclose(plan.run(X)[0], np.concatenate([-X[:48], np.exp(-X[:48])]), rtol=1e-6)


@pytest.mark.parametrize("why, body, name", [
    ("an offset of 4 bytes", "  e = exp(x)\n  a = slice(e){start=[0, 1]}\n  c = neg(a)\n  d = neg(e)\n", "a"),
    ("columns lie apart", "  e = exp(x)\n  a, b = split(e){axis=1, sizes=[8, 8]}\n  c = neg(a)\n  d = neg(b)\n", "a"),
    ("every other row", "  e = exp(x)\n  a = slice(e){step=[2, 1]}\n  c = neg(a)\n  d = neg(e)\n", "a"),
    ("a small slice would keep all of it", "  e = exp(x)\n  a = slice(e){stop=[1, 16]}\n  c = neg(a)\n  d = neg(e)\n", "a"),
    ("twice the same", "  a = exp(x)\n  y = concat(a, a)\n  c = neg(y)\n  d = neg(a)\n", "a"),
    ("an operand is a result too", "  c = exp(x)\n  b = neg(x)\n  y = concat(c, b)\n  d = neg(y)\n", "c"),
    ("an operand is a feed", "  a = exp(x)\n  y = concat(a, x)\n  c = neg(y)\n  d = neg(a)\n", "a"),
])
def test_what_is_copied(context, why, body, name):
    lines = [line.split(" = ")[0].strip() for line in body.splitlines()]
    arrays = {"x": X}
    for line in body.splitlines():
        names, expression = line.strip().split(" = ", 1)
        out = evaluate(expression, arrays)
        arrays.update(zip(names.split(", "), out, strict=True))
    plan = plan_of(context, body, {"x": X}, {n: arrays[n].shape for n in "cd"})
    report = plan.report()
    spans = {}
    for launch in report["launches"]:
        for v in launch["out"]:
            spans[v["name"]] = (v["place"], v.get("offset"), v["bytes"])
    assert name in spans and lines, why
    kind, at, size = spans[name]
    for other, (k, o, n) in spans.items():
        alive_together = {("a", "e"), ("a", "y"), ("c", "y")}
        if (name, other) in alive_together and k == kind == "arena":
            assert at + size <= o or o + n <= at, f"{why}: {name} overlaps {other}"
    for got, n in zip(plan.run(X), "cd", strict=True):
        np.testing.assert_allclose(got, arrays[n], rtol=1e-6)


def numbers(text, key, default):
    import re
    found = re.search(rf"{key}=\[([^\]]*)\]", text)
    return [int(n) for n in found[1].split(",")] if found else default


def evaluate(expression, arrays):
    op, rest = expression.split("(", 1)
    names, _, attrs = rest.partition(")")
    args = [arrays[n.strip()] for n in names.split(",")]
    axis = int(attrs.split("axis=")[1].split(",")[0].rstrip("}")) if "axis=" in attrs else 0
    if op == "split":
        return np.split(args[0], np.cumsum(numbers(attrs, "sizes", []))[:-1], axis)
    if op == "concat":
        return [np.concatenate(args, axis)]
    if op == "slice":
        shape = args[0].shape
        cut = zip(numbers(attrs, "start", [0] * len(shape)), numbers(attrs, "stop", shape), numbers(attrs, "step", [1] * len(shape)))
        return [args[0][tuple(slice(*c) for c in cut)]]
    return [{"exp": np.exp, "neg": np.negative, "add": np.add, "maximum": np.maximum, "sin": np.sin}[op](*args)]


def draw(seed):
    """Lines of a graph on arrays [n, 16] and [1, n, 16], and its arrays by name."""
    rng = np.random.default_rng(seed)
    outer = (1,) * int(rng.integers(0, 2))
    axis = len(outer)
    arrays = {f"x{i}": rng.standard_normal((*outer, 4 * int(rng.integers(1, 4)), WIDTH)).astype(np.float32) for i in range(2)}
    params, lines = dict(arrays), []
    for k in range(int(rng.integers(6, 18))):
        names = list(arrays)
        pick = names[int(rng.integers(max(0, len(names) - 5), len(names)))]
        n = arrays[pick].shape[axis]
        kind = rng.choice(["one", "two", "concat", "split", "slice"])
        out = [f"v{k}"]
        if kind == "one":
            text = f"{rng.choice(['neg', 'sin'])}({pick})"
        elif kind == "two":
            same = [m for m in names if arrays[m].shape == arrays[pick].shape]
            text = f"{rng.choice(['add', 'maximum'])}({pick}, {rng.choice(same)})"
        elif kind == "concat":
            more = [str(rng.choice(names)) for _ in range(int(rng.integers(1, 3)))]
            text = f"concat({', '.join([pick, *more])}){{axis={axis}}}"
        elif kind == "split" and n > 1:
            first = int(rng.integers(1, n))
            out = [f"v{k}", f"w{k}"]
            text = f"split({pick}){{axis={axis}, sizes=[{first}, {n - first}]}}"
        else:
            start = int(rng.integers(0, n))
            stop = int(rng.integers(start + 1, n + 1))
            text = f"slice({pick}){{start={[*[0] * axis, start, 0]}, stop={[*outer, stop, WIDTH]}}}"
        arrays.update(zip(out, evaluate(text, arrays), strict=True))
        lines.append(f"  {', '.join(out)} = {text}\n")
    made = [n for n in arrays if n not in params]
    wanted = {str(n) for n in rng.choice(made, int(rng.integers(1, 4)))} | {made[-1]}
    return "".join(lines), params, {n: arrays[n] for n in made if n in wanted}


@pytest.mark.parametrize("options", [{}, {"level": 2}, {"lanes": "all", "threads": 2}], ids=["in turn", "with passes", "side by side"])
@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_random_graphs_of_parts(context, device, options):
    still = 0
    for seed in range(150):
        body, params, results = draw(seed)
        plan = plan_of(context, body, params, {n: a.shape for n, a in results.items()}, device, **options)
        for _ in range(2):
            for got, (name, wanted) in zip(plan.run(*params.values()), results.items(), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=2e-6, err_msg=f"seed {seed}: {name}\n{body}")
        still += plan.report().get("still", 0)
    assert still > 100, "parts were looked for"


def test_in_a_loop_of_which_one_half_is_carried(context):
    text = """keel 1
fn @main(x: f32[20, 32]) -> f32[32], f32[20, 32] {
  z = slice(x){start=[0, 0], stop=[1, 32]}
  o = reshape(z){to=[32]}
  h, ys = scan(o, x){carry=1}
    body(s, v) {
      a, b = split(s){sizes=[16, 16]}
      c, d = split(v){sizes=[16, 16]}
      e = add(a, d)
      f = sub(b, c)
      y = concat(f, e)
      k = concat(e, f)
      yield y, k
    }
  return h, ys
}
entry main = @main (x) -> (h, ys)
"""
    x = np.random.default_rng(3).standard_normal((20, 32)).astype(np.float32)
    s, rows = x[0], []
    for v in x:
        e, f = s[:16] + v[16:], s[16:] - v[:16]
        s = np.concatenate([f, e])
        rows.append(np.concatenate([e, f]))
    for level in (0, 2):
        h, ys = context.parse(text).session("cpu", level=level).prepare().run(x)
        np.testing.assert_allclose(h, s, rtol=1e-6)
        np.testing.assert_allclose(ys, rows, rtol=1e-6)
