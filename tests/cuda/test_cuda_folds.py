"""Reductions of rows and of columns around the widths of vectors, in parts and whole, and rows that registers hold or do not hold. Each against
the device reference."""
import numpy as np
import pytest
from compared import ALL, FLOATS, Against, name, values

import keel

pytestmark = pytest.mark.usefixtures("loaded")
same = Against("cuda").same
OPS = ["reduce_max", "reduce_min", "reduce_sum", "reduce_mean", "reduce_prod"]
# shape, axes: rows and columns that are and are not multiples of vectors, of a group, of a block, and in parts
FOLDS = [((3, 31), [1]), ((3, 32), [1]), ((9, 33), [1]), ((70, 64), [1]), ((2, 1000), [1]), ((1, 8200), [1]), ((3, 33001), [1]), ((40000,), [0]),
         ((2, 3), [0]), ((40, 3), [0]), ((40, 16), [0]), ((700, 8), [0]), ((3, 50, 24), [1]), ((5000, 5), [0]), ((4100, 64), [0]), ((3, 1, 2000, 6), [2]),
         ((2, 300), [0]), ((2, 3, 4, 5, 6), [1, 2]), ((2, 3, 4, 5, 60), [3, 4]), ((2, 30, 4, 5), [0, 1]), ((4, 1, 40, 1, 3), [2, 3])]


def near(dtype):
    """Numbers near 1, whose products stay finite; integers of all sizes, for they wrap."""
    def make(shape):
        x = values(dtype, *shape)
        return (1 + x.astype(np.float64) / 1000).astype(dtype) if dtype in FLOATS else x
    return make


@pytest.mark.parametrize("shape, axes", FOLDS, ids=str)
@pytest.mark.parametrize("op", OPS)
def test_folds(op, shape, axes):
    for dtype in (np.int8, np.int64, np.float16, np.float32):
        bound = {np.float16: 0.05, np.float32: 1e-4}.get(dtype)
        scale = values(dtype, *shape) if op != "reduce_prod" else near(dtype)(shape)
        if dtype == np.float16 and op == "reduce_prod" and scale.size > 500:
            continue
        if op == "reduce_sum" and dtype in FLOATS:
            scale = (scale / 64).astype(dtype)
        same(lambda a: getattr(keel, op)(a, axes), scale, tolerance=bound)


@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_dtypes_of_folds(dtype):
    ops = ["reduce_max", "reduce_min"] + ["reduce_sum", "reduce_mean"] * (dtype != np.bool_)
    for shape, axes in (((2, 40960), [1]), ((3, 4001), [1]), ((900, 40), [0]), ((900, 7), [0])):
        for op in ops:
            same(lambda a, op=op: getattr(keel, op)(a, axes), values(dtype, *shape), tolerance=0.5 if np.dtype(dtype).itemsize == 2 else 1e-3)


def test_means_of_extreme_integers_are_exact():
    for dtype in (np.int8, np.uint16, np.int32, np.int64, np.uint64):
        for most in (np.iinfo(dtype).max, np.iinfo(dtype).min):
            same(lambda a: keel.reduce_mean(a, [1]), np.full((2, 9000), most, dtype))
            same(lambda a: keel.reduce_mean(a, [0]), np.full((9000, 2), most, dtype))


def test_nan_and_zeros_in_folds():
    x = values(np.float32, 3, 5000)
    x[1, 4321] = np.nan
    x[2] = -0.0
    x[2, 17] = 0.0
    for axis in (0, 1):
        for op in ("reduce_max", "reduce_min"):
            same(lambda a, op=op, axis=axis: getattr(keel, op)(a, [axis]), x, exact=True)


def test_a_long_row_is_folded_in_parts_by_two_launches(fake):
    for size, launches in ((8000, 1), (40000, 2)):
        before = fake.calls("cuLaunchKernel")
        same(lambda a: keel.reduce_sum(a, [0]), values(np.float32, size), tolerance=1e-3)
        assert fake.calls("cuLaunchKernel") - before == launches


@pytest.mark.parametrize("size", [7, 8, 24, 63, 64, 65, 255, 256, 1000, 1001, 1024, 1032, 2047, 4096, 8192, 12289, 33000, 33001])
@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_rows(dtype, size):
    bound = {np.float32: 1e-4, np.float64: None}.get(dtype, 2e-2)
    rows = 9 if size < 2000 else 2
    x = (values(dtype, rows, size).astype(np.float32) * 3).astype(dtype)
    g, b = values(dtype, size, seed=1), values(dtype, size, seed=2)
    for op in (keel.softmax, keel.log_softmax, keel.log_sum_exp):
        same(op, x, tolerance=bound)
    same(lambda *t: keel.layer_norm(*t), x, g, b, tolerance=bound if np.dtype(dtype).itemsize > 2 else 6e-2)
    same(lambda *t: keel.rms_norm(*t), x, g, tolerance=bound if np.dtype(dtype).itemsize > 2 else 6e-2)


def test_many_rows():
    """Enough for groups of fewer threads than a row has vectors."""
    for shape in ((70000, 24), (700, 200), (3000, 33)):
        same(keel.softmax, values(np.float32, *shape))


@pytest.mark.parametrize("size", [64, 65, 80, 128, 1000, 4096, 4104, 9001])
def test_arguments(size):
    """By a thread, a warp or a block; equal elements and NaN, the first or the last of them."""
    for dtype in (np.int8, np.int64, np.float16, np.float32):
        x = values(dtype, 3, size)
        x[0, 5] = x[0, size - 3] = x[0].max()
        if dtype in FLOATS:
            x[1, 7] = x[1, size - 1] = np.nan
        for op in (keel.arg_max, keel.arg_min):
            for last in (False, True):
                same(lambda a, op=op, last=last: op(a, axis=1, last=last), x)
                same(lambda a, op=op, last=last: op(a, axis=0, last=last), x.T.copy())
