"""Casts of the storage dtypes (8-bit floats, 4- and 2-bit elements packed in bytes) to and from all dtypes, and packing. The oracle is
ml_dtypes, or exact arithmetic where it has another rule."""
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from keel_abi import KeelError
from keel_types import STORAGE, pack, storage_dtype
from storage_bits import assert_bits, codes
from tested_devices import DEVICES

FLOATS = ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1"]  # with a sign
INTEGERS = ["i4", "u4", "i2", "u2"]
PACKED = [name for name, (_, _, bits) in STORAGE.items() if bits < 8]
COMPUTING = [np.dtype(t) for t in "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8".split()] + [np.dtype(ml_dtypes.bfloat16)]
SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 1023, 1024, 1025, 5003]


def range_of(name):
    signed, bits = name[0] == "i", STORAGE[name][2]
    least = -(1 << bits - 1) if signed else 0
    return least, least + (1 << bits) - 1


@pytest.fixture(params=DEVICES)
def cast(context, request):
    def run(x, to, **attrs):
        return context.apply(request.param, "cast", x, to=storage_dtype(to) if isinstance(to, str) else to, **attrs)
    return run


# ---- values

@pytest.mark.parametrize("to", COMPUTING, ids=str)
@pytest.mark.parametrize("name", STORAGE)
def test_every_value_is_read(cast, name, to):
    x = codes(name)
    exact = x.astype(np.float64)
    got = cast(x, to)
    assert got.dtype == to
    if to.kind in "iu":
        whole = np.clip(np.where(np.isnan(exact), 0, np.trunc(exact)), -1e30, 1e30)
        info = np.iinfo(to)
        if name in INTEGERS:
            want = x.astype(np.int64).astype(to)  # wraps
        else:
            want = np.array([int(min(max(int(v), info.min), info.max)) for v in whole], dtype=to)
    else:
        with np.errstate(over="ignore"):
            want = exact != 0 if to.kind == "b" else exact.astype(to)
    if to.kind == "V":  # bf16
        got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(got, want)
    if to.kind == "f":
        np.testing.assert_array_equal(np.signbit(got)[~np.isnan(exact)], np.signbit(want)[~np.isnan(exact)])


def probes(name):
    """Numbers around all values of a small float: themselves, the middles between neighbours, and what is next to those."""
    with np.errstate(invalid="ignore"):
        v = codes(name).astype(np.float64)
    v = np.unique(v[np.isfinite(v)])
    step = v[-1] - v[-2]
    v = np.concatenate([v, (v[1:] + v[:-1]) / 2, [v[-1] + step / 2, v[-1] + step, -v[-1] - step / 2, -v[-1] - step]])
    near = [np.nextafter(v.astype(np.float32), np.float32(side)) for side in (-np.inf, np.inf)]
    rest = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, -1e30, 3.4e38]
    return np.concatenate([v, *near, rest])


def rounded(x, name, saturate):
    """By ml_dtypes; saturating as ONNX says: what rounds to more than the largest number, and infinities."""
    dtype = storage_dtype(name)
    most = float(ml_dtypes.finfo(dtype).max)
    if name == "f4e2m1":
        x = np.where(np.isnan(x), 0, x)
    if saturate or name == "f4e2m1":
        x = np.clip(x, -most, most)
    return x.astype(dtype)


@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("source", ["f2", "f4", "f8", "bfloat16"])
@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_rounded_once(cast, name, source, saturate):
    source = np.dtype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.arange(1 << 16, dtype=np.uint16).view(source) if source.itemsize == 2 else probes(name).astype(source)
    assert_bits(cast(x, name, saturate=saturate), rounded(x.astype(np.float32), name, saturate))


@pytest.mark.parametrize("name", FLOATS)
def test_f64_is_not_rounded_to_f32_first(cast, name):
    v = codes(name).astype(np.float64)
    v = np.unique(v[np.isfinite(v) & (v >= 0)])
    middle = (v[1:] + v[:-1]) / 2
    for side, want in ((0, v[:-1]), (9, v[1:])):
        np.testing.assert_array_equal(cast(np.nextafter(middle, side * 1e9), name).astype(np.float64), want)
    np.testing.assert_array_equal(cast(-middle * (1 + 2.0**-40), name).astype(np.float64), -v[1:])


@pytest.mark.parametrize("source", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("name", FLOATS)
def test_integers_are_rounded(cast, name, source):
    source = np.dtype(source)
    x = np.array([0, 1], source) if source.kind == "b" else np.concatenate([
        np.arange(127, dtype=source), np.iinfo(source).max - np.arange(9, dtype=source),
        np.iinfo(source).min + np.arange(9, dtype=source)])
    assert_bits(cast(x, name), rounded(x.astype(np.float64), name, True))


@pytest.mark.parametrize("source", COMPUTING, ids=str)
@pytest.mark.parametrize("name", INTEGERS)
def test_to_packed_integers(cast, name, source):
    least, most = range_of(name)
    if source.kind in "iu":
        x = np.arange(-40, 300).astype(source)  # wraps
        want = [(int(v) - least) % (most - least + 1) + least for v in x]
    elif source.kind == "b":
        x, want = np.array([False, True]), [0, 1 if most >= 1 else most]
    else:
        x = np.array([-300, -9, -8.5, -2.5, -1.5, -1, -0.75, -0.0, 0.25, 0.75, 1, 1.5, 2.9, 3, 7.9, 8, 15.9, 16, 1e4, np.inf, -np.inf,
                      np.nan]).astype(source)
        want = [0 if math.isnan(v) else min(max(v, least), most) if math.isinf(v) else min(max(int(v), least), most)
                for v in x.astype(np.float64)]
    assert_bits(cast(x, name), np.array(want, np.int64).astype(storage_dtype(name)))


@pytest.mark.parametrize("name", STORAGE)
@pytest.mark.parametrize("source", STORAGE)
def test_between_storage_dtypes(cast, source, name):
    x = codes(source)
    if source == name:
        return assert_bits(cast(x, name), x)
    wide = x.astype(np.int32) if source in INTEGERS else x.astype(np.float32)  # exact
    assert_bits(cast(x, name), cast(wide, name))


# ---- f8e8m0

def power(x, saturate, mode):
    if math.isnan(x) or x < 0:
        return 255
    if x == 0:
        return 0 if saturate else 255
    if math.isinf(x):
        return 254 if saturate else 255
    x, e = Fraction(x), x.bit_length() - 1 if isinstance(x, int) else math.frexp(x)[1] - 1
    rest = x / Fraction(2)**e
    e += {"down": 0, "up": int(rest > 1), "nearest": int(rest >= Fraction(3, 2))}[mode]
    if -127 <= e <= 127:
        return e + 127
    return 255 if not saturate else 0 if e < 0 else 254


@pytest.mark.parametrize("mode", ["nearest", "up", "down"])
@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("source", ["f2", "f4", "f8", "bfloat16", "i8"])
def test_powers_of_two(cast, source, saturate, mode):
    source = np.dtype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    grid = [s * 2.0**e for e in range(-149, 128) for s in (1, 1.25, 1.5, 1.75)]
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, -1, 3e38, *grid])
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.array([0, 1, 2, 3, 5, 6, 7, -1, 2**53 + 1, 2**62 + 1, 2**63 - 1]) if source.kind == "i" else x.astype(source)
    want = [power(int(v) if source.kind == "i" else float(v), saturate, mode) for v in x]
    np.testing.assert_array_equal(cast(x, "f8e8m0", saturate=saturate, round=mode).view(np.uint8), want)


def test_powers_of_two_of_onnx(cast):
    """ONNX's own helper, where it follows ONNX's table: positive normal numbers."""
    numpy_helper = pytest.importorskip("onnx.numpy_helper")
    x = np.random.default_rng(3).lognormal(0, 20, 4000).astype(np.float32)
    for mode in ("nearest", "up", "down"):
        assert_bits(cast(x, "f8e8m0", round=mode), numpy_helper.to_float8e8m0(x, True, mode))


# ---- packing

@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", STORAGE)
def test_sizes(cast, name, size):
    rng = np.random.default_rng(size)
    x = rng.choice(codes(name), size)
    wide = np.int32 if name in INTEGERS else np.float32
    np.testing.assert_array_equal(cast(x, wide), x.astype(wide))
    assert_bits(cast(x.astype(wide), name, saturate=False), x)


def test_elements_begin_in_the_lowest_bits(context):
    for device in DEVICES:
        for name, numbers, want in (("i4", [1, -2, 3], "e103"), ("u2", [1, 2, 3, 0, 2], "3902"), ("f4e2m1", [0.5, -6], "f1"),
                                    ("i2", [-1, 1], "07"), ("f8e4m3fn", [1, 448], "387e")):
            source = np.array(numbers, np.float32)
            out = context.bind(device, "cast", to=storage_dtype(name)).arrays(context.array(source))[0]
            raw = out.numpy()
            assert pack(raw).tobytes().hex() == want
            np.testing.assert_array_equal(raw.astype(np.float32), source)


@pytest.mark.parametrize("name", PACKED)
def test_strided_packed_arrays_are_refused(context, name):
    from keel_abi import tensor_of
    import ctypes as C
    from keel_abi import call, int64s
    tensor = tensor_of(np.zeros((3, 4), storage_dtype(name)))
    tensor.strides = int64s([1, 3])
    with pytest.raises(KeelError, match=f"a tensor of {name} is strided; its elements are packed, so it must be row-major"):
        call("keel_array_from_tensor", context, C.byref(tensor), None, None, C.byref(C.c_void_p()))
