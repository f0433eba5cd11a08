"""Results of the cpu device that are stored past the caches (from 12 MiB on; parallel/stream.h): exactly NumPy's numbers for ragged
lengths, any alignment of the first element, element sizes, broadcast rows, shared memory, threads and failures; and for groups, which are not."""
import keel_abi
import numpy as np
import pytest
from regions import as_call, as_nodes

LENGTHS = [3 << 20, (3 << 20) + 1, (3 << 20) + 1237]  # of f32: 12 MiB


def values(n, dtype=np.float32, seed=1):
    return (np.random.default_rng(seed).integers(1, 100, n) if np.dtype(dtype) != bool else np.arange(n) % 3 == 0).astype(dtype)


def shifted(x, by):
    """x in memory that begins `by` bytes after a cache line."""
    memory = np.zeros(x.nbytes + 128, np.uint8)
    first = -memory.ctypes.data % 64 + by
    memory[first:first + x.nbytes] = x.view(np.uint8)
    return memory[first:first + x.nbytes].view(x.dtype)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n", LENGTHS)
def test_one_op_alone(n, threads):
    context = keel_abi.Context(threads=threads)
    a, b, one = values(n), values(n, seed=2), np.float32(3)
    for op, x, y, want in [("add", a, b, a + b), ("sub", a, one, a - one), ("div", one, b, one / b)]:
        np.testing.assert_array_equal(context.apply("cpu", op, x, y), want, err_msg=op)
    np.testing.assert_array_equal(context.apply("cpu", "neg", a), -a)
    np.testing.assert_array_equal(context.apply("cpu", "less", *(np.resize(v, 4 * n) for v in (a, b))), np.resize(a, 4 * n) < np.resize(b, 4 * n))


@pytest.mark.parametrize("op", ["exp", "tanh", "sigmoid", "erf", "silu", "gelu", "log", "neg", "abs", "sign", "sqrt", "rsqrt", "reciprocal", "floor", "ceil",
                                "round", "relu", "square"])
@pytest.mark.parametrize("threads", [1, 3])
def test_functions_have_the_bits_of_short_rows(op, threads):
    context, x = keel_abi.Context(threads=threads), np.linspace(-9, 9, LENGTHS[2], dtype=np.float32)
    x[[0, 100, -100, -1]] = np.nan, -np.inf, -0.0, np.inf
    rows = [np.array(context.apply("cpu", op, part)) for part in np.array_split(x, 7)]
    got, want = np.array(context.apply("cpu", op, x)), np.concatenate(rows)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("dtype, ops", [(np.float64, ["neg", "abs", "sign", "sqrt", "rsqrt", "reciprocal", "floor", "ceil", "round", "relu", "square", "exp"]),
                                        (np.int32, ["neg", "abs", "sign", "relu", "square", "bit_not"]), (np.int64, ["neg", "abs", "sign", "relu", "square", "bit_not"]),
                                        (np.uint64, ["neg", "abs", "sign", "square", "bit_not"])])
def test_other_dtypes_have_the_bits_of_short_rows(dtype, ops):
    context, n = keel_abi.Context(threads=1), (13 << 20) // np.dtype(dtype).itemsize + 7
    x = np.linspace(-9, 9, n).astype(dtype) if np.dtype(dtype).kind != "u" else values(n, dtype)
    x[[0, 100, -100, -1]] = [np.nan, -np.inf, -0.0, np.inf] if dtype is np.float64 else [0, np.iinfo(dtype).max, np.iinfo(dtype).min, 1]
    for op in ops:
        got, want = np.array(context.apply("cpu", op, x)), np.concatenate([context.apply("cpu", op, part) for part in np.array_split(x, 7)])
        np.testing.assert_array_equal(got, want, err_msg=op)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want), err_msg=op)


@pytest.mark.parametrize("threads", [1, 3])
def test_batch_norm_has_the_bits_of_single_images(threads):
    context, rng = keel_abi.Context(threads=threads), np.random.default_rng(3)
    x = rng.standard_normal((5, 3, 419, 523)).astype(np.float32)
    scale, shift, mean, variance = (rng.uniform(0.5, 2, 3).astype(np.float32) for _ in range(4))
    y = np.array(context.apply("cpu", "batch_norm", x, scale, shift, mean, variance))
    for image, want in zip(x, y):
        np.testing.assert_array_equal(context.apply("cpu", "batch_norm", image[None], scale, shift, mean, variance), want[None])
    each = [v.reshape(3, 1, 1) for v in (scale, shift, mean, variance)]
    np.testing.assert_allclose(y, each[0] * (x - each[2]) / np.sqrt(each[3] + 1e-5) + each[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("threads", [1, 2])
def test_sizes_of_elements(dtype, threads):
    context, n = keel_abi.Context(threads=threads), (13 << 20) // np.dtype(dtype).itemsize + 5
    a, b, one = values(n, dtype), values(n, dtype, 2), np.dtype(dtype).type(3)
    for op, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("maximum", np.maximum), ("minimum", np.minimum)):
        for x, y in ((a, b), (a, one), (one, b), (a[:-4], b[3:-1])):
            np.testing.assert_array_equal(context.apply("cpu", op, x, y), function(x, y), err_msg=op)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_operands(dtype):
    """Every pair of special numbers, which also follow an ordinary one."""
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -2], dtype)
    pairs = np.array(np.meshgrid(special, special)).reshape(2, -1)
    a, b = (np.resize(p, (13 << 20) // np.dtype(dtype).itemsize) for p in pairs)
    context = keel_abi.Context(threads=1)
    for op in ("add", "sub", "mul", "div", "maximum", "minimum"):
        got, short = np.array(context.apply("cpu", op, a, b)), np.array(context.apply("cpu", op, *pairs))
        np.testing.assert_array_equal(got, np.resize(short, a.shape), err_msg=op)
        np.testing.assert_array_equal(np.signbit(got) & (got == got), np.signbit(np.resize(short, a.shape)) & (got == got), err_msg=op)


@pytest.mark.parametrize("shapes", [((3, 1 << 20), (1 << 20,)), ((1531, 2055), (2055,)), ((1531, 2055), (1531, 1)), ((40000, 83), (83,)),
                                    ((1, 150, 2055), (12, 1, 2055))])
def test_broadcast_rows(shapes):
    a, b = (values(int(np.prod(s)), seed=len(s)).reshape(s) for s in shapes)
    np.testing.assert_array_equal(keel_abi.Context(threads=2).apply("cpu", "mul", a, b), a * b)


@pytest.mark.parametrize("dtype, shape", [(np.float32, (2048, 2048)), (np.float32, (1616, 2055)), (np.float32, (2055, 1616)), (np.float64, (1024, 1608)),
                                          (np.float16, (3072, 2049)), (np.int8, (4096, 3200)), (np.float32, (3, 1040, 1040)),
                                          (np.float32, (1024, 1030)), (np.float32, (1030, 1024)), (np.int8, (4096, 70))])
def test_transposed(dtype, shape):
    """The last three are stored whole lines at a time, but not past the caches."""
    x = values(int(np.prod(shape)), dtype).reshape(shape)
    perm = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    for threads in (1, 3):
        np.testing.assert_array_equal(keel_abi.Context(threads=threads).apply("cpu", "transpose", x, perm=perm), x.transpose(perm))


def group(g, x, y):
    total = g.node("add", x, y)
    return g.node("mul", g.node("sub", total, g.node("neg", x)), y)


@pytest.mark.parametrize("make", [as_call, as_nodes])
@pytest.mark.parametrize("shape", [((3 << 20) + 77,), (1531, 2055), (70000, 50)])
@pytest.mark.parametrize("threads", [1, 2])
def test_groups_and_shared_memory(make, shape, threads):
    x, row = values(int(np.prod(shape))).reshape(shape), values(shape[-1], seed=2)
    for y in (row, values(x.size, seed=3).reshape(shape)):
        plan = make(keel_abi.Context(threads=threads), group, [x, y], [], **({"device": "cpu"} if make is as_nodes else {}))
        for _ in range(2):  # the second run reuses memory
            np.testing.assert_array_equal(np.array(plan.run(x, y)[0]), ((x + y) + x) * y)


@pytest.mark.parametrize("by", [4, 16, 60])
def test_operands_anywhere(by):
    x, y = shifted(values(LENGTHS[1]), by), values(LENGTHS[1], seed=2)
    np.testing.assert_array_equal(keel_abi.Context(threads=2).apply("cpu", "add", x, y), x + y)


@pytest.mark.parametrize("at", [0, 255, 1 << 20, LENGTHS[2] - 1])
def test_failure_names_the_first_element(at):
    x, y = values(LENGTHS[2], np.int32), values(LENGTHS[2], np.int32, 2)
    y[[at, LENGTHS[2] - 1]] = 0
    with pytest.raises(keel_abi.KeelError, match=rf"element {at}\b"):
        keel_abi.Context(threads=2).apply("cpu", "div", x, y)
