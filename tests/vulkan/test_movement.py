"""Ops that make, move, pick and write elements: every dtype, bit by bit; indices out of range fail as on cpu."""
import numpy as np
import pytest
from against import ALL, NUMBERS, fails_alike, name, same, values

import keel

pytestmark = pytest.mark.usefixtures("loaded")
SHAPES = [(4, 5, 6), (1, 7, 3), (0, 3, 2), (17, 2, 65)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_movements(dtype, shape):
    x = values(dtype, *shape)
    a, b, c = shape
    v = values(dtype, seed=3)
    for op in [lambda t: keel.transpose(t, perm=[2, 0, 1]), lambda t: keel.transpose(t, perm=[0, 2, 1]),
               lambda t: keel.broadcast_to(keel.slice(t, stop=[a, 1, c]), dims=[2, a, 3, c]),
               lambda t: keel.slice(t, start=[0, 1, 0], stop=[a, b, c], step=[2, 1, 3]),
               lambda t: keel.reverse(t, axes=[0, 2]), lambda t: keel.reverse(t),
               lambda t: keel.tile(t, times=[2, 1, 3]), lambda t: keel.tile(t, times=[0, 1, 1]),
               lambda t: keel.triangle(t), lambda t: keel.triangle(t, upper=True, k=-1), lambda t: keel.triangle(t, k=1 << 40),
               lambda t: keel.reshape(t, to=[c, a * b]), lambda t: keel.identity(t), lambda t: keel.stop_gradient(t),
               lambda t: keel.concat([t, t, keel.slice(t, stop=[a, 2, c])], axis=1), lambda t: keel.concat([t, t], axis=0),
               lambda t: keel.split(t, sizes=[1, 0, b - 1], axis=1), lambda t: keel.split(t, sizes=[c - 1, 1], axis=2)]:
        same(op, x, exact=True)
    for options in [dict(lo=[1, 0, 2], hi=[0, 3, 1]), dict(lo=[0, 1, 0], gap=[2, 0, 1]), dict(hi=[0, 0, 5], gap=[0, 3, 0])]:
        same(lambda t, u: keel.pad(t, u, **options), x, v, exact=True)
    same(lambda u: keel.fill(u, dims=[3, 5, a]), v, exact=True)
    same(lambda u: keel.fill(u), v, exact=True)


def test_movements_of_many_elements_and_dims():
    same(lambda t: keel.transpose(t), values(np.float32, 1025, 1023), exact=True)
    same(lambda t: keel.transpose(t, perm=[7, 1, 5, 3, 2, 6, 0, 4]), values(np.int16, 2, 3, 1, 2, 3, 2, 1, 5), exact=True)
    same(lambda t: keel.slice(t, start=[4_200_000], stop=[4_999_999], step=[3]), values(np.uint8, 5_000_000), exact=True)
    same(lambda t: keel.pad(t, t[0, 0], lo=[3, 4], gap=[1, 1]), values(np.float64, 500, 700), exact=True)
    same(lambda *t: keel.concat(list(t), axis=0), *[values(np.float32, n, 3, seed=n) for n in range(40)], exact=True)


@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_numbers_from_indices(dtype):
    kind = str(keel.array(values(dtype, 1)).dtype)
    for tail, axis in [([], 0), ([300], 1), ([300], 0), ([4, 2], 1)]:  # of a symbol: otherwise iota is a constant, which cpu computes
        made = keel.function(lambda x: keel.iota(dims=[x.shape[0], *tail], axis=axis, dtype=kind), signature=[keel.f32["b"]])
        for b in (0, 1, 5, 700):
            same(made, np.zeros(b, np.float32), exact=True)
    for index_type in (np.int32, np.int64):
        index = np.array([[0, 4, -1], [7, 2, 1]], index_type)
        for axis in (-1, 0, 1):
            same(lambda i: keel.one_hot(i, depth=5, axis=axis, dtype=kind), index, exact=True)


@pytest.mark.parametrize("index_type", [np.int32, np.int64], ids=name)
@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_gathers(dtype, index_type):
    x, rng = values(dtype, 8, 9, 5), np.random.default_rng(5)
    pick = lambda high, *shape: rng.integers(0, high, shape).astype(index_type)
    for axis in range(3):
        same(lambda t, i: keel.gather(t, i, axis=axis), x, pick(x.shape[axis], 2, 3), exact=True)
        same(lambda t, i: keel.gather_elements(t, i, axis=axis), x, pick(x.shape[axis], 4, 3, 2), exact=True)
    same(lambda t, i: keel.gather(t, i), x, pick(8), exact=True)
    same(lambda t, i: keel.gather(t, i), x, pick(8, 0), exact=True)
    for k in range(4):
        same(lambda t, i: keel.gather_nd(t, i), x, pick(5, 3, 2, k), exact=True)
    same(lambda t, i: keel.gather_nd(t, i, batch=1), x, pick(5, 8, 4, 2), exact=True)


@pytest.mark.parametrize("index_type", [np.int32, np.int64], ids=name)
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_scatter_add(dtype, index_type):
    rng = np.random.default_rng(6)
    for shape, axis, size in [((5, 7, 4), 0, 9), ((5, 7, 4), 1, 3), ((5, 7, 4), 2, 1), ((1000,), 0, 300), ((0, 3), 0, 4), ((3, 2), 0, 70)]:
        index = rng.integers(0, size, shape[axis]).astype(index_type)
        same(lambda i, u: keel.scatter_add(i, u, axis=axis, size=size), index, values(dtype, *shape))
    index = rng.integers(0, 4, (2, 3)).astype(index_type)
    same(lambda i, u: keel.scatter_add(i, u, axis=1, size=4), index, values(dtype, 5, 2, 3, 2))


@pytest.mark.parametrize("mode", ["set", "add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_scatter_nd(dtype, mode):
    rng = np.random.default_rng(7)
    for k, q in [(0, (2,)), (1, (6,)), (2, (4, 5)), (3, (30,)), (2, (0,))]:
        index = rng.integers(0, 3, (*q, k)).astype(np.int64 if k % 2 else np.int32)
        x = values(dtype, 3, 4, 3)
        same(lambda t, i, u: keel.scatter_nd(t, i, u, mode=mode), x, index, values(dtype, *q, *x.shape[k:], seed=1))


def test_scatter_of_many_rows_keeps_their_order():
    index = np.random.default_rng(8).integers(0, 7, (20_000, 1))
    for u in (values(np.float32, 20_000), values(np.float64, 20_000)):
        same(lambda t, i, v: keel.scatter_nd(t, i, v), np.zeros(7, u.dtype), index, u, exact=True)
        once = [keel.scatter_add(keel.array(index.reshape(-1)), keel.array(u), size=7).numpy() for _ in range(2)]
        assert once[0].tobytes() == once[1].tobytes()
        same(lambda i, v: keel.scatter_add(i, v, size=7), index.reshape(-1), u, tolerance=1e-4)


@pytest.mark.parametrize("bad", [-1, 5, 1 << 40])
def test_an_index_out_of_range_is_the_error_of_cpu(bad):
    x, i = values(np.float32, 5, 3), np.array([0, bad])
    assert f"index {bad} is not in [0, 5)" in fails_alike(lambda t, j: keel.gather(t, j), x, i)
    fails_alike(lambda t, j: keel.gather_elements(t, j), x, np.array([[0, 1, bad]]))
    fails_alike(lambda t, j: keel.gather_nd(t, j), x, i[:, None])
    fails_alike(lambda t, j: keel.scatter_add(j, t, size=5), values(np.float32, 2, 3), i)
    fails_alike(lambda t, j: keel.scatter_nd(t, j, t[:2]), x, i[:, None])
