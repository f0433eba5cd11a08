"""Random numbers against Philox-4x32-10 and Box-Muller in NumPy: uniform ones bit by bit, normal ones to the last place."""
import numpy as np
import pytest
from tested_devices import DEVICES

KEYS = [0, 2**64 - 1, 0x123456789ABCDEF]
FRACTION = {np.float16: 11, np.float32: 24, np.float64: 53}  # bits of uniform numbers


def words(key, blocks):
    """Four u32 of each block."""
    low = np.uint64(0xFFFFFFFF)
    block = np.arange(blocks, dtype=np.uint64)
    a, b, c, d = block & low, block >> np.uint64(32), block * np.uint64(0), block * np.uint64(0)
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        left, right = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b, c, d = (right >> np.uint64(32)) ^ b ^ np.uint64(k0), right & low, (left >> np.uint64(32)) ^ d ^ np.uint64(k1), left & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([a, b, c, d], 1)


def drawn(key, count, dtype, kind):
    bits = 8 * np.dtype(dtype).itemsize if dtype == np.float64 else 32
    w = words(key, -(-count * bits // 128) + 1)
    w = (w[:, 0::2] | w[:, 1::2] << np.uint64(32)).ravel() if bits == 64 else w.ravel()
    if kind == "uniform":
        return ((w >> np.uint64(bits - FRACTION[dtype])) * 2.0 ** -FRACTION[dtype])[:count].astype(dtype)
    kept = min(bits, 53)
    a, b = (w[0::2] >> np.uint64(bits - kept)) + np.uint64(1), w[1::2] >> np.uint64(bits - kept)
    radius = np.sqrt(-2 * np.log(a.astype(np.longdouble) / np.longdouble(2) ** kept))
    angle = 2 * np.longdouble("3.14159265358979323846264338327950288") * b.astype(np.longdouble) / np.longdouble(2) ** kept
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()[:count].astype(dtype)


@pytest.mark.parametrize("kind", ["uniform", "normal"])
@pytest.mark.parametrize("dtype", FRACTION, ids=lambda t: t.__name__)
@pytest.mark.parametrize("device", DEVICES)
def test_numbers_are_those_of_philox(context, device, dtype, kind):
    for key in KEYS:
        for count in (0, 1, 2, 5, 255, 40_003):
            got = np.array(context.apply(device, "random", np.uint64(key), dims=[count], kind=kind, dtype=dtype))
            want = drawn(key, count, dtype, kind)
            if kind == "uniform":
                np.testing.assert_array_equal(got, want)
            else:  # near multiples of a quarter turn the angle's rounding shows: 1e-15 of up to 8
                np.testing.assert_allclose(got, want, rtol=2 * np.finfo(dtype).eps, atol=1e-14)
