"""Strided copies on the cpu device, exactly NumPy's: rows of one element and slices with a step, for each size of elements, rows that
are not aligned to vectors, and each class of processor."""
import keel_abi
import numpy as np
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


def test_copies_in_each_class():
    call_in_each_class("test_cpu_copies", "check_copies")
