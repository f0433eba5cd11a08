"""Recurrent nets as one launch of the cpu device: all forms of LSTM, GRU and RNN, of sizes around those of panels, tiles and groups of
steps, in every class of processor. Any number of threads gives the same bits. Oracle: the reference device."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SCRIPT = """
import sys
sys.path[:0] = {paths!r}
import keel_abi, numpy as np, onnx, tempfile
from onnx import TensorProto as T, helper, numpy_helper
GATES = {{"RNN": 1, "GRU": 3, "LSTM": 4}}
rng = np.random.default_rng(5)

def case(op, hidden, steps, batch, inputs, way="forward", biased=True, lens=False, states=False, peep=False, symbolic=False, **attrs):
    ways, n = 2 if way == "bidirectional" else 1, GATES[op] * hidden
    def normal(*shape):
        return (rng.standard_normal(shape) * max(shape[-1], 1)**-0.5).astype(np.float32)
    weights = {{"w": normal(ways, n, inputs), "r": normal(ways, n, hidden)}}
    if biased: weights["b"] = normal(ways, 2 * n)
    if peep: weights["p"] = normal(ways, 3 * hidden)
    feeds = {{"x": rng.standard_normal((steps, batch, inputs)).astype(np.float32)}}
    if lens: feeds["lens"] = rng.integers(0, steps + 1, batch).astype(np.int32)
    if states: feeds["h0"] = normal(ways, batch, hidden)
    if states and op == "LSTM": feeds["c0"] = normal(ways, batch, hidden)
    known = weights.keys() | feeds.keys()
    names = [k if k in known else "" for k in ("x", "w", "r", "b", "lens", "h0", "c0", "p")][:8 if op == "LSTM" else 6]
    outs = ["y", "yh", "yc"][:3 if op == "LSTM" else 2]
    node = helper.make_node(op, names, outs, hidden_size=hidden, direction=way, **attrs)
    dims = dict(x=["t", "b", inputs], lens=["b"], h0=[ways, "b", hidden], c0=[ways, "b", hidden])
    given = [helper.make_tensor_value_info(k, T.INT32 if k == "lens" else T.FLOAT, dims[k] if symbolic else a.shape)
             for k, a in feeds.items()]
    graph = helper.make_graph([node], "g", given, [helper.make_empty_tensor_value_info(k) for k in outs],
                              [numpy_helper.from_array(a, k) for k, a in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    model.ir_version = 8
    return model, list(feeds.values())

def plan_of(context, model, device):
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx.save(model, file.name)
        return context.import_file(file.name).session(device).prepare()

contexts = [keel_abi.Context(threads=n) for n in (1, 2, 5)]
def runs(model, arrays, whole=True):
    plans = [plan_of(context, model, "cpu") for context in contexts]
    first, *others = [[np.array(y) for y in plan.run(*arrays)] for plan in plans for _ in range(2)]
    assert all(a.tobytes() == b.tobytes() for each in others for a, b in zip(first, each))
    if whole:
        impls = [launch["impl"] for launch in plans[0].report(*arrays)["launches"]]
        assert "recurrent net" in impls, impls
    return first

def check(op, hidden, steps, batch, inputs, whole=True, **how):
    how.setdefault("symbolic", 1 < batch < 8)  # if it is known, launches of the body are faster
    what = op, hidden, steps, batch, inputs
    model, arrays = case(*what, **how)
    want = plan_of(contexts[0], model, "reference").run(*arrays)
    for got, y in zip(runs(model, arrays, whole), want):
        np.testing.assert_allclose(got, np.array(y), rtol=1e-4, atol=2e-5, err_msg=str((what, how)))

{body}
"""
SIZES = """
for op in GATES:
    for hidden in (1, 31, 32, 65, 160):
        for steps, batch, inputs in ((2, 1, 3), (8, 1, 40), (17, 1, 64), (24, 2, 9), (19, 7, 5), (3, 8, 7), (4, 26, 33)):
            check(op, hidden, steps, batch, inputs)
            check(op, hidden, steps, batch, inputs, way="reverse", biased=False)
"""
FORMS = """
for batch, hidden in ((1, 64), (3, 32), (9, 40)):
    for op, how in (("GRU", dict(linear_before_reset=1)), ("LSTM", dict(input_forget=1)), ("LSTM", dict(peep=True)), ("LSTM", dict(clip=0.3)),
                    ("RNN", dict(activations=["Relu"])), ("GRU", {}), ("LSTM", {})):
        for more in (dict(states=True), dict(lens=True, states=True), dict(symbolic=True)):
            check(op, hidden, 18, batch, 20, **how, **more)
    check("LSTM", hidden, 18, batch, 20, way="bidirectional", lens=True)
    check("GRU", hidden, 18, batch, 20, way="bidirectional", states=True, symbolic=True)
for steps, batch in ((0, 2), (5, 0), (1, 1), (1, 9)):
    check("LSTM", 32, steps, batch, 4, states=True, whole=False)
    check("GRU", 32, steps, batch, 4, states=True, whole=False, symbolic=True)
"""
STEP = """
from regions import as_call, as_nodes
def step(g, x, h, c, w, r):
    parts = [g.node("matmul", x, w, tb=True), g.node("matmul", h, r, tb=True)]
    s = g.node("tanh", g.node("add", g.node("add", parts[0], parts[1]), c))
    return [s, g.node("mul", s, h)]
for rows in (1, 3, 8, 20):
    for units in (5, 32, 70):
        arrays = [rng.standard_normal(s).astype(np.float32) for s in ((rows, 9), (rows, units), (rows, units), (units, 9), (units, units))]
        plan = as_call(contexts[1], step, arrays[:3], arrays[3:])
        assert [x["impl"] for x in plan.report(*arrays[:3])["launches"]] == ["step of a recurrent net"] or 1 < rows < 8
        want = as_nodes(contexts[1], step, arrays[:3], arrays[3:]).run(*arrays[:3])
        for got, y in zip(plan.run(*arrays[:3]), want):
            np.testing.assert_allclose(np.array(got), np.array(y), rtol=1e-5, atol=1e-5)
"""
NUMBERS = """
for op in GATES:
    for batch in (1, 9):
        model, (x,) = case(op, 64, 20, batch, 40)
        clean = runs(model, [x])[0]
        x[11, batch - 1, 3] = np.nan
        faulty = runs(model, [x])[0]
        assert (faulty[:11] == clean[:11]).all() and np.isnan(faulty[11:, 0, -1]).all() and not np.isnan(faulty[:, 0, :-1]).any()
        x[11, batch - 1, 3] = np.inf
        want = np.array(plan_of(contexts[0], model, "reference").run(x)[0])
        np.testing.assert_array_equal(np.isnan(runs(model, [x])[0]), np.isnan(want))
"""
ROWS = """
from keel_abi import GraphNumber
U, D, STEPS = 32, 6, 5
w, r = (rng.standard_normal((n, U)).astype(np.float32) / 6 for n in (D, U))
# Each: the next carried values and the stacked results of c, v, e (lists) and the state's dims; dims of c, v, e: b rows, m other ones.
def next_of(g, c, e): return g.node("tanh", g.node("add", *[g.node("matmul", x, g.constant(k)) for x, k in ((e[0], w), (c[0], r))]))
def square(g, x): return g.node("mul", x, x)
def whole(g, x, dims): return g.node("slice", x, start=[0, 0], stop=dims, step=[1, 1])
def product_of_sum(g, *parts):
    s = g.node("add", *parts)
    return g.node("tanh", g.node("add", g.node("matmul", s, g.constant(r)), s))
STEPS_OF = [
    (lambda g, c, v, e, s: ([next_of(g, c, e)], [square(g, v[0])]), ["b"], ["m"], [D]),
    (lambda g, c, v, e, s: ([next_of(g, c, e)], [square(g, e[1])]), ["b"], [], [D, U]),
    (lambda g, c, v, e, s: ([next_of(g, c, e)], [g.node("tanh", g.node("matmul", e[1], g.constant(w)))]), ["b"], [], [D, D]),
    (lambda g, c, v, e, s: ([next_of(g, c, e), square(g, c[1])], []), ["b", "m"], [], [D]),
    (lambda g, c, v, e, s: ([next_of(g, c, e)], [product_of_sum(g, *[g.node("matmul", x, g.constant(k)) for x, k in ((e[0], w), (c[0], r))])]), ["b"], [], [D]),
    (lambda g, c, v, e, s: ([next_of(g, c, e)], [g.node("tanh", g.node("matmul", whole(g, next_of(g, c, e), s), g.constant(r)))]), ["b"], [], [D])]
def scan_plan(context, step, dims, device, level):
    module, n = context.module(), [len(d) for d in dims]
    dims = [[module.dim(d) if isinstance(d, str) else d for d in x] for group in dims for x in group]
    body, main = module.graph("body"), module.graph("main")
    def params(g, cut): return [g.param(f"p{i}", np.dtype("f4"), d[cut if i >= n[0] + n[1] else 0:]) for i, d in enumerate(dims)]
    inner = params(body, 1)
    carried, stacked = step(body, inner[:n[0]], inner[n[0]:-n[2]], inner[-n[2]:], dims[0])
    for i, y in enumerate(carried + stacked): body.result(f"r{i}", y)
    made = main.node("scan", *params(main, 0), n_out=len(carried + stacked), body=GraphNumber(0), carry=n[0], invariants=n[1])
    for i, y in enumerate(made): main.result(f"y{i}", y)
    module.entry("main", main)
    return module.session(device, level=level).prepare()
for step, c, v, e in STEPS_OF:
    for b in (1, 9):
        for m in (1, b, 5):
            sizes = dict(b=b, m=m, t=STEPS)
            symbols = [[[x, U] for x in c], [[x, U] for x in v], [["t", "m" if i else "b", k] for i, k in enumerate(e)]]
            numbers = [[[sizes.get(d, d) for d in x] for x in group] for group in symbols]
            arrays = [rng.standard_normal(d).astype(np.float32) for group in numbers for d in group]
            for dims in (symbols, numbers):
                want = scan_plan(contexts[0], step, dims, "reference", 0).run(*arrays)
                for level in (0, 2):
                    for got, y in zip(scan_plan(contexts[1], step, dims, "cpu", level).run(*arrays), want, strict=True):
                        np.testing.assert_allclose(np.array(got), np.array(y), rtol=1e-4, atol=2e-5, err_msg=str((step, b, m, level)))
"""
STOP = """
from test_cpu_stop import assert_stops
model, arrays = case("LSTM", 128, 20000, 1, 64)
assert_stops(contexts[0], plan_of(contexts[0], model, "cpu"), arrays)
"""


@pytest.mark.parametrize("body", [SIZES, FORMS, STEP, NUMBERS, ROWS, STOP], ids=["sizes", "forms", "step", "numbers", "rows", "stop"])
@pytest.mark.parametrize("isa", ["sse4", "avx2", ""])
def test_nets_equal_those_of_the_reference_device(isa, body):
    code = SCRIPT.format(paths=[str(HERE), str(HERE.parent / "python")], body=body)
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"KEEL_CPU_ISA": isa}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
