"""Tensors in Python: creation, properties, printing, indexing, and exchange with NumPy and others."""
import copy
import pickle
import threading

import keel
import ml_dtypes
import numpy as np
import pytest

NUMPY = [t for t in (keel.bool_, keel.i8, keel.i16, keel.i32, keel.i64, keel.u8, keel.u16, keel.u32, keel.u64,
                     keel.f16, keel.f32, keel.f64)]


@pytest.mark.parametrize("values, dtype, shape", [
    (1, "i32", ()), (1.5, "f32", ()), (True, "bool", ()), (2**40, "i64", ()), ([], "f32", (0,)),
    ([1, 2.5], "f32", (2,)), ([True, 2], "i32", (2,)), ([[1, 2], [3, 4]], "i32", (2, 2)), (((1.,),), "f32", (1, 1)),
    (np.float64(2), "f64", ()), ([np.float64(2)], "f64", (1,)), (np.float32(2), "f32", ()), (np.int64(2), "i64", ()), (np.zeros((2, 0)), "f64", (2, 0))])
def test_literals_have_a_dtype_of_their_own(values, dtype, shape):
    t = keel.array(values)
    assert (t.dtype, t.shape, t.ndim) == (dtype, shape, len(shape))


@pytest.mark.parametrize("dtype", NUMPY)
def test_numpy_arrays_of_each_dtype_come_back_equal(dtype):
    x = np.arange(24).reshape(2, 3, 4).astype(dtype.numpy_name)
    for view in (x, x[::-1], x.T, x[:, 1:, ::2], x[0, 0, 0], np.asfortranarray(x), x.astype(x.dtype.newbyteorder(">"))):
        t = keel.array(view)
        assert t.dtype == dtype and t.dtype == x.dtype and t.shape == np.shape(view)
        np.testing.assert_array_equal(np.asarray(t), view)
        assert t.tolist() == view.tolist()


def test_bf16_goes_by_ml_dtypes():
    x = np.array([[1.5, -2, 3e38]], ml_dtypes.bfloat16)
    t = keel.array(x)
    assert t.dtype is keel.bf16 and t.numpy().dtype == x.dtype and t.tolist() == x.astype("f4").tolist()
    assert keel.bf16([1.5]).numpy().tolist() == [1.5]


@pytest.mark.parametrize("dtype", ["f4", "f2", "u1", ml_dtypes.bfloat16])
def test_array_copies_and_asarray_shares(dtype):
    x = np.zeros(4, dtype)
    copied, shared = keel.array(x), keel.asarray(x)
    x[0] = 7
    assert copied.tolist()[0] == 0 and shared.tolist()[0] == 7
    assert keel.asarray(x[::2]).tolist() == [7, 0]


def test_numpy_views_are_read_only_and_keep_the_tensor():
    view = keel.array([1., 2.]).numpy()
    assert view.tolist() == [1, 2]
    with pytest.raises(ValueError):
        view[0] = 3
    t = keel.array([1., 2.])
    assert np.asarray(t).__array_interface__["data"][0] == np.asarray(t).__array_interface__["data"][0]
    assert np.array(t).flags.writeable and t.__array__(dtype="f8").dtype == "f8" and t.__array__(copy=True).flags.writeable


def test_dlpack_goes_both_ways_without_a_copy():
    t = keel.array([[1., 2.], [3., 4.]])
    there = np.from_dlpack(t)
    assert there.tolist() == t.tolist() and there.ctypes.data == np.asarray(t).ctypes.data
    x = np.arange(3, dtype="i8")
    assert np.asarray(keel.from_dlpack(x)).ctypes.data == x.ctypes.data
    assert t.__dlpack_device__() == (1, 0) and "dltensor_versioned" in repr(t.__dlpack__(max_version=(1, 0)))
    with pytest.raises(BufferError):
        t.__dlpack__(dl_device=(2, 0))
    del there
    assert keel.from_dlpack(t).tolist() == t.tolist()


def test_a_capsule_is_taken_once():
    from keel import _keel
    capsule = keel.array([1.]).__dlpack__()
    assert _keel.take_dlpack(capsule).tolist() == [1]
    with pytest.raises(keel.InvalidError, match="unused DLPack capsule"):
        _keel.take_dlpack(capsule)


def test_numpy_functions_give_arrays_and_operators_tensors():
    a = keel.array([[1, 2], [3, 4]])
    made = np.multiply(a, keel.add(a, 1))
    assert type(made) is np.ndarray and made.tolist() == [[2, 6], [12, 20]]
    for both in (np.ones((2, 2), "i4") + a, a + np.ones((2, 2), "i4"), np.int32(1) + a):
        assert type(both) is keel.Tensor and both.tolist() == [[2, 3], [4, 5]]


@pytest.mark.parametrize("index", [
    0, -1, slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(3, 0, -2), slice(-2, None),
    slice(-1, -9, -1), slice(5, 2), (0, 1), (slice(None), 1), (slice(None), -1, slice(0, 2)), Ellipsis, (..., 0), (0, ...),
    None, (slice(None), None), (0, None, ..., None), [0, 2], (slice(None), [1, -1]), (..., [[0, 1], [2, 3]]), (1, 2, 3)])
def test_indices_mean_what_numpy_means(index):
    x = np.arange(60, dtype="f4").reshape(4, 3, 5)
    np.testing.assert_array_equal(np.asarray(keel.array(x)[index]), x[index])


@pytest.mark.parametrize("index, kind", [
    (4, IndexError), (-5, IndexError), ((0, 0, 0, 0), IndexError), (1.5, TypeError), ("a", TypeError), ((..., ...), ValueError),
    (slice(None, None, 0), ValueError), ([True, False], ValueError), (([0], [1]), NotImplementedError)])
def test_wrong_indices_are_errors(index, kind):
    with pytest.raises(kind):
        keel.zeros((4, 3, 5))[index]


def test_rows_length_and_numbers():
    t = keel.array([[1, 2], [3, 4]])
    assert [row.tolist() for row in t] == [[1, 2], [3, 4]] and len(t) == 2
    assert (int(t[0, 0]), float(t[0, 1]), bool(t[1, 0]), [5, 6, 7][t[0, 0]]) == (1, 2., True, 6)
    assert keel.array(2**63 - 1).item() == 2**63 - 1 and int(keel.array(np.uint64(2**64 - 1))) == 2**64 - 1
    for wrong in (lambda: len(t[0, 0]), lambda: list(t[0, 0]), lambda: [][keel.array(1.)]):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(keel.Error, match="4 elements"):
        bool(t)
    with pytest.raises(TypeError):
        t[0] = 1
    with pytest.raises(TypeError):
        keel.Tensor()


@pytest.mark.parametrize("values, text", [
    ([[4.]], "[[4.]]"), ([1., .5], "[1.  0.5]"), ([[2, 6], [12, 20]], "[[ 2  6]\n [12 20]]"), (0., "0.0"),
    ([True, False], "[ True False]"), ([], "[]"), (11, "11")])
def test_printing_is_numpys(values, text):
    assert str(keel.array(values)) == f"{keel.array(values)}" == text == str(np.array(values, np.asarray(keel.array(values)).dtype))


def test_repr_adds_the_type():
    assert repr(keel.array([[4.]])) == "Tensor f32[1, 1]: [[4.]]"
    assert f"{keel.array(1.25):.1f}" == "1.2"
    with pytest.raises(keel.Error):
        f"{keel.array([1., 2.]):.1f}"


def test_tensors_are_keys_by_identity_and_survive_pickle_and_copy():
    t = keel.array([[1.5, 2]])
    assert {t: 1}[t] == 1 and copy.copy(t) is t and copy.deepcopy(t) is t
    for x in (t, t.astype("bf16"), keel.array(True)):
        back = pickle.loads(pickle.dumps(x))
        assert keel.same(back, x) and back.dtype is x.dtype
    assert (t == None) is False and (t != "a") is True  # noqa: E711  Python compares unlike objects


def test_equality_goes_by_element_and_same_gives_one_answer():
    a = keel.array([1., float("nan")])
    assert (a == a).tolist() == [True, False] and keel.same(a, a) and not keel.same(a, [1., 2.])


@pytest.mark.parametrize("wrong", ["a", b"ab", {}, object(), [object()], ["a"], [[1, 2], [3]], [1, [2]], [[1], 2], np.array(["a"]),
                                   np.array([object()]), np.array([1j]), 2**70, [keel.array([1.]), keel.array([1., 2.])]])
def test_what_is_no_tensor_is_an_error(wrong):
    with pytest.raises((TypeError, ValueError)):
        keel.array(wrong)


def test_lists_of_tensors_are_stacked():
    assert keel.array([keel.array([1., 2.]), keel.array([3., 4.])]).tolist() == [[1, 2], [3, 4]]
    assert keel.array([np.float32(1), np.float32(2)]).dtype is keel.f32


def test_dtypes_are_equal_to_their_names_and_numpys():
    assert keel.f32 == "f32" == keel.f32 and keel.f32 == "float32" and keel.f32 == np.float32 and keel.f32 == np.dtype("f4")
    assert keel.f32 != keel.f64 and keel.f32 != "f99" and keel.f32 != None and hash(keel.f32) == hash(keel.array(1.).dtype)  # noqa: E711
    assert keel.i64([1, 2]).dtype is keel.i64 and keel.u8(np.array([300])).tolist() == [44]
    with pytest.raises(keel.DTypeError, match="f99.*\n.*bool, i8"):
        keel.array(1, dtype="f99")
    with pytest.raises(keel.DTypeError):
        keel.u8([1.5])
    with pytest.raises(keel.Error, match="does not fit"):
        keel.u8([300])


def test_shapes_helpers_agree_with_numpy():
    assert keel.zeros((2, 3)).tolist() == np.zeros((2, 3)).tolist() and keel.ones(2, keel.i64).dtype is keel.i64
    assert keel.ones(2, "bool").tolist() == [True, True] and keel.full((2,), 3).dtype is keel.i32
    assert keel.arange(5).tolist() == list(range(5)) and keel.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert keel.arange(0., 1., .25).tolist() == [0, .25, .5, .75] and keel.arange(3, 3).size == 0
    for numbers in ((2, 9, 3), (9, 2, -3), (3, -2, -2), (2**40, 2**40 + 3), (2**63 - 3, 2**63 - 1, 2), (-2**31, 2**31, 2**30), (0,)):
        assert keel.arange(*numbers, dtype=keel.i64).tolist() == list(range(*numbers))
    assert keel.arange(0., .5, .1, keel.f64).tolist() == [0 + .1 * i for i in range(5)]
    assert keel.arange(3, dtype=keel.f16).dtype is keel.f16 and keel.arange(250, 256, dtype=keel.u8).tolist()[-1] == 255
    for numbers, dtype, text in (((2**40, 2**40 + 3), None, "1099511627776 does not fit in i32"), ((250, 257), keel.u8, "256 does not fit in u8"),
                                 ((3, -2, -2), keel.u64, "-1 does not fit in u64")):
        with pytest.raises(keel.InvalidError, match=text):
            keel.arange(*numbers, dtype=dtype)
    x = np.arange(6).reshape(2, 3)
    for axis in (0, 1, 2, -1):
        assert keel.stack([keel.array(x), keel.array(x)], axis).tolist() == np.stack([x, x], axis).tolist()
    assert keel.array(x).T.tolist() == x.T.tolist()


def test_tensors_are_dropped_from_any_thread():
    x = np.ones(1 << 16, "f4")
    kept = [keel.asarray(x) for _ in range(50)]
    threads = [threading.Thread(target=kept.pop) for _ in range(50)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not kept


@pytest.mark.parametrize("call, said", [
    (lambda: keel.array(), r"array\(\) missing .*'values'"),
    (lambda: keel.array(1, 2, 3), r"array\(\) takes from 1 to 2"),
    (lambda: keel.array(1, dtyp="f32"), "'dtyp'"),
    (lambda: keel.asarray(), r"asarray\(\) missing .*'value'"),
    (lambda: keel.Variable(), r"Variable\(initial, name='', trainable=True, dtype=None\); got \(\)"),
    (lambda: keel.Variable(1., nam="w"), r"got \(float, nam=str\)"),
    (lambda: keel.Variable(1., None), "name of a variable must be a string, not None"),
    (lambda: keel.Variable(1., trainable="no"), "trainable, of a variable, must be True or False, not 'no'"),
    (lambda: keel.Variable(1.).assign(None), "value must be a tensor, a number or a list of numbers, not NoneType"),
    (lambda: keel.reduce_sum([1.], axis=0), r"reduce_sum\(\) has no argument 'axis'; it takes \(x, axes, keep\)"),
    (lambda: keel.Variable(None), "NoneType cannot be converted to a tensor"),
])
def test_calls_that_do_not_fit_say_what_is_taken(call, said):
    with pytest.raises(TypeError, match=said) as caught:
        call()
    assert "overload" not in str(caught.value) and "incompatible" not in str(caught.value)
