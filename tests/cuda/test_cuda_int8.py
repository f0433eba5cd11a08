"""matmul_integer: both signs, zero points of all shapes, batches, small and large tiles. Oracle: NumPy in i64, wrapped to i32."""
import itertools

import numpy as np
import pytest

import keel

pytestmark = pytest.mark.usefixtures("cuda")
SIGNS = list(itertools.product((np.int8, np.uint8), repeat=2))
SHAPES = [((3, 5), (5, 4)), ((1, 768), (768, 70)), ((100, 71), (71, 33)), ((97, 1), (1, 17)), ((64, 64), (64, 128)), ((2, 40, 50), (50, 60)),
          ((3, 1, 20, 30), (2, 30, 40)), ((2, 3, 17, 19), (1, 3, 19, 23)), ((4, 1, 70, 33), (5, 33, 66)),
          ((65, 144), (144, 72)), ((1, 40), (40, 1)), ((130, 16), (16, 68)), ((0, 5), (5, 4)), ((3, 0), (0, 4)), ((4, 5), (5, 0))]
ZEROS = {"none": lambda a, b: (None, None), "a": lambda a, b: ((), None), "b": lambda a, b: (None, ()), "numbers": lambda a, b: ((), (1,)),
         "rows and columns": lambda a, b: ((*a[:-1], 1), b[-1:]), "elements": lambda a, b: (a[-1:], b), "batches": lambda a, b: ((*a[:-2], 1, 1), (*b[:-2], 1, b[-1]))}


def drawn(rng, dtype, shape):
    limits = np.iinfo(dtype)
    return np.asarray(rng.integers(limits.min, limits.max, shape, dtype, endpoint=True))


def wanted(a, b, za, zb):
    wide = [x.astype(np.int64) - (0 if z is None else z.astype(np.int64)) for x, z in ((a, za), (b, zb))]
    return (wide[0] @ wide[1]).astype(np.int32)


def product(*operands):
    return keel.matmul_integer(*[None if x is None else keel.array(x) for x in operands]).numpy()


@pytest.mark.parametrize("zeros", ZEROS)
@pytest.mark.parametrize("left, right", SHAPES, ids=str)
@pytest.mark.parametrize("signs", SIGNS, ids=lambda s: " by ".join(np.dtype(t).name for t in s))
def test_products(signs, left, right, zeros):
    rng = np.random.default_rng(7)
    a, b = (drawn(rng, t, s) for t, s in zip(signs, (left, right)))
    za, zb = (None if s is None else drawn(rng, x.dtype, s) for s, x in zip(ZEROS[zeros](left, right), (a, b)))
    got = product(a, b, za, zb)
    assert got.dtype == np.int32 and np.array_equal(got, wanted(a, b, za, zb))


@pytest.mark.parametrize("first", [1, 4, 16])
def test_misaligned_views(first):
    flat = drawn(np.random.default_rng(3), np.uint8, 16 + 70 * 80)
    x = keel.reshape(keel.slice(keel.array(flat), stop=[first + 70 * 80], start=[first]), [70, 80])
    a = flat[first:first + 70 * 80].reshape(70, 80)
    assert np.array_equal(keel.matmul_integer(x, keel.reshape(x, [80, 70])).numpy(), wanted(a, a.reshape(80, 70), None, None))


def test_sums_wrap():
    a, b = np.full((3, 70000), 255, np.uint8), np.full((70000, 40), -128, np.int8)
    b[:, 7] = 127
    za, zb = np.uint8(0), np.int8(127)
    assert (a.astype(np.int64) @ (b.astype(np.int64) - 127)).min() < -2**31
    assert np.array_equal(product(a, b, za, zb), wanted(a, b, za, zb))


def test_a_zero_point_that_does_not_fit():
    a, b = np.zeros((3, 5), np.uint8), np.zeros((5, 4), np.int8)
    with pytest.raises(keel.Error, match=r"za: \[3\] does not broadcast to a: \[3, 5\]"):
        product(a, b, np.zeros(3, np.uint8))


def test_the_plan_names_it(context):
    text = "keel 1\nfn @main(a: u8[70, 80], b: i8[80, 90], z: u8[]) -> i32[70, 90] {\n  y = matmul_integer(a, b, z)\n  return y\n}\nentry main = @main (a, b, z) -> (y)\n"
    rng = np.random.default_rng(1)
    fed = drawn(rng, np.uint8, (70, 80)), drawn(rng, np.int8, (80, 90)), drawn(rng, np.uint8, ())
    plan = context.parse(text).session("cuda").prepare()
    assert np.array_equal(plan.run(*fed)[0], wanted(*fed, None))
    assert [launch["impl"] for launch in plan.report(*map(context.array, fed))["launches"]] == ["tiles of 8-bit integers"]
