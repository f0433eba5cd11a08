"""Strided copies on the cpu device, exactly NumPy's: rows of one element and slices with a step, for each size of elements, rows that
are not aligned to vectors, and each class of processor."""
import keel_abi
import numpy as np
import pytest
from test_cpu_isa import call_in_each_class

DTYPES = [np.uint8, np.float16, np.float32, np.int64]
LENGTHS = [1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 1001]


def check_copies():
    context, random = keel_abi.Context(threads=1), np.random.default_rng(3)
    for dtype in DTYPES:
        for n in LENGTHS:
            x = random.integers(1, 100, (5, 1)).astype(dtype)
            np.testing.assert_array_equal(context.apply("cpu", "broadcast_to", x, dims=[5, n]), np.broadcast_to(x, (5, n)), err_msg=f"{dtype} {n}")
            y = random.integers(1, 100, (4, n)).astype(dtype)
            for step in (1, 2, 3, 4, 5, 9):
                got = context.apply("cpu", "slice", y, start=[0, 0], stop=[4, n], step=[2, step])
                np.testing.assert_array_equal(got, y[::2, ::step], err_msg=f"{dtype} {n} {step}")


def check_rows():
    """Rows that are apart, some at a time: parts of longer rows, into longer rows, and in another order."""
    context, random = keel_abi.Context(threads=2), np.random.default_rng(5)
    for dtype in DTYPES:
        for n in [*LENGTHS, 256, 257, 512, 4099]:
            x = random.integers(1, 100, (3, 7, n + 3)).astype(dtype)
            np.testing.assert_array_equal(context.apply("cpu", "slice", x, start=[0, 1, 2], stop=[3, 6, n + 2], step=[1, 1, 1]), x[:, 1:6, 2:-1], err_msg=f"{dtype} {n}")
            parts = np.split(x, [n, n + 1], 2)
            np.testing.assert_array_equal(context.apply("cpu", "concat", *parts, axis=2), x, err_msg=f"{dtype} {n}")
            for got, want in zip(context.apply("cpu", "split", x, n_out=3, sizes=[n, 1, 2], axis=2), parts):
                np.testing.assert_array_equal(got, want, err_msg=f"{dtype} {n}")
            np.testing.assert_array_equal(context.apply("cpu", "transpose", x, perm=[1, 0, 2]), x.swapaxes(0, 1), err_msg=f"{dtype} {n}")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape, parts", [((5, 300), (100, 0, 200)), ((700, 1000), (1, 999)), ((700, 1000), (500, 500)), ((3, 200, 64), (7, 150, 43)),
                                          ((40, 70), (20, 30, 20))])
def test_blocks(shape, parts, threads):
    """Rows of blocks that are copied in order of memory, and blocks so short that each part is copied alone."""
    context = keel_abi.Context(threads=threads)
    x = np.random.default_rng(4).integers(1, 1000, shape).astype(np.int32)
    pieces = np.split(x, np.cumsum(parts)[:-1], 1)
    np.testing.assert_array_equal(context.apply("cpu", "concat", *pieces, axis=1), x)
    for got, want in zip(context.apply("cpu", "split", x, n_out=len(parts), sizes=list(parts), axis=1), pieces):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("threads", [1, 2])
def test_many_rows(threads):
    """So many bytes that later rows are fetched, and rows of a thread that begin within a run."""
    x = np.random.default_rng(6).integers(1, 1000, (5, 301, 33, 20)).astype(np.int32)
    context = keel_abi.Context(threads=threads)
    np.testing.assert_array_equal(context.apply("cpu", "transpose", x, perm=[0, 2, 1, 3]), x.swapaxes(1, 2))
    np.testing.assert_array_equal(context.apply("cpu", "slice", x, start=[0, 0, 1, 3], stop=[5, 301, 33, 20], step=[1, 1, 1, 1]), x[:, :, 1:, 3:])


@pytest.mark.parametrize("check", ["check_copies", "check_rows"])
def test_copies_in_each_class(check):
    call_in_each_class("test_cpu_copies", check)
