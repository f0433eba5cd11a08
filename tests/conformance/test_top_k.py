"""top_k of rows of all lengths, dtypes and numbers of results, with equal, infinite and missing numbers. The oracle is Python's sort."""
import ml_dtypes
import numpy as np
import pytest
from tested_devices import DEVICES

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def drawn(dtype, shape):
    rng = np.random.default_rng(5)
    if dtype in INTEGERS:
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    x = (rng.standard_normal(shape) * 50).astype(dtype)
    for value, share in ((np.nan, 0.1), (-0.0, 0.1), (0.0, 0.1), (-np.inf, 0.02), (np.inf, 0.02)):
        x[rng.random(shape) < share] = value
    return x


def places(row, largest):
    """NaN first, then the greatest (or least) first; equal ones by place."""
    numbers = row.astype(float).tolist() if row.dtype.kind not in "iu" else row.tolist()
    return sorted(range(len(row)), key=lambda i: (numbers[i] == numbers[i], 0 if numbers[i] != numbers[i] else
                                                  -numbers[i] if largest else numbers[i], i))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS, ids=lambda t: t.__name__)
@pytest.mark.parametrize("device", DEVICES)
def test_top_k_is_a_stable_sort(context, device, dtype, largest):
    for shape in ((1, 1), (0, 30), (3, 20), (5, 2, 17), (2, 2047), (1, 2048), (1, 5000)):
        x = drawn(dtype, shape)
        whole = np.array([places(row, largest) for row in x.reshape(-1, shape[-1])], np.int64).reshape(shape)
        for k in (k for k in (0, 1, 16, 17, 1000, shape[-1]) if k <= shape[-1]):
            values, at = context.apply(device, "top_k", x, n_out=2, k=k, largest=largest)
            np.testing.assert_array_equal(at, whole[..., :k])
            assert np.array(values).tobytes() == np.take_along_axis(x, whole[..., :k], -1).tobytes()
