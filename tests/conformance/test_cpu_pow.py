"""pow of f32 on the cpu device: within 2.5 units in the last place of the power in f64, and special numbers as in the C library, for
each class of processor; the same bits whatever else a tile contains."""
import keel_abi
import numpy as np
from test_cpu_isa import call_in_each_class

SPECIAL = np.array([0, -0.0, 1, -1, 2, -2, .5, 3, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 1e-38, 2**-126], np.float32)
RANGES = [(-126, 127, 1), (-2, 2, 30), (-.01, .01, 5000), (-126, 127, .3), (-.5, .5, 200)]  # of log2 of the base; the exponent's scale


def check_ulps():
    context, random = keel_abi.Context(threads=1), np.random.default_rng(1)
    for low, high, scale in RANGES:
        a = np.exp2(random.uniform(low, high, 100_000)).astype(np.float32)
        b = (random.standard_normal(a.shape) * scale).astype(np.float32)
        with np.errstate(over="ignore", under="ignore"):
            want = np.power(a.astype(np.float64), b.astype(np.float64))
            rounded = want.astype(np.float32)
        got = np.array(context.apply("cpu", "pow", a, b))
        whole = np.isfinite(rounded)
        off = np.abs(got[whole] - want[whole]) / np.maximum(np.spacing(np.abs(rounded[whole])).astype(np.float64), 2.0**-149)
        assert off.max() <= 2.5, (low, high, scale, off.max())
        # beside an operand that the fast function does not serve
        a[::100] = -1
        mixed = np.array(context.apply("cpu", "pow", a, b))
        kept = np.arange(len(a)) % 100 != 0
        np.testing.assert_array_equal(mixed[kept], got[kept])


def check_special():
    context = keel_abi.Context(threads=1)
    a, b = (m.copy() for m in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        want = np.power(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(context.apply("cpu", "pow", a, b), want, rtol=3e-7)
    for i, one in enumerate(SPECIAL):
        np.testing.assert_allclose(context.apply("cpu", "pow", SPECIAL, np.float32(one)), want[i], rtol=3e-7)
        np.testing.assert_allclose(context.apply("cpu", "pow", np.float32(one), SPECIAL), want[:, i], rtol=3e-7)
    for n in (0, 1, 255, 257):
        x = np.resize(SPECIAL, n)
        with np.errstate(all="ignore"):
            want = np.power(x.astype(np.float64), x.astype(np.float64)).astype(np.float32)
        np.testing.assert_allclose(context.apply("cpu", "pow", x, x), want, rtol=3e-7)


def test_ulps_in_each_class():
    call_in_each_class("test_cpu_pow", "check_ulps")


def test_special_numbers_in_each_class():
    call_in_each_class("test_cpu_pow", "check_special")
