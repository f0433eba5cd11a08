"""truncated_normal, categorical and shuffle: against NumPy and the standard library, from the numbers of Philox (test_random.py);
their distributions; erf_inv against math.erf."""
import math
from itertools import permutations
from statistics import NormalDist

import numpy as np
import pytest
from keel_abi import KeelError
from test_random import drawn
from tested_devices import DEVICES

KEY = np.uint64(11)
FLOATS = [np.float16, np.float32, np.float64]
pytestmark = pytest.mark.parametrize("device", DEVICES)


def uniform(shape, key=KEY):
    return drawn(int(key), math.prod(shape), np.float64, "uniform").reshape(shape)


def distance(x, y):
    """Of y from the number whose erf is x, by a step of Newton's method."""
    missing = math.erf(y) - x if abs(x) < 0.5 else math.copysign((1 - abs(x)) - math.erfc(abs(y)), x)
    return abs(missing) * math.sqrt(math.pi) / 2 * math.exp(y * y)


@pytest.mark.parametrize("dtype, most", [(np.float16, 0.51), (np.float32, 6), (np.float64, 6)])
def test_erf_inv(context, device, dtype, most):
    ends = 1 - np.exp2(-np.arange(1, 53.0))
    x = np.concatenate([np.random.default_rng(5).uniform(-1, 1, 2000), ends, -ends, [0.85, -0.85, 1e-30, -1e-8]]).astype(dtype)
    x = x[np.abs(x) < 1]
    y = context.apply(device, "erf_inv", x)
    assert y.dtype == dtype
    off = np.array([distance(float(a), float(b)) for a, b in zip(x, y)]) / np.spacing(np.abs(y)).astype(float)
    assert off.max() <= most
    edge = context.apply(device, "erf_inv", np.array([1, -1, 0, -0.0, 1.5, -np.inf, np.nan], dtype))
    np.testing.assert_array_equal(edge, [np.inf, -np.inf, 0, 0, np.nan, np.nan, np.nan])
    assert np.signbit(edge[3]) and context.apply(device, "erf_inv", np.zeros((2, 0), dtype)).shape == (2, 0)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.__name__)
@pytest.mark.parametrize("low, high", [(-2, 2), (-0.5, 3), (1, 1), (3, 4), (-np.inf, 0.25), (-np.inf, np.inf)])
def test_truncated_normal(context, device, low, high, dtype):
    for dims in ((), (0,), (1,), (7, 300)):
        y = context.apply(device, "truncated_normal", KEY, dtype(low), dtype(high), dims=list(dims))
        assert y.dtype == dtype and y.shape == dims and (y >= low).all() and (y <= high).all()
        below, above = (0.5 * (1 + math.erf(bound / math.sqrt(2))) for bound in (low, high))
        share = np.maximum(below + (above - below) * uniform(dims), 1e-17)
        want = [NormalDist().inv_cdf(p) for p in share.ravel()]
        np.testing.assert_allclose(y.ravel().astype(float), want, rtol=max(4 * np.finfo(dtype).eps, 1e-11), atol=1e-11 if dtype == np.float64 else 1e-6)


def test_the_moments_of_a_truncated_normal(context, device):
    y = context.apply(device, "truncated_normal", KEY, np.float32(-2), np.float32(2), dims=[20000]).astype(float)
    density, mass = math.exp(-2) / math.sqrt(2 * math.pi), math.erf(math.sqrt(2))
    assert abs(y.mean()) < 0.02 and abs(y.var() - (1 - 4 * density / mass)) < 0.02


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.__name__)
def test_categorical(context, device, dtype):
    for shape, dims in (((1,), ()), ((5,), (300,)), ((3, 4), (2, 50)), ((0, 3), (2,)), ((2, 3), (0,)), ((300, 7), ())):
        logits = np.random.default_rng(5).normal(size=shape).astype(dtype)
        got = context.apply(device, "categorical", KEY, logits, dims=list(dims))
        noise = -np.log(-np.log(np.maximum(uniform((*dims, *shape)), 1e-300)))
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, np.argmax(logits.astype(float) + noise, -1))


def test_categories_have_their_probabilities(context, device):
    share = np.array([0.1, 0, 0.25, 0.6, 0.05])
    with np.errstate(divide="ignore"):
        got = context.apply(device, "categorical", KEY, np.log(share).astype(np.float32), dims=[20000])
    count = np.bincount(got, minlength=5)
    assert (np.abs(count - 20000 * share) <= 5 * np.sqrt(20000 * share * (1 - share))).all(), count
    sure = context.apply(device, "categorical", KEY, np.array([0, np.inf, 3], np.float32), dims=[50])
    assert (sure == 1).all() and (context.apply(device, "categorical", KEY, np.full(3, -np.inf, np.float32), dims=[5]) == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.int64, np.float16])
@pytest.mark.parametrize("shape, axis", [((0,), 0), ((1,), 0), ((9,), 0), ((3, 40), -1), ((40, 3), 0), ((2, 0), 0)])
def test_shuffle(context, device, shape, axis, dtype):
    x = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    got = context.apply(device, "shuffle", KEY, x, axis=axis)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.take(x, np.argsort(-uniform((shape[axis],)), kind="stable"), axis))


def test_all_orders_are_equally_likely(context, device):
    x, count = np.arange(4), dict.fromkeys(permutations(range(4)), 0)
    shuffle = context.bind(device, "shuffle")
    for key in range(2400):
        count[tuple(shuffle(np.uint64(key), x).tolist())] += 1
    assert sum((n - 100) ** 2 / 100 for n in count.values()) < 60  # chi square, 23 degrees of freedom: 1 in 40,000


@pytest.mark.parametrize("op, operands, attrs, words", [
    ("shuffle", [KEY, np.zeros(())], {}, "axis = 0"), ("shuffle", [np.int64(1), np.zeros(2)], {}, "u64"),
    ("categorical", [KEY, np.zeros(3, np.int32)], {}, "must be one of f16"), ("categorical", [KEY, np.float32(1)], {}, "logits"),
    ("truncated_normal", [KEY, np.int32(0), np.int32(1)], {"dims": [2]}, "must be one of f16"),
    ("truncated_normal", [KEY, np.zeros(1), np.zeros(1)], {"dims": [2]}, "low"), ("erf_inv", [np.zeros(2, np.int32)], {}, "must be one of f16")])
def test_bad_input_is_named(context, device, op, operands, attrs, words):
    with pytest.raises(KeelError, match=words) as e:
        context.apply(device, op, *operands, **attrs)
    assert (e.value.code, e.value.op) == ("INVALID", op)


def test_a_category_of_none(context, device):
    with pytest.raises(KeelError, match="no elements"):
        context.apply(device, "categorical", KEY, np.zeros((2, 0), np.float32))
