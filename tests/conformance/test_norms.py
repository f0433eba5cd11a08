"""layer_norm and rms_norm of all float dtypes, with rows whose squares are too large for the dtype, against NumPy in f64."""
import ml_dtypes
import numpy as np
import pytest
from onnx_cases import DEVICES

DTYPES = {np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3, np.float32: 1e-6, np.float64: 1e-13}


def numbers(dtype, *shape, scale=1.0):
    return (np.random.default_rng(5).standard_normal(shape) * scale).astype(dtype)


def wanted(op, eps, x, g, b=None):
    x, g, *rest = (v.astype(np.float64) for v in ((x, g) if b is None else (x, g, b)))
    d = x - x.mean(-1, keepdims=True) if op == "layer_norm" else x
    y = d / np.sqrt((d * d).mean(-1, keepdims=True) + eps) * g
    return y + rest[0] if rest else y


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("shape, scale", [((3, 8), 1), ((2, 3, 33), 3000), ((5,), 1000), ((4, 1), 300), ((0, 4), 1), ((2, 7), 0)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_values(context, device, op, dtype, shape, scale):
    x, g, b = numbers(dtype, *shape, scale=scale), numbers(dtype, shape[-1]), numbers(dtype, shape[-1])
    operands = (x, g, b) if op == "layer_norm" else (x, g)
    got = context.apply(device, op, *operands, eps=1e-3)
    assert got.shape == shape and got.dtype == x.dtype
    np.testing.assert_allclose(got.astype(np.float64), wanted(op, 1e-3, *operands), rtol=0, atol=DTYPES[dtype] * 4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", ["layer_norm", "rms_norm"])
def test_rows_that_are_no_numbers(context, device, op):
    x = np.array([[np.nan, 1, 2], [np.inf, 1, 2], [1, 2, 3]], np.float16)
    ones = np.ones(3, np.float16)
    operands = (x, ones, ones - 1) if op == "layer_norm" else (x, ones)
    got = context.apply(device, op, *operands)
    assert np.isnan(got[0]).all() and np.isnan(got[1, 0]) and np.isfinite(got[2]).all()
