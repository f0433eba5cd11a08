"""Each op with a kernel against the device `reference`, over dtypes and shapes, sizes 0 and 1 too."""
import json

import numpy as np
import pytest
from compared import ALL, FLOATS, INTEGERS, NUMBERS, Against, name, values

import keel

pytestmark = pytest.mark.usefixtures("loaded")
same = Against("cuda").same
BINARY = ["add", "sub", "mul", "div", "mod", "rem", "pow", "maximum", "minimum"]
COMPARE = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
MATH = ["sqrt", "rsqrt", "reciprocal", "exp", "log", "log1p", "sin", "cos", "tanh", "erf", "floor", "ceil", "round", "is_nan", "is_inf",
        "is_finite", "sigmoid", "silu", "softplus", "gelu"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 6e-8, 65504.0, 70000.0]
SHAPES = [((), ()), ((1,), (1,)), ((7,), (7,)), ((3, 4), (4,)), ((3, 1, 4), (5, 1)), ((2, 3, 4), ()), ((0, 3), (3,)), ((300,), (300,)),
          ((2, 1, 3, 1, 2, 1, 2), (1, 2, 1, 3, 1, 2, 1))]


def special(dtype):
    """Pairs of all special values in a float dtype, or of small and extreme integers."""
    if dtype in FLOATS:
        with np.errstate(over="ignore"):
            one = np.array(SPECIAL).astype(dtype)
    else:
        info = np.iinfo(dtype)
        one = np.array([info.min, info.min + 1, info.max, 0, 1, 2, 3, 7], dtype)
        if info.min < 0:
            one = np.append(one, np.array([-1, -2, -3], dtype))
    return np.repeat(one, len(one)), np.tile(one, len(one))


@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
@pytest.mark.parametrize("op", BINARY)
def test_binary(op, dtype):
    x, y = special(dtype)
    if dtype in INTEGERS and op in ("div", "mod", "rem", "pow"):
        keep = y > 0 if op == "pow" else y != 0
        x, y = x[keep], y[keep]
    same(getattr(keel, op), x, y, exact=op != "pow" and not (op == "mod" and dtype in FLOATS))


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_shapes(shapes):
    same(keel.add, values(np.float32, *shapes[0]), values(np.float32, *shapes[1], seed=1), exact=True)
    same(keel.less, values(np.int8, *shapes[0]), values(np.int8, *shapes[1], seed=1))


@pytest.mark.parametrize("dtype", ALL, ids=name)
@pytest.mark.parametrize("op", COMPARE)
def test_comparisons(op, dtype):
    if dtype == np.bool_:
        if op in ("equal", "not_equal"):
            same(getattr(keel, op), values(dtype, 9), values(dtype, 9, seed=1))
        return
    same(getattr(keel, op), *special(dtype))


def test_logic_and_bits():
    p, q = values(np.bool_, 40), values(np.bool_, 40, seed=1)
    for op in ("logical_and", "logical_or", "logical_xor"):
        same(getattr(keel, op), p, q)
    same(keel.logical_not, p)
    for dtype in INTEGERS:
        x, y = special(dtype)
        for op in ("bit_and", "bit_or", "bit_xor"):
            same(getattr(keel, op), x, y)
        same(keel.bit_not, x)
        if np.dtype(dtype).kind == "u":
            same(keel.shift_left, x, y), same(keel.shift_right, x, y)


@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
@pytest.mark.parametrize("op", ["neg", "abs", "sign", "relu", "square"])
def test_unary(op, dtype):
    if op == "relu" and np.dtype(dtype).kind == "u":
        return
    same(getattr(keel, op), special(dtype)[0], exact=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
@pytest.mark.parametrize("op", MATH)
def test_math(op, dtype):
    x = np.concatenate([values(dtype, 50), special(dtype)[0][::14]])
    if op == "round" or op.startswith("is_"):
        same(getattr(keel, op), x, exact=True)
    else:
        same(getattr(keel, op), x)


def test_attributes():
    x = values(np.float32, 50)
    same(lambda a: keel.gelu(a, tanh=True), x)
    same(lambda a: keel.leaky_relu(a, alpha=0.3), x)
    for dtype in NUMBERS:
        lo, hi = np.array(1, dtype), np.array(3, dtype)
        same(keel.clamp, values(dtype, 50), lo, hi, exact=True)


@pytest.mark.parametrize("to", ALL, ids=name)
@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_cast(dtype, to):
    x = values(dtype, 30) if dtype == np.bool_ else special(dtype)[0]
    if dtype in (np.int64, np.uint64):  # between two bf16, and just above: one rounding
        x = np.append(x, np.array([(257 << 54) + 1, 257 << 54, (1 << 53) + 1, 2049 << 40], dtype))
    if dtype == np.float64:
        x = np.append(x, [1 + 2**-11 + 2**-40, 1 + 2**-8 + 2**-40, 1e300, -129.5, 2.0**63, 2.0**64])
    same(lambda a: keel.cast(a, to=np.dtype(to)), x, exact=True)


@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_movements(dtype):
    x = values(dtype, 4, 5, 6)
    same(lambda a: keel.transpose(a, perm=[2, 0, 1]), x, exact=True)
    same(lambda a: keel.broadcast_to(a, dims=[2, 4, 5, 6]), x, exact=True)
    same(lambda a: keel.slice(a, start=[1, 0, 2], stop=[4, 5, 6], step=[2, 1, 3]), x, exact=True)
    same(lambda a: keel.reverse(a, axes=[0, 2]), x, exact=True)
    same(lambda a: keel.tile(a, times=[2, 1, 3]), x, exact=True)
    same(lambda a, b: keel.concat([a, b, a], axis=1), x, values(dtype, 4, 2, 6, seed=1), exact=True)
    same(lambda a: keel.split(a, sizes=[1, 0, 4], axis=1), x, exact=True)
    same(lambda a: keel.reshape(a, to=[6, -1]), x, exact=True)
    for upper in (False, True):
        same(lambda a, u=upper: keel.triangle(a, k=-1, upper=u), x, exact=True)
    same(lambda p, a, b: keel.select(p, a, b), values(np.bool_, 4, 1, 6), x, values(dtype, 5, 6, seed=2), exact=True)


@pytest.mark.parametrize("lo, hi, gap", [([1, 0], [0, 2], [0, 0]), ([0, 0], [0, 0], [0, 3]), ([2, 1], [1, 0], [1, 2])], ids=str)
def test_pad(lo, hi, gap):
    same(lambda a, v: keel.pad(a, v, lo=lo, hi=hi, gap=gap), values(np.float32, 4, 5), np.array(7, np.float32), exact=True)


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (1, 1, 1)], ids=str)
def test_sizes_zero_and_one(shape):
    x = values(np.float32, *shape)
    for op in (keel.exp, lambda a: keel.reverse(a, axes=[0]), lambda a: keel.reduce_sum(a, [0]), lambda a: keel.reduce_max(a, [0]),
               lambda a: keel.concat([a, a], axis=0), lambda a: keel.cast(a, to=np.dtype(np.int8)), lambda a: keel.tile(a, times=[2] * len(shape))):
        same(op, x)


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.bool_, np.int16, np.float32, np.float64], ids=name)
def test_gathers(dtype, index_type):
    x = values(dtype, 8, 9, 2)
    for axis in range(2):
        same(lambda a, i, axis=axis: keel.gather(a, i, axis=axis), x, np.array([[7, 0, 3], [1, 1, 2]], index_type), exact=True)
    same(lambda a, i: keel.gather_elements(a, i, axis=1), x, values(np.int32, 8, 3, 2).astype(index_type) % 9, exact=True)
    same(keel.gather_nd, x, np.array([[1, 2], [7, 8], [0, 0]], index_type), exact=True)
    same(lambda a, i: keel.gather_nd(a, i, batch=1), x, np.arange(8, dtype=index_type).reshape(8, 1, 1), exact=True)


@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_numbers(dtype):
    same(lambda: keel.iota(dims=[3, 300], axis=1, dtype=np.dtype(dtype)), exact=True)
    same(lambda i: keel.one_hot(i, depth=4, dtype=np.dtype(dtype)), np.array([[0, 3], [-1, 4]]), exact=True)


AXES = [[0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2]]


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_reductions(dtype, axes):
    x = values(dtype, 3, 70, 4)
    for op in ("reduce_max", "reduce_min") + ("reduce_sum", "reduce_mean", "reduce_prod") * (dtype != np.bool_):
        if op == "reduce_prod" and dtype in FLOATS:
            same(lambda a: keel.reduce_prod(a, axes), (1 + x.astype(np.float64) / 100).astype(dtype), tolerance=0.2 if x.itemsize == 2 else 1e-4)
        else:
            same(lambda a, op=op: getattr(keel, op)(a, axes), x, tolerance=0.05 if x.itemsize == 2 else 1e-4)


def test_reductions_of_no_elements_of_nan_and_of_many():
    for dtype in (np.float32, np.int64):
        for op in ("reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min"):
            same(lambda a, op=op: getattr(keel, op)(a, [1]), np.zeros((2, 0), dtype))
    x = values(np.float32, 700)
    x[650] = np.nan
    for op in ("reduce_sum", "reduce_max", "reduce_min"):
        same(lambda a, op=op: getattr(keel, op)(a, [0]), x)
    same(lambda a: keel.reduce_mean(a, [0]), np.full(1000, 2**62, np.int64))
    same(lambda a: keel.reduce_mean(a, [0]), np.full(1001, -7, np.int64))


@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_matmul_of_dtypes(dtype):
    same(keel.matmul, values(dtype, 17, 33), values(dtype, 33, 20, seed=1), tolerance={2: 0.1}.get(np.dtype(dtype).itemsize, 1e-4))


@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (3, 5, 7), (16, 16, 16), (33, 17, 40), (1, 300, 1), (2, 0, 3), (0, 2, 3)])
@pytest.mark.parametrize("ta, tb", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_matmul(m, k, n, ta, tb):
    x, y = values(np.float32, *((k, m) if ta else (m, k))), values(np.float32, *((n, k) if tb else (k, n)), seed=1)
    same(lambda a, b: keel.matmul(a, b, ta=bool(ta), tb=bool(tb)), x, y, tolerance=1e-4)


@pytest.mark.parametrize("a, b", [((4, 2, 3), (4, 3, 5)), ((4, 2, 3), (3, 5)), ((2, 3), (4, 3, 5)), ((2, 1, 2, 3), (5, 3, 4)),
                                  ((0, 2, 3), (3, 4))], ids=str)
def test_matmul_of_batches(a, b):
    same(keel.matmul, values(np.float32, *a), values(np.float32, *b, seed=1), tolerance=1e-4)


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_linear(dtype):
    same(keel.linear, values(dtype, 2, 3, 5), values(dtype, 5, 7, seed=1), values(dtype, 7, seed=2), tolerance=0.05 if np.dtype(dtype).itemsize == 2 else 1e-4)


def test_composites_without_a_kernel_run_as_their_bodies():
    x = values(np.float32, 5, 8)
    same(lambda a: keel.softmax(a, axis=1), x)
    same(lambda a, g, b: keel.layer_norm(a, g, b), x, values(np.float32, 8, seed=1), values(np.float32, 8, seed=2))


def test_each_dtype_that_keel_ops_lists_is_one_of_the_reference():
    rows = {op["name"]: op for op in json.loads(keel.report("ops:cuda"))}
    assert {"add", "matmul", "gather", "reduce_sum", "cast", "call"} <= rows.keys()
