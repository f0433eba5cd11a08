"""Reductions of lines, short ones several at a time: against NumPy in f64, with NaN and infinities, for each class of processor; the
same bits for any number of threads and lines."""
import keel_abi
import numpy as np
from test_cpu_isa import call_in_each_class

LENGTHS = [1, 2, 15, 16, 17, 31, 32, 33, 49, 64, 200, 1023, 1024, 1025, 2048, 5000]
ORACLES = {"reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max, "reduce_min": np.min}


def check_lines():
    contexts = [keel_abi.Context(threads=n) for n in (1, 2, 5)]
    random = np.random.default_rng(7)
    for dtype in (np.float32, np.float64):
        for n in LENGTHS:
            for lines in (0, 1, 3, 16, 37):
                x = random.standard_normal((lines, n)).astype(dtype)
                for op, oracle in ORACLES.items():
                    got = [np.array(c.apply("cpu", op, x, axes=[1])) for c in contexts]
                    np.testing.assert_allclose(got[0], oracle(x.astype(np.float64), axis=1), rtol=1e-6, atol=5e-7 * n**0.5, err_msg=f"{op} {x.shape}")
                    alone = [np.array(contexts[0].apply("cpu", op, row[None], axes=[1]))[0] for row in x]
                    np.testing.assert_array_equal(got[0], np.array(alone, dtype))
                    for other in got[1:]:
                        np.testing.assert_array_equal(got[0], other)


def check_special():
    context = keel_abi.Context(threads=1)
    for dtype in (np.float32, np.float64, np.float16):
        for n in (1, 33, 1500, 3000):
            for at in {0, n // 2, n - 1}:
                for special in (np.nan, -np.nan, np.inf, -np.inf):
                    x = np.ones((18, n), dtype)
                    x[5, at] = special
                    for op in ("reduce_max", "reduce_min"):
                        want = ORACLES[op](x.astype(np.float64), axis=1)
                        np.testing.assert_array_equal(np.array(context.apply("cpu", op, x, axes=[1])).astype(np.float64), want, err_msg=f"{op} {n} {at} {special}")
            for value in (np.inf, -np.inf):
                x = np.full((18, n), value, dtype)
                for op in ("reduce_max", "reduce_min"):
                    np.testing.assert_array_equal(np.array(context.apply("cpu", op, x, axes=[1])), x[:, 0])


def test_lines_in_each_class():
    call_in_each_class("test_cpu_lines", "check_lines")


def test_special_numbers_in_each_class():
    call_in_each_class("test_cpu_lines", "check_special")
