"""Impls that decline dims, in prepare or in run: the next impl or the body of the op runs on the same device. And what prepare sees:
hashes of bodies, and the merged dims of operands that are broadcast to each other."""
import ctypes as C
import itertools

import counting
import keel
import keel_abi
import numpy as np
import pytest
from counting import counted
from keel_types import Tensor, int64s

pytestmark = pytest.mark.usefixtures("null")
X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
STAGES = pytest.mark.parametrize("in_run", [0, 1], ids=["prepare", "run"])


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def context():
    made = keel_abi.Context()
    made.load_plugin(counting.plugin("null"))
    return made


def text(dims, body="y = softmax(x){axis=1}\n  return y"):
    return f"keel 1\nfn @main(x: f32[{dims}]) -> y: f32[{dims}] {{\n  {body}\n}}\nentry main = @main (x) -> (y)\n"


@STAGES
@pytest.mark.parametrize("dims", ["3, 4", "n, 4"])
@pytest.mark.parametrize("fallback", [{}, {"fallback": "reference"}])
def test_the_body_of_an_op_runs_on_the_same_device(null, dims, in_run, fallback):
    plan = context().parse(text(dims)).session("null", level=0, **fallback).prepare() if in_run else None
    null.null_decline(b"softmax", in_run)
    plan = plan or context().parse(text(dims)).session("null", level=0, **fallback).prepare()
    for rows in (3, 3) if dims == "3, 4" else (3, 2, 3):
        with counted("null") as seen:
            got, = plan.run(X[:rows])
        np.testing.assert_allclose(got, softmax(X[:rows]), rtol=1e-6)
        assert seen["launches"] == 5  # reduce_max, sub, exp, reduce_sum, div


@STAGES
def test_an_eager_op_and_a_function(null, in_run):
    null.null_decline(b"softmax", in_run)
    x = keel.array(X)
    for _ in range(6):
        np.testing.assert_allclose(keel.softmax(x).numpy(), softmax(X), rtol=1e-6)
    f = keel.function(lambda x: keel.softmax(keel.neg(x)))
    for rows in (3, 1, 3):
        np.testing.assert_allclose(f(keel.array(X[:rows])).numpy(), softmax(-X[:rows]), rtol=1e-6)


@STAGES
def test_an_op_without_a_body_is_an_error_or_goes_to_the_fallback(null, in_run):
    null.null_decline(b"neg", in_run)
    body = "y = neg(x)\n  return y"
    with pytest.raises(keel_abi.KeelError, match="declined by the test") as e:
        context().parse(text("n, 4", body)).session("null", level=0).prepare().run(X)
    assert e.value.code == "UNIMPLEMENTED"
    plan = context().parse(text("n, 4", body)).session("null", level=0, fallback="reference").prepare()
    np.testing.assert_array_equal(plan.run(X)[0], -X)


CALLS = """keel 1
fn @a(p: f32[4], q: f32[4]) -> f32[4] {
  s = mul(p, q)
  t = leaky_relu(s){alpha=%s}
  return t
}
fn @b(first: f32[4], second: f32[4]) -> f32[4] {
  u = mul(first, second)
  v = leaky_relu(u){alpha=0.25}
  return v
}
fn @c(p: f32[4], q: f32[4]) -> f32[4] {
  s = add(p, q)
  t = leaky_relu(s){alpha=0.25}
  return t
}
fn @d(p: f32[4], q: f32[4]) -> f32[4] {
  s = mul(q, q)
  t = leaky_relu(s){alpha=0.25}
  return t
}
fn @e(p: f32[5], q: f32[5]) -> f32[5] {
  s = mul(p, q)
  t = leaky_relu(s){alpha=0.25}
  return t
}
fn @main(x: f32[4], y: f32[5]) -> a: f32[4], b: f32[4], c: f32[4], d: f32[4], e: f32[5] {
  a = call(x, x){body=@a}
  b = call(x, x){body=@b}
  c = call(x, x){body=@c}
  d = call(x, x){body=@d}
  e = call(y, y){body=@e}
  return a, b, c, d, e
}
entry main = @main (x, y) -> (a, b, c, d, e)
"""


def hashes(null, alpha):
    null.null_watch_calls(1)
    x, y = X[0], np.linspace(-1, 1, 5, dtype=np.float32)
    got = context().parse(CALLS % alpha).session("null", level=0).prepare().run(x, y)
    leaky = [np.where(v > 0, v, np.float32(a) * v) for v, a in ((x * x, alpha), (x * x, .25), (x + x, .25), (x * x, .25), (y * y, .25))]
    for one, want in zip(got, leaky, strict=True):
        np.testing.assert_allclose(one, want, rtol=1e-6)
    return [[null.null_hash(i, dims) for i in range(5)] for dims in (0, 1)]


def test_equal_bodies_have_equal_hashes(null):
    (a, b, c, d, e), (a_dims, b_dims, *_, e_dims) = hashes(null, 0.25)
    assert a == b == e and a_dims == b_dims != e_dims
    assert len({a, c, d}) == 3 and 0 not in (a, c, d)
    other = hashes(null, 0.5)[0]
    assert other[0] != a and other[1:] == [b, c, d, e]


def merged(null, *arrays):
    """null_merge_dims for arrays; None is an omitted operand."""
    tensors = [None if a is None else Tensor(None, 1, 0, a.ndim, 2, 32, 1, int64s(a.shape),
                                             int64s([s // a.itemsize for s in a.strides]) if strided(a) else None, 0) for a in arrays]
    pointers = (C.POINTER(Tensor) * len(arrays))(*[C.pointer(t) if t else None for t in tensors])
    sizes, strides, ndim = (C.c_int64 * 8)(), (C.c_int64 * (8 * len(arrays)))(), C.c_int32()
    rc = null.null_merge_dims(pointers, len(arrays), sizes, strides, C.byref(ndim))
    assert rc == 0, rc
    n = ndim.value
    return list(sizes[:n]), [list(strides[8 * i:8 * i + n]) for i in range(len(arrays))]


def strided(a):
    return not a.flags.c_contiguous


def test_merged_dims_visit_the_elements_that_numpy_broadcasts(null):
    keel.array(X) + 1.0  # opens the device
    draw = np.random.default_rng(5)
    for shape in itertools.product([0, 1, 2, 3], repeat=3):
        for _ in range(6):
            arrays = []
            for _ in range(draw.integers(1, 4)):
                own = [1 if draw.random() < 0.4 else n for n in shape][draw.integers(0, 4):]
                a = np.arange(int(np.prod(own)), dtype=np.float32).reshape(own)
                arrays.append(a.T.copy().T if draw.random() < 0.3 else a)
            whole = np.broadcast(*arrays) if len(arrays) > 1 else arrays[0]
            sizes, strides = merged(null, *arrays)
            assert int(np.prod(sizes)) == np.prod(whole.shape, dtype=int) and 1 not in sizes
            for a, row in zip(arrays, strides, strict=True):
                flat = np.lib.stride_tricks.as_strided(a, sizes, [s * a.itemsize for s in row])
                np.testing.assert_array_equal(flat.ravel(), np.broadcast_to(a, whole.shape).ravel())
            for d in range(1, len(sizes)):  # no two dims could still be one
                assert any(row[d - 1] != row[d] * sizes[d] for row in strides)


def test_merged_dims_of_known_cases(null):
    keel.array(X) + 1.0
    big, row, one = np.zeros((2, 3, 4), np.float32), np.zeros((1, 3, 4), np.float32), np.zeros((), np.float32)
    assert merged(null, big, big) == ([24], [[1], [1]])
    assert merged(null, big, row, one, None) == ([2, 12], [[12, 1], [0, 1], [0, 0], [0, 0]])
    assert merged(null, one) == ([], [[]])
    assert merged(null, big[:0], row) == ([0], [[0], [0]])
    assert merged(null, big.transpose(2, 1, 0)) == ([4, 3, 2], [[1, 4, 12]])


@pytest.mark.parametrize("shapes, code", [(((2,), (3,)), 3), (((-1,), (3,)), 9), (((0,), (3,)), 3)])
def test_dims_that_cannot_be_merged(null, shapes, code):
    keel.array(X) + 1.0
    tensors = [Tensor(None, 1, 0, len(s), 2, 32, 1, int64s(s), None, 0) for s in shapes]
    pointers = (C.POINTER(Tensor) * 2)(*map(C.pointer, tensors))
    assert null.null_merge_dims(pointers, 2, (C.c_int64 * 8)(), (C.c_int64 * 16)(), C.byref(C.c_int32())) == code
