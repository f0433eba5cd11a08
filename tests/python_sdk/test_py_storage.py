"""Storage dtypes in Python: NumPy arrays of ml_dtypes, literals, printing, pickles, files and DLPack; the oracle is ml_dtypes."""
import pickle

import keel
import ml_dtypes
import numpy as np
import pytest

DTYPES = [t for t in vars(keel).values() if isinstance(t, keel.DType) and t.kind == "s"]
WHOLE = [keel.i4, keel.u4, keel.i2, keel.u2]


def numbers(dtype, size=7):
    most = {"i4": 8, "u4": 16, "i2": 2, "u2": 4}.get(dtype.name, 100)
    v = np.arange(size) * 3 % most - (most // 2 if dtype.name[0] == "i" else 0)
    return (2.0**(v % 7 - 3) if dtype is keel.f8e8m0 else v).astype(getattr(ml_dtypes, dtype.numpy_name))


def test_names():
    assert sorted(t.name for t in DTYPES) == ["f4e2m1", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "i2", "i4", "u2", "u4"]
    for t in DTYPES:
        assert t == t.name and t == t.numpy_name and t == np.dtype(getattr(ml_dtypes, t.numpy_name)) and t.size == 1
        assert getattr(keel, t.name) is t and pickle.loads(pickle.dumps(t)) == t
    assert keel.array(np.zeros(2, "i4")).dtype == keel.i32  # of NumPy: 4 bytes


@pytest.mark.parametrize("shape", [(7,), (0,), (1,), (3, 5), ()], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arrays_come_back(dtype, shape):
    x = numbers(dtype, 15)[:int(np.prod(shape))].reshape(shape)
    t = keel.array(x)
    assert t.dtype == dtype and t.shape == shape
    y = t.numpy()
    assert y.dtype == x.dtype and (y == x).all() and y.tobytes() == x.tobytes()
    assert keel.array(t).numpy().tobytes() == pickle.loads(pickle.dumps(t)).numpy().tobytes() == x.tobytes()
    columns = np.stack([x, x], -1)[..., 1]  # with strides
    assert keel.array(columns).numpy().tobytes() == x.tobytes()
    assert t.tolist() == x.astype("f4").tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_casts_and_literals(dtype):
    x = numbers(dtype)
    wide = x.astype("f4")
    assert keel.array(wide).astype(dtype).numpy().tobytes() == x.tobytes()
    assert (keel.array(x).astype("f32").numpy() == wide).all()
    assert dtype(wide.astype(int).tolist() if dtype in WHOLE else wide.tolist()).numpy().tobytes() == x.tobytes()
    one = dtype(1)
    assert one.item() == 1 and float(one) == 1 and one.type == f"{dtype}[]"
    for f in (lambda: one + one, lambda: one + 1, lambda: -one, lambda: keel.array(x)[0]):
        with pytest.raises(keel.InvalidError, match=f"{dtype}"):
            f()


def test_literals_must_fit():
    for dtype, value in ((keel.i4, 8), (keel.u4, -1), (keel.i2, 2), (keel.u2, 4)):
        with pytest.raises(keel.InvalidError, match=f"the literal {value} does not fit in {dtype}"):
            dtype([value])
    with pytest.raises(keel.InvalidError, match="the literal 0.5 is a float"):
        keel.i4(0.5)
    assert keel.f8e4m3fn(1e6).item() == 448 and keel.f8e4m3fn(0.3).item() == 0.3125


def test_texts():
    assert str(keel.f8e4m3fn([1, 0.5, 448])) == "[  1.    0.5 448. ]" and str(keel.i4([1, -8])) == "[ 1 -8]"
    assert repr(keel.u2([[1, 2], [3, 0]])) == "Tensor u2[2, 2]:\n[[1 2]\n [3 0]]"


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_functions_variables_and_files(device, tmp_path):
    w = numbers(keel.i4, 6).reshape(2, 3)
    weights, scale = keel.Variable(keel.array(w)), keel.Variable(keel.array(np.float32(0.5)))

    @keel.function
    def f(x):
        return keel.matmul(x, weights.value().astype("f32") * scale), keel.cast(x, to="f8e5m2", saturate=False)

    x = np.array([[1, 2], [3, 1e6]], np.float32)
    with keel.device(device):
        y, small = f(keel.array(x))
        np.testing.assert_array_equal(y.numpy(), x @ (w.astype("f4") / 2))
        assert small.numpy().tobytes() == x.astype(ml_dtypes.float8_e5m2).tobytes()
        keel.save(tmp_path / "m.keel", f=f.concrete(keel.array(x)))
        again, _ = keel.Entry(keel.load(tmp_path / "m.keel"), "f")(keel.array(x))
        np.testing.assert_array_equal(again.numpy(), y.numpy())


def test_dlpack_shares_packed_memory():
    t = keel.array(numbers(keel.u4))
    assert keel.from_dlpack(t).numpy().tobytes() == t.numpy().tobytes()


def test_gradients_stop():
    x = keel.array(np.float32([1, 2]))
    with keel.Tape() as tape:
        tape.watch(x)
        y = keel.reduce_sum(keel.cast(keel.cast(x, to="f8e4m3fn"), to="f32") * x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [1, 2])
