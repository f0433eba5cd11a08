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


def code_of(dtype):
    dtype = np.dtype(dtype)
    if dtype.name == "bfloat16":
        return 4
    if dtype.kind not in "iufb":
        raise TypeError(f"libkeel has no dtype like numpy's {dtype}")
    return {"i": 0, "u": 1, "f": 2, "b": 6}[dtype.kind]


def dt(dtype):
    """keel_dt of a numpy dtype."""
    return code_of(dtype) | np.dtype(dtype).itemsize << 11 | 1 << 16


def dtype_of(code, bits):
    return _bfloat16() if code == 4 else np.dtype("?" if code == 6 else f"{'iuf'[code]}{bits // 8}")


def tensor_of(array):
    strides = [s // array.itemsize for s in array.strides]
    tensor = Tensor(array.ctypes.data, 1, 0, array.ndim, code_of(array.dtype), array.itemsize * 8, 1,
                    int64s(array.shape), int64s(strides), 0)
    return tensor
