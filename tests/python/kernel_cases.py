"""Convolutions, pools, norms and sorts on a device with kernels of its own against the device `reference`; for tests/vulkan and
tests/cuda. `on` is an Against (compared.py)."""
import numpy as np
from compared import FLOATS, values

import keel

# x, w, options
CONVS = [((2, 3, 9), (4, 3, 3), {}), ((1, 4, 8, 7), (6, 2, 3, 2), dict(groups=2, stride=[2, 1], lo=[1, 1], hi=[0, 2])),
         ((2, 6, 5, 5), (6, 1, 3, 3), dict(groups=6, lo=[1, 1], hi=[1, 1])), ((1, 2, 4, 5, 6), (3, 2, 2, 1, 3), dict(dil=[1, 2, 2], lo=[1, 0, 2])),
         ((2, 40, 6, 6), (70, 40, 1, 1), {}), ((0, 3, 4, 4), (2, 3, 2, 2), {}), ((3, 20, 11, 9), (33, 20, 3, 3), dict(lo=[2, 2], hi=[2, 2], dil=[2, 2]))]
POOLS = [((2, 3, 9), dict(window=[3])), ((1, 2, 8, 7), dict(window=[3, 2], stride=[2, 1], lo=[1, 1], hi=[0, 2])),
         ((1, 2, 4, 5, 6), dict(window=[2, 1, 3], dil=[1, 2, 2], lo=[1, 0, 2])), ((0, 2, 4, 4), dict(window=[2, 2])),
         ((2, 2, 3, 3), dict(window=[2, 2], lo=[3, 0], hi=[3, 0]))]


def small(dtype, *shape, seed=0):
    """Values whose sums of products stay in the range of small integers and near 1 for floats."""
    x = values(dtype, *shape, seed=seed)
    return x if dtype in FLOATS else (x % 5).astype(dtype)


def quarters(dtype, *shape, seed):
    return (small(dtype, *shape, seed=seed).astype(np.float32) / 4).astype(dtype)


def check_conv_and_gradients(on, dtype, x, w, options):
    bound = {np.float32: 2e-4, np.float64: None}.get(dtype, 6e-2)
    image, window = small(dtype, *x), quarters(dtype, *w, seed=1)
    on.same(lambda a, b: keel.conv(a, b, **options), image, window, tolerance=bound)
    dy = on.results("reference", lambda a, b: keel.conv(a, b, **options), [image, window])[0]
    dy = quarters(dtype, *dy.shape, seed=2)
    rest = {k: v for k, v in options.items() if k != "hi"}
    on.same(lambda d, b: keel.conv_grad_x(d, b, dims=list(x), **rest), dy, window, tolerance=bound)
    on.same(lambda d, a: keel.conv_grad_w(d, a, dims=list(w), **rest), dy, image, tolerance=bound)


def check_infinite_weights(on, w):
    """Padding adds 0, and the other results are not touched."""
    x, weights = np.ones((1, 3, 20, 20), np.float32), np.ones(w, np.float32)
    weights[1, 2, 0, 0] = np.inf
    on.same(lambda a, b: keel.conv(a, b, lo=[1, 1], hi=[1, 1]), x, weights)
    dy = np.ones((1, w[0], 18, 18), np.float32)
    on.same(lambda d, b: keel.conv_grad_x(d, b, dims=[1, 3, 20, 20]), dy, weights)


def check_pools(on, dtype, shape, options):
    x = values(dtype, *shape)
    if dtype in FLOATS and x.size > 20:
        x.reshape(-1)[7] = np.nan
    on.same(lambda t: keel.max_pool(t, **options), x, exact=True)
    for column_major in (False, True):
        on.same(lambda t, c=column_major: keel.max_pool_index(t, column_major=c, **options), x)
    if dtype in FLOATS:
        on.same(lambda t: keel.avg_pool(t, **options), x)
        on.same(lambda t: keel.avg_pool(t, count_pad=True, over=[1] * (len(shape) - 2), **options), x)


def check_softmaxes(on, dtype):
    for shape, axis in [((7,), 0), ((3, 200), 1), ((3, 65, 2), 1), ((5, 4, 3), 0), ((5000, 3), 1), ((0, 3), 1)]:
        x = (values(dtype, *shape).astype(np.float32) * 9).astype(dtype)
        for op in (keel.softmax, keel.log_softmax, keel.log_sum_exp):
            on.same(lambda t, op=op, axis=axis: op(t, axis=axis), x, tolerance={np.float16: 1e-2}.get(dtype))
    for x in ([1, np.inf], [np.nan, 1], [-np.inf, -np.inf], [-np.inf, 3]):
        for op in (keel.softmax, keel.log_softmax):
            on.same(op, np.array(x, dtype))


def check_norms(on, dtype):
    bound = {np.float16: 1e-2, np.float32: 1e-4, np.float64: None}.get(dtype, 5e-2)
    for shape in [(4, 7), (3, 200), (2, 3, 65), (5000, 3), (0, 4), (6,)]:
        x, g, b = values(dtype, *shape), values(dtype, shape[-1], seed=1), values(dtype, shape[-1], seed=2)
        on.same(lambda *t: keel.layer_norm(*t), x, g, b, tolerance=bound)
        on.same(lambda *t: keel.layer_norm(*t, eps=0.5), x, g, b, tolerance=bound)
        on.same(lambda *t: keel.rms_norm(*t), x, g, tolerance=bound)
    for shape in [(2, 3), (2, 3, 5), (1, 5, 4, 3), (2, 3, 4, 2, 2)]:
        x = values(dtype, *shape)
        g, b, mean = (values(dtype, shape[1], seed=s) for s in range(3))
        on.same(lambda *t: keel.batch_norm(*t), x, g, b, mean, np.abs(g) + np.asarray(0.1, dtype), tolerance=bound)


def check_top_k(on, dtype, largest):
    for shape, k in [((7,), 3), ((3, 200), 200), ((2, 3, 64), 5), ((4, 1), 1), ((2, 5), 0), ((0, 4), 2), ((3, 1500), 20)]:
        x = values(dtype, *shape)
        on.same(lambda t, k=k: keel.top_k(t, k=k, largest=largest), x, exact=True)
    if dtype in FLOATS:
        on.same(lambda t: keel.top_k(t, k=6, largest=largest), np.array([1, np.nan, -0.0, 0.0, np.inf, np.nan], dtype), exact=True)
