"""A reduction fused with the elementwise ops before it in one launch of the cpu device, and reductions alone, with one thread and
two, against the same nodes run separately with one thread, bit by bit.

Some dims and rows slightly exceed a tile (1024 elements), a block of rows (16), the largest intermediate buffer, or the threshold
for a second thread.
"""
import sys
from pathlib import Path

import keel_abi
import numpy as np
import pytest
from regions import as_call, as_nodes

sys.path.append(str(Path(__file__).resolve().parents[1] / "passes"))
from operands import operand, same_bits  # noqa: E402

OPS = ["reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min"]
DTYPES = ["f32", "f64", "f16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
LAYOUTS = [([n], [0]) for n in (1, 3, 1023, 1025, 9001, 300_000, 0)] \
    + [([40, 300], [1]), ([40, 300], [0, 1]), ([2, 70_000], [1]), ([5, 9001], [1]), ([500, 3], [1]), ([7, 0], [1])] \
    + [([n, 40], [0]) for n in (1, 15, 16, 17, 5000)] + [([90, 513], [0]), ([9000, 3], [0]), ([0, 5], [0]), ([5, 0], [0])] \
    + [([3, 40, 300], [1]), ([4, 1, 70, 5], [0, 2]), ([2, 33, 2, 64], [0, 1])]
FUSED = "map and reduction"


@pytest.fixture(scope="module", params=[1, 2], ids=["1 thread", "2 threads"])
def threads(request):
    return keel_abi.Context(threads=request.param)


def impls(plan, inputs):
    return [step["impl"] for step in plan.report(*inputs)["launches"]]


ONE_THREAD = keel_abi.Context(threads=1)


def one_by_one(build, inputs):
    alone = as_nodes(ONE_THREAD, build, inputs, [], "cpu", level=0)
    assert FUSED not in impls(alone, inputs)
    return [np.array(a) for a in alone.run(*inputs)]


def same(got, wanted):
    for a, b in zip(got, wanted, strict=True):
        assert same_bits(np.array(a), b), (np.array(a), b)


def check(context, build, inputs, fused=True, dims=None):
    """A call of all nodes is one launch and gives the same bits as separate runs."""
    plan = as_call(context, build, inputs, [], dims=dims)
    assert (impls(plan, inputs) == [FUSED]) == fused, impls(plan, inputs)
    wanted = one_by_one(build, inputs)
    same(plan.run(*inputs), wanted)
    same(as_nodes(context, build, inputs, [], "cpu", level=0).run(*inputs), wanted)


def draw(dtype, *shapes, seed=1, special=True):
    random = np.random.default_rng(seed)
    return [operand(dtype, shape, random, special) for shape in shapes]


def taken(dtype, op, shape, axes):
    """Columns of f64 (and products of floats, which use f64) have an order that cannot be divided."""
    last = max(d for d, n in enumerate(shape) if n != 1 or d == 0)
    in_order = op == "reduce_prod" and dtype[0] == "f" or dtype == "f64" and op in ("reduce_sum", "reduce_mean")
    return any(n != 1 for d, n in enumerate(shape) if d in axes) and (last in axes or not in_order)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_bits(threads, op, dtype):
    for shape, axes in LAYOUTS:
        for special in (False, True):
            inputs = draw(dtype, shape, shape, seed=len(shape), special=special)
            check(threads, lambda g, x, y: g.node(op, g.node("sub", g.node("mul", x, y), x), axes=axes), inputs,
                  taken(dtype, op, shape, axes))


@pytest.mark.parametrize("op", ["reduce_max", "reduce_min"])
def test_bools(threads, op):
    for shape, axes in LAYOUTS:
        inputs = draw("f32", shape, shape)
        check(threads, lambda g, x, y: g.node(op, g.node("less", x, y), axes=axes), inputs,
              taken("bool", op, shape, axes))


@pytest.mark.parametrize("chain", [["exp"], ["abs"], ["square", "tanh"], ["neg", "exp", "sqrt", "is_nan", "logical_not"]], ids=str)
def test_chains(threads, chain):
    """One op, machine code, loops over tiles, other intermediate dtypes."""
    def build(graph, x):
        for op in chain:
            x = graph.node(op, x)
        return graph.node("reduce_max", x, axes=axes, keep=True)
    for shape, axes in LAYOUTS:
        check(threads, build, draw("f32", shape), taken("f32", "reduce_max", shape, axes))


@pytest.mark.parametrize("shapes", [([40, 300], [300], [40, 1]), ([40, 300], [40, 1], []), ([70, 5, 9], [5, 1], [9]),
                                    ([3, 1, 2000], [1, 4, 1], [2000]), ([600, 700], [600, 700], [700])], ids=str)
@pytest.mark.parametrize("symbolic", [False, True])
def test_broadcast(threads, shapes, symbolic):
    inputs = draw("f32", *shapes, special=False)
    rank = len(np.broadcast_shapes(*shapes))
    def dims(module):
        return [[module.dim("n") if i == 0 and d == shapes[0][0] else d for i, d in enumerate(s)] for s in shapes]
    for axes in (list(range(rank)), [rank - 1], [0], list(range(rank - 1))):
        def build(graph, a, b, c):
            total = graph.node("add", graph.node("mul", a, b), c)
            return graph.node("reduce_sum", graph.node("sub", total, graph.node("mul", graph.node("exp", c), a)), axes=axes)
        check(threads, build, inputs, dims=dims if symbolic else None)


def test_a_plan_for_all_sizes(threads):
    """One plan, run with dims of 0, 1 and more."""
    def build(graph, x, y):
        return graph.node("reduce_sum", graph.node("mul", x, y), axes=axes)
    for axes in ([0], [1], [0, 1]):
        plan = as_call(threads, build, draw("f32", [4, 4], [4]), [], dims=lambda m: [[m.dim("a"), m.dim("b")], [m.dim("b")]])
        for shape in ([0, 3], [3, 0], [1, 1], [1, 700], [700, 1], [300, 1000], [17, 3]):
            inputs = draw("f32", shape, shape[1:], special=False)
            same(plan.run(*inputs), one_by_one(build, inputs))


@pytest.mark.parametrize("make", [as_call, as_nodes], ids=["call", "nodes"])
def test_dims_that_do_not_fit_are_an_error(threads, make):
    """The result's dims do not determine whether the operands' dims fit."""
    x, y = draw("f32", [3000], [3000])
    plan = make(threads, lambda g, a, b: g.node("reduce_sum", g.node("mul", a, b), axes=[0]), [x, y], [], "cpu",
                dims=lambda m: [[m.dim("a")], [m.dim("b")]])
    assert impls(plan, [x, y]) == [FUSED]
    with pytest.raises(keel_abi.KeelError, match="3000"):
        plan.run(x, y[:10])


def exp_of_product(graph, x, y):
    return graph.node("exp", graph.node("mul", x, y))


def two_readers(graph, x, y):
    a = exp_of_product(graph, x, y)
    return [graph.node("reduce_sum", a, axes=[1]), graph.node("reduce_max", a, axes=[1])]


def fetched(graph, x, y):
    a = exp_of_product(graph, x, y)
    return [a, graph.node("reduce_sum", a, axes=[1])]


@pytest.mark.parametrize("build, wanted", [
    (lambda g, x, y: g.node("reduce_mean", g.node("square", g.node("sub", x, y)), axes=[0, 1, 2]), [FUSED]),
    (lambda g, x, y: g.node("reduce_sum", g.node("mul", x, y), axes=[0, 1]), [FUSED]),
    (lambda g, x, y: g.node("reduce_sum", exp_of_product(g, x, y), axes=[0, 2]), ["map in tiles", "loop sum"]),
    (two_readers, ["map in tiles", "loop sum", "loop max"]),
    (fetched, ["map in tiles", "loop sum"])], ids=["loss", "bias", "first and last", "two readers", "fetched"])
def test_what_the_pass_makes_of_it(threads, build, wanted):
    inputs = draw("f32", [40, 3, 10], [40, 3, 10], special=False)
    plan = as_nodes(threads, build, inputs, [], "cpu")
    assert impls(plan, inputs) == wanted
    same(plan.run(*inputs), one_by_one(build, inputs))
