"""Rows of f16 are widened and narrowed as NumPy does it, for each class of processor: all numbers, rows of any length, ties.
Sums, differences, products and quotients of f32 have the bits of NumPy's too."""
import keel_abi
import numpy as np
import pytest
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


def check_lengths(dtype=np.float16):
    context, random = keel_abi.Context(threads=1), np.random.default_rng(3)
    zero, three = dtype([-0.0]), dtype([3])
    for n in (0, 1, 7, 8, 15, 16, 17, 33, 511, 512, 513, 1000):
        a, b = ALL[random.integers(0, 1 << 16, (2, n))].astype(dtype)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(context.apply("cpu", "neg", a), -a)
            for name, op in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)):
                for x, y in ((a, b), (zero, b), (a, zero), (three, b), (a, three)):
                    got, want = context.apply("cpu", name, x, y), op(x, y)
                    np.testing.assert_array_equal(got, want)
                    number = ~np.isnan(want)
                    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])


def check_lengths_of_f32():
    check_lengths(np.float32)


def test_all_numbers_in_each_class():
    call_in_each_class("test_cpu_half", "check_all_numbers")


@pytest.mark.parametrize("check", ["check_lengths", "check_lengths_of_f32"])
def test_lengths_in_each_class(check):
    call_in_each_class("test_cpu_half", check)
