"""Convolutions, their gradients and pools, against the device `reference`."""
import numpy as np
import pytest
from compared import FLOATS, NUMBERS, Against, name
from kernel_cases import CONVS, POOLS, check_conv_and_gradients, check_infinite_weights, check_pools, small

import keel

pytestmark = pytest.mark.usefixtures("loaded")
on = Against("cuda")
ONES = [((1, 1, 1), (1, 1, 1), {}), ((1, 1), (1, 1), {}), ((3, 5), (4, 5), {}), ((2, 0, 3, 3), (2, 0, 2, 2), {}), ((2, 3, 0), (4, 3, 1), dict(lo=[1], hi=[1])),
        ((1, 2, 3, 3, 3, 3), (2, 2, 2, 2, 2, 2), dict(lo=[1, 0, 0, 1])), ((5, 6, 4), (6, 2, 2), dict(groups=3, stride=[3], lo=[2]))]


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
@pytest.mark.parametrize("x, w, options", CONVS + ONES, ids=lambda v: str(v) if isinstance(v, tuple) else "")
def test_convolution_and_gradients(x, w, options, dtype):
    check_conv_and_gradients(on, dtype, x, w, options)


@pytest.mark.parametrize("outs, ins, size", [(64, 16, 8), (65, 17, 9), (63, 64, 3), (130, 5, 12)])
def test_sizes_around_tiles(outs, ins, size):
    check_conv_and_gradients(on, np.float32, (1, ins, size, size), (outs, ins, 3, 3), dict(lo=[1, 1], hi=[1, 1], stride=[2, 1]))


@pytest.mark.parametrize("x, dy", [((2, 5, 40, 40), (2, 6, 38, 38)), ((2, 4, 40, 40), (2, 4, 38, 38))], ids=["parts", "blocks for each result"])
def test_sums_of_many_places(x, dy):
    """Few results of long sums: in parts by tiles, or by all threads of a block."""
    groups = 1 if x[1] == 5 else 4
    for dtype in (np.float32, np.float16):
        image, up = small(dtype, *x), (small(dtype, *dy, seed=1) / dtype(16)).astype(dtype)
        on.same(lambda d, a: keel.conv_grad_w(d, a, dims=[dy[1], x[1] // groups, 3, 3], groups=groups), up, image, tolerance=1e-3 if dtype == np.float32 else 0.1)


@pytest.mark.parametrize("w", [(4, 3, 3, 3), (40, 3, 3, 3), (2, 3, 3, 3)], ids=str)
def test_padding_adds_zero_even_for_infinite_weights(w):
    check_infinite_weights(on, w)


def test_nan_and_infinity_in_the_image_reach_their_windows_only():
    x, w = np.ones((1, 2, 9, 9), np.float32), np.ones((5, 2, 3, 3), np.float32)
    x[0, 1, 0, 0], x[0, 0, 8, 8], w[3, 0, 1, 1] = np.nan, np.inf, np.inf
    on.same(lambda a, b: keel.conv(a, b, lo=[1, 1], hi=[1, 1]), x, w)
    on.same(lambda d, b: keel.conv_grad_x(d, b, dims=[1, 2, 9, 9], lo=[1, 1]), np.pad(x[:, :, :4, :4], [(0, 0), (0, 3), (0, 5), (0, 5)]), w)
    dy = np.ones((1, 5, 9, 9), np.float32)
    dy[0, 2, 0, 8] = np.inf
    on.same(lambda d, a: keel.conv_grad_w(d, a, dims=[5, 2, 3, 3], lo=[1, 1]), dy, x)


@pytest.mark.parametrize("shape, options", POOLS + [((1, 1, 1), dict(window=[1])), ((2, 0, 3), dict(window=[2])), ((2, 1, 3, 4, 3, 2), dict(window=[2, 3, 2, 1])),
                                                    ((1, 1, 300, 9), dict(window=[2, 3], stride=[1, 3], lo=[1, 2], hi=[0, 2]))], ids=str)
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_pools(dtype, shape, options):
    check_pools(on, dtype, shape, options)


def test_gradients_of_pools():
    x = small(np.float32, 2, 3, 8, 7)
    for op in (keel.max_pool, keel.avg_pool):
        def gradient(t, op=op):
            with keel.Tape() as tape:
                tape.watch(t)
                y = keel.reduce_sum(keel.square(op(t, window=[3, 2], stride=[2, 1], lo=[1, 1], hi=[1, 0])))
            return tape.gradient(y, t)
        on.same(gradient, x, tolerance=1e-4)


def test_images_that_are_too_large_are_named():
    x, w = keel.array(np.zeros((0, 1, 2**32), np.float32)), keel.array(np.zeros((1, 1, 1), np.float32))
    with keel.device("cuda"), pytest.raises(keel.Error, match="conv: more than 2147483647 cells"):
        keel.conv(x, w).numpy()
