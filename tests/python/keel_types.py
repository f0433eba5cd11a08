"""Structures and dtypes of the C headers for ctypes and NumPy, used by keel_abi.py."""
import ctypes as C
import os

import numpy as np


class Kv(C.Structure):
    _fields_ = [("key", C.c_char_p), ("value", C.c_char_p)]


class Tensor(C.Structure):  # also DLPack's DLTensor
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


class Attr(C.Structure):
    _fields_ = [("kind", C.c_int32), ("count", C.c_uint32), ("i", C.c_int64), ("f", C.c_double), ("p", C.c_void_p)]


class Plugin(C.Structure):  # keel_plugin up to `ops`
    _fields_ = [("struct_size", C.c_uint32), ("abi_minor", C.c_uint32), ("draft", C.c_uint32), ("build", C.c_uint32),
                ("name", C.c_char_p), ("version", C.c_char_p), ("about", C.c_char_p), ("device", C.c_void_p),
                ("impls", C.c_void_p), ("n_impls", C.c_uint32), ("impl_stride", C.c_uint32), ("ops", C.c_char_p)]


def encode(text):
    return text if text is None or isinstance(text, bytes) else os.fspath(text).encode()


def names(items):
    """None stays NULL, for parameters with a default."""
    if items is None:
        return None, 0
    return (C.c_char_p * max(1, len(items)))(*map(encode, items)), len(items)


def options(items):
    return (Kv * len(items))(*[(k.encode(), str(v).encode()) for k, v in items.items()]), len(items)


def int64s(items):
    return (C.c_int64 * max(1, len(items)))(*items)


def _bfloat16():
    import ml_dtypes
    return np.dtype(ml_dtypes.bfloat16)


# Storage dtypes: Keel's name -> (name in ml_dtypes, which has one element a byte; code; bits of an element).
STORAGE = {"f8e4m3fn": ("float8_e4m3fn", 10, 8), "f8e4m3fnuz": ("float8_e4m3fnuz", 11, 8), "f8e5m2": ("float8_e5m2", 12, 8),
           "f8e5m2fnuz": ("float8_e5m2fnuz", 13, 8), "f8e8m0": ("float8_e8m0fnu", 14, 8), "i4": ("int4", 0, 4),
           "u4": ("uint4", 1, 4), "i2": ("int2", 0, 2), "u2": ("uint2", 1, 2), "f4e2m1": ("float4_e2m1fn", 17, 4)}
_STORAGE_CODES = {name: (code, bits) for name, code, bits in STORAGE.values()}


def storage_dtype(name):
    """numpy's dtype of a storage dtype, by Keel's name or ml_dtypes' name."""
    import ml_dtypes
    return np.dtype(getattr(ml_dtypes, STORAGE[name][0] if name in STORAGE else name))


def is_storage(dtype):
    return np.dtype(dtype).name in _STORAGE_CODES


def pack(array):
    """The bytes of an array of a storage dtype: the first element in the lowest bits."""
    _, bits = _STORAGE_CODES[array.dtype.name]
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return np.packbits(np.unpackbits(codes[:, None], axis=1, count=bits, bitorder="little"), bitorder="little")


def unpack(data, dtype, shape):
    """The inverse."""
    _, bits = _STORAGE_CODES[dtype.name]
    count = int(np.prod(shape, dtype=np.int64))
    each = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:count * bits].reshape(count, bits)
    return np.packbits(each, axis=1, bitorder="little").reshape(shape).view(dtype)


def code_of(dtype):
    dtype = np.dtype(dtype)
    if dtype.name == "bfloat16":
        return 4
    if dtype.name in _STORAGE_CODES:
        return _STORAGE_CODES[dtype.name][0]
    if dtype.kind not in "iufb":
        raise TypeError(f"libkeel has no dtype like numpy's {dtype}")
    return {"i": 0, "u": 1, "f": 2, "b": 6}[dtype.kind]


def dt(dtype):
    """keel_dt of a numpy dtype."""
    dtype = np.dtype(dtype)
    bits = _STORAGE_CODES[dtype.name][1] if is_storage(dtype) else dtype.itemsize * 8
    return code_of(dtype) | bits << 8 | 1 << 16


def dtype_of(code, bits):
    if code >= 10 or bits < 8:
        return storage_dtype(next(name for name, known in _STORAGE_CODES.items() if known == (code, bits)))
    return _bfloat16() if code == 4 else np.dtype("?" if code == 6 else f"{'iuf'[code]}{bits // 8}")


def tensor_of(array):
    strides = [s // array.itemsize for s in array.strides]
    data, bits = array.ctypes.data, array.itemsize * 8
    if is_storage(array.dtype):
        bits = _STORAGE_CODES[array.dtype.name][1]
        packed = pack(array)
        data, strides = packed.ctypes.data, [int(np.prod(array.shape[d + 1:])) for d in range(array.ndim)]
    tensor = Tensor(data, 1, 0, array.ndim, code_of(array.dtype), bits, 1, int64s(array.shape), int64s(strides), 0)
    if is_storage(array.dtype):
        tensor.packed = packed  # kept alive
    return tensor
