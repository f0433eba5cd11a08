"""Convolutions whose weights (or for conv_grad_w: gradients) are infinite or NaN: padding adds nothing, on each device, algorithm
and instruction set. The oracle is NumPy, which sums only over existing pairs."""
import itertools

import numpy as np
import pytest
from regions import as_call, as_nodes

# images, channels of a group in and out, groups, image, window, stride, dilation, padding before and after
SHAPES = [(2, 3, 16, 1, (9, 8), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)), (1, 32, 32, 1, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
          (2, 1, 1, 16, (9, 17), (5, 3), (2, 2), (1, 1), (4, 0), (4, 2)), (1, 8, 8, 1, (12, 9), (3, 3), (2, 1), (2, 1), (2, 1), (1, 0)),
          (2, 16, 8, 1, (13, 18), (3, 5), (2, 1), (2, 2), (1, 2), (4, 3)), (1, 4, 32, 2, (20,), (5,), (1,), (1,), (2,), (2,)),
          (1, 3, 8, 1, (5, 6, 7), (3, 3, 3), (1, 1, 2), (1, 1, 1), (1, 0, 1), (1, 2, 1)), (1, 5, 7, 1, (6, 6), (1, 1), (1, 1), (1, 1), (1, 0), (0, 1))]
CASES = [(shape, np.float32) for shape in SHAPES] + [(SHAPES[3], np.float64), (SHAPES[6], np.float64), (SHAPES[0], np.float16)]


def pairs(shape):
    """For each cell of a window: its index, and the slices of result and image that meet there."""
    *_, image, window, stride, dil, lo, hi = shape
    out = [(s + a + b - d * (k - 1) - 1) // q + 1 for s, a, b, d, k, q in zip(image, lo, hi, dil, window, stride)]
    for cell in itertools.product(*map(range, window)):
        at = [(k * d - a, q, n, size) for k, d, a, q, n, size in zip(cell, dil, lo, stride, out, image)]
        first = [max(0, -(start // q)) for start, q, *_ in at]
        last = [min(n, (size - 1 - start) // q + 1) for start, q, n, size in at]
        if all(a < b for a, b in zip(first, last)):
            yield (cell, tuple(slice(a, b) for a, b in zip(first, last)),
                   tuple(slice(start + a * q, start + (b - 1) * q + 1, q) for (start, q, *_), a, b in zip(at, first, last)))


def oracle(shape, x, w, y, op):
    """The result of op for y = conv(x, w). The computed operand is passed as its dims."""
    n, g, o, groups, *_ = shape
    x, w, y = (a if isinstance(a, tuple) else a.astype(np.float64) for a in (x, w, y))
    made = np.zeros({"conv": y, "conv_grad_x": x, "conv_grad_w": w}[op], np.float64)
    with np.errstate(all="ignore"):
        for group in range(groups):
            c, m = slice(group * g, (group + 1) * g), slice(group * o, (group + 1) * o)
            for cell, places, cells in pairs(shape):
                xs, ys, ws = (slice(None), c, *cells), (slice(None), m, *places), (m, slice(None), *cell)
                if op == "conv":
                    made[ys] += np.einsum("oc,nc...->no...", w[ws], x[xs])
                elif op == "conv_grad_x":
                    made[xs] += np.einsum("oc,no...->nc...", w[ws], y[ys])
                else:
                    made[ws] += np.einsum("nop,ncp->oc", *(a.reshape(*a.shape[:2], -1) for a in (y[ys], x[xs])))
    return made


def spoilt(rng, a):
    a = a.copy()
    for value in (np.inf, -np.inf, np.nan):
        a.flat[rng.integers(a.size)] = value
    return a


def kinds(a):
    return np.select([np.isnan(a), np.isposinf(a), np.isneginf(a)], [1, 2, 3], 0)


@pytest.mark.parametrize("shape, dtype", CASES, ids=str)
def test_padding_adds_nothing(context, shape, dtype):
    n, g, o, groups, image, window, stride, dil, lo, hi = shape
    rng = np.random.default_rng(len(str(shape)))
    out = [(s + a + b - d * (k - 1) - 1) // q + 1 for s, a, b, d, k, q in zip(image, lo, hi, dil, window, stride)]
    dims = {"x": (n, g * groups, *image), "w": (o * groups, g, *window), "y": (n, o * groups, *out)}
    x, w, y = ((rng.standard_normal(d) * 0.25).astype(dtype) for d in dims.values())
    at = {"stride": list(stride), "dil": list(dil), "lo": list(lo), "groups": groups}
    bad_w, bad_y = spoilt(rng, w), spoilt(rng, y)
    cases = {"conv": (lambda f, a, b: f.node("conv", a, b, hi=list(hi), **at), (x, bad_w), (x, bad_w, dims["y"])),
             "conv_grad_x": (lambda f, a, b: f.node("conv_grad_x", a, b, dims=list(dims["x"]), **at), (y, bad_w), (dims["x"], bad_w, y)),
             "conv_grad_w": (lambda f, a, b: f.node("conv_grad_w", a, b, dims=list(dims["w"]), **at), (bad_y, x), (x, dims["w"], bad_y))}
    for op, (build, (a, b), known) in cases.items():
        wanted = oracle(shape, *known, op)
        relu = kinds(wanted) * (kinds(wanted) != 3)
        for device, make, (inputs, constants) in itertools.product(("cpu", "reference"), (as_nodes, as_call), [([a, b], []), ([a], [b])]):
            got = np.array(make(context, build, inputs, constants, device=device).run(*inputs)[0])
            assert np.array_equal(kinds(got), kinds(wanted)), (op, device, make.__name__, len(constants))
            finite = np.isfinite(wanted)
            bound = 0.02 if dtype == np.float16 else 1e-4
            assert np.allclose(got[finite].astype(float), wanted[finite], rtol=bound, atol=bound)
        then_relu = as_call(context, lambda f, a, b: f.node("relu", build(f, a, b)), [a], [b])
        assert np.array_equal(kinds(np.array(then_relu.run(a)[0])), relu), (op, "relu")
