"""Attention in one launch (kernels/attention.cu) against the device reference in f32: sizes around its tiles, masks, causal rows, special values."""
import ml_dtypes
import numpy as np
import pytest
from compared import name

import keel

pytestmark = pytest.mark.usefixtures("loaded")
HALVES = [np.float16, ml_dtypes.bfloat16]
BOUND = {np.float16: 3e-3, ml_dtypes.bfloat16: 2e-2}


def operands(dtype, batch, rows, columns, width, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((*batch, n, width)).astype(dtype) for n in (rows, columns, columns)]


def attend(device, arrays, options):
    with keel.device(device):
        return keel.attention(*map(keel.array, arrays), **options).numpy()


def check(arrays, **options):
    """One rounding of weights and one of the result: the reference computes with the same operands in f32."""
    dtype = arrays[0].dtype.type
    got = attend("cuda", arrays, options)
    want = attend("reference", [x.astype(np.float32) for x in arrays], options)
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), np.isnan(want))
    np.testing.assert_allclose(got.astype(np.float32), want, rtol=BOUND[dtype], atol=BOUND[dtype])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows, columns, width", [(16, 1, 8), (17, 64, 64), (128, 128, 64), (129, 65, 64), (130, 300, 24), (31, 33, 128), (200, 70, 104)])
@pytest.mark.parametrize("dtype", HALVES, ids=name)
def test_sizes(dtype, rows, columns, width, causal):
    check(operands(dtype, (2,), rows, columns, width), causal=causal)


@pytest.mark.parametrize("causal", [False, True])
def test_many_matrices(causal):
    check(operands(np.float16, (48, 2), 70, 40, 16), causal=causal)


@pytest.mark.parametrize("shape", [(40, 50), (50,), (1, 50), (40, 1), (3, 1, 40, 50), (2, 1, 50), (1,)], ids=str)
def test_masks(shape):
    mask = np.where(np.random.default_rng(1).random(shape) < 0.3, -np.inf, 0.5).astype(np.float16)
    for causal in (False, True):
        check([*operands(np.float16, (3, 2), 40, 50, 16), mask], causal=causal, scale=0.3, zero_nan=True)


def test_negative_scale():
    check(operands(np.float16, (2,), 40, 50, 16), scale=-0.7)


@pytest.mark.parametrize("zero_nan", [False, True])
def test_rows_that_the_mask_hides_entirely(zero_nan):
    mask = np.zeros((20, 9), np.float16)
    mask[3], mask[7, :5] = -np.inf, -np.inf
    check([*operands(np.float16, (), 20, 9, 8), mask], zero_nan=zero_nan)


def test_large_scores_and_nan():
    q, k, v = operands(ml_dtypes.bfloat16, (), 32, 40, 16)
    check([q * np.array(100, q.dtype), k, v])
    q[5, 2] = np.nan
    check([q, k, v])
    k[0, 0] = np.inf
    check([q, k, v])


def test_operands_that_are_not_aligned():
    """Slices that begin at an odd element."""
    for dtype in HALVES:
        flat = [x.reshape(-1) for x in operands(dtype, (2,), 20, 20, 16)]
        got, want = [], []
        for device, into in (("cuda", got), ("reference", want)):
            with keel.device(device):
                views = [keel.reshape(keel.array(np.concatenate([x[:1], x]))[1:], [2, 20, 16]) for x in flat]
                into.append(keel.attention(*views).numpy().astype(np.float32))
        np.testing.assert_allclose(got[0], want[0], rtol=0.03, atol=0.03)


def test_sizes_that_the_body_takes():
    for rows, columns, width in ((1, 5, 8), (16, 0, 8), (0, 4, 8), (20, 20, 12), (20, 20, 136)):
        arrays = operands(np.float16, (2,), rows, columns, width)
        got, want = (attend(device, arrays, {}) for device in ("cuda", "reference"))
        np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-3)


def test_it_is_one_launch(fake):
    arrays = operands(np.float16, (2,), 40, 40, 16)
    attend("cuda", arrays, {})
    before = fake.calls("cuLaunchKernel")
    attend("cuda", arrays, {})
    assert fake.calls("cuLaunchKernel") - before == 1
