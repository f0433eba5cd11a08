"""top_k on `cpu` against the device `reference`: every way in which rows are sorted (plugins/cpu/reduce/top_k.cc), bit for bit."""
import numpy as np
import pytest

import keel

SIZES = [(1, 1), (5, 3), (16, 16), (33, 16), (1000, 5), (40_000, 16), (300, 17), (2047, 2047), (2048, 17), (2048, 1500), (5000, 1), (70_000, 70_000)]  # n, k
DTYPES = [np.float16, np.float32, np.float64, np.int8, np.uint16, np.int32, np.uint64]


def rows(dtype, n, kind):
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((3, n)) * 50).astype(dtype)
    if kind == "random":
        return x
    if kind == "sorted":  # every element, or none, is before the ones found so far
        x = np.sort(x)
        x[1] = x[1, ::-1].copy()
        if x.dtype.kind == "f":
            x[2, n // 2] = np.nan
        return x
    if x.dtype.kind != "f":
        return np.ones_like(x)  # no digit differs
    for value in (np.nan, 0, -0.0, np.inf, -np.inf):
        x[rng.random(x.shape) < 0.1] = value
    return x


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_and_places(dtype, largest):
    for (n, k), kind in ((size, kind) for size in SIZES for kind in ("random", "sorted", "special")):
        x = rows(dtype, n, kind)
        values, places = (t.numpy() for t in keel.top_k(keel.array(x), k=k, largest=largest))
        with keel.device("reference"):
            _, wanted = keel.top_k(keel.array(x), k=k, largest=largest)
        np.testing.assert_array_equal(places, wanted.numpy(), err_msg=f"{n} {k} {kind}")
        assert values.tobytes() == np.take_along_axis(x, places, 1).tobytes(), (n, k, kind)
