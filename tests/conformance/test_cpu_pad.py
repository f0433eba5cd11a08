"""pad on the cpu device against NumPy: each element once, with and without gaps between elements, for any number of threads."""
import keel_abi
import numpy as np
import pytest

SHAPES = [((), (), (), ()), ((0,), (2,), (3,), (0,)), ((1,), (0,), (0,), (0,)), ((5,), (2,), (3,), (0,)), ((5,), (1,), (0,), (2,)),
          ((3, 4), (1, 0), (0, 2), (0, 0)), ((3, 4), (0, 2), (0, 0), (1, 1)), ((3, 0), (1, 1), (1, 1), (0, 0)), ((2, 3, 5, 7), (0, 0, 1, 1), (0, 0, 1, 1), (0, 0, 0, 0)),
          ((2, 3, 5, 7), (1, 2, 0, 3), (0, 1, 2, 0), (1, 0, 2, 1)), ((1, 6, 1), (2, 0, 1), (1, 0, 4), (0, 0, 0)), ((64, 56, 56), (0, 1, 1), (0, 1, 1), (0, 0, 0)),
          ((2, 3), (1, 300_000), (1, 5), (0, 0)), ((300_000,), (1,), (2,), (0,)), ((200, 2000), (3, 0), (2, 0), (0, 0))]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64])
def test_against_numpy(threads, dtype):
    context, random = keel_abi.Context(threads=threads), np.random.default_rng(2)
    for shape, low, high, gap in SHAPES:
        x = random.integers(1, 100, shape).astype(dtype)
        spread = np.full([max(0, (n - 1) * (g + 1) + 1) for n, g in zip(shape, gap)], 7, dtype)
        spread[tuple(slice(None, None, g + 1) for g in gap)] = x
        want = np.pad(spread, list(zip(low, high)), constant_values=7) if shape else x
        got = np.array(context.apply("cpu", "pad", x, dtype(7), lo=list(low), hi=list(high), gap=list(gap)))
        np.testing.assert_array_equal(got, want, err_msg=f"{shape} {low} {high} {gap}")
