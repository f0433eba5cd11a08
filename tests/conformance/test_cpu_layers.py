"""Layers of a network (products by constant weights, elementwise ops after each) as one launch of the device cpu: each block of rows
through all layers, or layer by layer. The oracles are NumPy in f64, and the bits of the nodes alone by the same loops."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SCRIPT = """
import sys
sys.path[:0] = {paths!r}
import keel_abi, numpy as np, os
from regions import as_nodes
rng = np.random.default_rng(3)
OWN = os.environ["KEEL_CPU_PRODUCTS"] == "own"  # else oneDNN may compute layers, in another order
contexts = [keel_abi.Context(threads=n) for n in (1, 2, 5)]
OPS = {{"add": np.add, "mul": np.multiply, "maximum": np.maximum, "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh}}

def draw(*shape):
    return rng.standard_normal(shape)
def layer(width, k, *ops, scale=1):
    # ops: a unary op, or a binary one with the shape of its other operand ("x": the input, as wide as the result)
    return width, scale * draw(k, width) * k**-0.5, ops
def network(*widths):
    return [layer(n, k, ("add", (n,)), "relu") for k, n in zip(widths, widths[1:])]

def check(rows, k, layers, dtype="f4", impls=None, free=False, batch=()):
    x = draw(*batch, rows, k).astype(dtype)
    constants, steps, value = [], [], x.astype("f8")
    for width, weights, ops in layers:
        weights = weights.astype(dtype)
        constants.append(weights)
        steps.append(("matmul", len(constants)))
        value = value @ weights.astype("f8")
        for op in ops:
            if isinstance(op, str):
                value = OPS[op](value)
                steps.append((op, None))
                continue
            name, shape = op
            other = x if shape == "x" else draw(*shape).astype(dtype)
            steps.append((name, 0 if shape == "x" else len(constants) + 1))
            if shape != "x": constants.append(other)
            value = OPS[name](value, other.astype("f8"))
    def build(g, x, *constants):
        y, all = x, (x, *constants)
        for op, number in steps:
            y = g.node(op, y) if number is None else g.node(op, y, all[number])
        return y
    dims = (lambda module: [[*batch, module.dim("rows"), k]]) if free else None
    made = []
    for context in contexts:
        plan = as_nodes(context, build, [x], constants, "cpu", dims=dims)
        got = [each["impl"] for each in plan.report(x)["launches"]]
        assert not OWN or impls is None or got == impls, (rows, k, got)
        made += [np.array(plan.run(x)[0]) for _ in range(2)]
    alone = as_nodes(contexts[0], build, [x], constants, "cpu", level=0)
    for each in (*made, np.array(alone.run(x)[0])) if OWN else ():
        np.testing.assert_array_equal(each, made[0], err_msg=str((rows, k, layers)))
    rtol, atol = {{"f2": (2e-2, 2e-2), "f4": (1e-4, 2e-5), "f8": (1e-12, 1e-12)}}[dtype]
    np.testing.assert_allclose(made[0].astype("f8"), value, rtol=rtol, atol=atol)

ONE, REGION = ["products and maps"], ["oneDNN region"]
for rows in (0, 1, 2, 13, 96, 131, 132, 133, 265, 1024, 1500):  # of any number; at most so many are one layer each
    check(rows, 30, network(30, 64, 32, 10), impls=ONE if rows >= 1024 else ONE * 3 if rows > 0 else None)
    check(rows, 30, network(30, 64, 32, 10), impls=REGION, free=True)
for rows in (1030, 2900):
    check(rows, 70, network(70, 33), impls=ONE)  # a single layer
    check(rows, 70, network(70, 33, 7, 100, 64), impls=ONE)
    check(rows, 70, network(70, 32, 64), "f8", ONE)
    check(rows, 70, network(70, 33, 64, 16), "f2", ONE)  # values are widened first, so layer by layer
    for widths in ((64,), (64, 16)):
        check(rows, 1100, network(1100, *widths), impls=ONE)  # sums in parts
    check(rows, 1024, network(1024, 64, 16), impls=ONE)  # rows 4 KiB apart
    check(rows, 40, network(40, 2000, 40), impls=ONE)  # columns beyond the second-level cache
    check(rows, 64, [layer(64, 64), layer(32, 64), layer(64, 32, "tanh")], impls=ONE)  # no ops after a product
    check(rows, 64, [layer(64, 64, ("add", (64,)), "relu", ("add", "x")), layer(64, 64, ("mul", "x"), ("maximum", (1,)))], impls=ONE)
    check(rows, 64, [layer(300, 64, ("add", (rows, 1)), "tanh"), layer(9, 300, ("mul", (rows, 9)))], impls=ONE)
    check(rows, 8, [layer(8, 8, ("add", (2, 1, 8)), "relu"), layer(8, 8, ("mul", (2, rows, 1)), "tanh")], impls=ONE, batch=(2,))
check(2000, 512, network(512, 512, 512), impls=ONE * 2)  # weights of 2 MB stay layers
for rows in (5, 200):  # products of several matrices, of other dtypes, and of an operand on the right
    a, b, c = (draw(*dims).astype("f4") for dims in ((7, rows, 40), (7, 40, 50), (50,)))
    build = lambda g, a, b, c: g.node("relu", g.node("add", g.node("matmul", a, b), c))
    for context in contexts:
        plan = as_nodes(context, build, [a, b, c], [], "cpu")
        assert not OWN or [each["impl"] for each in plan.report(a, b, c)["launches"]] == ONE
        got = np.array(plan.run(a, b, c)[0])
        np.testing.assert_allclose(got, np.maximum(a.astype("f8") @ b + c, 0), rtol=1e-4, atol=1e-5)
        if OWN: np.testing.assert_array_equal(got, np.array(as_nodes(context, build, [a, b, c], [], "cpu", level=0).run(a, b, c)[0]))
a, b, c = (rng.integers(-99, 99, dims).astype("i4") for dims in ((300, 70), (70, 33), (300, 33)))
divide = lambda g, a, b, c: g.node("div", g.node("matmul", a, b), c)
for zero in (None, 0, 299):
    c[c == 0] = 1
    if zero is not None: c[zero, 32] = 0
    plan = as_nodes(contexts[1], divide, [a, b, c], [], "cpu")
    try:
        np.testing.assert_array_equal(np.array(plan.run(a, b, c)[0]), np.trunc((a.astype("i8") @ b) / c))
        assert zero is None
    except keel_abi.KeelError as e:
        assert zero is not None and f"element {{zero * 33 + 32}}" in str(e), e
"""


@pytest.mark.parametrize("isa, side", [("sse4", "own"), ("avx2", "own"), ("", "own"), ("", "onednn"), ("", "")])
def test_layers(isa, side):
    code = SCRIPT.format(paths=[str(HERE), str(HERE.parent / "python")])
    env = os.environ | {"KEEL_CPU_PRODUCTS": side, "KEEL_CPU_ISA": isa}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
