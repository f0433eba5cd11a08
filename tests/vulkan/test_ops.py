"""Each op with a shader against NumPy, over shapes, axes and dtypes."""
import numpy as np
import pytest

import keel

pytestmark = pytest.mark.usefixtures("vulkan")


def floats(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def agree(got, want, tolerance=1e-5):
    assert str(got.device) == "vulkan:0"
    got = got.numpy()
    assert got.shape == np.shape(want) and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def values(dtype, *shape):
    if np.dtype(dtype).kind == "f":
        return floats(*shape).astype(dtype)
    if dtype == np.bool_:
        return floats(*shape) > 0
    return np.random.default_rng(1).integers(0 if np.dtype(dtype).kind == "u" else -99, 99, shape).astype(dtype)


ADD_SHAPES = [((), ()), ((7,), (7,)), ((3, 4), (4,)), ((3, 1, 4), (5, 1)), ((2, 3, 4, 5), ()), ((0, 3), (3,)),
              ((2, 1, 3, 1, 2, 1, 2), (1, 2, 1, 3, 1, 2, 1)), ((5_000_000,), (1,))]


@pytest.mark.parametrize("shapes", ADD_SHAPES, ids=str)
def test_add(shapes):
    x, y = floats(*shapes[0]), floats(*shapes[1], seed=1)
    agree(keel.array(x) + keel.array(y), np.asarray(x + y, np.float32), 0)


SIZES = [(1, 1, 1), (3, 5, 7), (64, 16, 64), (65, 17, 66), (1, 300, 1), (130, 70, 200)]


@pytest.mark.parametrize("m, k, n", SIZES)
@pytest.mark.parametrize("ta, tb", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_matmul(m, k, n, ta, tb):
    x, y = floats(*((k, m) if ta else (m, k))), floats(*((n, k) if tb else (k, n)), seed=1)
    agree(keel.matmul(keel.array(x), keel.array(y), ta=bool(ta), tb=bool(tb)), (x.T if ta else x) @ (y.T if tb else y), 1e-4)


@pytest.mark.parametrize("a, b", [((4, 2, 3), (4, 3, 5)), ((4, 2, 3), (3, 5)), ((2, 3), (4, 3, 5)), ((2, 1, 2, 3), (5, 3, 4)),
                                  ((2, 0), (0, 3)), ((0, 2, 3), (3, 4))], ids=str)
def test_matmul_of_batches(a, b):
    x, y = floats(*a), floats(*b, seed=1)
    agree(keel.matmul(keel.array(x), keel.array(y)), x @ y)


AXES = [[], [0], [1], [2], [3], [0, 1], [1, 2], [0, 2], [1, 3], [0, 3], [0, 1, 2, 3]]
REDUCTIONS = {"reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_prod": np.prod, "reduce_max": np.max, "reduce_min": np.min}


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(op, axes):
    x = floats(4, 5, 6, 70)
    agree(getattr(keel, op)(keel.array(x), axes), REDUCTIONS[op](x, tuple(axes)), 1e-4)
    agree(getattr(keel, op)(keel.array(x), axes, keep=True), REDUCTIONS[op](x, tuple(axes), keepdims=True), 1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
@pytest.mark.parametrize("op", ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"])
def test_reductions_of_other_dtypes(op, dtype):
    x = values(dtype, 3, 100, 2)
    agree(getattr(keel, op)(keel.array(x), [1]), REDUCTIONS[op](x, 1, dtype=dtype) if op in ("reduce_sum", "reduce_prod")
          else REDUCTIONS[op](x, 1), 1e-6)


def test_reductions_of_no_elements_and_nan():
    empty = keel.array(np.zeros((2, 0), np.float32))
    for op, want in [("reduce_sum", 0), ("reduce_prod", 1), ("reduce_max", -np.inf), ("reduce_min", np.inf), ("reduce_mean", np.nan)]:
        np.testing.assert_array_equal(getattr(keel, op)(empty, [1]).numpy(), np.full(2, want, np.float32))
    x = floats(200)
    x[150] = np.nan
    assert np.isnan(keel.reduce_max(keel.array(x), [0]).numpy()) and np.isnan(keel.reduce_min(keel.array(x), [0]).numpy())
    ints = keel.array(np.zeros((2, 0), np.int64))
    np.testing.assert_array_equal(keel.reduce_max(ints, [1]).numpy(), [np.iinfo(np.int64).min] * 2)
    np.testing.assert_array_equal(keel.reduce_min(ints, [1]).numpy(), [np.iinfo(np.int64).max] * 2)


@pytest.mark.parametrize("shape, axis", [((5,), 0), ((3, 200), -1), ((3, 4, 5), 1), ((3, 4, 5), 0), ((2, 0), 0)], ids=str)
def test_softmax(shape, axis):
    x = floats(*shape) * 30
    e = np.exp(x - x.max(axis, keepdims=True))
    agree(keel.softmax(keel.array(x), axis=axis), e / e.sum(axis, keepdims=True))
    agree(keel.log_softmax(keel.array(x), axis=axis), np.log(e.sum(axis, keepdims=True)) * -1 + x - x.max(axis, keepdims=True), 1e-4)


DTYPES = [np.bool_, np.int8, np.uint8, np.int16, np.float16, np.int32, np.float32, np.int64, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_movements_of_every_width(dtype):
    x = values(dtype, 4, 5, 6)
    a = keel.array(x)
    agree(keel.transpose(a, perm=[2, 0, 1]), x.transpose(2, 0, 1), 0)
    agree(keel.broadcast_to(keel.slice(a, start=[0, 0, 0], stop=[4, 1, 6]), dims=[2, 4, 3, 6]), np.broadcast_to(x[:, :1], (2, 4, 3, 6)), 0)
    agree(keel.slice(a, start=[1, 0, 2], stop=[4, 5, 6], step=[2, 1, 3]), x[1:4:2, :, 2:6:3], 0)
    agree(keel.reverse(a, axes=[0, 2]), x[::-1, :, ::-1], 0)


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gather(dtype, index_type):
    x, index = values(dtype, 8, 9, 2), np.array([[7, 0, 3], [1, 1, 2]], index_type)
    for axis in range(2):
        agree(keel.gather(keel.array(x), keel.array(index), axis=axis), np.take(x, index, axis), 0)
