"""exp, tanh and sqrt of all numbers of f16 and bf16: results are correctly rounded, but for a few which are the other neighbour of the exact number."""
import ml_dtypes
import numpy as np
import pytest
from compared import name

import keel

pytestmark = pytest.mark.usefixtures("loaded")
HALVES = [np.float16, ml_dtypes.bfloat16]
BITS = np.arange(1 << 16, dtype=np.uint16)
FEW = 1 / 100


def places(x):
    """Numbers in order of value: neighbours differ by 1, and the two zeros by 0."""
    bits = x.view(np.uint16).astype(np.int32)
    return np.where(bits & 0x8000, -(bits & 0x7FFF), bits)


def rounded(x, dtype):
    """Of f64, in one rounding: both conversions of odd f32 numbers are exact enough."""
    near = x.astype(np.float32)
    with np.errstate(invalid="ignore"):
        beyond = np.isfinite(near) & (near != x)
        toward_0 = np.where(np.abs(near) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    odd = np.where(beyond, toward_0.view(np.uint32) | 1, near.view(np.uint32)).astype(np.uint32).view(np.float32)
    with np.errstate(over="ignore"):
        return odd.astype(dtype)


def check(op, dtype, got, x):
    with np.errstate(all="ignore"):
        want = rounded(getattr(np, op)(x.astype(np.float64)), dtype)
    wanted, is_nan = want.astype(np.float32), np.isnan(want.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), is_nan)
    zero = ~is_nan & (wanted == 0) & (x.astype(np.float32) == 0)
    np.testing.assert_array_equal(got[zero].view(np.uint16), want[zero].view(np.uint16))
    apart = np.abs(places(got) - places(want))[~is_nan]
    assert apart.max() <= 1 and np.mean(apart != 0) <= FEW
    if op == "sqrt":
        assert apart.max() == 0


@pytest.mark.parametrize("dtype", HALVES, ids=name)
@pytest.mark.parametrize("op", ["exp", "tanh", "sqrt"])
def test_all_numbers(op, dtype):
    x = BITS.view(dtype)
    with keel.device("cuda"):
        check(op, dtype, getattr(keel, op)(keel.array(x)).numpy(), x)


@pytest.mark.parametrize("dtype", HALVES, ids=name)
def test_all_numbers_in_a_fused_body(dtype):
    x = BITS.view(dtype)

    @keel.function
    def chain(x):
        return keel.exp(keel.sqrt(keel.tanh(x)))
    with keel.device("cuda"):
        apart = keel.exp(keel.sqrt(keel.tanh(keel.array(x)))).numpy()
        np.testing.assert_array_equal(chain(keel.array(x)).numpy().view(np.uint16), apart.view(np.uint16))
