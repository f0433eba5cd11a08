"""Limits of dtypes on each device: values exact by IEEE 754 and C, and functions with small results. Oracles: NumPy, the C
library's erfc and long double."""
import math

import numpy as np
import pytest
from tested_devices import DEVICES

FLOATS = [np.float16, np.float32, np.float64]


def some(dtype, count=20000):
    """Of all signs and magnitudes."""
    rng = np.random.default_rng(3)
    whole = {2: np.uint16, 4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    bits = rng.integers(0, np.iinfo(whole).max, count, whole, endpoint=True)
    return bits.view(dtype)


def same(got, wanted):
    return got.dtype == wanted.dtype and np.array_equal(got, wanted, equal_nan=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_nearest_is_rounded_once(context, device, dtype):
    a, b = some(dtype), np.roll(some(dtype), 1)
    with np.errstate(all="ignore"):
        for op, operands, wanted in (("sqrt", (abs(a),), np.sqrt(abs(a))), ("reciprocal", (a,), dtype(1) / a), ("div", (a, b), a / b),
                                     ("mul", (a, b), a * b), ("add", (a, b), a + b)):
            assert same(np.array(context.apply(device, op, *operands)), wanted), op
        # A sum of two elements has one right answer, and so has a product of one term.
        near = (b.astype(np.float64) % 1 * abs(a) + a).astype(dtype)
        a, near = (np.where(np.isfinite(a * near) & np.isfinite(a + near), x, dtype(1)) for x in (a, near))
        assert same(np.array(context.apply(device, "reduce_sum", np.stack([a, near]), axes=[0])), a + near)
        product = context.apply(device, "matmul", a.reshape(-1, 1, 1), near.reshape(-1, 1, 1))
        assert same(np.array(product).ravel(), a * near)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_pow_of_special_numbers(context, device, dtype):
    odd = dtype(2.0 ** (np.finfo(dtype).nmant + 1) - 1)
    values = np.array([0.0, 0.5, 1, 1.5, 2, 3, 4, 5, odd, odd + 1, 2.0**40, 2.0**63, 2.0**64, np.finfo(dtype).max, np.finfo(dtype).tiny, np.inf,
                       np.nan]).astype(dtype)
    values = np.concatenate([values, -values, np.nextafter(dtype(1), [dtype(0), dtype(2)])]).astype(dtype)
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        wanted = np.power(a, b)
    got = np.array(context.apply(device, "pow", a, b))
    special = ~np.isfinite(wanted) | (wanted == 0) | (abs(wanted) == 1)
    wrong = special & ~((got == wanted) & (np.signbit(got) == np.signbit(wanted)) | np.isnan(got) & np.isnan(wanted))
    assert not wrong.any(), list(zip(a[wrong], b[wrong], got[wrong], wanted[wrong]))[:4]
    assert np.allclose(got[~special], wanted[~special], rtol=4 * np.finfo(dtype).eps)


ODD = ["sin", "tan", "asin", "atan", "tanh", "erf", "log1p", "sqrt", "floor", "ceil", "round"]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_keep_the_sign_of_zero(context, device, dtype):
    """One element, and more than a vector of them."""
    for op in ODD:
        for n in (1, 67):
            x = np.where(np.arange(n) % 3 == 0, dtype(-0.0), dtype(0))
            got = np.array(context.apply(device, op, x))
            assert got.tobytes() == x.tobytes(), (op, n, got[:4])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_squares_and_cubes(context, device, dtype):
    a = np.concatenate([some(dtype), np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)])
    for exponent in (2, 3):
        with np.errstate(all="ignore"):
            wanted = (a.astype(np.longdouble) ** exponent).astype(dtype)
            got = np.array(context.apply(device, "pow", a, dtype(exponent)))
            near = abs(got.astype(np.longdouble) - wanted.astype(np.longdouble)) <= 2 * abs(np.spacing(wanted))
        assert (near | (got == wanted) | np.isnan(got) & np.isnan(wanted)).all()
        assert (np.signbit(got) == np.signbit(wanted))[~np.isnan(a)].all()


def normal(x):
    """The normal distribution function at x, to 53 digits or more: erfc of the rounded x / sqrt(2), corrected for its rounding.
    """
    high = float(-x * np.sqrt(np.longdouble(0.5)))
    lost = -x * np.sqrt(np.longdouble(0.5)) - np.longdouble(high)
    return (np.longdouble(math.erfc(high)) - 2 / np.sqrt(np.arccos(np.longdouble(-1))) * np.exp(-np.longdouble(high)**2) * lost) / 2


def wide(op, x):
    x = np.longdouble(x)
    if op == "gelu":
        return x * np.array([normal(v) for v in x.ravel()]).reshape(x.shape)
    root = 2 * np.sqrt(2 / np.arccos(np.longdouble(-1)))
    logistic = {"sigmoid": x, "silu": x, "gelu.tanh": root * (x + np.longdouble("0.044715") * x**3)}
    if op == "softplus":
        return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))
    return (1 if op == "sigmoid" else x) / (1 + np.exp(-logistic[op]))


# Units in the last place. The tanh form is a function of 1.6 x + 0.07 x^3, whose rounding is amplified by its magnitude.
BOUNDS = {"sigmoid": 3, "silu": 4, "softplus": 3, "gelu": 8, "gelu.tanh": lambda x: 4 + 3 * abs(1.6 * x + 0.0714 * x**3)}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", BOUNDS)
def test_small_results_keep_their_digits(context, device, dtype, op):
    ends = {np.float16: 12, np.float32: 104, np.float64: 700}[dtype]  # f64: no denormals
    ends = min(ends, 36) if op == "gelu" else min(ends, 20) if op == "gelu.tanh" else ends
    x = np.concatenate([np.linspace(-ends, ends, 4001), [-88.8, -91, -5.5, -4, -1.5, 1e-4, -1e-4]]).astype(dtype)
    if device == "reference" and op in ("silu", "softplus"):
        x = x[x > -ends / 2]  # bodies of several roundings, some of denormals
    name, attrs = (op.split(".")[0], {"tanh": op == "gelu.tanh"}) if "gelu" in op else (op, {})
    got = np.array(context.apply(device, name, x, **attrs))
    with np.errstate(all="ignore"):
        wanted = wide(op, x)
        unit = np.spacing(abs(wanted).astype(dtype)).astype(np.longdouble)
        off = abs(got.astype(np.longdouble) - wanted) / unit
    bound = BOUNDS[op]
    slack = off / (bound(x.astype(float)) if callable(bound) else bound)
    assert slack.max() <= 1, (x[slack.argmax()], got[slack.argmax()], wanted[slack.argmax()], off[slack.argmax()])
    nothing = np.array(context.apply(device, name, np.array([np.inf, np.nan], dtype), **attrs))
    assert nothing[0] == (1 if op == "sigmoid" else np.inf) and np.isnan(nothing[1])
