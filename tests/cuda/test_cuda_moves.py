"""Copies, transposes and gathers around the sizes of vectors and of tiles, and at odd places. Each against the device reference."""
import numpy as np
import pytest
from compared import Against, name, values

import keel

pytestmark = pytest.mark.usefixtures("loaded")
same = Against("cuda").same
WIDTHS = [np.uint8, np.float16, np.float32, np.int64]
# dims, perm: one tile and several, with and without a rest; too narrow for tiles; other dims around and between
TRANSPOSES = [((8, 8), (1, 0)), ((32, 64), (1, 0)), ((33, 65), (1, 0)), ((130, 31), (1, 0)), ((64, 64), (1, 0)), ((65, 64), (1, 0)),
              ((129, 70), (1, 0)), ((3, 64, 80), (2, 0, 1)), ((7, 100), (1, 0)), ((100, 7), (1, 0)), ((3, 40, 50), (0, 2, 1)),
              ((3, 40, 50), (2, 1, 0)), ((3, 40, 50), (1, 2, 0)), ((20, 3, 33), (2, 1, 0)), ((2, 3, 9, 10), (0, 2, 3, 1)), ((2, 9, 3, 10), (2, 3, 0, 1)), ((1, 70, 1, 9), (3, 2, 1, 0))]


@pytest.mark.parametrize("dims, perm", TRANSPOSES, ids=str)
def test_transposes(dims, perm):
    for dtype in WIDTHS:
        same(lambda a: keel.transpose(a, perm=list(perm)), values(dtype, *dims), exact=True)


@pytest.mark.parametrize("dtype", WIDTHS, ids=name)
def test_slices_and_concats_at_odd_places(dtype):
    for columns in (15, 16, 32):
        x = values(dtype, 9, columns)
        for start, stop in ((1, columns), (0, columns - 1), (2, 10), (4, 12), (0, 8), (8, 15)):
            same(lambda a, start=start, stop=stop: keel.slice(a, start=[1, start], stop=[9, stop], step=[1, 1]), x, exact=True)
        same(lambda a: keel.slice(a, start=[0, 0], stop=[9, columns], step=[2, 1]), x, exact=True)
        same(lambda a, b: keel.concat([a, b, a], axis=1), x, values(dtype, 9, 4, seed=1), exact=True)
        same(lambda a, b: keel.concat([a, b, a], axis=1), x, values(dtype, 9, 1, seed=1), exact=True)
        same(lambda a: keel.split(a, sizes=[8, columns - 8], axis=1), x, exact=True)
        same(lambda a: keel.reverse(a, axes=[0]), x, exact=True)
        same(lambda a: keel.reverse(a, axes=[1]), x, exact=True)
        same(lambda a: keel.pad(a, keel.array(np.array(1, dtype)), lo=[1, 8], hi=[0, 8], gap=[0, 0]), x, exact=True)
    for size in (0, 1, 3, 1023, 1024, 4097):
        same(lambda a: keel.concat([a, a], axis=0), values(dtype, size), exact=True)


@pytest.mark.parametrize("dtype", WIDTHS, ids=name)
def test_gathers_of_rows(dtype):
    for inner in (1, 2, 3, 8, 16, 24, 100):
        x = values(dtype, 50, inner)
        same(lambda a, i: keel.gather(a, i, axis=0), x, np.array([[49, 0, 3], [7, 7, 1]]), exact=True)
        same(lambda a, i: keel.gather(a, i, axis=1), values(dtype, 3, 20, inner), np.array([19, 0], np.int32), exact=True)
    with keel.device("cuda"), pytest.raises(keel.Error, match="index 50 is not in"):
        keel.gather(keel.array(values(dtype, 50, 16)), keel.array(np.array([1, 50])), axis=0).numpy()


@pytest.mark.parametrize("count", [1023, 1024, 1025, 2049, 5000])
def test_gathers_of_several_elements_of_a_thread(count):
    """A thread takes four elements, 256 apart, of which the last ones of the gather may be missing."""
    index = np.random.default_rng(count).integers(0, 7, count)
    for dtype in WIDTHS:
        same(lambda a, i: keel.gather(a, i, axis=0), values(dtype, 7), index, exact=True)
    same(lambda a, i: keel.gather(a, i, axis=1), values(np.float32, 3, 7, 4), index, exact=True)


@pytest.mark.parametrize("at", [0, 256, 700, 1023, 1500])
def test_a_gather_finds_an_index_that_is_out_anywhere(at):
    index = np.zeros(2000, np.int64)
    index[at] = -8
    with keel.device("cuda"), pytest.raises(keel.Error, match="index -8 is not in"):
        keel.gather(keel.array(values(np.float32, 7)), keel.array(index), axis=0).numpy()
