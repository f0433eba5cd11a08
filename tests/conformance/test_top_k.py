"""top_k and sort of rows of all lengths, dtypes and numbers of results, with equal, infinite and missing numbers. The oracle is
Python's sort."""
import ml_dtypes
import numpy as np
import pytest
from tested_devices import DEVICES

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
# Groups of rows with some left over, ends of blocks, runs that end within a pair, and rows for a radix sort.
SHAPES = ((1, 1), (0, 30), (9, 2), (19, 8), (5, 9), (17, 16), (5, 2, 17), (3, 20), (2, 64), (2, 65), (1, 129), (2, 300), (1, 513),
          (2, 2047), (1, 2048), (1, 5000))


def drawn(dtype, shape):
    rng = np.random.default_rng(5)
    if dtype in INTEGERS:
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    x = (rng.standard_normal(shape) * 50).astype(dtype)
    for value, share in ((np.nan, 0.1), (-0.0, 0.1), (0.0, 0.1), (-np.inf, 0.02), (np.inf, 0.02)):
        x[rng.random(shape) < share] = value
    return x


def ordered(row, downwards, nan_first):
    numbers = row.astype(float).tolist() if row.dtype.kind not in "iu" else row.tolist()
    return sorted(range(len(row)), key=lambda i: ((numbers[i] == numbers[i]) == nan_first, 0 if numbers[i] != numbers[i] else
                                                  -numbers[i] if downwards else numbers[i], i))


def places(row, largest):
    """NaN first, then the greatest (or least) first; equal ones by place."""
    return ordered(row, largest, True)


def upwards(row, descending):
    """The least (or greatest) first, NaN as the largest; equal ones by place."""
    return ordered(row, descending, descending)


def by_rows(x, order, *arguments):
    rows = [order(row, *arguments) for row in x.reshape(-1, x.shape[-1])]
    return np.array(rows, np.int64).reshape(x.shape)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS, ids=lambda t: t.__name__)
@pytest.mark.parametrize("device", DEVICES)
def test_top_k_is_a_stable_sort(context, device, dtype, largest):
    for shape in SHAPES:
        x = drawn(dtype, shape)
        whole = by_rows(x, places, largest)
        for k in (k for k in (0, 1, 7, 16, 17, 1000, shape[-1]) if k <= shape[-1]):
            values, at = context.apply(device, "top_k", x, n_out=2, k=k, largest=largest)
            np.testing.assert_array_equal(at, whole[..., :k])
            assert np.array(values).tobytes() == np.take_along_axis(x, whole[..., :k], -1).tobytes()


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS, ids=lambda t: t.__name__)
@pytest.mark.parametrize("device", DEVICES)
def test_sort_is_stable_with_nan_as_the_largest(context, device, dtype, descending):
    for shape in SHAPES:
        x = drawn(dtype, shape)
        want = by_rows(x, upwards, descending)
        values, at = context.apply(device, "sort", x, n_out=2, descending=descending)
        np.testing.assert_array_equal(at, want)
        assert np.array(values).tobytes() == np.take_along_axis(x, want, -1).tobytes()


@pytest.mark.parametrize("n", [12, 50, 700, 1500])
@pytest.mark.parametrize("device", DEVICES)
def test_numbers_of_64_bits_that_differ_in_the_lowest_bits(context, device, n):
    rng = np.random.default_rng(n)
    signs = rng.choice([-1, 1], n)
    wide = signs * 2**62 + rng.integers(0, 5, n)
    near = signs * (1 + rng.integers(0, 5, n) * np.finfo(np.float64).eps)
    for x in (wide, wide.astype(np.uint64), near):
        values, at = context.apply(device, "sort", x, n_out=2)
        np.testing.assert_array_equal(at, np.argsort(x, kind="stable"))
        np.testing.assert_array_equal(values, np.sort(x))
        values, at = context.apply(device, "top_k", x, n_out=2, k=n, largest=False)
        np.testing.assert_array_equal(at, np.argsort(x, kind="stable"))


@pytest.mark.parametrize("k", [20, 100, 500])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("device", DEVICES)
def test_each_element_of_a_row_precedes_those_before(context, device, dtype, k):
    x = np.arange(9000).astype(dtype)
    if dtype == np.float32:
        x[[70, 8000, 8999]] = np.nan
    for row, largest in ((x, True), (x[::-1].copy(), False)):
        values, at = context.apply(device, "top_k", row, n_out=2, k=k, largest=largest)
        np.testing.assert_array_equal(at, places(row, largest)[:k])
        np.testing.assert_array_equal(values, row[at])
