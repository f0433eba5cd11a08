"""Recurrences and running products of all dtypes: against loops in Python, whose numbers are exact."""
import ml_dtypes
import numpy as np
import pytest
from keel_abi import KeelError
from onnx import TensorProto, helper
from tested_devices import DEVICES

import keel

DTYPES = [np.int8, np.uint8, np.int32, np.int64, np.uint64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
SHAPES = [((0,), 0), ((1,), 0), ((7,), 0), ((2, 3, 4), -2), ((5, 70), 1), ((70, 5), 0), ((3, 0), 0), ((3, 0), 1)]
WAYS = [(exclusive, reverse) for exclusive in (False, True) for reverse in (False, True)]


def drawn(dtype, shape):
    rng = np.random.default_rng(5)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    return (rng.uniform(0.8, 1.25, shape) * rng.choice([-1, 1], shape)).astype(dtype)


def recurrence(a, b, axis=0, reverse=False):
    """In longdouble, or in wrapping integers."""
    wide = a.dtype if a.dtype.kind in "iu" else np.longdouble
    a, b = (np.moveaxis(x.astype(wide), axis, 0)[::-1 if reverse else 1] for x in (a, b))
    y = b.copy()
    with np.errstate(all="ignore"):
        for i in range(1, len(y)):
            y[i] = a[i] * y[i - 1] + b[i]
    return np.moveaxis(y[::-1 if reverse else 1], 0, axis)


def cumprod(x, axis=0, exclusive=False, reverse=False):
    one = np.ones_like(np.take(x, [0], axis)) if x.shape[axis] else x
    lines = np.flip(x, axis) if reverse else x
    if exclusive:
        lines = np.concatenate([one, np.take(lines, range(max(x.shape[axis] - 1, 0)), axis)], axis)
    y = np.cumprod(lines, axis, x.dtype if x.dtype.kind in "iu" else np.longdouble)
    return np.flip(y, axis) if reverse else y


def same(got, want, dtype):
    assert got.dtype == dtype
    if np.issubdtype(dtype, np.integer):
        return np.testing.assert_array_equal(got, want)
    bound = float(ml_dtypes.finfo(dtype).eps) * (40 if dtype in (np.float32, np.float64) else 1)  # each of 70 steps may round
    np.testing.assert_allclose(got.astype(np.longdouble), want, rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("device", DEVICES)
def test_recurrence(context, device, dtype):
    for shape, axis in SHAPES:
        a, b = drawn(dtype, shape), drawn(dtype, shape)[::-1].copy()
        for reverse in (False, True):
            got = context.apply(device, "linear_recurrence", a, b, axis=axis, reverse=reverse)
            same(got, recurrence(a, b, axis, reverse), dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("device", DEVICES)
def test_cumprod(context, device, dtype):
    for shape, axis in SHAPES:
        x = drawn(dtype, shape)
        for exclusive, reverse in WAYS:
            got = context.apply(device, "cumprod", x, axis=axis, exclusive=exclusive, reverse=reverse)
            same(got, cumprod(x, axis, exclusive, reverse), dtype)


@pytest.mark.parametrize("device", DEVICES)
def test_zeros_infinities_and_nan(context, device):
    x = np.array([2, -0.0, 3, np.inf, 5, -np.inf, np.nan, 0], np.float32)
    for begin in range(len(x)):
        with np.errstate(invalid="ignore"):
            want = np.cumprod(x[begin:])
        got = context.apply(device, "cumprod", x[begin:])
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(want[want == 0]))
    got = context.apply(device, "linear_recurrence", np.array([np.nan, 0, 2], np.float32), np.array([np.inf, 1, np.nan], np.float32))
    np.testing.assert_array_equal(got, [np.inf, np.nan, np.nan])
    got = context.apply(device, "linear_recurrence", np.array([np.nan, 0, 2], np.float32), np.array([7, 1, -np.inf], np.float32))
    np.testing.assert_array_equal(got, [7, 1, -np.inf])


@pytest.mark.parametrize("device", DEVICES)
def test_long_lines(context, device):
    """Several pieces of a line; sums of a geometric series whose value is known."""
    a, b = np.full(50_000, 0.5), np.ones(50_000)
    np.testing.assert_allclose(context.apply(device, "linear_recurrence", a, b), 2 - np.exp2(-np.arange(50_000.0)), rtol=1e-15)
    got = context.apply(device, "cumprod", np.full(60_000, -1, np.int32), reverse=True)
    np.testing.assert_array_equal(got, np.where(np.arange(60_000) % 2, -1, 1))


@pytest.mark.parametrize("exclusive, reverse", WAYS)
def test_cumprod_of_onnx(exclusive, reverse):
    node = helper.make_node("CumProd", ["x", "axis"], ["y"], exclusive=exclusive, reverse=reverse)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xy"]
    graph = helper.make_graph([node], "main", ends[:1], ends[1:], [helper.make_tensor("axis", TensorProto.INT64, [], [-1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=10)
    x = drawn(np.float32, (2, 3))
    np.testing.assert_allclose(keel.from_onnx(model.SerializeToString())(x), cumprod(x, 1, exclusive, reverse), rtol=1e-6)


@pytest.mark.parametrize("op, operands, attrs, words", [
    ("cumprod", [np.zeros((), np.float32)], {}, "axis = 0"), ("cumprod", [np.zeros((2, 2), np.float32)], {"axis": 2}, "axis"),
    ("cumprod", [np.zeros(2, np.bool_)], {}, "bool"),
    ("linear_recurrence", [np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)], {}, "4"),
    ("linear_recurrence", [np.zeros(2, np.float32), np.zeros(2, np.float64)], {}, "f64")])
@pytest.mark.parametrize("device", DEVICES)
def test_bad_input_is_named(context, device, op, operands, attrs, words):
    with pytest.raises(KeelError, match=words) as e:
        context.apply(device, op, *operands, **attrs)
    assert (e.value.code, e.value.op) == ("INVALID", op)
