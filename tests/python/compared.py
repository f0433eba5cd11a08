"""Comparison of a device with the device `reference`, over dtypes and shapes; for tests/vulkan and tests/cuda."""
import ml_dtypes
import numpy as np

import keel

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
NUMBERS = INTEGERS + FLOATS
ALL = [np.bool_] + NUMBERS
TOLERANCE = {np.float16: 2e-3, ml_dtypes.bfloat16: 1.6e-2, np.float32: 2e-5, np.float64: 1e-12}


def name(value):
    return getattr(value, "__name__", str(value))


def values(dtype, *shape, seed=0):
    """Small integers in all bits of small integer types; normal numbers in floats."""
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.random(shape) > 0.5
    if dtype in FLOATS:
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -1000), min(info.max, 1000), shape, dtype, endpoint=True)


class Against:
    """A device under test, by name."""

    def __init__(self, device):
        self.device = device

    def results(self, device, op, arrays):
        with keel.device(device):
            made = op(*map(keel.array, arrays))
            made = made if isinstance(made, (tuple, list)) else [made]
            if device == self.device:
                assert {str(each.device) for each in made} == {f"{device}:0"}
            return [each.numpy() for each in made]

    def same(self, op, *arrays, exact=False, tolerance=None):
        """op(*arrays) on the device is that on reference: bit by bit for integers and if exact, NaN in the same places."""
        for got, want in zip(self.results(self.device, op, arrays), self.results("reference", op, arrays), strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            if exact or want.dtype.type not in TOLERANCE:
                if want.dtype.type in TOLERANCE:  # bits, but any NaN
                    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
                    got, want = (np.where(np.isnan(a), 0, a).astype(want.dtype).tobytes() for a in (got, want))
                    assert got == want
                else:
                    np.testing.assert_array_equal(got, want)
                continue
            bound = tolerance or TOLERANCE[want.dtype.type]
            np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=bound, atol=bound)

    def fails_alike(self, op, *arrays):
        """The error of the op on the device has the type and, after the names of device and node, the text of that on cpu; returns it."""
        said = []
        for device in (self.device, "cpu"):
            try:
                self.results(device, op, arrays)
                said.append("no error")
            except keel.Error as e:
                text = str(e).splitlines()[0].rsplit('"v0": ')[-1]
                said.append(f"{type(e).__name__}: {text.split(', found by device')[0]}")
        assert said[0] == said[1] != "no error", said
        return said[0]
