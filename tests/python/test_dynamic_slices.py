"""Parts of a tensor whose start is data: dynamic_slice and dynamic_update_slice against NumPy, with a start that is clamped by hand."""
import ml_dtypes
import numpy as np
import pytest
from keel_abi import KeelError

RANDOM = np.random.default_rng(5)
PARTS = [((), ()), ((1,), (1,)), ((0,), (0,)), ((7,), (0,)), ((7,), (3,)), ((4, 5), (4, 2)), ((4, 5), (1, 5)), ((3, 0), (2, 0)), ((2, 3, 4), (2, 1, 3)),
         ((2, 1, 3, 1, 2, 2, 1, 3), (1, 1, 2, 1, 2, 1, 1, 2))]
DTYPES = [np.float32, np.int64, np.uint8, np.bool_, np.float16, ml_dtypes.bfloat16, np.float64]


def part(shape, dims, start):
    """Indices of the part."""
    first = [min(max(int(s), 0), n - m) for s, n, m in zip(start, shape, dims)]
    return tuple(slice(f, f + m) for f, m in zip(first, dims))


def starts(shape, dims):
    """Inside, at both ends, and beyond them."""
    rank, far = len(shape), 1 << 62
    yield from ([0] * rank, [n - m for n, m in zip(shape, dims)], [-1] * rank, [far] * rank, [-far] * rank)
    yield from (RANDOM.integers(-2, 6, rank) for _ in range(5))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("shape, dims", PARTS, ids=str)
def test_parts(context, device, shape, dims, dtype):
    x, u = (RANDOM.integers(0, 100, s).astype(dtype) for s in (shape, dims))
    for start in starts(shape, dims):
        at = np.array(start, np.int64)
        where, want = part(shape, dims, at), x.copy()
        got = context.apply(device, "dynamic_slice", x, at, dims=list(dims))
        assert got.dtype == dtype and got.shape == dims
        np.testing.assert_array_equal(got, x[where])
        want[where] = u
        np.testing.assert_array_equal(context.apply(device, "dynamic_update_slice", x, u, at), want)
        index = context.apply(device, "slice_index", at, of=list(shape), dims=list(dims))
        np.testing.assert_array_equal(index, np.arange(x.size).reshape(shape)[where])


def test_nan_and_infinities_move_unchanged(context, device):
    x, at = np.array([np.nan, np.inf, -0.0, 1], np.float32), np.array([1], np.int32)
    got = context.apply(device, "dynamic_update_slice", np.zeros(6, np.float32), x, at)
    np.testing.assert_array_equal(got, [0, *x, 0])
    assert np.signbit(context.apply(device, "dynamic_slice", got, np.array([3], np.int32), dims=[1]))[0]


def test_sizes_may_be_symbols(context, device):
    """A cache that each run extends by a row; the dims of the part may equal a symbol of x."""
    module = context.parse("keel 1\nfn @main(cache: f32[n, m], row: f32[1, m], at: i64[2]) -> f32[n, m], f32[1, m] {\n"
                           "  new = dynamic_update_slice(cache, row, at)\n  back = dynamic_slice(new, at){dims=[1, m]}\n  return new, back\n}\n"
                           "entry main = @main (cache, row, at) -> (new, back)\n")
    plan = module.session(device).prepare()
    for n, m in ((1, 1), (5, 3), (3, 0)):
        cache, row = RANDOM.normal(size=(n, m)).astype(np.float32), RANDOM.normal(size=(1, m)).astype(np.float32)
        want = cache.copy()
        want[n - 1] = row
        new, back = plan.run(cache, row, np.array([n - 1, 5]))
        np.testing.assert_array_equal(new, want)
        np.testing.assert_array_equal(back, row)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_results_in_the_memory_of_an_operand(context, device, size):
    """x, or a u of the same dims, is used by nothing else: a device may write the result there."""
    plan = context.parse(f"keel 1\nfn @main(x: f32[5, 3], u: f32[{size}, 3], at: i32[2]) -> f32[5, 3] {{\n"
                         "  a = add(x, 1)\n  b = add(u, 1)\n  y = dynamic_update_slice(a, b, at)\n  return y\n}\n"
                         "entry main = @main (x, u, at) -> (y)\n").session(device).prepare()
    x, u = (RANDOM.normal(size=(n, 3)).astype(np.float32) for n in (5, size))
    for first in (-1, 0, 2, 9):
        want, at = x + 1, min(max(first, 0), 5 - size)
        want[at:at + size] = u + 1
        (got,) = plan.run(x, u, np.array([first, 7], np.int32))
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op, operands, attrs, words", [
    ("dynamic_slice", [np.zeros((2, 3), np.float32), np.zeros(1, np.int64)], {"dims": [1, 1]}, "start has dim 1 where 2 is expected"),
    ("dynamic_slice", [np.zeros((2, 3), np.float32), np.zeros(2, np.int64)], {"dims": [1]}, "2 dims but the part 1"),
    ("dynamic_slice", [np.zeros((2, 3), np.float32), np.zeros(2, np.int64)], {"dims": [1, 4]}, r"\[1, 4\] does not fit in \[2, 3\]"),
    ("dynamic_slice", [np.zeros((2, 3), np.float32), np.zeros(2, np.float32)], {"dims": [1, 1]}, "must be one of i32, i64"),
    ("dynamic_update_slice", [np.zeros(2, np.float32), np.zeros(3, np.float32), np.zeros(1, np.int32)], {}, r"u: \[3\] does not fit in x: \[2\]"),
    ("dynamic_update_slice", [np.zeros(2, np.float32), np.zeros(2, np.float64), np.zeros(1, np.int32)], {}, "f64"),
    ("slice_index", [np.zeros(1, np.int32)], {"of": [2, 2], "dims": [1, 1]}, "start 1 numbers")])
def test_bad_input_is_named(context, device, op, operands, attrs, words):
    with pytest.raises(KeelError, match=words) as e:
        context.apply(device, op, *operands, **attrs)
    assert (e.value.code, e.value.op) == ("INVALID", op)
