"""Matrix products, convolutions, pools and norms: every dtype, against the device `reference`."""
import numpy as np
import pytest
from against import FLOATS, NUMBERS, name, on, same
from kernel_cases import CONVS, POOLS, check_conv_and_gradients, check_infinite_weights, check_norms, check_pools, check_softmaxes, small

import keel

pytestmark = pytest.mark.usefixtures("loaded")


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


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
@pytest.mark.parametrize("x, w, options", CONVS, ids=lambda v: str(v) if isinstance(v, tuple) else "")
def test_convolution_and_gradients(x, w, options, dtype):
    check_conv_and_gradients(on, dtype, x, w, options)


def test_gradients_of_many_places():
    x, dy = small(np.float32, 2, 5, 130, 130), small(np.float32, 2, 6, 128, 128, seed=1)
    same(lambda d, a: keel.conv_grad_w(d, a, dims=[6, 5, 3, 3]), dy, x, tolerance=3e-3)


@pytest.mark.parametrize("w", [(4, 3, 3, 3), (40, 3, 3, 3)], ids=str)
def test_padding_adds_zero_even_for_infinite_weights(w):
    check_infinite_weights(on, w)


@pytest.mark.parametrize("shape, options", POOLS, ids=str)
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_pools(dtype, shape, options):
    check_pools(on, dtype, shape, options)


@pytest.mark.parametrize("dtype", FLOATS[:3], ids=name)
def test_softmax(dtype):
    check_softmaxes(on, dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_norms(dtype):
    check_norms(on, dtype)
