"""Machine code of the cpu device: each op with machine code, for each dtype, in a `call` with others, against the loops of single
ops (which test_grids.py checks against the reference), bit by bit, with special values that an instruction may get wrong.

The sizes cover whole vectors of 16 and 8, tails, a single element, none, several tiles.
"""
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from regions import as_call, as_nodes

sys.path.append(str(Path(__file__).resolve().parents[1] / "passes"))
from operands import DTYPES, operand, same_bits  # noqa: E402

FLOATS, SIGNED, UNSIGNED = ["f32", "f64"], ["i32", "i64"], ["u32", "u64"]
NUMBERS, INTEGERS = FLOATS + SIGNED + UNSIGNED, SIGNED + UNSIGNED
COMPARE = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
BINARY = [(op, dt) for op in ("add", "sub", "mul", "maximum", "minimum", *COMPARE) for dt in NUMBERS] \
    + [("div", dt) for dt in FLOATS] \
    + [(op, dt) for op in ("bit_and", "bit_or", "bit_xor") for dt in INTEGERS] \
    + [(op, dt) for op in ("shift_left", "shift_right") for dt in UNSIGNED] \
    + [(op, "bool") for op in ("equal", "not_equal", "logical_and", "logical_or", "logical_xor")]
UNARY = [(op, dt) for op in ("neg", "abs", "square") for dt in NUMBERS] \
    + [(op, dt) for op in ("sign", "sqrt", "rsqrt", "reciprocal", "floor", "ceil", "round", "is_nan", "is_inf",
                           "is_finite") for dt in FLOATS] \
    + [("relu", dt) for dt in FLOATS + SIGNED] + [("bit_not", dt) for dt in INTEGERS] + [("logical_not", "bool")]
CASTS = [(a, b) for a in [*NUMBERS, "bool"] for b in [*NUMBERS, "bool"] if a != b and (a not in FLOATS or b in [*FLOATS, "bool"])]
SIZES = [1, 3, 8, 16, 17, 100, 1024, 9001, 0]


def check(context, build, inputs):
    plan = as_call(context, build, inputs, [])
    impls = [step["impl"] for step in plan.report(*inputs)["launches"]]
    assert impls == ["map in tiles"], impls
    got, wanted = plan.run(*inputs), as_nodes(context, build, inputs, [], "cpu", level=0).run(*inputs)
    for k, (a, b) in enumerate(zip(got, wanted, strict=True)):
        assert same_bits(np.array(a), np.array(b)), (k, inputs, np.array(a), np.array(b))


def draw(dtype, *shapes, seed):
    random = np.random.default_rng(seed)
    return [operand(dtype, shape, random, True) for shape in shapes]


@pytest.mark.parametrize("op, dtype", BINARY, ids=str)
def test_binary(context, op, dtype):
    def build(graph, a, b, one):
        return [graph.node(op, *pair) for pair in ((a, b), (b, a), (a, one), (one, b), (a, a))]
    for n in SIZES:
        check(context, build, draw(dtype, [n], [n], [], seed=n))


@pytest.mark.parametrize("op, dtype", UNARY, ids=str)
def test_unary(context, op, dtype):
    def build(graph, a, b):
        return [graph.node(op, a), graph.node(op, b)]
    for n in SIZES:
        check(context, build, draw(dtype, [n], [n], seed=n))


@pytest.mark.parametrize("source, to", CASTS, ids=str)
def test_cast(context, source, to):
    def build(graph, a, b):
        return [graph.node("cast", x, to=DTYPES[to]) for x in (a, b)]
    for n in SIZES:
        check(context, build, draw(source, [n], [n], seed=n))


@pytest.mark.parametrize("dtype", [*NUMBERS, "bool"])
def test_select(context, dtype):
    def build(graph, a, b, one, p, q):
        return [graph.node("select", *three) for three in ((p, a, b), (p, one, b), (q, a, one), (p, b, a), (q, b, a))]
    for n in SIZES:
        check(context, build, draw(dtype, [n], [n], [], seed=n) + draw("bool", [n], [], seed=n + 1))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_clamp(context, dtype):
    def build(graph, a, b, low, high):
        return [graph.node("clamp", x, *bounds) for x in (a, b) for bounds in ((low, high), (high, low))]
    for n in (*SIZES, *range(30, 60)):
        check(context, build, draw(dtype, [n], [n], [], [], seed=n))


@pytest.mark.parametrize("shapes", [([40, 300], [300], [40, 1]), ([40, 300], [40, 1], []), ([7, 5, 9], [5, 1], [9]),
                                    ([3, 1, 2000], [1, 4, 1], [2000]), ([2, 3], [2, 3], [1, 1])], ids=str)
@pytest.mark.parametrize("symbolic", [False, True])
def test_broadcast(context, shapes, symbolic):
    def build(graph, a, b, c):
        total = graph.node("add", graph.node("mul", a, b), c)
        return [graph.node("sub", graph.node("abs", total), graph.node("mul", graph.node("exp", c), a)), total]
    def dims(module):
        return [[module.dim("n") if i == 0 and len(s) > 1 and d == shapes[0][0] else d for i, d in enumerate(s)]
                for s in shapes]
    inputs = [np.random.default_rng(1).standard_normal(s).astype(np.float32) for s in shapes]
    got = as_call(context, build, inputs, [], dims=dims if symbolic else None).run(*inputs)
    wanted = as_nodes(context, build, inputs, [], "cpu", level=0).run(*inputs)
    for a, b in zip(got, wanted, strict=True):
        assert same_bits(np.array(a), np.array(b))


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize("op", ["exp", "log", "log1p", "sin", "cos", "tanh", "erf", "sigmoid", "gelu", "silu", "softplus", "sqrt",
                                "rsqrt", "reciprocal", "square"])
def test_an_element_does_not_depend_on_its_place(context, op, dtype):
    """Otherwise tiles would give other bits than whole arrays. 47 elements: full and half vectors, single elements."""
    values = np.random.default_rng(1).standard_normal(100).astype(DTYPES[dtype]) * 2
    plan = as_nodes(context, lambda g, x: g.node(op, x), [np.repeat(values[:1], 47)], [], "cpu", level=0)
    for value in values:
        y = np.array(plan.run(np.repeat(value, 47))[0])
        assert same_bits(y, np.repeat(y[:1], 47)), (value, y)


def test_more_values_than_registers(context):
    """All operands are used again at the end: the group is split into shorter ones."""
    def build(graph, *operands):
        sums = [graph.node("add", operands[2 * i], operands[2 * i + 1]) for i in range(14)]
        back = sums[0]
        for value in (*sums[1:], *operands):
            back = graph.node("sub", back, value)
        return [back]
    check(context, build, draw("f32", *[[777]] * 30, seed=1))


FORKED = """
import os, sys
sys.path[:0] = sys.argv[1:]
import numpy as np
import keel_abi
from regions import as_call

def plan(context, second):
    x = np.arange(1, 100, dtype=np.float32)
    return as_call(context, lambda g, a: [g.node(second, g.node("mul", a, a), a)], [x], []), x

context = keel_abi.Context()
plan(context, "add")[0].run(plan(context, "add")[1])
child_has, parent_has = os.pipe(), os.pipe()
if child := os.fork():
    os.read(child_has[0], 1)  # the child has generated its code; this process would use the same address
    p, x = plan(context, "maximum")
    assert np.array_equal(np.array(p.run(x)[0]), np.maximum(x * x, x))
    os.write(parent_has[1], b"x")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
p, x = plan(context, "sub")
os.write(child_has[1], b"x")
os.read(parent_has[0], 1)
os._exit(0 if np.array_equal(np.array(p.run(x)[0]), x * x - x) else 3)
"""


def test_code_of_a_forked_child_and_of_its_parent(context):
    done = subprocess.run([sys.executable, "-c", FORKED, *sys.path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
