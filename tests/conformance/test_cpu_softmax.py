"""softmax and log_softmax of rows of f32, several at a time: against NumPy in f64, with NaN, infinities and denormal results, for each
class of processor; the same bits alone, in place and with any number of threads."""
import keel_abi
import numpy as np
from regions import as_call
from test_cpu_isa import call_in_each_class

LENGTHS = [1, 3, 4, 7, 8, 9, 15, 16, 17, 48, 63, 64, 65, 127, 128, 1000, 2048, 2049, 5000]
LONG = 256 * 1024 + 70  # in pieces


def softmax(x):
    x = x.astype(np.float64)
    power = np.exp(x - x.max(axis=-1, keepdims=True, initial=-np.inf))
    return power / power.sum(axis=-1, keepdims=True)


def log_softmax(x):
    with np.errstate(divide="ignore"):
        return np.log(softmax(x))


ORACLES = {"softmax": softmax, "log_softmax": log_softmax}


def run(context, op, x):
    return np.array(context.apply("cpu", op, x, axis=x.ndim - 1))


def check_rows():
    contexts, random = [keel_abi.Context(threads=n) for n in (1, 3)], np.random.default_rng(4)
    for n, rows in [(n, rows) for n in LENGTHS for rows in (1, 33)] + [(LONG, 2), (0, 3), (5, 0), (64, 700)]:
        x = random.standard_normal((rows, n)).astype(np.float32) * 3
        for op, oracle in ORACLES.items():
            got = run(contexts[0], op, x)
            np.testing.assert_allclose(got, oracle(x), rtol=2e-6, atol=1e-37 if op == "softmax" else 2e-6, err_msg=f"{op} {x.shape}")
            np.testing.assert_array_equal(run(contexts[1], op, x), got)
            for r in {0, rows - 1} if rows else ():
                np.testing.assert_array_equal(run(contexts[0], op, x[r:r + 1]), got[r:r + 1])


def check_special():
    context = keel_abi.Context(threads=1)
    for n in (1, 2, 16, 21, 70):
        for at in {0, n // 2, n - 1}:
            x = np.linspace(-3, 3, 5 * n, dtype=np.float32).reshape(5, n)
            x[1, at], x[2, at], x[3, at], x[4] = np.nan, np.inf, -np.inf, -np.inf
            for op, oracle in ORACLES.items():
                with np.errstate(invalid="ignore"):
                    want = oracle(x)
                want[1] = np.nan
                np.testing.assert_allclose(run(context, op, x), want, rtol=1e-6, atol=1e-6 if op != "softmax" else 1e-37, err_msg=f"{op} {n} {at}")


def check_denormal_results():
    """Results far below 1 are within a few units of the denormals."""
    context, x = keel_abi.Context(threads=1), np.zeros((2, 40), np.float32)
    x[:, 1:] = -np.arange(70, 109, dtype=np.float32)
    got, want = run(context, "softmax", x), softmax(x)
    assert (got[:, -1] == 0).all() and (got[:, 20:31] > 0).all()
    assert (abs(got - want) <= 2 * 2.0**-149 + 1e-6 * want).all()


def check_in_place():
    """The rows of another op are overwritten by their softmax."""
    context, random = keel_abi.Context(threads=1), np.random.default_rng(5)
    for n in (17, 64, 3000):
        x = random.standard_normal((20, n)).astype(np.float32)
        for op in ORACLES:
            call = as_call(context, lambda g, a, op=op: g.node(op, g.node("neg", a), axis=1), [x], [])
            np.testing.assert_array_equal(np.array(call.run(x)[0]), run(context, op, -x))


def test_rows_in_each_class():
    call_in_each_class("test_cpu_softmax", "check_rows")


def test_special_numbers_in_each_class():
    call_in_each_class("test_cpu_softmax", "check_special")


def test_denormal_results_in_each_class():
    call_in_each_class("test_cpu_softmax", "check_denormal_results")


def test_in_place_in_each_class():
    call_in_each_class("test_cpu_softmax", "check_in_place")
