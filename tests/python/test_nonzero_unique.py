"""nonzero and unique, whose sizes only a run knows, against NumPy: all dtypes and ranks, special floats, given sizes, texts, errors."""
import ml_dtypes
import numpy as np
import pytest
from keel_abi import KeelError

RANDOM = np.random.default_rng(5)
SHAPES = [(1,), (0,), (7,), (3, 4), (0, 3), (3, 0), (2, 3, 4), (1, 1, 1), (2, 0, 3), (3, 1, 2, 2), (2, 1, 3, 2, 1), (1, 2, 1, 2, 3, 2),
          (2, 1, 2, 1, 2, 1, 3), (2, 1, 3, 1, 2, 2, 1, 3)]
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
DTYPES = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, *FLOATS]


def named(dtype):
    return dtype.__name__


def unique(x):
    """numpy.unique with each NaN an element of its own."""
    order = np.argsort(x.astype(np.float64), kind="stable")
    s = x[order]
    new = np.concatenate([[True], s[1:] != s[:-1]])[:len(x)]
    inverse = np.empty(len(x), np.int64)
    inverse[order] = np.cumsum(new) - 1
    return s[new], order[new], inverse, np.bincount(inverse, minlength=new.sum())


def same(got, want):
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        np.testing.assert_array_equal(*(a.astype(np.float64) if a.dtype == ml_dtypes.bfloat16 else a for a in (g, w)))


@pytest.mark.parametrize("dtype", DTYPES, ids=named)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nonzero(context, device, shape, dtype):
    some = RANDOM.integers(0, 3, shape).astype(dtype)
    for x in (some, np.zeros(shape, dtype), np.ones(shape, dtype)):
        got = context.apply(device, "nonzero", x)
        assert got.dtype == np.int64
        same([got], [np.stack(np.nonzero(x))])


@pytest.mark.parametrize("dtype", FLOATS, ids=named)
def test_nan_and_the_smallest_number_are_not_zero_but_both_zeros_are(context, device, dtype):
    least = float(ml_dtypes.finfo(dtype).smallest_normal)
    x = np.array([0, np.nan, -0.0, np.inf, least, -np.inf, 0], dtype)
    np.testing.assert_array_equal(context.apply(device, "nonzero", x), [[1, 3, 4, 5]])


@pytest.mark.parametrize("dtype", DTYPES, ids=named)
@pytest.mark.parametrize("n", [0, 1, 2, 9, 200])
def test_unique(context, device, n, dtype):
    for most in (1, 4, 100):
        x = RANDOM.integers(0, most, n).astype(dtype)
        v, *places = context.apply(device, "unique", x, n_out=4)
        assert v.dtype == dtype and all(i.dtype == np.int64 for i in places)
        same([v, *places], np.unique(x, True, True, True))


@pytest.mark.parametrize("dtype", FLOATS, ids=named)
def test_each_nan_is_an_element_of_its_own_and_zeros_are_one(context, device, dtype):
    x = np.array([np.nan, 1, -np.inf, np.nan, -0.0, np.inf, 0.0, 1, np.inf], dtype)
    v, *places = context.apply(device, "unique", x, n_out=4)
    same([v, *places], unique(x))
    assert np.isnan(v).sum() == 2 and np.signbit(v[1])


def test_the_ends_of_wide_integers(context, device):
    for dtype in (np.int64, np.uint64):
        ends = np.iinfo(dtype)
        x = np.array([ends.max, 0, ends.min, ends.max - 1, ends.max, 1], dtype)
        same(context.apply(device, "unique", x, n_out=4), np.unique(x, True, True, True))
        same([context.apply(device, "nonzero", x)], [np.stack(np.nonzero(x))])


def test_a_size_may_be_given(context, device):
    x = np.array([0, 3, 0, 3], np.int32)
    np.testing.assert_array_equal(context.apply(device, "nonzero", x, size=2), [[1, 3]])
    same(context.apply(device, "unique", x, n_out=4, size=2), np.unique(x, True, True, True))
    for op, n_out in (("nonzero", 1), ("unique", 4)):
        with pytest.raises(KeelError, match="count is 2, but the attribute size is 3"):
            context.apply(device, op, x, n_out=n_out, size=3)


TEXT = """keel 1

fn @main(x: f32[n, m]) {
  twice = x * 2
  at = nonzero(twice) : i64[2, found]
  chosen = gather_nd(x, transpose(at)) : f32[found]
  pairs = fill(1.5){dims=[found, 2]}
  v, first, inverse, counts = unique(chosen){size=kinds}
  doubled = v + v : f32[kinds]
  again = gather(v, inverse) : f32[found]
  shares = cast(counts){to=f32} / dim(){of=found, dtype=f32}
  return at, chosen, pairs, doubled, again, shares, first
}

entry main = @main
"""


@pytest.mark.parametrize("shape", [(3, 4), (0, 2), (2, 0), (1, 1), (5, 7)], ids=str)
def test_one_plan_of_a_text_or_a_file_serves_all_sizes(context, device, tmp_path, shape):
    module = context.parse(TEXT)
    module.save(tmp_path / "m.keel")
    plans = [m.session(device).prepare() for m in (module, context.parse(module.to_text()), context.load(tmp_path / "m.keel"))]
    for x in (RANDOM.integers(-1, 2, shape).astype(np.float32), np.zeros(shape, np.float32), np.ones(shape, np.float32)):
        chosen = x[x != 0]
        v, first, counts = np.unique(chosen, return_index=True, return_counts=True)
        want = [np.stack(np.nonzero(x)), chosen, np.full((len(chosen), 2), np.float32(1.5)), v + v, chosen,
                counts.astype(np.float32) / np.float32(max(len(chosen), 1)), first]
        for plan in plans:
            same(plan.run(x), want)


def test_bodies_of_loops_and_branches(context, device):
    plan = context.parse("""keel 1
fn @count(x: f32[n]) { return reduce_sum(cast(nonzero(x) >= 0){to=i64}) }
fn @kinds(x: f32[n]) {
  v, first, inverse, counts = unique(x)
  return reduce_sum(counts * counts)
}
fn @more(x: f32[n]) { return reduce_sum(cast(nonzero(x) >= 0){to=i64}) > 1 }
fn @less(x: f32[n]) { return maximum(x - 1, 0) }
fn @main(x: f32[n], p: bool[]) {
  a = cond(p, x){then=@count, else=@kinds}
  b = while(x){test=@more, body=@less, carry=1}
  return a, b
}
entry main = @main
""").session(device).prepare()
    x = np.array([0, 2, 5, 2, 1], np.float32)
    for p, wanted in ((True, 4), (False, 7)):
        a, b = plan.run(x, np.array(p))
        assert a == wanted
        np.testing.assert_array_equal(b, [0, 0, 3, 0, 0])


@pytest.mark.parametrize("op, x, words", [
    ("nonzero", np.float32(1), r"x has no dims; reshape it to \[1\]"),
    ("unique", np.float32(1), "x"), ("unique", np.zeros((2, 2), np.float32), "x")])
def test_bad_input_is_named(context, device, op, x, words):
    with pytest.raises(KeelError, match=words) as e:
        context.apply(device, op, x, n_out=1 if op == "nonzero" else 4)
    assert (e.value.code, e.value.op) == ("INVALID", op)
