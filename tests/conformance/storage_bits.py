"""Values of storage dtypes by their bits, and comparison of arrays of them."""
import numpy as np
from keel_types import STORAGE, storage_dtype, unpack


def codes(name):
    """An array of all values of a dtype, in the order of their bits."""
    bits = STORAGE[name][2]
    return unpack(pack_codes(np.arange(1 << bits), bits), storage_dtype(name), (1 << bits,))


def pack_codes(numbers, bits):
    return np.packbits(np.unpackbits(numbers.astype(np.uint8)[:, None], axis=1, count=bits, bitorder="little"), bitorder="little")


def bits_of(array):
    """Comparable: bits, with one NaN."""
    out = array.view(np.uint8).astype(int)
    if array.dtype.name.startswith(("int", "uint")):
        return array.astype(int)
    return np.where(np.isnan(array.astype(np.float64)), 999, out)


def assert_bits(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(bits_of(got), bits_of(want))
