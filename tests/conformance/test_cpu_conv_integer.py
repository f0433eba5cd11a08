"""conv_integer on every device: 8-bit integers of both signs, zero points, strides, dilation, padding, groups, one to three image dims,
sizes 0 and 1. Oracle: NumPy in i64, wrapped to i32. On cpu, constant weights are served by oneDNN, where its sums are exact, or by own loops."""
from itertools import product

import keel_abi
import numpy as np
import pytest
from regions import as_nodes
from test_cpu_int8 import SIGNS, drawn
from test_cpu_isa import call_in_each_class
from tested_devices import DEVICES

# image, weights, attributes
CASES = [
    ((1, 3, 7, 7), (5, 3, 3, 3), {}),
    ((2, 16, 9, 10), (32, 16, 1, 1), {}),
    ((1, 64, 14, 14), (64, 64, 3, 3), {"lo": [1, 1], "hi": [1, 1]}),
    ((1, 8, 15, 9), (24, 8, 3, 2), {"stride": [2, 3], "lo": [1, 0], "hi": [2, 1]}),
    ((2, 12, 8, 8), (12, 1, 3, 3), {"groups": 12, "lo": [1, 1], "hi": [1, 1]}),
    ((1, 12, 8, 8), (18, 4, 3, 3), {"groups": 3, "dil": [2, 1]}),
    ((2, 7, 9, 5), (70, 7, 1, 1), {}),
    ((1, 6, 9, 8), (6, 1, 3, 2), {"groups": 6, "dil": [1, 2], "stride": [2, 1], "lo": [2, 1], "hi": [0, 1]}),
    ((1, 33, 5, 4), (40, 33, 3, 4), {"dil": [2, 1], "lo": [2, 3], "hi": [2, 0]}),
    ((3, 5, 20), (4, 5, 4), {"stride": [2], "dil": [3], "hi": [4]}),
    ((1, 4, 5, 6, 7), (3, 4, 2, 3, 2), {"lo": [1, 0, 1], "hi": [0, 1, 0]}),
    ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    ((0, 3, 7, 7), (5, 3, 3, 3), {}),
    ((2, 0, 4, 4), (3, 0, 1, 1), {}),
]


def wanted(x, w, zx, zw, attrs):
    """The sums of products, place by place."""
    dims = x.ndim - 2
    stride, dil = attrs.get("stride", [1] * dims), attrs.get("dil", [1] * dims)
    lo, hi, groups = attrs.get("lo", [0] * dims), attrs.get("hi", [0] * dims), attrs.get("groups", 1)
    x = np.pad(x.astype(np.int64) - zx, [(0, 0), (0, 0), *zip(lo, hi)])
    w = w.astype(np.int64) - zw
    window = w.shape[2:]
    out = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(x.shape[2:], dil, window, stride)]
    y = np.zeros((x.shape[0], w.shape[0], *out), np.int64)
    inside, outside = w.shape[1], w.shape[0] // groups
    for cell in product(*map(range, window)):
        seen = x[(..., *(slice(c * d, c * d + (o - 1) * s + 1, s) for c, d, o, s in zip(cell, dil, out, stride)))]
        for g in range(groups):
            part, of = slice(g * outside, (g + 1) * outside), slice(g * inside, (g + 1) * inside)
            y[:, part] += np.einsum("nc...,oc->no...", seen[:, of], w[(part, slice(None), *cell)])
    return y.astype(np.int32)


def computed(x, w, zx, zw, attrs, constants=True, threads=2, device="cpu"):
    given = [x, w, *(np.asarray(z) for z in (zx, zw) if z is not None)]
    inputs, fixed = (given[:1], given[1:]) if constants else (given, [])

    def write(g, x, w, *zeros):
        zeros = iter(zeros)
        operands = [next(zeros) if z is not None else keel_abi.NO_VALUE for z in (zx, zw)]
        return g.node("conv_integer", x, w, *operands[:2 if zw is not None else 1 if zx is not None else 0], **attrs)
    plan = as_nodes(keel_abi.Context(threads=threads), write, inputs, fixed, device=device)
    return np.array(plan.run(*inputs)[0]), [launch["impl"] for launch in plan.report(*inputs)["launches"]]


def zero_points(rng, kind, x, w):
    if kind == "none":
        return None, None
    zx = None if kind in ("weights", "zero weights") else drawn(rng, x.dtype, ())
    if kind == "zero weights":
        return zx, np.zeros((w.shape[0], *[1] * (w.ndim - 1)), w.dtype)
    if kind == "shifted":  # u8 weights around 128, as quantisers write them
        return zx, (np.uint8(128) if w.dtype == np.uint8 else None)
    return zx, drawn(rng, w.dtype, (w.shape[0], *[1] * (w.ndim - 1)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("zeros", ["none", "shifted", "zero weights", "weights", "both"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]} by {c[1]}")
@pytest.mark.parametrize("signs", SIGNS, ids=lambda s: " by ".join(np.dtype(t).name for t in s))
def test_convolutions(signs, case, zeros, device):
    rng = np.random.default_rng(7)
    x, w = (drawn(rng, t, s) for t, s in zip(signs, case[:2]))
    zx, zw = zero_points(rng, zeros, x, w)
    exact = wanted(x, w, 0 if zx is None else zx.astype(int), 0 if zw is None else zw.astype(int), case[2])
    for constants in (True, False):
        got, _ = computed(x, w, zx, zw, case[2], constants, device=device)
        assert got.dtype == np.int32 and np.array_equal(got, exact)


@pytest.mark.parametrize("zeros", ["none", "shifted", "zero weights", "weights", "both"])
def test_constant_weights_need_no_floats(zeros):
    """The op's body computes in f64, for zero points that are no constants."""
    rng = np.random.default_rng(6)
    x, w = drawn(rng, np.uint8, (1, 3, 7, 7)), drawn(rng, np.uint8, (5, 3, 3, 3))
    zx, zw = zero_points(rng, zeros, x, w)
    assert computed(x, w, zx, zw, {})[1] == ["convolution of 8-bit integers"]
    assert zx is None or computed(x, w, zx, zw, {}, constants=False)[1] != ["convolution of 8-bit integers"]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_sums_wrap(threads):
    x, w = np.full((1, 40000, 1, 3), 255, np.uint8), np.full((2, 40000, 1, 1), -128, np.int8)
    got, _ = computed(x, w, None, np.full((2, 1, 1, 1), 127, np.int8), {}, threads=threads)
    assert 40000 * 255 * 255 > 2**31 and np.array_equal(got, wanted(x, w, 0, 127, {}))


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]} by {c[1]}")
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_zero_points_of_each_call(dtype, case):
    """As after dynamic quantisation."""
    rng = np.random.default_rng(11)
    x, w = drawn(rng, dtype, case[0]), drawn(rng, np.int8, case[1])

    def write(g, x, zx, w):
        return g.node("conv_integer", x, w, zx, **case[2])
    zx = drawn(rng, dtype, ())
    plan = as_nodes(keel_abi.Context(threads=2), write, [x, zx], [w], device="cpu")
    assert [launch["impl"] for launch in plan.report(x, zx)["launches"]] in (["convolution of 8-bit integers"], [])
    for zx in (zx, drawn(rng, dtype, ())):
        assert np.array_equal(np.array(plan.run(x, zx)[0]), wanted(x, w, zx.astype(int), 0, case[2]))


EXTREMES = [(127, 127, 0, 0), (-128, -128, 0, 0), (127, 127, 127, 127), (-128, -128, -128, -128), (0, 0, 127, 2), (1, -128, -128, -1)]


def extreme_weights(rng, share, shape):
    """Small weights, and groups of four, consecutive channels of a cell, whose products with 255 exceed 16 bits."""
    w = rng.integers(-40, 40, (*shape[:1], *shape[2:], shape[1]), np.int8)
    groups = w.reshape(-1, 4)
    places = rng.random(len(groups)) < share
    groups[places] = np.asarray(EXTREMES, np.int8)[rng.integers(0, len(EXTREMES), places.sum())]
    return np.ascontiguousarray(np.moveaxis(w, -1, 1))


@pytest.mark.parametrize("share", [0.02, 0.3, 1])
@pytest.mark.parametrize("x_dtype, value", [(np.uint8, 255), (np.int8, 127), (np.int8, -128)])
@pytest.mark.parametrize("case", [
    ((1, 64, 7, 7), (40, 64, 1, 1), {}), ((1, 32, 5, 5), (22, 32, 3, 3), {"lo": [1, 1], "hi": [1, 1]}),
    ((2, 24, 5, 3), (10, 12, 2, 2), {"groups": 2}), ((1, 16, 1, 1), (1, 16, 1, 1), {}),
], ids=lambda c: f"{c[0]} by {c[1]}")
def test_sums_do_not_saturate(case, x_dtype, value, share):
    rng = np.random.default_rng(10)
    x, w = np.full(case[0], value, x_dtype), extreme_weights(rng, share, case[1])
    got, _ = computed(x, w, None, None, case[2])
    assert np.array_equal(got, wanted(x, w, 0, 0, case[2]))


@pytest.mark.parametrize("w", [-128, 127])
def test_extreme_weights_everywhere(w):
    x, w = np.full((1, 64, 9, 9), 255, np.uint8), np.full((16, 64, 3, 3), w, np.int8)
    got, _ = computed(x, w, None, None, {})
    assert np.array_equal(got, wanted(x, w, 0, 0, {}))


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("change, words", [
    (dict(zx=np.zeros(3, np.uint8)), r"zx: \[3\] does not broadcast to x: \[1, 2, 5, 5\]"),
    (dict(zw=np.zeros((4, 1), np.int8)), r"zw: \[4, 1\] does not broadcast to w: \[4, 2, 3, 3\]"),
    (dict(attrs={"groups": 2}), "x has 2 channels but w has 2 in each of 2 groups"),
    (dict(w=np.zeros((4, 2, 7, 3), np.int8)), "the window is larger than the padded image"),
    (dict(w=np.zeros((4, 2, 3), np.int8)), "the window has 1 dims but the image has 2"),
])
def test_bad_input(device, change, words):
    given = {"x": np.zeros((1, 2, 5, 5), np.uint8), "w": np.zeros((4, 2, 3, 3), np.int8), "zx": None, "zw": None, "attrs": {}} | change
    with pytest.raises(keel_abi.KeelError, match=words):
        computed(**given, device=device)


def test_each_class_of_processor():
    call_in_each_class("test_cpu_conv_integer", "all_convolutions")


def all_convolutions():
    rng = np.random.default_rng(8)
    for signs in SIGNS:
        for x_shape, w_shape, attrs in CASES:
            x, w = (drawn(rng, t, s) for t, s in zip(signs, (x_shape, w_shape)))
            zx, zw = zero_points(rng, "shifted", x, w)
            got, _ = computed(x, w, zx, zw, attrs)
            assert np.array_equal(got, wanted(x, w, zx.astype(int), 0 if zw is None else 128, attrs)), (signs, x_shape)


def test_long_work_in_parts():
    """Images so large that one primitive would delay a cancellation: as strips of rows, each of which is short."""
    rng = np.random.default_rng(9)
    x, w, zx = drawn(rng, np.uint8, (1, 64, 480, 200)), drawn(rng, np.int8, (96, 64, 3, 3)), np.asarray(np.uint8(77))
    whole, _ = computed(x, w, zx, None, {"stride": [2, 1], "lo": [1, 1], "hi": [1, 1]})
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=77)
    strip = 20
    for first in range(0, whole.shape[2], strip):
        rows = padded[:, :, 2 * first:2 * (first + strip) + 1]
        part, _ = computed(np.ascontiguousarray(rows), w, zx, None, {"stride": [2, 1]})
        assert np.array_equal(part, whole[:, :, first:first + strip])
