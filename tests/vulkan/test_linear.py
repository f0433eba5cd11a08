"""Matrix products, convolutions, pools and norms: every dtype, against the device `reference`."""
import numpy as np
import pytest
from against import FLOATS, NUMBERS, name, results, same, values

import keel

pytestmark = pytest.mark.usefixtures("loaded")


def small(dtype, *shape, seed=0):
    """Values whose sums of products stay in the range of small integers and near 1 for floats."""
    x = values(dtype, *shape, seed=seed)
    return x if dtype in FLOATS else (x % 5).astype(dtype)


SIZES = [((3, 5), (5, 7)), ((65, 17), (17, 66)), ((1, 300), (300, 1)), ((1, 40), (40, 300)), ((130, 70), (70, 200)), ((2, 0), (0, 3)),
         ((4, 2, 3), (3, 5)), ((2, 1, 6, 5), (3, 5, 6)), ((0, 2, 3), (3, 4)), ((300, 3), (3, 1)), ((2, 1, 70), (2, 70, 3))]


@pytest.mark.parametrize("ta, tb", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_matmul(dtype, ta, tb):
    for a, b in SIZES:
        a, b = small(dtype, *a) / 2 if dtype in FLOATS else small(dtype, *a), small(dtype, *b, seed=1)
        a, b = a.astype(dtype).swapaxes(-1, -2).copy() if ta else a.astype(dtype), b.swapaxes(-1, -2).copy() if tb else b
        same(lambda x, y: keel.matmul(x, y, ta=bool(ta), tb=bool(tb)), a, b, tolerance=3e-2 if dtype not in (np.float32, np.float64) else 1e-4)


def test_products_of_many_values():
    for a, b in [((5, 30_000), (30_000, 6)), ((1, 100_000), (100_000, 2)), ((1, 50_000), (50_000, 400))]:
        for dtype in (np.float32, np.int32):
            same(keel.matmul, small(dtype, *a), small(dtype, *b, seed=1), tolerance=3e-3)


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_linear(dtype):
    for shape, n in [((5, 7), 4), ((1, 200), 3), ((2, 3, 40), 70), ((100, 20), 33)]:
        same(keel.linear, small(dtype, *shape), small(dtype, shape[-1], n, seed=1) / 4, small(dtype, n, seed=2), tolerance=3e-2 if dtype != np.float64 else None)


# x, w, options
CONVS = [((2, 3, 9), (4, 3, 3), {}), ((1, 4, 8, 7), (6, 2, 3, 2), dict(groups=2, stride=[2, 1], lo=[1, 1], hi=[0, 2])),
         ((2, 6, 5, 5), (6, 1, 3, 3), dict(groups=6, lo=[1, 1], hi=[1, 1])), ((1, 2, 4, 5, 6), (3, 2, 2, 1, 3), dict(dil=[1, 2, 2], lo=[1, 0, 2])),
         ((2, 40, 6, 6), (70, 40, 1, 1), {}), ((0, 3, 4, 4), (2, 3, 2, 2), {}), ((3, 20, 11, 9), (33, 20, 3, 3), dict(lo=[2, 2], hi=[2, 2], dil=[2, 2]))]


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
@pytest.mark.parametrize("x, w, options", CONVS, ids=lambda v: str(v) if isinstance(v, tuple) else "")
def test_convolution_and_gradients(x, w, options, dtype):
    bound = {np.float32: 2e-4, np.float64: None}.get(dtype, 6e-2)
    image, window = small(dtype, *x), (small(dtype, *w, seed=1).astype(np.float32) / 4).astype(dtype)
    same(lambda a, b: keel.conv(a, b, **options), image, window, tolerance=bound)
    dy = results("reference", lambda a, b: keel.conv(a, b, **options), [image, window])[0]
    dy = (small(dtype, *dy.shape, seed=2).astype(np.float32) / 4).astype(dtype)
    rest = {k: v for k, v in options.items() if k != "hi"}
    same(lambda d, b: keel.conv_grad_x(d, b, dims=list(x), **rest), dy, window, tolerance=bound)
    same(lambda d, a: keel.conv_grad_w(d, a, dims=list(w), **rest), dy, image, tolerance=bound)


def test_gradients_of_many_places():
    x, dy = small(np.float32, 2, 5, 130, 130), small(np.float32, 2, 6, 128, 128, seed=1)
    same(lambda d, a: keel.conv_grad_w(d, a, dims=[6, 5, 3, 3]), dy, x, tolerance=3e-3)


@pytest.mark.parametrize("w", [(4, 3, 3, 3), (40, 3, 3, 3)], ids=str)
def test_padding_adds_zero_even_for_infinite_weights(w):
    x, weights = np.ones((1, 3, 20, 20), np.float32), np.ones(w, np.float32)
    weights[1, 2, 0, 0] = np.inf
    for op in (lambda a, b: keel.conv(a, b, lo=[1, 1], hi=[1, 1]),):
        same(op, x, weights)
    dy = np.ones((1, w[0], 18, 18), np.float32)
    same(lambda d, b: keel.conv_grad_x(d, b, dims=[1, 3, 20, 20]), dy, weights)


POOLS = [((2, 3, 9), dict(window=[3])), ((1, 2, 8, 7), dict(window=[3, 2], stride=[2, 1], lo=[1, 1], hi=[0, 2])),
         ((1, 2, 4, 5, 6), dict(window=[2, 1, 3], dil=[1, 2, 2], lo=[1, 0, 2])), ((0, 2, 4, 4), dict(window=[2, 2])),
         ((2, 2, 3, 3), dict(window=[2, 2], lo=[3, 0], hi=[3, 0]))]


@pytest.mark.parametrize("shape, options", POOLS, ids=str)
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_pools(dtype, shape, options):
    x = values(dtype, *shape)
    if dtype in FLOATS and x.size > 20:
        x.reshape(-1)[7] = np.nan
    same(lambda t: keel.max_pool(t, **options), x, exact=True)
    for column_major in (False, True):
        same(lambda t: keel.max_pool_index(t, column_major=column_major, **options), x)
    if dtype in FLOATS:
        same(lambda t: keel.avg_pool(t, **options), x)
        same(lambda t: keel.avg_pool(t, count_pad=True, over=[1] * (len(shape) - 2), **options), x)


@pytest.mark.parametrize("dtype", FLOATS[:3], ids=name)
def test_softmax(dtype):
    for shape, axis in [((7,), 0), ((3, 200), 1), ((3, 65, 2), 1), ((5, 4, 3), 0), ((5000, 3), 1), ((0, 3), 1)]:
        x = (values(dtype, *shape).astype(np.float32) * 9).astype(dtype)
        for op in (keel.softmax, keel.log_softmax, keel.log_sum_exp):
            same(lambda t: op(t, axis=axis), x, tolerance={np.float16: 1e-2}.get(dtype))
    for x in ([1, np.inf], [np.nan, 1], [-np.inf, -np.inf], [-np.inf, 3]):
        for op in (keel.softmax, keel.log_softmax):
            same(op, np.array(x, dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_norms(dtype):
    bound = {np.float16: 1e-2, np.float32: 1e-4, np.float64: None}.get(dtype, 5e-2)
    for shape in [(4, 7), (3, 200), (2, 3, 65), (5000, 3), (0, 4), (6,)]:
        x, g, b = values(dtype, *shape), values(dtype, shape[-1], seed=1), values(dtype, shape[-1], seed=2)
        same(lambda *t: keel.layer_norm(*t), x, g, b, tolerance=bound)
        same(lambda *t: keel.layer_norm(*t, eps=0.5), x, g, b, tolerance=bound)
        same(lambda *t: keel.rms_norm(*t), x, g, tolerance=bound)
    for shape in [(2, 3), (2, 3, 5), (1, 5, 4, 3), (2, 3, 4, 2, 2)]:
        x = values(dtype, *shape)
        g, b, mean = (values(dtype, shape[1], seed=s) for s in range(3))
        same(lambda *t: keel.batch_norm(*t), x, g, b, mean, np.abs(g) + np.asarray(0.1, dtype), tolerance=bound)
