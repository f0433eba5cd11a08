"""Rows of f16 are widened and narrowed as NumPy does it, for each class of processor: all numbers, rows of any length, ties."""
import keel_abi
import numpy as np
from test_cpu_isa import call_in_each_class

ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def check_all_numbers():
    context = keel_abi.Context(threads=1)
    np.testing.assert_array_equal(context.apply("cpu", "cast", ALL, to=np.float32), ALL.astype(np.float32))
    wide = ALL.astype(np.float32)
    between = (wide + np.roll(wide, -1)) / 2  # ties, and infinities in their middle
    for x in (wide, between, np.nextafter(between, np.float32(np.inf)), np.float32([65519.9, 65520, 1e30, 2e-8, 3e-8, -1e-45] * 7)):
        with np.errstate(over="ignore", invalid="ignore"):
            want = x.astype(np.float16)
        np.testing.assert_array_equal(context.apply("cpu", "cast", x, to=np.float16), want)


def check_lengths():
    context, random = keel_abi.Context(threads=1), np.random.default_rng(3)
    for n in (0, 1, 7, 8, 15, 16, 17, 33, 511, 512, 513, 1000):
        a, b = ALL[random.integers(0, 1 << 16, (2, n))]
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(context.apply("cpu", "neg", a), -a)
            for op in (np.add, np.subtract, np.multiply, np.divide):
                for x, y in ((a, b), (np.float16([-0.0]), b), (a, np.float16([-0.0])), (np.float16([3]), b), (a, np.float16([3]))):
                    got, want = context.apply("cpu", {"subtract": "sub", "multiply": "mul", "divide": "div"}.get(op.__name__, "add"), x, y), op(x, y)
                    np.testing.assert_array_equal(got, want)
                    number = ~np.isnan(want)
                    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])


def test_all_numbers_in_each_class():
    call_in_each_class("test_cpu_half", "check_all_numbers")


def test_lengths_in_each_class():
    call_in_each_class("test_cpu_half", "check_lengths")
