"""Reductions of lines, short ones several at a time, and of short columns: against NumPy in f64, with NaN and infinities, for each class
of processor; the same bits for any number of threads and lines. Indices of the best elements are exact."""
import itertools

import keel_abi
import numpy as np
from test_cpu_isa import call_in_each_class

LENGTHS = [1, 2, 15, 16, 17, 31, 32, 33, 49, 64, 200, 1023, 1024, 1025, 2048, 5000]
ORACLES = {"reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max, "reduce_min": np.min}
ALL = {**ORACLES, "reduce_prod": np.prod}


def check_lines():
    contexts = [keel_abi.Context(threads=n) for n in (1, 2, 5)]
    random = np.random.default_rng(7)
    for dtype in (np.float32, np.float64):
        for n in LENGTHS:
            for lines in (0, 1, 3, 16, 37):
                normal = random.standard_normal((lines, n)).astype(dtype)
                for op, oracle in ALL.items():
                    x = np.exp2(np.round(normal)) * np.sign(normal) if op == "reduce_prod" and n <= 200 else normal
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
                for line, special in itertools.product((0, 5, 15, 17), (np.nan, -np.nan, np.inf, -np.inf)):
                    x = np.ones((18, n), dtype)
                    x[line, at] = special
                    for op in ("reduce_max", "reduce_min"):
                        want = ORACLES[op](x.astype(np.float64), axis=1)
                        np.testing.assert_array_equal(np.array(context.apply("cpu", op, x, axes=[1])).astype(np.float64), want, err_msg=f"{op} {n} {line} {at} {special}")
            for value in (np.inf, -np.inf):
                x = np.full((18, n), value, dtype)
                for op in ("reduce_max", "reduce_min"):
                    np.testing.assert_array_equal(np.array(context.apply("cpu", op, x, axes=[1])), x[:, 0])


def check_columns():
    contexts = [keel_abi.Context(threads=n) for n in (1, 3)]
    random = np.random.default_rng(8)
    for shape in ((3, 100, 64), (2, 31, 128), (1, 16, 64), (2, 40, 63), (2, 33, 65), (3, 64, 192), (40, 500, 64), (2, 7, 700), (1, 37, 2049), (1, 100, 5003)):
        for dtype, bound in ((np.float32, 1e-6), (np.float64, 1e-6), (np.float16, 1e-3)):
            x = random.standard_normal((*shape[:-1], shape[-1] + 1)).astype(dtype).ravel()[1:np.prod(shape) + 1].reshape(shape)
            for op, oracle in ORACLES.items():
                got = [np.array(c.apply("cpu", op, x, axes=[1])) for c in contexts]
                np.testing.assert_allclose(got[0], oracle(x.astype(np.float64), axis=1), rtol=bound, atol=10 * bound, err_msg=f"{op} {shape} {dtype}")
                np.testing.assert_array_equal(*got)


def check_special_columns():
    context = keel_abi.Context(threads=1)
    for dtype, rows, n in itertools.product((np.float32, np.float64, np.float16), (1, 8, 9, 40), (1, 15, 16, 31, 33, 700, 2050)):
        for row, column, special in itertools.product({0, rows // 2, rows - 1}, {0, n // 2, n - 1}, (np.nan, np.inf, -np.inf)):
            x = np.ones((rows, n), dtype)
            x[row, column] = special
            for op in ("reduce_max", "reduce_min"):
                got = np.array(context.apply("cpu", op, x, axes=[0]))
                np.testing.assert_array_equal(got, ORACLES[op](x, axis=0), err_msg=f"{op} {dtype} {x.shape} {row} {column} {special}")


def check_indices():
    context = keel_abi.Context(threads=1)
    for n in (32, 4096, 4097, 9000, 12289):
        for places in ([0], [n - 1], [n // 2, n // 2 + 1], [3, n - 1], [n // 3, n // 2, n - 2]):
            for best in (2, np.inf, np.nan):
                x = np.full((2, n), 1, np.float32)
                x[1, places] = best
                for op, sign in (("arg_max", 1), ("arg_min", -1)):
                    for last in (False, True):
                        got = context.apply("cpu", op, sign * x, axis=1, last=last)
                        np.testing.assert_array_equal(got, [(n - 1) * last, places[-last]], err_msg=f"{op} {n} {places} {best} {last}")


def test_columns_in_each_class():
    call_in_each_class("test_cpu_lines", "check_columns")


def test_special_columns_in_each_class():
    call_in_each_class("test_cpu_lines", "check_special_columns")


def test_indices_in_each_class():
    call_in_each_class("test_cpu_lines", "check_indices")


def test_lines_in_each_class():
    call_in_each_class("test_cpu_lines", "check_lines")


def test_special_numbers_in_each_class():
    call_in_each_class("test_cpu_lines", "check_special")
