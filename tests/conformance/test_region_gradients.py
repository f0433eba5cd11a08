"""Training in regions of the cpu device: gradients of convolution, relu, max pooling and bias as one `call`, against the
reference device's nodes run separately.

Ops that only move and compare numbers (pools, relu) must give the bits of single nodes.
"""
import os
import random
import subprocess
import sys
from pathlib import Path

import keel_abi
import numpy as np
import pytest
from regions import as_call, as_nodes, assert_close
from test_nan import specials
from test_pool_index import CASES as POOLS
from test_regions import draw_window

HERE = Path(__file__).resolve().parent
ZERO = np.float32(0)


def draw(rng, shape):
    return np.asarray(rng.standard_normal(shape), np.float32)


def planned(context, build, inputs, **options):
    """Returns a plan for the cpu device whose convolutions and pools are all in regions."""
    plan = as_nodes(context, build, inputs, [], device="cpu", **options)
    impls = [step["impl"] for step in plan.report(*inputs)["launches"]]
    assert "oneDNN region" in impls, impls
    assert not [i for i in impls if "conv" in i or "pool" in i or "scatter" in i], impls
    return plan


def run_both(context, build, inputs):
    """Returns (results of the cpu device, results of the reference)."""
    plan = planned(context, build, inputs)
    first = [np.array(y) for y in plan.run(*inputs)]
    again = plan.run(*inputs)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, again)), "a second run differs"
    return first, as_nodes(context, build, inputs, []).run(*inputs)


def relu_gradient(g, y, dy):
    zero = g.constant(ZERO)
    return g.node("select", g.node("greater", y, zero), dy, zero)


@pytest.mark.parametrize("seed", range(60))
def test_convolution_of_any_geometry(context, seed):
    """The gradients of relu, a convolution and its bias."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    size, kernel, attrs, out = draw_window(rng, rng.choice([1, 2, 2, 2, 3]))
    batch, groups = rng.choice([1, 2, 3, 8]), rng.choice([1, 1, 1, 2, 3, 8, 16])
    channels, made = groups * rng.choice([1, 1, 2, 3, 7, 16]), groups * rng.choice([1, 2, 5, 16])
    del attrs["hi"]
    x, w = draw(numbers, (batch, channels, *size)), draw(numbers, (made, channels // groups, *kernel))
    y, dy = (draw(numbers, (batch, made, *out)) for _ in range(2))
    fixed = w

    def build(g, x, y, dy, w):
        d = relu_gradient(g, y, dy)
        dx = g.node("conv_grad_x", d, w if seed % 3 else g.constant(fixed), dims=[batch, channels, *size], groups=groups, **attrs)
        dw = g.node("conv_grad_w", d, x, dims=[made, channels // groups, *kernel], groups=groups, **attrs)
        bias = g.node("sum_to", d, dims=[made] + [1] * len(size))
        return relu_gradient(g, x, dx), dw, bias, g.node("reduce_sum", dx, axes=[0, *range(2, 2 + len(size))])
    assert_close(*run_both(context, build, [x, y, dy, w]), 1e-4)


def net(channels, pool, batch):
    """Returns loss and gradients of two convolutions and the ops between them; weights scaled to keep the numbers near 1."""
    def build(g, x, w1, b1, w2, w3):
        v = g.node("relu", g.node("add", g.node("conv", x, w1, lo=[1, 1], hi=[1, 1]), b1))
        v = g.node("max_pool", v, **pool)
        u = g.node("relu", g.node("conv", v, w2, lo=[1, 1], hi=[1, 1]))
        v = g.node("reshape", g.node("max_pool", g.node("add", u, v), window=[2, 2], stride=[2, 2]), to=[batch, -1])
        v = g.node("relu", g.node("matmul", v, w3))
        loss = g.node("reduce_sum", g.node("mul", v, g.node("sigmoid", v)), axes=[0, 1])
        return [loss, *g.gradient([loss], [x, w1, b1, w2, w3])]
    return build


def net_operands(channels, pool, batch):
    numbers, image = np.random.default_rng(channels), [14, 12]
    lo, hi = pool.get("lo", [0, 0]), pool.get("hi", [0, 0])
    out = [(i + a + b - k) // s + 1 for i, a, b, k, s in zip(image, lo, hi, pool["window"], pool["stride"])]
    flat = channels * (out[0] // 2) * (out[1] // 2)
    return [draw(numbers, (batch, 3, *image)), draw(numbers, (channels, 3, 3, 3)) * np.float32(0.2),
            draw(numbers, (channels, 1, 1)), draw(numbers, (channels, channels, 3, 3)) * np.float32((9 * channels) ** -0.5),
            draw(numbers, (flat, 24)) * np.float32(flat ** -0.5)]


NETS = {"tiles": {"window": [2, 2], "stride": [2, 2]}, "overlap": {"window": [3, 3], "stride": [2, 2]},
        "padded": {"window": [3, 3], "stride": [2, 2], "lo": [1, 1], "hi": [1, 1]}, "rest": {"window": [3, 2], "stride": [3, 2]}}


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("channels", [16, 19, 40])
@pytest.mark.parametrize("pool", NETS)
def test_step_of_training(context, pool, channels, batch):
    operands = net_operands(channels, NETS[pool], batch)
    assert_close(*run_both(context, net(channels, NETS[pool], batch), operands), 1e-4)


EVERY_NET = """
import sys
sys.path[:0] = {paths!r}
import keel_abi
import test_region_gradients as t
for pool in t.NETS:
    t.test_step_of_training(keel_abi.Context(), pool, 19, 5)
"""


@pytest.mark.parametrize("isa", ["avx2", "sse4"])
def test_step_of_training_on_older_processors(isa):
    code = EVERY_NET.format(paths=[str(HERE), str(HERE.parent / "python")])
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "KEEL_CPU_ISA": isa}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("case", POOLS, ids=str)
def test_max_pool_sends_back(context, case, special, masked):
    image, window, stride, dilation, low, high = case
    if max(low) > 0 and len(image) != 2:
        pytest.skip("one padded case will do")
    numbers = np.random.default_rng(len(image))
    shape = (2, 21, *image)
    x = numbers.integers(-3, 4, shape).astype(np.float32)  # many ties
    if special:
        x[numbers.random(x.shape) < 0.2] = np.nan
        x[numbers.random(x.shape) < 0.2] = -np.inf
    out = [(d + a + b - g * (k - 1) - 1) // s + 1 for d, k, s, g, a, b in zip(image, window, stride, dilation, low, high)]
    dy = specials((2, 21, *out)) if special else draw(numbers, (2, 21, *out))
    attrs = {"window": list(window), "stride": list(stride), "dil": list(dilation), "lo": list(low), "hi": list(high)}

    def build(g, x, dy, w, zero, none, size):
        """In the form of max_pool's gradient; padding has its own index."""
        at = g.node("max_pool_index", x, **attrs)
        if padded:
            at = g.node("select", g.node("less", at, none), size, at)
        d = g.node("scatter_add", g.node("reshape", at, to=[-1]), g.node("reshape", dy, to=[-1]), size=x_size + padded)
        if padded:
            d = g.node("slice", d, start=[0], stop=[x_size])
        d = g.node("reshape", d, to=list(shape))
        if masked:
            d = g.node("select", g.node("greater", x, zero), d, zero)
        return d, g.node("conv_grad_w", d, w, dims=[21, 21, *[1] * len(image)])
    padded, x_size = max(low) > 0, x.size
    constants = [np.asarray(ZERO), np.asarray(0), np.asarray(x_size)]
    inputs = [x, dy, x]
    plan = as_call(context, build, inputs, constants)
    assert [step["impl"] for step in plan.report(*inputs)["launches"]] == ["oneDNN region"]
    got = np.array(plan.run(*inputs)[0])
    nodes = {d: as_nodes(context, build, inputs, constants, device=d, level=0).run(*inputs)[0] for d in ("cpu", "reference")}
    np.testing.assert_array_equal(got, nodes["cpu"])
    np.testing.assert_array_equal(np.signbit(got), np.signbit(nodes["cpu"]))
    if not special:  # the reference adds in another order, where other sums are infinite
        np.testing.assert_allclose(got, nodes["reference"], rtol=1e-4, atol=1e-5)


def pool_gradient(g, x, dy, of=None, twice=False):
    attrs = {"window": [2, 2], "stride": [2, 2]}
    at = g.node("max_pool_index", x, **attrs)
    flat = g.node("reshape", at, to=[-1])
    d = g.node("scatter_add", flat, g.node("reshape", dy, to=[-1]), size=of or 2 * 16 * 64)
    d = g.node("reshape", d, to=[2, 16, 8, 8] if of is None else [4, 16, 8, 8])
    return (d, g.node("max_pool", x, **attrs), at) if twice else (d,)


NEAR = {
    "greater than 1": lambda g, x, y, dy, p, zero, one: g.node("select", g.node("greater", y, one), dy, zero),
    "else 1": lambda g, x, y, dy, p, zero, one: g.node("select", g.node("greater", y, zero), dy, one),
    "0 greater": lambda g, x, y, dy, p, zero, one: g.node("select", g.node("greater", zero, y), dy, zero),
    "the other way": lambda g, x, y, dy, p, zero, one: g.node("select", g.node("greater", y, zero), zero, dy),
    "mask of channels": lambda g, x, y, dy, p, zero, one: g.node("select", g.node("greater", p, zero), dy, zero),
    "of itself": lambda g, x, y, dy, p, zero, one: g.node("select", g.node("greater", y, zero), y, zero),
    "mask is a result": lambda g, x, y, dy, p, zero, one: [
        m := g.node("greater", y, zero), g.node("select", m, dy, zero), g.node("select", m, y, zero)],
    "index is a result": lambda g, x, y, dy, p, zero, one: pool_gradient(g, x, g.node("max_pool", dy, window=[2, 2], stride=[2, 2]), twice=True),
    "more places": lambda g, x, y, dy, p, zero, one: pool_gradient(g, x, g.node("max_pool", dy, window=[2, 2], stride=[2, 2]), of=4 * 16 * 64),
    "mask of another pool": lambda g, x, y, dy, p, zero, one: g.node(
        "select", g.node("greater", y, zero), pool_gradient(g, x, g.node("max_pool", dy, window=[2, 2], stride=[2, 2]))[0], zero),
}


@pytest.mark.parametrize("name", NEAR)
def test_what_is_only_near(context, name):
    """Nodes similar to those in the gradients of relu and max pooling, but different."""
    numbers = np.random.default_rng(2)
    x, y, dy = (draw(numbers, (2, 16, 8, 8)) for _ in range(3))
    p, w = draw(numbers, (16, 1, 1)), draw(numbers, (16, 16, 3, 3))

    def build(g, x, y, dy, p, w, zero, one):
        made = NEAR[name](g, x, g.node("conv", y, w, lo=[1, 1], hi=[1, 1]), dy, p, zero, one)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        return [*made, g.node("conv_grad_w", made[0], x, dims=[16, 16, 1, 1])] if name not in ("mask is a result", "more places") else made
    inputs, constants = [x, y, dy, p], [w, np.asarray(ZERO), np.asarray(np.float32(1))]
    plan = as_call(context, build, inputs, constants)
    assert [step["impl"] for step in plan.report(*inputs)["launches"]] == ["oneDNN region"]
    got, wanted = plan.run(*inputs), as_nodes(context, build, inputs, constants).run(*inputs)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-3)


def test_relu_sends_back_special_numbers(context):
    y, dy = specials((2, 24, 9, 9)), specials((2, 24, 9, 9), 7)
    w = draw(np.random.default_rng(0), (24, 16, 1, 1))

    def build(g, y, dy, w):
        return relu_gradient(g, y, dy), g.node("conv_grad_x", relu_gradient(g, y, dy), w, dims=[2, 16, 9, 9])
    (got, _), (wanted, _) = run_both(context, build, [y, dy, w])
    np.testing.assert_array_equal(got, wanted)


def test_nan_and_infinity_arrive(context):
    """Only one image has them; the others stay finite."""
    operands = net_operands(16, NETS["tiles"], 5)
    operands[0][1, :, 3, 4], operands[0][3, 0, 5, 5] = np.nan, np.inf
    got, wanted = run_both(context, net(16, NETS["tiles"], 5), operands)
    for a, b in zip(got, wanted):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("threads", [2, 3])
def test_other_numbers_of_threads(threads):
    operands = net_operands(40, NETS["overlap"], 8)
    plans = [planned(keel_abi.Context(threads=n), net(40, NETS["overlap"], 8), operands) for n in (1, threads)]
    one, more = ([np.array(y) for y in p.run(*operands)] for p in plans)
    assert_close(more, one, 1e-5)


def test_one_plan_serves_every_batch(context):
    numbers = np.random.default_rng(3)
    w, b = draw(numbers, (32, 16, 3, 3)), draw(numbers, (32, 1, 1))
    module = context.module()
    g = module.graph("main")
    x, kernel, bias = g.param("x", np.float32, [module.dim("n"), 16, 9, 8]), g.param("w", np.float32, w.shape), g.param("b", np.float32, b.shape)

    def build(g, x, kernel, bias):
        v = g.node("relu", g.node("add", g.node("conv", x, kernel), bias))
        return g.gradient([g.node("mul", v, v)], [kernel, bias])
    for i, value in enumerate(build(g, x, kernel, bias)):
        g.result(f"y{i}", value)
    module.entry("main", g)
    plan = module.session("cpu").prepare()
    for batch in (1, 7, 0, 2):
        x = draw(numbers, (batch, 16, 9, 8))
        assert "oneDNN region" in [step["impl"] for step in plan.report(x, w, b)["launches"]]
        assert_close(plan.run(x, w, b), as_nodes(context, build, [x, w, b], []).run(x, w, b), 1e-4)


@pytest.mark.parametrize("images, channels, made", [(60, 64, 48), (3, 32, 32)])
def test_in_parts(context, images, channels, made):
    """More work than is done between two checks for cancellation: by images, or with an image that exceeds it alone."""
    numbers = np.random.default_rng(1)
    size = [62, 50] if images > 3 else [301, 400]
    x, dy = draw(numbers, (images, channels, *size)), draw(numbers, (images, made, *size))
    w = draw(numbers, (made, channels, 3, 3))

    def build(g, x, dy, w):
        d = relu_gradient(g, dy, dy)
        return (g.node("conv_grad_x", d, w, dims=list(x_dims), lo=[1, 1]),
                g.node("conv_grad_w", d, x, dims=list(w_dims), lo=[1, 1]))
    x_dims, w_dims = x.shape, w.shape
    plan = as_nodes(context, build, [x, dy, w], [], device="cpu")
    assert "oneDNN region" in [step["impl"] for step in plan.report(x, dy, w)["launches"]]
    got = [np.array(y) for y in plan.run(x, dy, w)]
    wide = [a.astype(np.float64) for a in (x, np.maximum(dy, 0), w)]

    def plain(g, x, d, w):
        return (g.node("conv_grad_x", d, w, dims=list(x_dims), lo=[1, 1]), g.node("conv_grad_w", d, x, dims=list(w_dims), lo=[1, 1]))
    wanted = as_nodes(context, plain, wide, [], device="cpu").run(*wide)
    for a, b in zip(got, wanted):
        assert np.abs(a - b).max() <= 2e-5 * np.abs(b).max()
