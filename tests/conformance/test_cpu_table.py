"""Groups of elementwise ops that are a function of one 8-bit integer are looked up (plugins/cpu/map/table.cc): the same bits as NumPy's
ops one by one, for sizes on both sides of those from which a table is made."""
import numpy as np
import pytest

import keel

F = np.float32
SIZES = [(0,), (1,), (4095,), (4096,), (64, 1031), (3, 1, 100_003)]


def integers(dtype, shape):
    return np.random.default_rng(3).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def requantised(ops, x, scale, zero):
    """As between two products of a quantised model: two steps, each rounded to 8 bits."""
    for by in (scale, scale * F(1.5)):
        y = ops.clip(ops.round((ops.cast(x, F) - zero) * scale / by) + zero, F(0), F(255))
        x = ops.cast(ops.cast(y, np.uint8), np.uint8)
    return x


def steps(ops, x, scale, zero):
    y = ops.cast(x, F)
    for _ in range(12):
        y = y * scale + zero
    return y


class Numpy:
    round, clip, cast = staticmethod(np.round), staticmethod(np.clip), staticmethod(lambda x, to: x.astype(to))


class Keel:
    round, clip, cast = staticmethod(keel.round), staticmethod(keel.clamp), staticmethod(lambda x, to: keel.cast(x, np.dtype(to).name))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_as_the_ops_one_by_one(dtype, shape, threads):
    x = integers(dtype, shape)
    f = keel.function(lambda x, s, z: (requantised(Keel, x, s, z), steps(Keel, x, s, z)), threads=threads)
    for scale, zero in ((F(0.37), F(3)), (F(1.25), F(-2))):  # the table is that of each run's numbers
        bytes_, floats = f(x, scale, zero)
        assert np.array_equal(np.asarray(bytes_), requantised(Numpy, x, scale, zero))
        assert np.array_equal(np.asarray(floats), steps(Numpy, x, scale, zero))


def test_numbers_that_are_nan_or_infinite():
    x = integers(np.uint8, 5000)
    with np.errstate(all="ignore"):
        for scale in (F(np.inf), F(np.nan), F(0), F(1e38)):
            got = keel.function(lambda x, s: steps(Keel, x, s, F(1)))(x, scale)
            assert np.array_equal(np.asarray(got), steps(Numpy, x, scale, F(1)), equal_nan=True)


def test_a_second_operand_with_all_elements_is_no_table():
    x, y = integers(np.uint8, 5000), integers(np.uint8, 5000)[::-1].copy()
    got = keel.function(lambda x, y: steps(Keel, x, F(0.5), F(1)) + Keel.cast(y, F))(x, y)
    assert np.array_equal(np.asarray(got), steps(Numpy, x, F(0.5), F(1)) + y.astype(F))


def test_ops_that_fail_name_the_element():
    x = np.full(5000, 7, np.uint8)
    x[4321] = 3
    with pytest.raises(keel.Error, match="integer division by zero"):
        keel.function(lambda x: sum(((x + k) // np.uint8(1) for k in range(20)), 100 // (x - np.uint8(3))))(x)
