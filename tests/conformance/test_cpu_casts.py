"""Casts of f32 to i64 truncate, saturate and take NaN as 0, for each class of processor, in each lane of a vector: against Python's integers."""
import math

import keel_abi
import numpy as np
from test_cpu_isa import call_in_each_class

LEAST, MOST = -(1 << 63), (1 << 63) - 1
EDGES = np.float32([2.0**24, 2.0**31, 2.0**32, 2.0**53, 2.0**62, 2.0**63])
SPECIAL = np.concatenate([np.float32([np.nan, np.inf, 0, 0.99999994, 1.5, 3.4e38, 1e-45]), EDGES, np.nextafter(EDGES, np.float32(0)),
                          np.nextafter(EDGES, np.float32(np.inf))])
SPECIAL = np.concatenate([SPECIAL, -SPECIAL])


def integer(x):
    return 0 if math.isnan(x) else (MOST if x > 0 else LEAST) if math.isinf(x) else max(LEAST, min(MOST, int(x)))


def check_lanes():
    context = keel_abi.Context(threads=1)
    small = np.linspace(-1e6, 1e6, 43, dtype=np.float32)
    for x in SPECIAL:
        for lane in range(17):
            mixed = np.insert(small, lane, x)
            np.testing.assert_array_equal(context.apply("cpu", "cast", mixed, to=np.int64), np.array([integer(float(v)) for v in mixed]))


def check_lengths():
    context, random = keel_abi.Context(threads=1), np.random.default_rng(7)
    for n in (0, 1, 7, 8, 9, 16, 31, 1000):
        x = random.integers(0, 1 << 32, n, dtype=np.uint32).view(np.float32)
        wanted = np.array([integer(float(v)) for v in x], np.int64)
        np.testing.assert_array_equal(context.apply("cpu", "cast", x, to=np.int64), wanted)


def test_lanes_in_each_class():
    call_in_each_class("test_cpu_casts", "check_lanes")


def test_lengths_in_each_class():
    call_in_each_class("test_cpu_casts", "check_lengths")
