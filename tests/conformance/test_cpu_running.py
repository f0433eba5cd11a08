"""cumsum and linear_recurrence on the cpu device, in each class of processor: the bits of sums in double, element by element, for any
count and length of lines, along each axis, from both ends, and for any number of threads."""
import itertools

import keel_abi
import numpy as np
import pytest
from test_cpu_isa import call_in_each_class

SHAPES = [(1, 5), (3, 4), (4, 1), (4, 3), (5, 8), (9, 33), (8, 64), (2, 7, 3), (3, 5, 300), (4, 9, 0), (0, 6)]


def running(x, axis, exclusive, reverse):
    wide = np.flip(x, axis) if reverse else x
    sums = np.cumsum(wide, axis, np.float64 if x.dtype.kind == "f" else x.dtype)
    if exclusive:
        sums = np.concatenate([np.zeros_like(sums.take([0], axis)), np.delete(sums, -1, axis)], axis) if sums.size else sums
    return (np.flip(sums, axis) if reverse else sums).astype(x.dtype)


def check_sums(threads=1):
    context, random = keel_abi.Context(threads=threads), np.random.default_rng(5)
    for shape, dtype in itertools.product(SHAPES, (np.float32, np.float16, np.float64, np.int32)):
        x = (random.normal(size=shape) * 100).astype(dtype)
        for axis, exclusive, reverse in itertools.product(range(len(shape)), (False, True), (False, True)):
            got = context.apply("cpu", "cumsum", x, axis=axis, exclusive=exclusive, reverse=reverse)
            np.testing.assert_array_equal(got, running(x, axis, exclusive, reverse), f"{shape} {dtype} {axis} {exclusive} {reverse}")


def test_sums_in_each_class():
    call_in_each_class("test_cpu_running", "check_sums")


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape, axis", [((1003, 701), 0), ((1003, 701), 1), ((7, 300, 130), 1), ((2, 500001), 1), ((500001, 2), 0)])
def test_large_sums(shape, axis, threads):
    x = np.random.default_rng(6).normal(size=shape).astype(np.float32)
    for exclusive, reverse in itertools.product((False, True), (False, True)):
        got = keel_abi.Context(threads=threads).apply("cpu", "cumsum", x, axis=axis, exclusive=exclusive, reverse=reverse)
        np.testing.assert_array_equal(got, running(x, axis, exclusive, reverse))


@pytest.mark.parametrize("shape, axis", [((5, 33), 0), ((5, 33), 1), ((3, 9, 300), 1), ((600, 700), 0)])
def test_recurrences(shape, axis):
    a, b = np.random.default_rng(7).uniform(-1, 1, (2, *shape)).astype(np.float64)
    for reverse in (False, True):
        rows = [np.moveaxis(np.flip(v, axis) if reverse else v, axis, 0) for v in (a, b)]
        want = [rows[1][0]]
        for factor, add in zip(rows[0][1:], rows[1][1:]):
            want.append(factor * want[-1] + add)
        got = np.moveaxis(keel_abi.Context(threads=2).apply("cpu", "linear_recurrence", a, b, axis=axis, reverse=reverse), axis, 0)
        np.testing.assert_allclose(got[::-1] if reverse else got, np.array(want), rtol=1e-15, atol=1e-15)
