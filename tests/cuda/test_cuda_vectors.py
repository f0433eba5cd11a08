"""Elementwise ops around the sizes of vectors and of a block's share: sizes, operands that are broadcast, divisions that fail. Each against
the device reference."""
import numpy as np
import pytest
from compared import ALL, NUMBERS, Against, name, values

import keel

pytestmark = pytest.mark.usefixtures("loaded")
same = Against("cuda").same
SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 255, 256, 257, 1023, 2048, 4097, 8200]
BROADCASTS = [((6, 16), (16,)), ((6, 16), (6, 1)), ((6, 16), ()), ((5, 7), (7,)), ((3, 1, 8), (5, 1)), ((3, 5, 1), (8,)), ((2, 3, 32), (2, 1, 32)),
              ((2, 3, 4, 16), (3, 1, 16)), ((300, 24), (24,)), ((1, 9), (9, 1)), ((4, 3, 6), (3, 6))]


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size):
    for dtype in (np.int8, np.float16, np.float32, np.float64):
        x, y = values(dtype, size), values(dtype, size, seed=1)
        same(keel.neg, x, exact=True)
        same(keel.add, x, y, exact=True)
        same(keel.select, values(np.bool_, size), x, y, exact=True)
        same(keel.less, x, y)
    same(keel.exp, values(np.float32, size))
    for to in (np.int8, np.float16, np.float64):
        same(lambda a, to=to: keel.cast(a, to=np.dtype(to)), values(np.float32, size), exact=True)


@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_dtypes(dtype):
    x, y = values(dtype, 3001), values(dtype, 3001, seed=1)
    same(keel.equal, x, y)
    same(keel.select, values(np.bool_, 3001, seed=2), x, y, exact=True)
    for to in ALL:
        same(lambda a, to=to: keel.cast(a, to=np.dtype(to)), x, exact=True)
    if dtype in NUMBERS:
        same(keel.sub, x, y, exact=True)
        same(keel.clamp, x, np.array(1, dtype), np.array(3, dtype), exact=True)


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
def test_broadcasts(shapes):
    for dtype in (np.int8, np.float16, np.float32, np.float64):
        x, y = values(dtype, *shapes[0]), values(dtype, *shapes[1], seed=1)
        same(keel.sub, x, y, exact=True)
        same(keel.sub, y, x, exact=True)
        same(keel.select, y > 0, x, y, exact=True)


@pytest.mark.parametrize("size", [2, 17, 4099])
def test_a_division_by_zero_is_found_in_vectors_and_beyond(size):
    for at in {0, size // 2, size - 1}:
        y = np.ones(size, np.int32)
        y[at] = 0
        with keel.device("cuda"), pytest.raises(keel.Error, match="zero"):
            keel.div(keel.array(np.ones(size, np.int32)), keel.array(y)).numpy()
    same(keel.div, values(np.int32, size), np.ones(size, np.int32))


