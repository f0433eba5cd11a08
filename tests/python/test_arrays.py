"""Arrays: every dtype, strides, DLPack both ways in both forms, and eager ops, through the C ABI."""
import ctypes as C
import gc

import numpy as np
import pytest
from keel_abi import Array, KeelError, Tensor, call, dt, int64s, lib, tensor_of
from keel_types import storage_dtype

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "bfloat16"]


def dtype(name):
    import ml_dtypes
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def pattern(shape, kind="f4"):
    return (np.arange(int(np.prod(shape))) % 7).reshape(shape).astype(dtype(kind))


class Managed(C.Structure):  # DLManagedTensor
    _fields_ = [("tensor", Tensor), ("owner", C.c_void_p), ("deleter", C.c_void_p)]


class Versioned(C.Structure):  # DLManagedTensorVersioned
    _fields_ = [("major", C.c_uint32), ("minor", C.c_uint32), ("owner", C.c_void_p), ("deleter", C.c_void_p),
                ("flags", C.c_uint64), ("tensor", Tensor)]


FORMS = {"legacy": Managed, "versioned": Versioned}


def one_of(form, pointer):
    """The parameters `versioned` and `legacy`."""
    return (pointer, None) if form == "versioned" else (None, pointer)


Deleter = C.CFUNCTYPE(None, C.c_void_p)


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3), (3, 0, 2), (1, 2, 1, 2, 1, 2, 1, 2)], ids=str)
def test_memory_is_shared_and_typed(context, kind, shape):
    x = pattern(shape, kind)
    y = context.array(x).numpy()
    assert y.dtype == x.dtype and y.shape == x.shape
    np.testing.assert_array_equal(y, x)
    if x.size:
        assert y.ctypes.data == x.ctypes.data


def test_new_arrays_are_zero_and_aligned(context):
    out = C.c_void_p()
    call("keel_array_new", context, C.c_uint32(dt("f4")), int64s([3, 5]), 2, C.byref(out))
    x = Array(out, context).numpy()
    assert x.shape == (3, 5) and not x.any() and x.ctypes.data % 64 == 0


def test_views_keep_the_memory_alive(context):
    x = context.array(pattern((1000,))).numpy()
    gc.collect()
    np.testing.assert_array_equal(x, pattern((1000,)))


VIEWS = {"transposed": lambda x: x.T, "every second": lambda x: x[::2, 1:], "one repeated": lambda x: np.broadcast_to(x[:1], (4, 6)),
         "backwards": lambda x: x[:, ::-1], "a column": lambda x: x[:, 2:3]}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", ["f4", "i8", "u1"])
def test_strided_input(context, device, view, kind):
    x = VIEWS[view](pattern((4, 6), kind))
    np.testing.assert_array_equal(context.apply(device, "add", x, x), x + x)


def test_copies_take_strides_and_offset(context):
    x = pattern((4, 6))[1:, ::2]
    tensor, out = tensor_of(x), C.c_void_p()
    tensor.data -= 24
    tensor.byte_offset = 24
    call("keel_array_from_tensor", context, C.byref(tensor), None, None, C.byref(out))
    y = Array(out, context).numpy()
    assert y.ctypes.data != x.ctypes.data
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("form", FORMS)
def test_dlpack_in_calls_the_deleter_once_when_done(context, form):
    kind = FORMS[form]
    x, called, out = pattern((2, 3)), [], C.c_void_p()
    deleter = Deleter(called.append)
    managed = kind(tensor=tensor_of(x), deleter=C.cast(deleter, C.c_void_p))
    if form == "versioned":
        managed.major = 1
    call("keel_array_from_dlpack", context, *one_of(form, C.byref(managed)), C.byref(out))
    array = Array(out, context)
    assert array.numpy().ctypes.data == x.ctypes.data
    lib().keel_array_retain(array)
    lib().keel_array_free(array)
    assert called == []
    del array
    gc.collect()
    assert called == [C.addressof(managed)]


@pytest.mark.parametrize("form", FORMS)
def test_dlpack_refused_stays_the_callers(context, form):
    kind = FORMS[form]
    called, out = [], C.c_void_p()
    deleter = Deleter(called.append)
    managed = kind(tensor=tensor_of(pattern((2,))), deleter=C.cast(deleter, C.c_void_p))
    managed.tensor.lanes = 4  # not a Keel dtype
    if form == "versioned":
        managed.major = 1
    with pytest.raises(KeelError, match="lanes"):
        call("keel_array_from_dlpack", context, *one_of(form, C.byref(managed)), C.byref(out))
    assert called == [] and not out


def test_dlpack_of_another_major_is_refused(context):
    managed, out = Versioned(major=2, tensor=tensor_of(pattern((2,)))), C.c_void_p()
    with pytest.raises(KeelError, match="DLPack version 2.0"):
        call("keel_array_from_dlpack", context, C.byref(managed), None, C.byref(out))


def test_dlpack_with_one_small_element_a_byte_is_refused(context):
    x, out = np.zeros(3, storage_dtype("i4")), C.c_void_p()
    tensor = tensor_of(x)  # keeps the packed bytes
    managed = Versioned(major=1, flags=4, tensor=tensor)
    with pytest.raises(KeelError, match="one element of 4 bits in each byte; Keel reads packed elements"):
        call("keel_array_from_dlpack", context, C.byref(managed), None, C.byref(out))
    managed.flags = 0
    call("keel_array_from_dlpack", context, C.byref(managed), None, C.byref(out))
    assert Array(out, context).numpy().dtype == x.dtype


@pytest.mark.parametrize("form", FORMS)
def test_dlpack_out_outlives_the_array(context, form):
    kind = FORMS[form]
    x = context.apply("reference", "add", pattern((2, 3)), np.float32(1))
    out = C.POINTER(kind)()
    call("keel_array_to_dlpack", x.base.owner if x.base is not None else x, *one_of(form, C.byref(out)))
    expected = x.copy()
    del x
    gc.collect()
    t = out.contents.tensor
    assert (t.ndim, t.code, t.bits, t.lanes) == (2, 2, 32, 1) and [t.strides[0], t.strides[1]] == [3, 1]
    got = np.ctypeslib.as_array(C.cast(t.data + t.byte_offset, C.POINTER(C.c_float)), (2, 3))
    np.testing.assert_array_equal(got, expected)
    C.cast(out.contents.deleter, Deleter)(C.addressof(out.contents))


class Capsule:  # as numpy.from_dlpack requires
    def __init__(self, context, array):
        self.out = C.POINTER(Managed)()
        call("keel_array_to_dlpack", context.array(array), None, C.byref(self.out))

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        new = C.pythonapi.PyCapsule_New
        new.restype, new.argtypes = C.py_object, [C.c_void_p, C.c_char_p, C.c_void_p]
        return new(C.cast(self.out, C.c_void_p), b"dltensor", None)


def test_numpy_takes_our_dlpack(context):
    x = pattern((3, 4))
    y = np.from_dlpack(Capsule(context, x.T))
    np.testing.assert_array_equal(y, x.T)
    assert np.shares_memory(x, y)


@pytest.mark.parametrize("kind", ["i4", "i8", "f4", "f8"])
def test_eager_ops_agree_with_numpy(context, device, kind):
    a, b = pattern((2, 1, 3), kind), pattern((4, 1), kind) + dtype(kind).type(1)
    for op, ufunc in [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("maximum", np.maximum)]:
        np.testing.assert_array_equal(context.apply(device, op, a, b), ufunc(a, b))
    np.testing.assert_array_equal(context.apply(device, "less", a, b), a < b)
    np.testing.assert_array_equal(context.apply(device, "reduce_sum", a, axes=[1, 2], keep=True),
                                  a.sum(axis=(1, 2), keepdims=True).astype(dtype(kind)))
    np.testing.assert_array_equal(context.apply(device, "transpose", a, perm=[2, 0, 1]), a.transpose(2, 0, 1))
    np.testing.assert_array_equal(context.apply(device, "cast", a, to=np.float32), a.astype(np.float32))
    values, at = context.apply(device, "top_k", np.array([3, 9, 4, 7], kind), n_out=2, k=2)
    assert values.tolist() == [9, 7] and at.tolist() == [1, 3]


def test_a_bound_op_meets_new_shapes(context, device):
    mul = context.bind(device, "mul")
    for shape in [(), (3,), (0, 2), (2, 2), (3,)]:
        x = pattern(shape)
        np.testing.assert_array_equal(mul(x, x), x * x)
    np.testing.assert_array_equal(mul(pattern((2,), "i4"), pattern((2,), "i4")), [0, 1])
