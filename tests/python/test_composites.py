"""Ops that are bodies of other ops, against NumPy: inverse trigonometry in units of the last place, linspace, roll, variances,
sorting. (tests/python/gradient_cases.py has their gradients.)"""
import math
import warnings

import ml_dtypes
import numpy as np
import pytest
from keel_abi import KeelError

SHAPES = [(), (0,), (1,), (2, 3), (2, 0, 3)]
NARROW = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
FLOATS = [np.dtype(np.float32), np.dtype(np.float64), *NARROW]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.66, 1e-30, -1e-30, np.nan]
RANDOM = np.random.default_rng(5)


def ulps(got, want, dtype):
    """The largest distance in units of the last place of the dtype; NaN and infinity must be the same."""
    info = ml_dtypes.finfo(dtype)
    got = got.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    whole = np.isfinite(want)
    np.testing.assert_array_equal(got[~whole & ~np.isnan(want)], want[~whole & ~np.isnan(want)])
    place = np.exp2(np.floor(np.log2(np.maximum(np.abs(want[whole]), float(info.smallest_normal))))) * float(info.eps)
    return (np.abs(got[whole] - want[whole]) / place).max(initial=0)


def checked(context, device, op, inputs, oracle, dtype, most):
    with np.errstate(all="ignore"):
        given = [x.astype(dtype) for x in inputs]
        want = oracle(*(x.astype(np.longdouble) for x in given)).astype(np.float64)
    got = context.apply(device, op, *given)
    assert got.dtype == dtype and ulps(got, want, dtype) <= most
    zeros = got == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op, oracle, most", [("atan", np.arctan, 2.5), ("asin", np.arcsin, 4), ("acos", np.arccos, 4), ("tan", np.tan, 4)])
def test_angles_of_one_operand(context, device, op, oracle, most, dtype):
    near = np.concatenate([SPECIAL, RANDOM.uniform(-1, 1, 2000), 1 - np.exp2(-np.arange(1, 20.0)), np.exp2(-np.arange(1, 20.0))])
    wide = np.concatenate([[np.inf, -np.inf, 1e30, -1e30, 2.4142135], RANDOM.uniform(-50, 50, 1000)])
    x = np.concatenate([near, wide]) if op != "tan" else near * 1.5
    if op in ("asin", "acos"):
        x = np.concatenate([x, [1.25, -1.25]])
    checked(context, device, op, [x], oracle, dtype, most if dtype not in NARROW else 1 if op != "tan" else 3)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_atan2_in_all_quadrants_with_signed_zeros_and_infinities(context, device, dtype):
    ends = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3e4, -2e-4]
    y, x = (a.ravel() for a in np.meshgrid(ends, ends))
    y, x = np.concatenate([y, RANDOM.normal(size=2000)]), np.concatenate([x, RANDOM.normal(size=2000)])
    checked(context, device, "atan2", [y, x], np.arctan2, dtype, 3 if dtype not in NARROW else 1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("op", ["tan", "atan", "asin", "acos"])
def test_shapes(context, device, op, shape):
    x = RANDOM.uniform(-0.9, 0.9, shape).astype(np.float32)
    oracle = {"tan": np.tan, "atan": np.arctan, "asin": np.arcsin, "acos": np.arccos}[op]
    np.testing.assert_allclose(context.apply(device, op, x), oracle(x), rtol=1e-6)


@pytest.mark.parametrize("a, b", [((2, 3), (3,)), ((), (4,)), ((0,), (1,)), ((2, 1), (1, 3))])
def test_atan2_broadcasts(context, device, a, b):
    y, x = RANDOM.normal(size=a).astype(np.float32), RANDOM.normal(size=b).astype(np.float32)
    np.testing.assert_allclose(context.apply(device, "atan2", y, x), np.arctan2(y, x), rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 1001])
@pytest.mark.parametrize("a, b", [(0.0, 1.0), (-3.5, 7.25), (2.0, 2.0), (5.0, -5.0)])
def test_linspace_has_exact_ends(context, device, a, b, n, dtype):
    y = context.apply(device, "linspace", dtype.type(a), dtype.type(b), n=n)
    want = np.linspace(np.float64(dtype.type(a)), np.float64(dtype.type(b)), n)
    assert y.dtype == dtype and y.shape == (n,)
    step = float(ml_dtypes.finfo(dtype).eps) * 8
    np.testing.assert_allclose(y.astype(np.float64), want, rtol=step, atol=step)
    if n > 1:
        assert (y[0], y[-1]) == (dtype.type(a), dtype.type(b))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.float64])
@pytest.mark.parametrize("shape, axis", [((5,), 0), ((1,), 0), ((0,), 0), ((2, 3), 1), ((2, 3, 4), -2), ((3, 0), 1), ((4, 2), 0)])
@pytest.mark.parametrize("shift", [0, 1, -1, 2, 5, -7, 1 << 40])
def test_roll(context, device, shape, axis, shift, dtype):
    x = (np.arange(math.prod(shape)) % 3).reshape(shape).astype(dtype)
    got = context.apply(device, "roll", x, shift=shift, axis=axis)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.roll(x, shift % max(shape[axis], 1), axis))


@pytest.mark.parametrize("ddof", [0.0, 1.0])
@pytest.mark.parametrize("shape, axes, keep", [((5,), None, False), ((2, 3), [1], True), ((2, 3, 4), [0, -1], False), ((1,), None, False),
                                               ((0, 3), [1], False), ((3, 0), [0], True), ((), None, False), ((2, 1), [1], False)])
@pytest.mark.parametrize("op", ["reduce_var", "reduce_std"])
def test_variances(context, device, op, shape, axes, keep, ddof):
    x = RANDOM.normal(3, 2, shape)
    attrs = {"keep": keep, "ddof": ddof} | ({"axes": axes} if axes else {})
    with warnings.catch_warnings(action="ignore"):  # of no elements
        want = {"reduce_var": np.var, "reduce_std": np.std}[op](x, axis=tuple(axes) if axes else None, ddof=ddof, keepdims=keep)
    np.testing.assert_allclose(context.apply(device, op, x, **attrs), want, rtol=1e-12)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.float16])
@pytest.mark.parametrize("shape, axis", [((9,), 0), ((1,), 0), ((0,), 0), ((4, 7), -1), ((7, 4), 0), ((2, 5, 3), 1), ((3, 0, 2), 1), ((0, 4), 1)])
def test_sort_is_stable(context, device, shape, axis, dtype, descending):
    x = RANDOM.integers(0, 4, shape).astype(dtype)  # many are equal
    keys = -x.astype(np.float64) if descending else x
    order = np.argsort(keys, axis, kind="stable")
    y, i = context.apply(device, "sort", x, n_out=2, axis=axis, descending=descending)
    assert y.dtype == dtype and i.dtype == np.int64
    np.testing.assert_array_equal(i, order)
    np.testing.assert_array_equal(y, np.take_along_axis(x, order, axis))
    np.testing.assert_array_equal(context.apply(device, "argsort", x, axis=axis, descending=descending), order)


def test_sort_puts_nan_last(context, device):
    x = np.array([np.nan, 1, -np.inf, np.inf, -2], np.float32)
    y, i = context.apply(device, "sort", x, n_out=2)
    np.testing.assert_array_equal(y, np.sort(x))
    np.testing.assert_array_equal(i, [2, 4, 1, 3, 0])


@pytest.mark.parametrize("op, operands, attrs, words", [
    ("asin", [np.zeros(2, np.int32)], {}, "must be one of f16"), ("linspace", [np.float32(0), np.float32(1)], {"n": -1}, "-1"),
    ("roll", [np.zeros((), np.float32)], {"shift": 1}, "axis = 0"), ("sort", [np.zeros((2, 2), np.float32)], {"axis": 2}, "axis"),
    ("reduce_var", [np.zeros(2, np.float32)], {"axes": [1]}, "axes"), ("atan2", [np.zeros(2, np.float32), np.zeros(3, np.float32)], {}, "broadcast")])
def test_bad_input_is_named(context, device, op, operands, attrs, words):
    with pytest.raises(KeelError, match=words) as e:
        context.apply(device, op, *operands, n_out=2 if op == "sort" else 1, **attrs)
    assert (e.value.code, e.value.op) == ("INVALID", op)
