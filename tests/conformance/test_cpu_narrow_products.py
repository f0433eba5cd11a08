"""Products of the dtypes that the cpu device widens before it multiplies, f16, bf16 and small integers: f32 sums of the widened numbers, rounded
once, for transposed operands, batches and broadcast batches, constant or not. Oracle: NumPy in f64 and in wrapping integers."""
import keel_abi
import ml_dtypes
import numpy as np
import pytest
from regions import as_nodes

FLOATS = {"bf16": (ml_dtypes.bfloat16, 2.0**-8), "f16": (np.float16, 2.0**-11)}
SHAPES = [((3, 5), (5, 4)), ((100, 70), (70, 33)), ((1, 300), (300, 65)), ((97, 1), (1, 17)), ((2, 40, 50), (50, 60)), ((3, 1, 20, 30), (2, 30, 40)),
          ((1, 20, 30), (4, 30, 40)), ((2, 3, 17, 19), (1, 3, 19, 23)), ((0, 5), (5, 4)), ((3, 0), (0, 4)), ((2, 2000), (2000, 3)), ((3, 769), (769, 37)), ((2, 5, 1001), (2, 1001, 9)),
          ((533, 1100), (1100, 40))]


def product(a, b, ta, tb, constant):
    inputs, constants = ([a], [b]) if constant else ([a, b], [])
    plan = as_nodes(keel_abi.Context(threads=2), lambda g, x, y: g.node("matmul", x, y, ta=ta, tb=tb), inputs, constants, device="cpu")
    return np.array(plan.run(*inputs)[0])


def turned(x, turn):
    return np.ascontiguousarray(np.swapaxes(x, -1, -2)) if turn else x


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("ta, tb", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("left, right", SHAPES)
@pytest.mark.parametrize("name", FLOATS)
def test_products_of_16_bit_floats(name, left, right, ta, tb, constant):
    dtype, half_ulp = FLOATS[name]
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(s).astype(dtype) for s in (left, right))
    wide = a.astype(np.float64) @ b.astype(np.float64)
    magnitude = abs(a).astype(np.float64) @ abs(b).astype(np.float64)
    got = product(turned(a, ta), turned(b, tb), ta, tb, constant).astype(np.float64)
    assert got.shape == wide.shape
    assert (abs(got - wide) <= half_ulp * abs(wide) + 2e-7 * (8 + left[-1]**0.5) * magnitude + 1e-7).all()


@pytest.mark.parametrize("name", FLOATS)
def test_a_row_has_the_same_bits_among_many_rows_and_among_few(name):
    """Many rows take panels that were widened before, part by part of k (widened.inc)."""
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(s).astype(FLOATS[name][0]) for s in ((533, 1100), (1100, 40)))
    many, few = (product(x, b, False, False, True) for x in (a, a[:12]))
    assert many[:12].tobytes() == few.tobytes()


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("ta, tb", [(False, False), (True, True)])
@pytest.mark.parametrize("left, right", SHAPES)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_products_of_small_integers_wrap(dtype, left, right, ta, tb, constant):
    rng, limits = np.random.default_rng(6), np.iinfo(dtype)
    a, b = (rng.integers(limits.min, limits.max, s, dtype, endpoint=True) for s in (left, right))
    wanted = (a.astype(np.int64) @ b.astype(np.int64)).astype(dtype)
    assert np.array_equal(product(turned(a, ta), turned(b, tb), ta, tb, constant), wanted)


@pytest.mark.parametrize("name", FLOATS)
def test_infinities_and_nan_of_16_bit_floats(name):
    dtype = FLOATS[name][0]
    a = np.eye(40, dtype=np.float32).astype(dtype)
    b = np.ones((40, 64), dtype)
    b[3, 5], a[7, 9] = np.inf, np.nan
    got = product(a, b, False, False, False).astype(np.float32)
    assert np.isnan(got[7]).all() and np.isinf(got[3, 5]) and np.isnan(got[2, 5]) and (got[2, :5] == 1).all()


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (1, 7, 96), (2, 31, 33), (9, 1, 70), (13, 129, 31), (16, 64, 64), (20, 333, 65), (97, 3, 5), (2, 401, 66)])
@pytest.mark.parametrize("name", FLOATS)
def test_sums_of_small_integers_are_exact_and_do_not_read_beyond_a_row(name, m, k, n, constant, tb):
    """All sums are integers that f32 holds, so only the result is rounded. NaN stands around the operands' values."""
    dtype, rng = FLOATS[name][0], np.random.default_rng(m + k + n)
    a, b = (rng.integers(-9, 10, dims).astype(dtype) for dims in ((m, k), (k, n)))
    a[m // 2 + 1:], b[:, n // 2 + 1:] = np.nan, np.nan
    got = product(a, turned(b, tb), False, tb, constant)
    rows, columns = slice(m // 2 + 1), slice(n // 2 + 1)
    wanted = (a[rows].astype(np.float64) @ b[:, columns].astype(np.float64)).astype(dtype)
    np.testing.assert_array_equal(got[rows, columns], wanted)
    assert np.isnan(got[m // 2 + 1:].astype(np.float32)).all() and np.isnan(got[:, n // 2 + 1:].astype(np.float32)).all()


@pytest.mark.parametrize("name", FLOATS)
def test_sums_do_not_depend_on_threads(name):
    rng = np.random.default_rng(8)
    for m, k, n in ((1, 400, 5000), (7, 129, 900), (40, 77, 300)):
        a, b = (rng.standard_normal(dims).astype(FLOATS[name][0]) for dims in ((m, k), (k, n)))
        made = [keel_abi.Context(threads=count).apply("cpu", "matmul", a, b) for count in (1, 2, 5)]
        assert made[0].tobytes() == made[1].tobytes() == made[2].tobytes()
