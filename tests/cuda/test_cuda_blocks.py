"""matmul_blocks of few rows (kernels/blocks.cu) against NumPy in f64; other shapes run as the body."""
import numpy as np
import pytest
from compared import FLOATS, name, values

import keel

pytestmark = pytest.mark.usefixtures("cuda")
BOUND = {2: 0.02, 4: 1e-5, 8: 1e-12}


def numbers(w, bits):
    """The weights as small integers: [n, c, p * 8 / bits]."""
    parts = [w >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*w.shape[:2], w.shape[2] * 8 // bits).astype(np.float64)


def wanted(x, w, scale, zero, bits):
    q = numbers(w, bits) - (2.0 ** (bits - 1) if zero is None else zero.astype(np.float64)[..., None])
    rows = (q * scale.astype(np.float64)[..., None]).reshape(len(w), q.shape[1] * q.shape[2])[:, :x.shape[-1]]
    return x.astype(np.float64) @ rows.T


def check(dtype, x, w, scale, zero, bits):
    got = keel.matmul_blocks(*[keel.array(a) for a in (x, w, scale, zero) if a is not None], bits=bits).numpy()
    assert got.dtype == dtype
    want, bound = wanted(x, w, scale, zero, bits), BOUND[np.dtype(dtype).itemsize]
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=bound, atol=bound * (abs(want).max() if want.size else 0))


def drawn(dtype, rows, inner, outs, blocks, size, seed=0):
    x, scale, zero = values(dtype, *rows, inner, seed=seed), values(dtype, outs, blocks, seed=1) / 4, values(dtype, outs, blocks, seed=2)
    return x, np.random.default_rng(3).integers(0, 256, (outs, blocks, size), np.uint8), scale.astype(dtype), zero


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("rows", [(1,), (2,), (3,), (8,), (2, 1), (9,)], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_rows(fake, dtype, rows, bits, zero):
    x, w, scale, z = drawn(dtype, rows, 5 * 16 * 8 // bits, 70, 5, 16)
    before = fake.calls("cuLaunchKernel")
    check(dtype, x, w, scale, z if zero else None, bits)
    assert (fake.calls("cuLaunchKernel") == before + 1) == (dtype in FLOATS[:3] and np.prod(rows) <= 8)


@pytest.mark.parametrize("inner, outs, blocks, size", [(1, 1, 1, 16), (150, 33, 5, 16), (128, 4, 1, 64), (2500, 31, 40, 32), (61, 8, 4, 8), (0, 3, 1, 16), (64, 0, 2, 16)])
@pytest.mark.parametrize("dtype", FLOATS[:3], ids=name)
def test_sizes(dtype, inner, outs, blocks, size):
    """Rows that end within a block and within a word; blocks of half a word run as the body."""
    x, w, scale, zero = drawn(dtype, (2,), inner, outs, blocks, size)
    check(dtype, x, w, scale, zero, 4)
    check(dtype, x[:0], w, scale, zero, 4)


@pytest.mark.parametrize("first", [1, 4])
def test_misaligned_views(first):
    x, w, scale, zero = drawn(np.float16, (2,), 160, 40, 5, 16)

    def view(a):
        flat = keel.array(np.concatenate([a.ravel()[:first], a.ravel()]))
        return keel.reshape(keel.slice(flat, stop=[first + a.size], start=[first]), list(a.shape))
    got, want = keel.matmul_blocks(view(x), view(w), view(scale), view(zero), bits=4).numpy(), wanted(x, w, scale, zero, 4)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=0.02, atol=0.02 * abs(want).max())


def test_rounded_values_run_as_the_body(fake):
    """Powers of 2 are multiples of the step, a 127th of 127, so rounding changes nothing."""
    x, w, scale, zero = drawn(np.float32, (2,), 64, 5, 2, 16)
    x = np.exp2(np.arange(128) % 7).astype(np.float32).reshape(2, 64)
    x[:, ::32] = 127
    before = fake.calls("cuLaunchKernel")
    got = keel.matmul_blocks(*[keel.array(a) for a in (x, w, scale, zero)], bits=4, rounded=True).numpy()
    np.testing.assert_allclose(got, wanted(x, w, scale, zero, 4), rtol=1e-4, atol=1e-3)
    assert fake.calls("cuLaunchKernel") != before + 1
