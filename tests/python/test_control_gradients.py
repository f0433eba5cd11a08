"""Gradients through cond, switch, while, scan and call, at first and second order, against central finite differences in float64;
errors; effects in bodies; files; calls with custom gradients.

Start with `Program`, which appends gradients to the graph of a text. Its loss l is the sum of the sines of the results, and l2
that of the first gradients, so that incoming gradients differ between elements.
"""
import re

import keel_abi
import numpy as np
import pytest
from control_programs import PROGRAMS, i, random_program
from keel_abi import KeelError

STEP = 1e-5


class Program:
    """Entry "grad": l, its gradients d*, l2, its gradients h*, by name of the input."""

    def __init__(self, context, text, inputs, of=None, order=2):
        of = of or re.search(r"\n  return (.*)", text).group(1).split(", ")
        self.module = context.parse(f"keel 1\n{text}\nentry main = @main\n")
        self.graph = g = self.module.graph_of("main").copy("grad")
        self.inputs = {n: np.asarray(v) for n, v in inputs.items()}
        self.names = [n for n, v in self.inputs.items() if v.dtype.kind == "f"]
        self.xs = [g.find(n) for n in self.names]
        self.fetches, self.plans = {}, {}
        values = [g.find(n) for n in of]
        for letter, loss in zip(("d", "h")[:order], ("l", "l2")):
            values = self.level(values, letter, loss)
        self.module.entry("grad", g)

    def level(self, values, letter, loss):
        g = self.graph
        sums = [g.node("reduce_sum", g.node("sin", v)) for v in values if v is not None]
        total = sums[0]
        for s in sums[1:]:
            total = g.node("add", total, s)
        g.result(loss, total)
        found = g.gradient([total], self.xs)
        self.fetches[loss] = [loss]
        self.fetches[letter] = [f"{letter}_{n}" if v is not None else None for n, v in zip(self.names, found)]
        for name, v in zip(self.fetches[letter], found):
            if name:
                g.result(name, v)
        return [v for v in found if v is not None]

    def prepare(self, device, module=None, **options):
        session = (module or self.module).session(device, entry="grad", **options)
        self.plans = {what: session.prepare(list(self.inputs), [n for n in names if n])
                      for what, names in self.fetches.items() if any(names)}
        return self

    def run(self, what, **changed):
        got = iter(self.plans[what].run(*[changed.get(n, a) for n, a in self.inputs.items()]) if what in self.plans else ())
        return [np.array(next(got)) if name else None for name in self.fetches[what]]

    def difference(self, loss, name):
        """Central differences of fourth order, because powers have large higher derivatives."""
        x = self.inputs[name]
        out = np.zeros(x.shape)
        for place in np.ndindex(x.shape):
            for steps, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
                moved = np.array(x)
                moved[place] += steps * STEP
                out[place] += weight * float(self.run(loss, **{name: moved})[0]) / (12 * STEP)
        return out

    def check(self, rtol=2e-6):
        for letter, loss in (("d", "l"), ("h", "l2")):
            if letter not in self.fetches:
                continue
            for name, got in zip(self.names, self.run(letter), strict=True):
                wanted = self.difference(loss, name)
                got = np.zeros(wanted.shape) if got is None else got
                assert got.dtype == np.float64 and got.shape == wanted.shape, f"{letter} of {name}"
                np.testing.assert_allclose(got, wanted, rtol=rtol, atol=1e-6, err_msg=f"{letter} of {name}")


@pytest.mark.parametrize("name, text, inputs", PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_programs_agree_with_finite_differences(context, device, name, text, inputs):
    Program(context, text, inputs).prepare(device).check()


def test_each_op_that_runs_graphs_has_programs_of_all_sizes(context):
    """test_gradients.py checks that this list is complete."""
    for op in [op["name"] for op in context.report("ops") if op["vjp"] == "missing"]:
        sizes = {n for _, text, inputs in PROGRAMS if f" {op}(" in text for v in inputs.values() for n in np.shape(v)}
        assert {0, 1, 2} <= sizes, op


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_agree_with_finite_differences(context, seed):
    text, of = random_program(seed)
    rng = np.random.default_rng(seed)
    program = Program(context, text, {"k": i(seed % 5), "a": rng.uniform(-1, 1), "x": rng.uniform(-1, 1, seed % 3)}, of)
    program.prepare(("reference", "cpu")[seed % 2]).check()


SAMPLE = {p[0]: p for p in PROGRAMS}


@pytest.mark.parametrize("name", ["cond 1 3", "rnn 3", "loops 3 2", "power 33"])
def test_files_and_texts_keep_gradients(context, name, tmp_path):
    _, text, inputs = SAMPLE[name]
    program = Program(context, text, inputs).prepare("reference")
    wanted = [program.run(what) for what in program.fetches]
    program.module.save(tmp_path / "g.keel")
    for module in (context.load(tmp_path / "g.keel"), context.parse(program.module.to_text())):
        assert module.to_text() == context.parse(module.to_text()).to_text()
        program.prepare("cpu", module)
        for what, values in zip(program.fetches, wanted):
            for a, b in zip(program.run(what), values):
                assert (a is None) == (b is None)
                if a is not None:
                    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("level", [0, 2, 3])
def test_passes_keep_gradients(context, device, level):
    for name in ("nested 1 0", "rnn 3", "loops 3 2", "newton"):
        Program(context, *SAMPLE[name][1:], order=1).prepare(device, level=level).check()


def test_float32(context, device):
    for name in ("cond 1 3", "rnn 3", "loops 3 2"):
        _, text, inputs = SAMPLE[name]
        wide = Program(context, text, inputs).prepare(device)
        narrow = Program(context, text.replace("f64", "f32"),
                         {n: a.astype(np.float32) if a.dtype == np.float64 else a for n, a in inputs.items()}).prepare(device)
        for what in ("d", "h"):
            for a, b in zip(wide.run(what), narrow.run(what)):
                if a is not None:
                    assert b.dtype == np.float32
                    np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-4)


def test_what_is_dear_is_kept_and_the_rest_computed_again(context):
    text = Program(context, *SAMPLE["rnn 3"][1:], order=1).module.to_text()
    back = text.split("reverse=true")[1].split(" : ")[0]
    assert text.split("reverse=true")[0].count("matmul(") == 4  # the program's own bodies, and bodies with more results
    assert "tanh(" in text.split("reverse=true")[1] and back.count("transpose") == 0


def test_nobody_else_is_changed(context):
    """The copied graph keeps its bodies; a failed attempt leaves nothing."""
    program = Program(context, *SAMPLE["rnn 3"][1:])
    text = program.module.to_text()
    main = text.split("fn @main")[1].split("fn @")[0]
    assert "keep" not in main and main.count("matmul(") == 2
    module = context.parse("keel 1\n" + EFFECTS["a write behind a read"] + "\nentry main = @main\n")
    before = module.to_text()
    g = module.graph_of()
    with pytest.raises(KeelError):
        g.gradient([g.find("y")], [g.find("x")])
    assert module.to_text() == before


# ---- effects happen once
VAR = "var v: f64[] = [2.0]\n"
EFFECTS = {
    "a write behind a read": VAR + """
fn @main(x: f64[2]) {
  y = scan(x){carry=1, length=3} body(a) {
    r = read(v)
    t = r + 1.0
    assign(v, t)
    b = a * r
    yield b }
  return y
}""",
    "a write behind the node": VAR + """
fn @main(x: f64[2]) {
  p = greater(x, 0.0)
  q = reduce_max(p)
  y = cond(q, x) then(x) { r = read(v)
      b = x * r
      yield b } else(x) { yield x }
  assign(v, 1.0)
  return y
}"""}
LOUD = VAR + """
fn @main(k: i32[], x: f64[2]) {
  i, y = while(0, x, k){carry=2}
    test(i, a, k) { t = less(i, k)
      yield t }
    body(i, a, k) {
      j = i + 1
      r = read(v)
      b = scan(a, r){carry=1, invariants=1, length=2} body(a, r) {
        p = greater(r, 0.0)
        c = cond(p, a, r) then(a, r) { print(a){format="in {}"}
            d = sin(a) * r
            yield d } else(a, r) { yield a }
        yield c }
      print(j)
      yield j, b }
  return y
}"""


def run_grad(context, text, inputs):
    module = context.parse("keel 1\n" + text + "\nentry main = @main\n")
    g = module.graph_of().copy("grad")
    y, x = g.find("y"), g.find("x")
    d = g.gradient([y], [x])[0]
    g.result("y", y)
    g.result("d", d)
    module.entry("grad", g)
    return module, module.session("reference", entry="grad").prepare(list(inputs))


def test_effects_of_bodies_are_not_repeated():
    context = keel_abi.Context()
    lines = []
    context.print_hook(lambda stream, line: lines.append(line))
    x = np.array([0.3, -0.4])
    module, plan = run_grad(context, LOUD, {"k": i(2), "x": x})
    y, d = plan.run(i(2), x)
    assert len(lines) == 6, lines
    wanted, slope = x, np.ones(2)
    for _ in range(4):
        wanted, slope = np.sin(wanted) * 2, slope * np.cos(wanted) * 2
    np.testing.assert_allclose(y, wanted, rtol=1e-12)
    np.testing.assert_allclose(d, slope, rtol=1e-12)
    context.print_hook(None)


@pytest.mark.parametrize("name", EFFECTS)
def test_a_variable_that_has_changed_is_not_read_again(context, name):
    with pytest.raises(KeelError, match="reads variable 'v' again") as e:
        run_grad(context, EFFECTS[name], {})
    assert e.value.code == "UNIMPLEMENTED" and "before the node" in e.value.hint


# ---- a call with a custom gradient
CLIP = """
fn @plain(x: f64[n], k: i32[]) -> f64[n], i32[] {
  y = identity(x)
  return y, k
}

fn @doubled(x: f64[n], k: i32[], y: f64[n], l: i32[], dy: f64[n]) -> f64[n] {
  dx = dy * x * %s
  return dx
}

fn @main(k: i32[], x: f64[n]) {
  y, l = call(x, k){body=@plain, vjp=@doubled}
  z = y * 3.0
  return z, l
}"""


def test_a_call_may_bring_its_gradient(context, device):
    module = context.parse("keel 1\n" + CLIP % "2.0" + "\nentry main = @main\n")
    for again in (module, context.parse(module.to_text())):
        assert "vjp=@doubled" in again.to_text()
        g = again.graph_of().copy("grad")
        x = g.find("x")
        d = g.gradient([g.find("z")], [x])[0]
        g.result("d", d)
        g.result("h", g.gradient([d], [x])[0])
        again.entry("grad", g)
        value = np.array([1.0, 5.0, -2.0])
        d, h = again.session(device, entry="grad").prepare().run(i(1), value)
        np.testing.assert_array_equal(d, 6 * value)
        np.testing.assert_array_equal(h, [6, 6, 6])


def test_a_gradient_that_does_not_fit_is_refused(context):
    for old, new, why in [(", dy: f64[n]) ->", ", dy: f32[n]) ->", "the parameters of vjp are"),
                          ("  return dx\n", "  return dx, dx\n", "the results of vjp are"),
                          ("vjp=@doubled", "vjp=@nobody", "no graph 'nobody'")]:
        text = (CLIP % "2.0").replace(old, new).replace("-> f64[n] {\n  dx", "{\n  dx")
        if "f32" in new:
            text = text.replace("dx = dy * x", "t = cast(dy){to=f64}\n  dx = t * x")
        with pytest.raises(KeelError, match=re.escape(why)):
            context.parse("keel 1\n" + text)


# ---- counted scans
def test_a_count_out_of_range_is_refused(context, device):
    text = SAMPLE["counted 3"][1]
    plan = context.parse(f"keel 1\n{text}\n").session(device).prepare()
    x = np.arange(1.0, 6.0)
    y, z = plan.run(i(2, np.int64), x, np.float64(0.5))
    first = np.sin(0.5 * 1 + 1)
    np.testing.assert_allclose(z, [1.5, first * 2 + 1, 0, 0, 0])
    for n in (-1, 6):
        with pytest.raises(KeelError, match=rf"count {n} is not in \[0, 5\]") as e:
            plan.run(i(n, np.int64), x, np.float64(0.5))
        assert e.value.code == "RANGE" and e.value.op == "scan"
    with pytest.raises(KeelError, match="the last operand is not an i64"):
        context.parse("keel 1\n" + text.replace("n: i64[]", "n: i32[]"))


# ---- Jacobians
JACOBIANS = {
    "matrix": ("fn @main(x: f64[3], w: f64[2, 3]) {\n  h = w * x\n  t = tanh(h)\n  y = reduce_sum(t){axes=[1]}\n  return y\n}",
               {"x": 3, "w": (2, 3)}),
    "scalar": ("fn @main(x: f64[2], w: f64[]) {\n  a = x * w + 1.0\n  y = reduce_sum(a)\n  return y\n}", {"x": 2, "w": ()}),
    "nothing": ("fn @main(x: f64[2], w: f64[0]) {\n  y = w * 1.0\n  return y\n}", {"x": 2, "w": 0}),
    "symbols": ("fn @main(x: f64[n, m], w: f64[m]) {\n  a = x * w\n  b = a * a\n  y = b - 1.0\n  return y\n}", {"x": (2, 2), "w": 2}),
    "a loop": ("fn @main(x: f64[4], w: f64[2]) {\n  y = scan(w, x){carry=1} body(w, e) { a = w * e\n      b = sin(a)\n"
               "      yield b }\n  return y\n}", {"x": 4, "w": 2})}


@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobians(context, device, name):
    text, shapes = JACOBIANS[name]
    rng = np.random.default_rng(3)
    inputs = {n: rng.uniform(-1, 1, s) for n, s in shapes.items()}
    module = context.parse(f"keel 1\n{text}\nentry main = @main\n")
    g = module.graph_of().copy("grad")
    y = g.find("y")
    g.result("y", y)
    for n in inputs:
        g.result(f"d_{n}", g.jacobian(y, g.find(n)))
    module.entry("grad", g)
    plan = module.session(device, entry="grad").prepare(list(inputs))
    value, *got = plan.run(*inputs.values())
    for (n, x), d in zip(inputs.items(), got):
        assert d.shape == value.shape + x.shape
        for place in np.ndindex(x.shape):
            sides = []
            for sign in (1, -1):
                moved = np.array(x)
                moved[place] += sign * STEP
                sides.append(plan.run(*{**inputs, n: moved}.values())[0])
            np.testing.assert_allclose(d[(..., *place)], (sides[0] - sides[1]) / (2 * STEP), rtol=1e-6, atol=1e-6)


def test_jacobians_that_cannot_be(context):
    module = context.parse("keel 1\nfn @main(x: f64[2], i: i32[2]) {\n  y = i + 1\n  return y\n}\nentry main = @main\n")
    g, before = module.graph_of(), module.to_text()
    for y, code in ((g.find("y"), "INVALID"), (77, "NOT_FOUND")):
        with pytest.raises(KeelError) as e:
            g.jacobian(y, g.find("x"))
        assert e.value.code == code
    assert module.to_text() == before
