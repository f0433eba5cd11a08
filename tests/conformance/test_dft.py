"""dft against numpy.fft: lengths with and without small factors, real and complex, both directions, cut and filled, any axis."""
import ml_dtypes
import numpy as np
import pytest
from keel_abi import KeelError
from tested_devices import DEVICES

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 12, 30, 31, 49, 64, 67, 100, 128, 210, 211, 243, 1000, 1009]
BOUND = {np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2, np.float32: 2e-6, np.float64: 1e-13}
pytestmark = pytest.mark.parametrize("device", DEVICES)


def drawn(dtype, *shape):
    return np.random.default_rng(5).normal(size=shape).astype(dtype)


def complex_of(x):
    x = x.astype(np.float64)
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0] + 0j


def transformed(x, axis=-2, inverse=False, onesided=False, length=None):
    """NumPy's, with the parts in a last dim."""
    axis = axis + 1 if axis < 0 else axis  # without the parts
    if onesided and inverse:
        return np.fft.irfft(complex_of(x), length, axis)[..., None]
    y = np.fft.rfft(x[..., 0].astype(np.float64), length, axis) if onesided else (np.fft.ifft if inverse else np.fft.fft)(complex_of(x), length, axis)
    return np.stack([y.real, y.imag], -1)


def check(context, device, x, **attrs):
    got, want = context.apply(device, "dft", x, **attrs), transformed(x, **attrs)
    assert got.dtype == x.dtype and got.shape == want.shape
    scale = np.abs(want).max(initial=1e-30)  # the rounding of a sum is that of its largest terms
    np.testing.assert_allclose(got.astype(np.float64) / scale, want / scale, atol=BOUND[x.dtype.type], rtol=0)


@pytest.mark.parametrize("dtype", BOUND, ids=lambda t: t.__name__)
def test_lengths(context, device, dtype):
    for n in LENGTHS if dtype in (np.float32, np.float64) else (1, 5, 64):
        for parts in (1, 2):
            for inverse in (False, True):
                check(context, device, drawn(dtype, 3, n, parts), inverse=inverse)
        check(context, device, drawn(dtype, 3, n, 1), onesided=True)
        check(context, device, drawn(dtype, 3, n // 2 + 1, 2), onesided=True, inverse=True, length=n)


@pytest.mark.parametrize("shape, axis", [((5, 2), 0), ((5, 3, 2), 0), ((5, 3, 2), 1), ((2, 6, 3, 2), 1), ((2, 6, 3, 2), -3), ((1, 1, 2), 1), ((0, 3, 2), 1),
                                         ((3, 0, 4, 2), -2)])
def test_axes(context, device, shape, axis):
    for inverse in (False, True):
        check(context, device, drawn(np.float32, *shape), axis=axis, inverse=inverse)
    check(context, device, drawn(np.float32, *shape[:-1], 1), axis=axis, onesided=True)


@pytest.mark.parametrize("n, length", [(5, 8), (8, 5), (1, 4), (4, 1), (12, 30), (64, 63)])
def test_other_lengths(context, device, n, length):
    for inverse in (False, True):
        check(context, device, drawn(np.float64, 2, n, 2), inverse=inverse, length=length)
    check(context, device, drawn(np.float64, 2, n, 1), onesided=True, length=length)
    check(context, device, drawn(np.float64, 2, n, 2), onesided=True, inverse=True, length=length)


@pytest.mark.parametrize("n", [65536, 99999, 100003])
def test_long_lines(context, device, n):
    """With small factors, with a large one, and prime: only a fast transform ends in time."""
    if device != "cpu":
        pytest.skip("a product with a matrix, of n * n numbers")
    for x in (drawn(np.float64, n, 2), drawn(np.float32, 2, n, 1)):
        check(context, device, x)
        check(context, device, x, inverse=True)


def test_back_and_forth(context, device):
    x = drawn(np.float64, 4, 90, 2)
    np.testing.assert_allclose(context.apply(device, "dft", context.apply(device, "dft", x), inverse=True), x, atol=1e-13)
    r = x[..., :1].copy()
    half = context.apply(device, "dft", r, onesided=True)
    np.testing.assert_allclose(context.apply(device, "dft", half, onesided=True, inverse=True), r, atol=1e-13)


def test_nan_reaches_all_frequencies(context, device):
    x = drawn(np.float32, 2, 12, 2)
    x[1, 5, 0] = np.nan
    y = context.apply(device, "dft", x)
    assert np.isfinite(y[0]).all() and np.isnan(y[1]).all()


def test_a_length_that_a_run_knows(context, device):
    module = context.parse("keel 1\nfn @main(x: f64[b, n, 2]) -> f64[b, n, 2] {\n  y = dft(x)\n  return y\n}\nentry main = @main (x) -> (y)\n")
    plan = module.session(device).prepare()
    for b, n in ((1, 1), (2, 6), (3, 7), (0, 5)):
        x = drawn(np.float64, b, n, 2)
        np.testing.assert_allclose(plan.run(x)[0], transformed(x), atol=1e-13)


@pytest.mark.parametrize("operands, attrs, words", [
    ([np.zeros((4, 3), np.float32)], {}, "the last dim of x is 3"), ([np.zeros((4, 2), np.float32)], {"onesided": True}, "onesided needs a real x"),
    ([np.zeros((4, 2), np.float32)], {"length": 0}, "length is 0"), ([np.zeros((4, 2), np.int32)], {}, "must be one of f16"),
    ([np.zeros((4, 2), np.float32)], {"axis": 1}, "axis"), ([np.zeros(2, np.float32)], {}, "axis"),
    ([np.zeros((1, 2), np.float32)], {"onesided": True, "inverse": True}, "length is 0")])
def test_bad_input_is_named(context, device, operands, attrs, words):
    with pytest.raises(KeelError, match=words) as e:
        context.apply(device, "dft", *operands, **attrs)
    assert (e.value.code, e.value.op) == ("INVALID", "dft")
