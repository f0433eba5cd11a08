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


def test_copies_in_each_class():
    call_in_each_class("test_cpu_copies", "check_copies")
