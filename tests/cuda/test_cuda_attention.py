"""Attention in one launch (kernels/attention.cu, kernels/attention_f32.cu) against the device reference in a wider dtype: sizes around their tiles, masks,
causal rows, special values."""
import ml_dtypes
import numpy as np
import pytest
from compared import name

import keel

pytestmark = pytest.mark.usefixtures("loaded")
BOUND = {np.float16: 3e-3, ml_dtypes.bfloat16: 2e-2, np.float32: 2e-6}
WIDER = {np.float16: np.float32, ml_dtypes.bfloat16: np.float32, np.float32: np.float64}
DTYPES = list(BOUND)
SMALL = [np.float16, np.float32]


def operands(dtype, batch, rows, columns, width, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((*batch, n, width)).astype(dtype) for n in (rows, columns, columns)]


def attend(device, arrays, options):
    with keel.device(device):
        return keel.attention(*map(keel.array, arrays), **options).numpy()


def check(arrays, **options):
    """Halves: one rounding of weights and one of the result, for the reference computes with the same operands in a wider dtype."""
    dtype = arrays[0].dtype.type
    got = attend("cuda", arrays, options)
    want = attend("reference", [x.astype(WIDER[dtype]) for x in arrays], options)
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), np.isnan(want))
    np.testing.assert_allclose(got.astype(want.dtype), want, rtol=BOUND[dtype], atol=BOUND[dtype])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows, columns, width", [(16, 1, 8), (17, 64, 64), (128, 128, 64), (129, 65, 64), (130, 300, 24), (31, 33, 128), (200, 70, 104)])
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_sizes(dtype, rows, columns, width, causal):
    check(operands(dtype, (2,), rows, columns, width), causal=causal)


@pytest.mark.parametrize("rows, columns, width", [(16, 31, 4), (64, 64, 60), (65, 63, 68), (63, 32, 124)])
def test_sizes_around_quads(rows, columns, width):
    check(operands(np.float32, (3,), rows, columns, width), causal=True)
    check(operands(np.float32, (3,), rows, columns, width), scale=0.2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", SMALL, ids=name)
def test_many_matrices(dtype, causal):
    check(operands(dtype, (48, 2), 70, 40, 16), causal=causal)


@pytest.mark.parametrize("shape", [(40, 50), (50,), (1, 50), (40, 1), (3, 1, 40, 50), (2, 1, 50), (1,)], ids=str)
@pytest.mark.parametrize("dtype", SMALL, ids=name)
def test_masks(dtype, shape):
    mask = np.where(np.random.default_rng(1).random(shape) < 0.3, -np.inf, 0.5).astype(dtype)
    for causal in (False, True):
        check([*operands(dtype, (3, 2), 40, 50, 16), mask], causal=causal, scale=0.3, zero_nan=True)


@pytest.mark.parametrize("dtype", SMALL, ids=name)
def test_negative_scale(dtype):
    check(operands(dtype, (2,), 40, 50, 16), scale=-0.7)


@pytest.mark.parametrize("zero_nan", [False, True])
@pytest.mark.parametrize("columns", [9, 150])
@pytest.mark.parametrize("dtype", SMALL, ids=name)
def test_rows_that_the_mask_hides_entirely(dtype, columns, zero_nan):
    """The mask also hides the first tiles of a row, and the last tiles of another one."""
    mask = np.zeros((20, columns), dtype)
    mask[3], mask[7, :columns - 4], mask[8, 4:] = -np.inf, -np.inf, -np.inf
    check([*operands(dtype, (), 20, columns, 8), mask], zero_nan=zero_nan)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32], ids=name)
def test_large_scores_and_nan(dtype):
    q, k, v = operands(dtype, (), 32, 140, 16)
    scale = np.array(100 if dtype != np.float32 else 8, q.dtype)  # exp amplifies the rounding of a score by its size
    check([q * scale, k, v])
    q[5, 2] = np.nan
    check([q, k, v])
    k[0, 0], v[100, 3] = np.inf, np.nan
    check([q, k, v])


def test_large_scores_in_different_tiles():
    """Scores of 4,096 and 4,097, and 0 elsewhere: sums relative to the first one are made relative to the second one without another rounding."""
    q, k, v = operands(np.float32, (), 16, 100, 4)
    q[:], k[:], k[0], k[90] = [64, 0, 0, 1], 0, [64, 0, 0, 0], [64, 0, 0, 1]
    check([q, k, v], scale=1.0)


def test_operands_that_are_not_aligned():
    """Slices that begin at an odd element."""
    for dtype in DTYPES:
        flat = [x.reshape(-1) for x in operands(dtype, (2,), 20, 20, 16)]
        got, want = [], []
        for device, into in (("cuda", got), ("reference", want)):
            with keel.device(device):
                views = [keel.reshape(keel.array(np.concatenate([x[:1], x]))[1:], [2, 20, 16]) for x in flat]
                into.append(keel.attention(*views).numpy().astype(np.float32))
        np.testing.assert_allclose(got[0], want[0], rtol=0.03, atol=0.03)


def test_sizes_that_the_body_takes():
    for rows, columns, width, dtype in ((1, 5, 8, np.float16), (16, 0, 8, np.float16), (0, 4, 8, np.float16), (20, 20, 12, np.float16), (20, 20, 136, np.float16),
                                        (1, 5, 8, np.float32), (16, 0, 8, np.float32), (0, 4, 8, np.float32), (20, 20, 6, np.float32), (20, 20, 132, np.float32)):
        arrays = operands(dtype, (2,), rows, columns, width)
        got, want = (attend(device, arrays, {}) for device in ("cuda", "reference"))
        np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("dtype", SMALL, ids=name)
def test_it_is_one_launch(fake, dtype):
    arrays = operands(dtype, (2,), 40, 40, 16)
    attend("cuda", arrays, {})
    before = fake.calls("cuLaunchKernel")
    attend("cuda", arrays, {})
    assert fake.calls("cuLaunchKernel") - before == 1


TF32 = """
arrays = [keel.array(np.ones((2, 40, 16), np.float32)) for _ in range(3)]
with keel.device("cuda"):
    print(keel.attention(*arrays).numpy().sum())
import cuda_build, ctypes
calls = ctypes.CDLL(str(cuda_build.FAKE)).fake_calls
calls.restype = ctypes.c_uint64
print(calls(b"cuLaunchKernel"))
"""


@pytest.mark.parametrize("tf32", ["", "1"])
def test_f32_with_tf32_is_products(fake, in_child, tf32):
    total, launches = in_child(TF32, KEEL_CUDA_TF32=tf32)[0].split()
    assert abs(float(total) - 2 * 40 * 16) < 0.01 and (int(launches) > 1) == bool(tf32)
