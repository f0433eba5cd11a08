"""The tensor ops of the example programs (tests/rows), by the example's id: each is in the catalogue, each device runs it for the
example's dtypes, with NumPy's results. (Variables, control flow, print and assert are not ops on tensors.)

ROWS is the list; a case is op, operands, attributes, and the answer by NumPy or as the example shows it.
"""
import numpy as np
import pytest

F, I = np.float32, np.int32
KEY = np.uint64(7)


def f(*values):
    return np.array(values, F)


def i(*values):
    return np.array(values, I)


W = np.linspace(-1, 1, 12, dtype=F).reshape(3, 4)
ROWS = {
    "V1 hello, [[4.]]": [("matmul", (f([2]), f([2])), {}, f([4]))],
    "V10 T4 T5 a_regular_function": [
        ("matmul", (f([1, 2]), f([2], [3])), {}, f([8])),
        ("add", (f([8]), F(4)), {}, f([12]))],
    "Z3 Z4 matmul of a fed float64": [
        ("cast", (np.array([[0.1, 0.7]]),), {"to": F}, f([0.1, 0.7])),
        ("matmul", (W, W.T.copy()), {}, W @ W.T)],
    "Z7 loss = w * w, and its gradient": [
        ("mul", (f([1]), f([1])), {}, f([1])),
        ("add", (f([1]), f([1])), {}, f([2]))],
    "Z15 add and multiply of integers": [
        ("add", (i([1, 2], [3, 4]), I(1)), {}, i([2, 3], [4, 5])),
        ("mul", (i([1, 2], [3, 4]), i([2, 3], [4, 5])), {}, i([2, 6], [12, 20]))],
    "T2 a network of two layers": [
        ("add", (W, f(1, 2, 3, 4)), {}, W + f(1, 2, 3, 4)),
        ("relu", (W,), {}, np.maximum(W, 0))],
    "T6 simple_relu": [
        ("greater", (I(1), I(0)), {}, np.array(True)),
        ("greater", (I(-1), I(0)), {}, np.array(False)),
        ("greater", (F(1.5), F(0)), {}, np.array(True))],
    "T9 T10 my_relu": [
        ("maximum", (F(0), F(5.5)), {}, F(5.5)),
        ("cast", (i(1, -1),), {"to": F}, f(1, -1)),
        ("maximum", (F(0), f(1, -1)), {}, f(1, 0)),
        ("maximum", (F(0), f(3, -3)), {}, f(3, 0))],
    "T12 get_MSE": [
        ("sub", (i(1, 0, 4, 4, 7), i(3, 6, 3, 0, 6)), {}, i(-2, -6, 1, 4, 1)),
        ("pow", (i(-2, -6, 1, 4, 1), I(2)), {}, i(4, 36, 1, 16, 1)),
        ("reduce_mean", (i(4, 36, 1, 16, 1),), {}, I(11))],
    "T17 T18 an unused gather": [("gather", (f(5, 6), i(1)), {}, f(6))],
    "T20 T25 power of a matrix": [
        ("eye", (), {"rows": 10, "dtype": I}, np.eye(10, dtype=I)),
        ("matmul", (i([1 << 20, 3], [5, -7]), i([1 << 15, 1], [2, 9])), {},
         i([1 << 20, 3], [5, -7]) @ i([1 << 15, 1], [2, 9]))],
    "T22 T23 x * x + 2": [("mul", (I(2), I(2)), {}, I(4)), ("add", (I(4), I(2)), {}, I(6))],
    "T25 random integers": [("random_uniform", (KEY, I(-1), I(2)), {"dims": [10, 10]}, None)],
    "K1 K3 a + b": [("add", (I(3), I(5)), {}, I(8))],
    "K6 rows of 784": [
        ("reshape", (np.arange(4 * 28 * 28, dtype=np.uint8).reshape(4, 28, 28),), {"to": [-1, 784]},
         np.arange(4 * 784, dtype=np.uint8).reshape(4, 784)),
        ("cast", (np.array([0, 7, 255], np.uint8),), {"to": F}, f(0, 7, 255))],
    "K7 generate_w_b": [
        ("random", (KEY,), {"dims": [784, 128], "kind": "normal"}, None),
        ("fill", (F(0),), {"dims": [128]}, np.zeros(128, F))],
    "K8 K9 four layers": [
        ("matmul", (W, W.T.copy()), {}, W @ W.T),
        ("add", (W, f(1, 2, 3, 4)), {}, W + f(1, 2, 3, 4)),
        ("relu", (W,), {}, np.maximum(W, 0))],
}


@pytest.mark.parametrize("row", ROWS)
def test_each_device_does_the_ops_of_the_row(context, device, row):
    for op, operands, attributes, wanted in ROWS[row]:
        got = context.apply(device, op, *operands, **attributes)
        if wanted is not None:
            assert got.dtype == np.asarray(wanted).dtype and got.shape == np.shape(wanted), op
            np.testing.assert_allclose(got, wanted, rtol=1e-6 if got.dtype.kind == "f" else 0, err_msg=op)


def test_no_op_of_a_row_is_missing_from_the_report(context, device):
    impls = {op["name"]: op["impls"] for op in context.report("ops:" + device)}
    for row, cases in ROWS.items():
        for op, *_ in cases:
            assert op in impls and "missing" not in impls[op].values(), f"{row}: {op}"


@pytest.mark.parametrize("rows, cols", [(3, None), (0, None), (1, None), (2, 5), (5, 2), (3, 0)])
@pytest.mark.parametrize("dtype", ["?", "i1", "i4", "u8", "f2", "f4", "f8"])
def test_eye(context, device, rows, cols, dtype):
    sizes = {"rows": rows} if cols is None else {"cols": cols, "rows": rows}
    got = context.apply(device, "eye", dtype=np.dtype(dtype), **sizes)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(got, np.eye(rows, cols, dtype=dtype))


def test_power_of_a_matrix_wraps(context, device):
    x, result = i([1, 1], [1, 0]), context.apply(device, "eye", rows=2, dtype=I)
    for _ in range(60):
        result = context.apply(device, "matmul", x, result)
    assert result.tolist() == [[764848393, 1820529360], [1820529360, -1055680967]]


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8"])
def test_random_integers_are_uniform(context, device, dtype):
    low, high = np.array([-3, 5], dtype)
    got = context.apply(device, "random_uniform", KEY, low, high, dims=[8, 10000])
    assert got.dtype == np.dtype(dtype) and got.min() == -3 and got.max() == 4
    count = np.bincount(got.ravel().astype(int) + 3, minlength=8)
    assert abs(count - 10000).max() < 500, count  # five standard deviations: 5 * sqrt(80000 / 8 * 7 / 8) = 468
    again = context.apply(device, "random_uniform", KEY, low, high, dims=[8, 10000])
    np.testing.assert_array_equal(got, again)
    assert (got != context.apply(device, "random_uniform", KEY + np.uint64(1), low, high, dims=[8, 10000])).any()


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "f2", "f4", "f8"])
def test_random_numbers_stay_in_a_range_that_is_wider_than_their_dtype(context, device, dtype):
    most = np.iinfo(dtype).max if dtype[0] == "i" else np.finfo(dtype).max
    low, high = np.array([-most, most], dtype)
    got = context.apply(device, "random_uniform", KEY, low, high, dims=[20000]).astype(np.longdouble)
    part = got / np.longdouble(most)
    assert part.min() >= -1 and part.max() <= 1 and (dtype[0] == "f" or got.max() < most)
    assert abs(part.mean()) < 0.03 and abs(part.std() - 3**-0.5) < 0.02


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_random_floats_are_uniform(context, device, dtype):
    low, high = np.array([-1, 3], dtype)
    got = context.apply(device, "random_uniform", KEY, low, high, dims=[100000]).astype(float)
    assert got.min() >= -1 and got.max() <= 3
    assert abs(got.mean() - 1) < 0.02 and abs(got.std() - 4 / 12 ** 0.5) < 0.02


def test_devices_draw_the_same_integers(context):
    draw = [context.apply(d, "random_uniform", KEY, I(-1), I(2), dims=[1000]) for d in ("reference", "cpu")]
    np.testing.assert_array_equal(*draw)
    empty = context.apply("reference", "random_uniform", KEY, I(0), I(9), dims=[3, 0])
    assert empty.shape == (3, 0)


def test_a_normal_draw_is_normal(context, device):
    got = context.apply(device, "random", KEY, dims=[784, 128], kind="normal")
    assert abs(got.mean()) < 0.02 and abs(got.std() - 1) < 0.02
