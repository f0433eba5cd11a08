"""Regions of the cpu device: one `call` for many nodes, against the reference device's nodes run separately.

Start with `Case`, which draws constants and inputs; a test builds a body with them, `check` runs both.
"""
import random

import keel_abi
import numpy as np
import pytest
from regions import as_call, as_nodes, assert_close, cpu_class, run_both

UNARY = ["relu", "gelu", "sigmoid", "tanh", "silu", "exp", "abs", "square", "neg", "leaky_relu", "softplus", "round"]
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum"]


class Case:
    """Operands of a body under construction: the first are fed, the others constant."""

    def __init__(self, seed):
        self.rng, self.random = np.random.default_rng(seed), random.Random(seed)
        self.inputs, self.constants, self.nodes = [], [], []

    def array(self, shape, low=None):
        a = self.rng.standard_normal(shape)
        return np.asarray(a if low is None else np.abs(a) + low, np.float32)

    def feed(self, shape, low=None):
        self.inputs.append(self.array(shape, low))
        return "x", len(self.inputs) - 1

    def constant(self, shape, low=None, scale=1.0):
        self.constants.append(np.asarray(self.array(shape, low) * np.float32(scale)))
        return "c", len(self.constants) - 1

    def any(self, shape, low=None):
        return self.random.choice([self.feed, self.constant])(shape, low)

    def node(self, op, *operands, **attrs):
        self.nodes.append((op, operands, attrs))
        return "n", len(self.nodes) - 1

    def build(self, results):
        def make(graph, *values):
            known = {("x", i): v for i, v in enumerate(values[:len(self.inputs)])}
            known |= {("c", i): v for i, v in enumerate(values[len(self.inputs):])}
            for i, (op, operands, attrs) in enumerate(self.nodes):
                known["n", i] = graph.node(op, *[known[o] for o in operands], **attrs)
            return [known[r] for r in results]
        return make

    def check(self, context, *results, tolerance=2e-5, region=True):
        got, wanted = run_both(context, self.build(results), self.inputs, self.constants, region)
        assert_close(got, wanted, tolerance)

    # ---- pieces
    def conv(self, x, made, channels, kernel, scale=0.3, **attrs):
        return self.node("conv", x, self.constant((made, channels // attrs.get("groups", 1), *kernel), scale=scale), **attrs)

    def elementwise(self, v, shape, axis):
        """One random op after v; operands of every kind that broadcasts."""
        if self.random.random() < 0.45:
            op = self.random.choice(UNARY)
            return self.node(op, self.node("tanh", v) if op in ("exp", "round") else v)
        op = self.random.choice(BINARY)
        channel = [1] * len(shape)
        channel[axis] = shape[axis]
        kinds = [(), (1,), tuple(channel), tuple(shape), tuple(shape[1:]), (1, *shape[1:]), (*shape[:-1], 1)]
        other = self.any(self.random.choice(kinds), 0.5 if op == "div" else None)
        first = op == "div" or self.random.random() < 0.7
        return self.node(op, *((v, other) if first else (other, v)))


def draw_window(rng, dims):
    while True:
        size = [rng.choice([1, 2, 3, 5, 7, 8, 11]) for _ in range(dims)]
        kernel = [rng.choice([1, 1, 2, 3, 3, 5]) for _ in range(dims)]
        attrs = {"stride": [rng.choice([1, 1, 2, 3]) for _ in range(dims)],
                 "dil": [rng.choice([1, 1, 1, 2]) for _ in range(dims)],
                 "lo": [rng.randrange(0, k) for k in kernel], "hi": [rng.randrange(0, k) for k in kernel]}
        reach = [d * (k - 1) + 1 for d, k in zip(attrs["dil"], kernel)]
        if all(s + a + b >= r for s, a, b, r in zip(size, attrs["lo"], attrs["hi"], reach)):
            out = [(s + a + b - r) // t + 1 for s, a, b, r, t in
                   zip(size, attrs["lo"], attrs["hi"], reach, attrs["stride"])]
            return size, kernel, attrs, out


@pytest.mark.parametrize("seed", range(60))
def test_convolution_of_any_geometry_with_any_epilogue(context, seed):
    case, rng = Case(seed), random.Random(seed)
    size, kernel, attrs, out = draw_window(rng, rng.choice([1, 2, 2, 2, 3]))
    batch, groups = rng.choice([1, 1, 2, 3, 8]), rng.choice([1, 1, 1, 2, 3, 8, 16])
    channels, made = groups * rng.choice([1, 1, 2, 3, 7]), groups * rng.choice([1, 2, 5, 16])
    v = case.conv(case.feed((batch, channels, *size)), made, channels, kernel, groups=groups, **attrs)
    for _ in range(rng.randrange(0, 5)):
        v = case.elementwise(v, (batch, made, *out), 1)
    case.check(context, v, tolerance=1e-4)


@pytest.mark.parametrize("seed", range(60))
def test_product_of_any_shape_with_any_epilogue(context, seed):
    case, rng = Case(seed), random.Random(seed)
    m, k, n = (rng.choice([1, 2, 5, 16, 33, 64, 97]) for _ in range(3))
    if seed % 2:  # large enough for oneDNN
        m, k, n = m + 64, k + 64, n + 64
    batch = rng.choice([(), (1,), (2,), (3, 2), (1, 4)])
    ta, tb = rng.random() < 0.25, rng.random() < 0.4
    right = rng.choice([(), (), batch])
    a = case.feed((*batch, *((k, m) if ta else (m, k))))
    b = (case.constant if rng.random() < 0.7 else case.feed)((*right, *((n, k) if tb else (k, n))))
    v = case.node("matmul", a, b, ta=ta, tb=tb)
    v = case.node("mul", v, case.constant((), scale=0.1))
    for _ in range(rng.randrange(0, 5)):
        v = case.elementwise(v, (*batch, m, n), -1)
    # A small product is a launch of its own; without AVX-512 many others are, too.
    is_small = m * k * n * int(np.prod(batch)) <= 256 * 1024
    case.check(context, v, tolerance=2e-4, region=not is_small if is_small or cpu_class(context) in ("avx512", "amx") else None)


@pytest.mark.parametrize("op", [*UNARY, *BINARY])
@pytest.mark.parametrize("before", ["none", "bias", "tanh"])
def test_every_op_follows_both_contractions(context, op, before):
    for anchor in ("conv", "matmul"):
        case = Case(1)
        if anchor == "conv":
            v, shape = case.conv(case.feed((2, 19, 9, 9)), 21, 19, (3, 3), scale=0.1), (1, 21, 1, 1)
        else:
            v, shape = case.node("matmul", case.feed((70, 80)), case.constant((80, 90), scale=0.1)), (90,)
        if before != "none":
            v = case.node("add", v, case.constant(shape)) if before == "bias" else case.node("tanh", v)
        for operand in ("constant", "feed") if op in BINARY else ("none",):
            more = [getattr(case, operand)(shape, 0.5)] if operand != "none" else []
            v = case.node(op, v, *more)
        case.check(context, v, tolerance=1e-4)


@pytest.mark.parametrize("channels", [3, 16, 24, 33])
@pytest.mark.parametrize("batch", [1, 2, 8])
def test_residual_block(context, channels, batch):
    """The addend is an operand, a value used before, or the result of another convolution."""
    case = Case(channels)
    shape = (batch, channels, 10, 7)
    x = case.feed(shape)
    a = case.node("relu", case.conv(x, channels, channels, (3, 3), lo=[1, 1], hi=[1, 1]))
    b = case.conv(a, channels, channels, (3, 3), lo=[1, 1], hi=[1, 1], scale=0.1)
    c = case.node("relu", case.node("add", b, a))
    d = case.node("add", case.conv(c, channels, channels, (1, 1), scale=0.1), x)
    e = case.node("add", case.conv(d, channels, channels, (1, 1), scale=0.1), case.conv(d, channels, channels, (1, 1), scale=0.1))
    case.check(context, e, tolerance=1e-4)


def test_results_that_are_also_used_inside(context):
    case = Case(5)
    a = case.conv(case.feed((2, 16, 8, 8)), 24, 16, (3, 3), lo=[1, 1], hi=[1, 1])
    b = case.node("relu", a)
    c = case.conv(b, 24, 24, (1, 1))
    d = case.node("add", c, b)
    e = case.node("relu", d)
    case.check(context, b, e, a, d, tolerance=1e-4)


def test_a_value_that_is_a_result_twice(context):
    case = Case(6)
    a = case.node("relu", case.conv(case.feed((1, 8, 6, 6)), 16, 8, (3, 3)))
    case.check(context, a, a)


@pytest.mark.parametrize("seed", range(12))
def test_pooling_norm_and_concat_between_convolutions(context, seed):
    case, rng = Case(seed), random.Random(seed)
    channels = rng.choice([8, 16, 17, 48])
    x = case.feed((rng.choice([1, 3]), channels, 13, 12))
    a = case.node("batch_norm", case.conv(x, channels, channels, (3, 3), lo=[1, 1], hi=[1, 1]),
                  *[case.constant((channels,)) for _ in range(3)], case.constant((channels,), 0.5), eps=1e-3)
    a = case.node("relu", a)
    kind, pads = rng.choice(["max_pool", "avg_pool"]), rng.choice([[0, 0], [1, 1]])
    more = {"count_pad": rng.random() < 0.5} if kind == "avg_pool" else {}
    b = case.node(kind, a, window=[3, 3], stride=[rng.choice([1, 2])] * 2, lo=pads, hi=pads, **more)
    norm = [case.any((channels,)) for _ in range(3)] + [case.any((channels,), 0.5)]
    c = case.node("relu", case.node("batch_norm", b, *norm))
    d = case.node("concat", c, b, axis=1)
    e = case.conv(d, 20, 2 * channels, (1, 1))
    f = case.node("reduce_mean", e, axes=[2, 3], keep=rng.random() < 0.5)
    case.check(context, f, d, tolerance=1e-4)


def test_head_of_a_classifier(context):
    case = Case(9)
    x = case.node("relu", case.conv(case.feed((4, 3, 17, 17)), 64, 3, (3, 3), stride=[2, 2]))
    mean = case.node("reduce_mean", x, axes=[2, 3], keep=True)
    flat = case.node("reshape", mean, to=[4, 64])
    y = case.node("add", case.node("matmul", flat, case.constant((64, 1000))), case.constant((1000,)))
    case.check(context, y, tolerance=1e-4)


def test_clamp_of_constant_bounds(context):
    case = Case(10)
    low, high = case.constant(()), case.constant(())
    case.constants[0][...], case.constants[1][...] = 0, 6
    v = case.node("clamp", case.conv(case.feed((1, 8, 9, 9)), 16, 8, (3, 3)), low, high)
    case.check(context, case.node("clamp", case.conv(v, 16, 16, (1, 1)), low, high), tolerance=1e-4)


@pytest.mark.parametrize("shape", [(0, 3, 5, 5), (2, 3, 5, 5)])
def test_no_elements(context, shape):
    case = Case(11)
    v = case.node("relu", case.conv(case.feed(shape), 4, 3, (3, 3)))
    case.check(context, v, case.node("add", v, case.feed((1, 1, 1, 0 if shape[0] else 1))) if not shape[0] else v)


def test_product_without_terms(context):
    case = Case(12)
    v = case.node("matmul", case.feed((64, 0)), case.constant((0, 64)))
    case.check(context, case.node("relu", case.node("add", v, case.constant((64,)))), region=False)


def test_nothing_beside_something(context):
    """A value without elements leaves the others to oneDNN."""
    case = Case(12)
    v = case.node("relu", case.conv(case.feed((2, 16, 9, 9)), 32, 16, (3, 3)))
    none = case.node("matmul", case.feed((64, 0)), case.constant((0, 64)))
    case.check(context, v, case.node("relu", none), tolerance=1e-4)


def test_values_of_other_dtypes_pass_through(context):
    case = Case(13)
    v = case.node("matmul", case.feed((64, 80)), case.constant((80, 96)))
    case.check(context, case.node("arg_max", v, axis=1), case.node("relu", v), tolerance=1e-4)


def test_one_plan_serves_every_batch(context):
    case = Case(14)
    case.feed((7, 80))
    v = case.node("matmul", ("x", 0), case.constant((80, 96)))
    v = case.node("relu", case.node("add", v, case.constant((96,))))
    plan = as_call(context, case.build([v]), case.inputs, case.constants, dims=lambda m: [[m.dim("n"), 80]])
    for rows in (1, 300, 7, 0, 1000):
        x = case.array((rows, 80))
        wanted = as_nodes(context, case.build([v]), [x], case.constants).run(x)
        assert_close(plan.run(x), wanted, 1e-4)


def test_other_numbers_of_threads(context):
    """A region is prepared for a number of threads; every other number gets its own program."""
    case = Case(15)
    v = case.conv(case.feed((2, 16, 14, 14)), 32, 16, (3, 3))
    v = case.node("relu", v)
    answers = []
    for threads in (1, 2, 3):
        with_threads = keel_abi.Context(threads=threads)
        plan = as_call(with_threads, case.build([v]), case.inputs, case.constants)
        answers.append(np.array(plan.run(*case.inputs)[0]))
    assert_close(answers[1:], answers[:1] * 2, 1e-5)


def test_without_a_contraction_the_nodes_run_one_by_one(context):
    case = Case(16)
    v = case.node("lrn", case.feed((2, 4, 5, 5)), size=3)
    plan = as_call(context, case.build([v]), case.inputs, case.constants)
    assert "oneDNN region" not in [s["impl"] for s in plan.report(*case.inputs)["launches"]]
