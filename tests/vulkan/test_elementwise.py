"""Every elementwise op of the catalogue and every dtype against the device `reference`, over shapes and special elements; fused
bodies against the same ops one by one; faults against `cpu`. The cases come from the catalogue's report, so a new op is tested."""
import functools
import itertools
import json

import numpy as np
import pytest

import keel

pytestmark = pytest.mark.usefixtures("vulkan")

ATTRIBUTES = {"leaky_relu": {"alpha": 0.3}}
SIZES = [(), (0,), (1,), (7,), (1000,), (70_000,)]
# Units in the last place, of the result's dtype; functions of f16 and bf16 are rounded from f32.
ULPS = {"exp": 2, "log": 2, "log1p": 2, "sin": 2, "cos": 2, "tanh": 2, "erf": 3, "erf_inv": 3, "pow": 2, "rsqrt": 1, "silu": 4,
        "sigmoid": 3, "softplus": 3}
FLOATS = {"f16": np.float16, "bf16": None, "f32": np.float32, "f64": np.float64}
NUMPY = {"bool": np.bool_} | {f"{kind}{bits}": np.dtype(f"{name}{bits}").type
                              for kind, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)} | FLOATS


def catalogue():
    return {op["name"]: op for op in json.loads(keel.report("ops"))}


OPS = {name: op for name, op in catalogue().items() if "elementwise" in op["traits"]}


def dtypes(op):
    (name, of), = op["types"].items() or [("", ["bool"])]
    return of


CASES = [(name, dtype) for name, op in OPS.items() for dtype in (dtypes(op) if op["types"] else ["bool"])
         if name not in ("cast", "gelu", "sigmoid", "silu", "softplus", "tan", "atan", "asin", "acos", "atan2")]
CASTS = [(a, b) for a, b in itertools.product(NUMPY, NUMPY) if a != b]


def specials(dtype):
    if dtype == "bool":
        return np.array([False, True])
    if dtype in FLOATS:
        base = NUMPY[dtype] or np.float32
        info = np.finfo(base)
        some = [0, 1, 0.5, 1.5, 2.5, 3, 10, 88.7, 104, 709.7, 1e-3, 1e-8, 255, 65504, 2.0**31, 2.0**53, 2.0**63, float(info.max),
                float(info.tiny), float(info.smallest_subnormal), float(info.tiny) / 2, np.inf, np.nan]
        with np.errstate(over="ignore"):
            return np.array(some + [-x for x in some], base)
    info = np.iinfo(NUMPY[dtype])
    some = {0, 1, 2, 3, 7, 8, 31, 63, 64, 100, 127, info.max, info.max - 1, info.min, info.min + 1, -1, -2, -7}
    return np.array(sorted(x for x in some if info.min <= x <= info.max), NUMPY[dtype])


@functools.cache
def flushes():
    """Whether the device takes denormal numbers for 0, as Vulkan allows: lavapipe of Mesa 26 does."""
    with keel.device("vulkan"):
        return (keel.array(np.float32([1e-40])) + keel.array(np.float32([0]))).numpy()[0] == 0


def flushed(x):
    return np.where(np.abs(x) <= np.finfo(x.dtype).tiny, 0, x) if flushes() and x.dtype in (np.float32, np.float64) else x


def elements(dtype, dims, seed):
    """Special elements, in a random order for each operand, mixed with random ones."""
    rng = np.random.default_rng(seed)
    n = int(np.prod(dims, dtype=np.int64))
    special = specials(dtype)
    picked = special[rng.integers(0, len(special), n)]
    if dtype == "bool":
        return picked.reshape(dims)
    if dtype in FLOATS:
        scale = 2.0 ** rng.integers(-12, 12, n) if dtype == "f16" else 2.0 ** rng.integers(-30, 40, n)
        picked, other = flushed(picked), (rng.standard_normal(n) * scale).astype(special.dtype)
    else:
        info = np.iinfo(special.dtype)
        other = rng.integers(info.min, info.max, n, special.dtype, True) >> rng.integers(0, info.bits, n).astype(special.dtype)
    return np.where(rng.random(n) < 0.3, picked, other).reshape(dims)


def without_faults(op, operands):
    if len(operands) == 2 and operands[0].dtype.kind in "iu":
        a, b = operands
        if op in ("div", "mod", "rem"):
            b[b == 0] = 3
        if op == "pow":
            a[a == 0] = 3


def tensor(x, dtype):
    t = keel.array(x)
    return keel.cast(t, to="bf16") if dtype == "bf16" else t


def on_both(run):
    """The results of run() on vulkan and on reference."""
    with keel.device("vulkan"):
        got = [as_numpy(t) for t in run()]
    with keel.device("reference"):
        return got, [as_numpy(t) for t in run()]


def as_numpy(t):
    name = t.dtype.name
    return name, (keel.cast(t, to="f32") if name == "bf16" else t).numpy()


def places(x, dtype):
    """Numbers of the elements in the order of their dtype's values; both zeros have number 0."""
    bits = x.view(np.dtype(f"int{8 * x.itemsize}")).astype(np.int64)
    if dtype == "bf16":
        bits >>= 16
    sign = np.int64(-(2**63)) if x.itemsize == 8 else np.int64(1) << (15 if dtype in ("f16", "bf16") else 31)
    if x.itemsize == 8:
        return np.where(bits < 0, -(bits & ~sign), bits)
    return np.where(x.view(np.dtype(f"int{8 * x.itemsize}")) < 0, -(bits & (sign - 1)), bits)


def agree(got, want, ulps, about):
    for (name, x), (same_name, y) in zip(got, want, strict=True):
        assert name == same_name and x.shape == y.shape and x.dtype == y.dtype, about
        if x.dtype.kind != "f":
            np.testing.assert_array_equal(x, y, err_msg=about)
            continue
        x, y, nan = flushed(x), flushed(y), np.isnan(y)
        np.testing.assert_array_equal(np.isnan(x), nan, err_msg=about)
        x, y = np.ascontiguousarray(np.where(nan, 0, x).astype(x.dtype)), np.ascontiguousarray(np.where(nan, 0, y).astype(y.dtype))
        np.testing.assert_array_equal(np.signbit(x), np.signbit(y), err_msg=about)
        apart = np.abs(places(x, name) - places(y, name))
        worst = np.argmax(apart) if apart.size else 0
        assert not apart.size or apart.max() <= ulps, f"{about}: {apart.max()} ulp at {worst}: {x.flat[worst]!r}, not {y.flat[worst]!r}"


def limit(op, dtype):
    ulps = ULPS.get(op, 0)
    return 1 if ulps and dtype in ("f16", "bf16") else ulps


# Composites that the device computes as one function; the reference device rounds after each op of their bodies.
FUNCTIONS = {
    "sigmoid": lambda x: np.where(x >= 0, 1, np.exp(-abs(x))) / (1 + np.exp(-abs(x))),
    "silu": lambda x: np.where(x >= 0, x, x * np.exp(-abs(x))) / (1 + np.exp(-abs(x))),
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x))),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_function(op, dtype):
    for dims in SIZES:
        x = elements(dtype, dims, 0)
        got, (_, rounded) = as_numpy(getattr(keel, op)(tensor(x, dtype))), as_numpy(tensor(x, dtype))
        with np.errstate(all="ignore"):
            exact = FUNCTIONS[op](rounded.astype(np.longdouble))
        with keel.device("reference"):
            want = as_numpy(tensor(exact.astype(got[1].dtype), dtype))
        agree([got], [want], limit(op, dtype), f"{op} of {dtype}{dims}")


def operands_of(op, dtype, shapes):
    types = [{"bool": "bool"}.get(o["pattern"].split("[")[0], dtype) for o in OPS[op]["operands"]]
    arrays = [elements(t, shape, seed) for seed, (t, shape) in enumerate(zip(types, shapes))]
    without_faults(op, arrays)
    return types, arrays


def check(op, dtype, shapes):
    types, arrays = operands_of(op, dtype, shapes)
    run = lambda: [getattr(keel, op)(*(tensor(x, t) for x, t in zip(arrays, types)), **ATTRIBUTES.get(op, {}))]
    agree(*on_both(run), limit(op, dtype), f"{op} of {dtype}{shapes}")


@pytest.mark.parametrize("op, dtype", CASES)
def test_op(op, dtype):
    scalars = [o["pattern"].endswith("[]") for o in OPS[op]["operands"]]
    for dims in SIZES:
        check(op, dtype, [() if scalar else dims for scalar in scalars])


@pytest.mark.parametrize("source, to", CASTS)
def test_cast(source, to):
    for dims in SIZES:
        x = elements(source, dims, 1)
        agree(*on_both(lambda: [keel.cast(tensor(x, source), to=to)]), 0, f"cast {source} to {to}")


BROADCASTS = [((), (7,)), ((3, 1, 4), (5, 1)), ((2, 3, 4, 5), ()), ((0, 3), (3,)), ((6, 1), (1, 8)), ((1, 1), (1,)), ((3, 4), (4,)),
              ((2, 1, 3, 1, 2, 1, 2, 1), (1, 2, 1, 3, 1, 2, 1, 2)), ((300, 200), (300, 1)), ((1,), (70_000,))]


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
def test_operands_are_broadcast(shapes):
    for dtype in NUMPY:
        check("equal", dtype, shapes)
        check("select", dtype, [shapes[1], *shapes])
        if dtype != "bool":
            check("sub", dtype, shapes)
            check("minimum", dtype, shapes[::-1])


# ---- faults

FAULTS = [(op, dtype) for op in ("div", "mod", "rem") for dtype in NUMPY if dtype[0] in "iu"] + [
    ("pow", dtype) for dtype in NUMPY if dtype[0] == "i"]


@pytest.mark.parametrize("op, dtype", FAULTS)
def test_a_fault_is_the_error_of_the_cpu_device(op, dtype):
    a, b = np.ones(5000, NUMPY[dtype]), np.ones(5000, NUMPY[dtype])
    (a if op == "pow" else b)[4321] = 0
    if op == "pow":
        b[4321] = -1
    said = []
    for device in ("vulkan", "cpu"):
        with keel.device(device), pytest.raises(keel.RangeError) as error:
            getattr(keel, op)(keel.array(a), keel.array(b)).numpy()
        said.append(str(error.value).split(": ", 1)[-1] if device == "cpu" else str(error.value))
    assert "at element 4321" in said[1]
    assert said[0].startswith(said[1]), said


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("op", ["abs", "is_finite", "is_inf", "is_nan"])
def test_the_root_of_minus_zero_is_fused(op, dtype):
    """lavapipe takes the absolute value of a square root for the root."""
    run = keel.function(lambda x: getattr(keel, op)(keel.sqrt(x)))
    x = np.array([-0.0, 0, 4, np.inf, -1, np.nan])
    agree(*on_both(lambda: [run(tensor(x, dtype))]), 0, f"{op} of sqrt, {dtype}")


def test_a_fault_of_a_fused_body_names_the_call():
    y = np.ones(100, np.int32)
    y[77] = 0
    body = keel.function(lambda x, y: keel.div(x + 1, y) * 2)
    with pytest.raises(keel.RangeError, match="^call .*integer division by zero at element 77, found by device vulkan:0"):
        body(keel.array(y), keel.array(y)).numpy()


def test_after_a_fault_the_device_computes():
    zero = keel.array(np.zeros(3, np.int32))
    with pytest.raises(keel.RangeError):
        keel.div(zero, zero).numpy()
    np.testing.assert_array_equal((zero + keel.array(np.ones(3, np.int32))).numpy(), [1, 1, 1])


# ---- fused bodies: random trees of ops on a few operands, with results of several dtypes

SAFE = ["add", "sub", "mul", "maximum", "minimum", "abs", "neg", "sign", "relu", "square", "equal", "less", "greater_equal", "select",
        "cast", "logical_and", "logical_not", "bit_xor", "clamp"]
BODY_DTYPES = ["bool", "i8", "u16", "i32", "u64", "f16", "bf16", "f32", "f64"]


def random_step(rng, values):
    """One op on values chosen at random, or None if they do not fit. values: (tensor, dtype)."""
    op = SAFE[rng.integers(len(SAFE))]
    patterns = [o["pattern"] for o in OPS[op]["operands"]]
    if op == "cast":
        x, dtype = values[rng.integers(len(values))]
        to = BODY_DTYPES[rng.integers(len(BODY_DTYPES))]
        return (keel.cast(x, to=to), to) if to != dtype else None
    dtype = dtypes(OPS[op])[rng.integers(len(dtypes(OPS[op])))] if OPS[op]["types"] else "bool"
    chosen = []
    for pattern in patterns:
        fitting = [x for x, t in values if t == ("bool" if pattern.startswith("bool") else dtype)
                   and (not pattern.endswith("[]") or not x.shape)]
        if not fitting:
            return None
        chosen.append(fitting[rng.integers(len(fitting))])
    made = "bool" if OPS[op]["results"][0]["pattern"].startswith("bool") else dtype
    return getattr(keel, op)(*chosen), made


def program(seed, names):
    def body(*operands):
        rng = np.random.default_rng(seed)
        values = list(zip(operands, names))
        for _ in range(60):
            step = random_step(rng, values)
            if step is not None:
                values.append(step)
        return tuple(x for x, _ in values[-4:])
    return body


@pytest.mark.parametrize("seed", range(40))
def test_fused_bodies(seed):
    rng = np.random.default_rng(seed)
    names = [BODY_DTYPES[i] for i in rng.permutation(len(BODY_DTYPES))[:4]]
    dims = [(7,), (30, 5), (2, 3, 4), (1,), (1000,)][seed % 5]
    shapes = [dims, dims[-1:], (), (1,) * len(dims)]
    arrays = [elements(name, shape, seed + i) for i, (name, shape) in enumerate(zip(names, shapes))]
    body = program(seed, names)

    def fused():
        with keel.device("vulkan"):
            return keel.function(body)(*(tensor(x, n) for x, n in zip(arrays, names)))

    def plain():
        with keel.device("reference"):
            return body(*(tensor(x, n) for x, n in zip(arrays, names)))
    agree([as_numpy(t) for t in fused()], [as_numpy(t) for t in plain()], 0, f"seed {seed}")


@pytest.mark.parametrize("tanh", [False, True])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_gelu(dtype, tanh):
    """Near 0 here; tests/conformance/test_ends.py has the ends, where the reference's body has lost all digits."""
    x = np.linspace(-8, 8, 1001).astype(NUMPY[dtype])
    with keel.device("vulkan"):
        _, got = as_numpy(keel.gelu(tensor(x, dtype), tanh=tanh))
    with keel.device("reference"):
        _, want = as_numpy(keel.gelu(tensor(x, dtype), tanh=tanh))
    np.testing.assert_allclose(got, want, rtol=4 * np.finfo(x.dtype).eps, atol=4 * np.finfo(x.dtype).eps)


# ---- random numbers: the stream of `cpu`

KEYS = [0, 1, 2**64 - 1, 0x123456789ABCDEF]


@pytest.mark.parametrize("kind, dtype", list(itertools.product(["uniform", "normal"], FLOATS)))
def test_random_numbers_are_those_of_cpu(kind, dtype):
    for key, dims in itertools.product(KEYS, [(), (0,), (1,), (7,), (3, 5), (70_001,)]):
        got = []
        for device in ("vulkan", "cpu"):
            with keel.device(device):
                got.append([as_numpy(keel.random(keel.array(np.uint64(key)), dims=dims, kind=kind, dtype=dtype))])
        ulps = 0 if kind == "uniform" else {"f64": 4}.get(dtype, 1)
        agree(*got, ulps, f"random {kind} {dtype}{dims}")


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64", "f32", "f64"])
def test_random_uniform_is_that_of_cpu(dtype):
    got = []
    for device in ("vulkan", "cpu"):
        with keel.device(device):
            low, high = (keel.array(NUMPY[dtype](x)) for x in (3, 100))
            got.append([as_numpy(keel.random_uniform(keel.array(np.uint64(5)), low, high, dims=[1000]))])
    agree(*got, 0, dtype)
