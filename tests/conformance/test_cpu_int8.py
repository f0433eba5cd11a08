"""matmul_integer on the cpu device: 8-bit integers of both signs, zero points of all shapes, constant or not, batches, one and two threads,
for each class of this processor. Oracle: NumPy in i64, wrapped to i32."""
import keel_abi
import numpy as np
import pytest
from regions import as_nodes
from test_cpu_isa import call_in_each_class

SIGNS = [(np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8), (np.int8, np.uint8)]
SHAPES = [((3, 5), (5, 4)), ((1, 768), (768, 70)), ((100, 71), (71, 33)), ((97, 1), (1, 17)), ((13, 64), (64, 32)), ((2, 40, 50), (50, 60)),
          ((3, 1, 20, 30), (2, 30, 40)), ((1, 20, 30), (4, 30, 40)), ((2, 3, 17, 19), (1, 3, 19, 23)), ((0, 5), (5, 4)), ((3, 0), (0, 4)), ((4, 5), (5, 0))]
ZEROS = ["none", "a", "b", "numbers", "ones", "rows and columns", "elements"]


def drawn(rng, dtype, shape):
    limits = np.iinfo(dtype)
    return np.asarray(rng.integers(limits.min, limits.max, shape, dtype, endpoint=True))


def zero_points(rng, kind, a, b):
    """Shapes of the zero points of a and b; None: none."""
    shapes = {"none": (None, None), "a": ((), None), "b": (None, ()), "numbers": ((), ()), "ones": ((1, 1), (1,)),
              "rows and columns": ((*a.shape[:-1], 1), b.shape[-1:]), "elements": (a.shape[-1:], b.shape)}[kind]
    return [None if s is None else drawn(rng, x.dtype, s) for s, x in zip(shapes, (a, b))]


def wanted(a, b, za, zb):
    wide = [x.astype(np.int64) - (0 if z is None else z.astype(np.int64)) for x, z in ((a, za), (b, zb))]
    return (wide[0] @ wide[1]).astype(np.int32)


def product(a, b, za, zb, constants=False, threads=2, device="cpu"):
    given = [x for x in (a, b, za, zb) if x is not None]
    inputs, fixed = ([a], given[1:]) if constants else (given, [])

    def write(g, x, y, *zeros):
        zeros = iter(zeros)
        operands = [next(zeros) if z is not None else keel_abi.NO_VALUE for z in (za, zb)]
        return g.node("matmul_integer", x, y, *(operands if zb is not None else operands[:1] if za is not None else []))
    plan = as_nodes(keel_abi.Context(threads=threads), write, inputs, fixed, device=device)
    return np.array(plan.run(*inputs)[0]), [launch["impl"] for launch in plan.report(*inputs)["launches"]]


@pytest.mark.parametrize("constants", [False, True])
@pytest.mark.parametrize("zeros", ZEROS)
@pytest.mark.parametrize("left, right", SHAPES)
@pytest.mark.parametrize("signs", SIGNS, ids=lambda s: " by ".join(np.dtype(t).name for t in s))
def test_products(signs, left, right, zeros, constants):
    rng = np.random.default_rng(7)
    a, b = (drawn(rng, t, s) for t, s in zip(signs, (left, right)))
    za, zb = zero_points(rng, zeros, a, b)
    got, impls = product(a, b, za, zb, constants)
    assert got.dtype == np.int32 and np.array_equal(got, wanted(a, b, za, zb))
    assert "blocked loops of 8-bit integers" in impls or zeros == "elements" or got.size == 0


TRAINED = [((1, 768), (768, 70)), ((13, 64), (64, 32)), ((2, 3, 17, 19), (1, 3, 19, 23)), ((7, 511), (511, 96)), ((5, 2048), (2048, 40)),
           ((40, 1024), (1024, 70)), ((70, 64), (64, 33))]


def trained(rng, kind, dtype, shape):
    """Weights of which all or most pairs along k are small, at least around their mean."""
    limits = np.iinfo(dtype)
    centre = (limits.min + limits.max + 1) // 2
    if kind == "one side":
        return rng.integers(0, 127, shape).astype(dtype)
    if kind == "far side":
        return (rng.integers(0, 127, shape) + limits.max - 126).astype(dtype)
    b = np.clip(np.rint(rng.normal(0, {"small": 12, "medium": 30}.get(kind, 8), shape)), -128, 127)
    if kind == "outliers":
        b[::61] = 127
        b[5::61, ::3] = -128
        b[4::61, ::3] = rng.integers(-128, 128)
    return (b + centre).astype(dtype)


@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("kind", ["small", "medium", "outliers", "one side", "far side"])
@pytest.mark.parametrize("zeros", ["none", "b", "rows and columns"])
@pytest.mark.parametrize("left, right", TRAINED)
@pytest.mark.parametrize("signs", SIGNS, ids=lambda s: " by ".join(np.dtype(t).name for t in s))
def test_trained_weights(signs, left, right, zeros, kind, extreme):
    """Kernels that add pairs of products to 16-bit integers must not saturate."""
    rng = np.random.default_rng(9)
    a = np.full(left, np.iinfo(signs[0]).max, signs[0]) if extreme else drawn(rng, signs[0], left)
    b = trained(rng, kind, signs[1], right)
    za, zb = zero_points(rng, zeros, a, b)
    assert np.array_equal(product(a, b, za, zb, True)[0], wanted(a, b, za, zb))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_sums_wrap(threads):
    a, b = np.full((3, 70000), 255, np.uint8), np.full((70000, 40), -128, np.int8)
    b[:, 7] = 127
    za, zb = np.uint8(0), np.int8(127)
    got, _ = product(a, b, np.asarray(za), np.asarray(zb), threads=threads)
    assert (a.astype(np.int64) @ (b.astype(np.int64) - 127)).min() < -2**31 and np.array_equal(got, wanted(a, b, za, zb))


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_a_zero_point_that_does_not_fit(device):
    a, b = np.zeros((3, 5), np.uint8), np.zeros((5, 4), np.int8)
    with pytest.raises(keel_abi.KeelError, match=r"za: \[3\] does not broadcast to a: \[3, 5\]"):
        product(a, b, np.zeros(3, np.uint8), None, device=device)
    with pytest.raises(keel_abi.KeelError, match="zb"):
        product(a, b, None, np.zeros(4, np.uint8), device=device)


def test_each_class_of_processor():
    """The same products, by the loops of each class."""
    call_in_each_class("test_cpu_int8", "all_products")


def all_products():
    rng = np.random.default_rng(8)
    for signs in SIGNS:
        for shapes in SHAPES:
            a, b = (drawn(rng, t, s) for t, s in zip(signs, shapes))
            za, zb = zero_points(rng, "rows and columns", a, b)
            assert np.array_equal(product(a, b, za, zb)[0], wanted(a, b, za, zb)), (signs, shapes)
