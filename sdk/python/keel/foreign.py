"""Tensors and the arrays of other libraries: NumPy through buffers, others through DLPack. NumPy is imported on first use.

The extension calls these functions; programs write numpy.asarray(t), t.numpy(), keel.array(x), keel.from_dlpack(x).
"""
from . import _keel
from .errors import ShapeError


def plain(value):
    """A tensor or a contiguous ndarray for an object with __dlpack__ or __array__."""
    import numpy
    if not isinstance(value, (numpy.ndarray, numpy.generic)) and hasattr(value, "__dlpack__"):
        return from_dlpack(value)
    array = numpy.ascontiguousarray(value) if getattr(value, "ndim", 1) else numpy.asarray(value)
    if array.dtype.name == "bfloat16":
        return _keel.bits_as(_keel.asarray(array.view("uint16")), _keel.bf16)  # the caller copies
    if array.dtype.name in _STORAGE:
        return _keel.packed(_keel.asarray(array.view("uint8")), array.dtype.name)
    if array.ndim > 8:
        raise ShapeError(f"an array of {array.ndim} dims cannot be converted to a tensor: tensors have at most 8")
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.name not in _NAMES:
        raise TypeError(f"an array of {array.dtype} cannot be converted to a tensor")
    return array


_NAMES = {t.numpy_name for t in vars(_keel).values() if isinstance(t, _keel.DType)}
_STORAGE = {t.numpy_name for t in vars(_keel).values() if isinstance(t, _keel.DType) and t.kind == "s"}


def stacked(values):
    """The stack of a list of tensors (by an op) or arrays (by NumPy)."""
    if any(isinstance(v, (_keel.Tensor, _keel.Variable)) for v in values):
        from .shapes import stack
        return stack(values)
    import numpy
    try:
        array = numpy.asarray(values)
    except ValueError as error:
        raise TypeError(f"this list cannot be converted to a tensor: {error}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError("a list with elements other than numbers cannot be converted to a tensor")
    return array


def array(tensor, dtype=None, copy=None):
    """tensor.__array__: read-only, and without a copy if it is in host memory."""
    import numpy
    here = _keel.host(tensor)
    if tensor.dtype is _keel.bf16:
        import ml_dtypes
        out = numpy.asarray(memoryview(_keel.bits_as(here, _keel.u16))).view(ml_dtypes.bfloat16)
    elif tensor.dtype.kind == "s":
        import ml_dtypes
        out = numpy.asarray(memoryview(_keel.unpacked(here))).view(getattr(ml_dtypes, tensor.dtype.numpy_name))
    else:
        out = numpy.asarray(memoryview(here))
    if dtype is not None and out.dtype != dtype:
        return out.astype(dtype)
    return out.copy() if copy else out


def dlpack(tensor, *, stream=None, max_version=None, dl_device=None, copy=None):
    """tensor.__dlpack__."""
    if dl_device is not None and tuple(dl_device) != tensor.__dlpack_device__():
        raise BufferError(f"the tensor is on {tensor.device or 'the host'}; move it with tensor.to(device)")
    if copy:
        raise BufferError("tensors are immutable and exported without a copy; copy=True is not supported")
    return _keel.give_dlpack(tensor, max_version is not None and max_version[0] >= 1)


def from_dlpack(value):
    """A tensor that shares the memory of another library's array, which must not be written afterwards."""
    if not hasattr(value, "__dlpack__"):
        raise TypeError(f"from_dlpack takes an object with __dlpack__, not {type(value).__name__}; keel.array(x) takes other arrays")
    try:
        return _keel.take_dlpack(value.__dlpack__(max_version=(1, 0)))
    except TypeError:  # producers before DLPack 1
        return _keel.take_dlpack(value.__dlpack__())


def restored(array, dtype):
    return _keel.array(array, dtype=dtype)


def repacked(codes, dtype):
    return _keel.packed(codes, dtype)


def reduce(tensor):
    """tensor.__reduce__: for pickle, as a NumPy array; bf16 as f32, storage dtypes as bytes."""
    dtype = tensor.dtype
    if dtype.kind == "s":
        return repacked, (_keel.unpacked(_keel.host(tensor)), dtype.name)
    return restored, (array(tensor.astype("f32") if dtype == "bf16" else tensor).copy(), dtype.name)
