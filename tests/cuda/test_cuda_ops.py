"""Each op with a kernel against the device `reference`, over dtypes and shapes, sizes 0 and 1 too."""
import os
import subprocess

import keel_abi
import ml_dtypes
import numpy as np
import pytest
from cuda_build import BUILD, FAKED, PLUGIN
from compared import ALL, FLOATS, INTEGERS, NUMBERS, TOLERANCE, Against, name, values
from host_ops import MATRICES
from kernel_cases import check_norms, check_softmaxes, check_top_k

import keel

pytestmark = pytest.mark.usefixtures("loaded")
on = Against("cuda")
same = on.same
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


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_random_numbers(context, kind, dtype):
    context.load_plugin(PLUGIN.with_name("keel-reference.so"))
    for dims in ([0], [1], [3, 301]):
        got, want = (np.asarray(context.apply(device, "random", np.uint64(0xfedcba9876543210), dims=dims, kind=kind, dtype=dtype))
                     for device in ("cuda", "reference"))
        assert got.shape == want.shape == tuple(dims) and got.dtype == want.dtype
        bound = 0 if kind == "uniform" else TOLERANCE[dtype]
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=bound, atol=bound)


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


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_softmaxes(dtype):
    check_softmaxes(on, dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_norms(dtype):
    check_norms(on, dtype)


def test_rows_around_the_groups_of_threads(fake):
    """A thread, 32 threads or a block for a row; several rows in a block; one launch."""
    for rows, size in ((1, 1), (9, 15), (9, 16), (9, 33), (3, 1024), (3, 1025), (2, 0)):
        x, g = values(np.float32, rows, size), values(np.float32, size, seed=1)
        for op in (keel.softmax, keel.log_softmax, keel.log_sum_exp):
            before = fake.calls("cuLaunchKernel")
            same(op, x, tolerance=1e-4)
            assert fake.calls("cuLaunchKernel") - before == (size > 0 or op is keel.log_sum_exp)
        same(lambda a, b, c: keel.layer_norm(a, b, c), x, g, g, tolerance=1e-4)
        same(lambda a, b: keel.rms_norm(a, b), x, g, tolerance=1e-4)
    same(lambda a: keel.softmax(a, axis=0), values(np.float32, 17, 16400))


def test_composites_without_a_kernel_run_as_their_bodies():
    x = values(np.float32, 5, 8)
    same(lambda a: keel.cross_entropy(a, keel.array(np.array([0, 7, 1, 1, 3]))), x)
    same(lambda a: keel.lrn(a, size=3), values(np.float32, 1, 5, 3, 3))


@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_lines(dtype):
    x = values(dtype, 3, 90, 2)
    x[0, 5] = x[0, 80] = x[0].max(0)
    if dtype in FLOATS:
        x[1, 7, 1] = x[1, 70, 1] = np.nan
    for axis in range(3):
        for last in (False, True):
            for op in (keel.arg_max, keel.arg_min):
                same(lambda a, op=op, axis=axis, last=last: op(a, axis=axis, last=last), x)
        for kind in ({}, {"exclusive": True}, {"reverse": True}):
            same(lambda a, axis=axis, kind=kind: keel.cumsum(a, axis=axis, **kind), x, tolerance=0.1 if x.itemsize == 2 else 1e-4)
        part = (x / 8 % 1).astype(dtype) if dtype in FLOATS else x
        for reverse in (False, True):
            same(lambda a, b, axis=axis, reverse=reverse: keel.linear_recurrence(a, b, axis=axis, reverse=reverse), part, x,
                 tolerance=0.1 if x.itemsize == 2 else 1e-4)


def test_arg_of_no_elements():
    same(lambda a: keel.arg_max(a, axis=1), np.zeros((0, 3), np.float32))
    with keel.device("cuda"), pytest.raises(keel.Error, match="arg_max: the dim has no elements"):
        keel.arg_max(keel.array(np.zeros((2, 0), np.float32)), axis=1).numpy()


@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_scatters(dtype):
    rows = np.array([3, 0, 3, 3, 1])
    for axis, shape in enumerate([(5, 2, 3), (2, 5, 3), (2, 3, 5)]):
        same(lambda i, u, axis=axis: keel.scatter_add(i, u, axis=axis, size=6), rows, values(dtype, *shape), tolerance=0.05 if dtype in FLOATS[:2] else None)
    x, u = values(dtype, 4, 3, 2), values(dtype, 5, 2, seed=1)
    index = np.array([[3, 0], [0, 2], [3, 0], [3, 0], [1, 1]], np.int32)
    for mode in ("set", "add", "mul", "max", "min"):
        same(lambda a, i, u, mode=mode: keel.scatter_nd(a, i, u, mode=mode), x, index, u, tolerance=0.05 if dtype in FLOATS[:2] else None)


@pytest.mark.parametrize("size", [0, 1])
def test_scatters_of_few(size):
    same(lambda i, u: keel.scatter_add(i, u, size=size), np.zeros(size, np.int64), values(np.float32, size, 3))
    same(keel.scatter_nd, values(np.float32, 2, 3), np.zeros((size, 1), np.int64), values(np.float32, size, 3))
    with keel.device("cuda"), pytest.raises(keel.Error, match="index 9 is not in"):
        keel.scatter_nd(keel.array(values(np.float32, 2, 3)), keel.array(np.array([[9]])), keel.array(values(np.float32, 1, 3))).numpy()


def test_every_op_has_a_kernel_or_a_body_and_the_rest_is_named():
    env = os.environ | FAKED | {"KEEL_PLUGIN_PATH": str(PLUGIN.parent)}
    run = subprocess.run([BUILD / "bin" / "keel", "ops", "-d", "cuda"], capture_output=True, text=True, env=env, timeout=60)
    rows = [line.split() for line in run.stdout.splitlines()[1:]]
    how = {row[0]: " ".join(row) for row in rows if "missing:" not in row}
    assert "kernel for each dtype" in how["add"] and "its body: no impl of its own" in how["cross_entropy"], run.stdout + run.stderr
    assert {row[0]: row[row.index("missing:"):] for row in rows if "missing:" in row} == dict.fromkeys(
        MATRICES, "missing: neither impl nor body".split())


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_top_k(dtype, largest):
    check_top_k(on, dtype, largest)


@pytest.mark.parametrize("shape, k", [((2, 5000), 3), ((1, 4097), 512), ((1, 9000), 513), ((3, 2049), 2049), ((1, 2048), 2048), ((70000,), 40)], ids=str)
def test_top_k_of_long_rows(shape, k):
    """In one round, in two, and by a sort of the whole row."""
    x = values(np.float32, *shape)
    x.reshape(-1)[[7, 2047]] = np.nan
    for dtype in (np.float32, np.int8):  # int8: many equal elements
        for largest in (True, False):
            with np.errstate(invalid="ignore"):
                same(lambda t, largest=largest: keel.top_k(t, k=k, largest=largest), (x * 20).astype(dtype), exact=True)
