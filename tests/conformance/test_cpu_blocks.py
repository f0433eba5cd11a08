"""matmul_blocks on the cpu device: products with weights quantised in blocks, for all numbers of bits, sizes of blocks, few and many rows,
for each class of this processor. Oracle: NumPy in f64."""
import keel_abi
import numpy as np
import pytest
from regions import as_nodes
from test_cpu_isa import call_in_each_class

# dims of x, columns, blocks of a row, bytes of a block
SIZES = [((1, 64), 5, 2, 16), ((3, 60), 40, 2, 16), ((4, 100), 33, 13, 4), ((5, 96), 7, 3, 17), ((16, 500), 35, 4, 64), ((17, 70), 70, 5, 8),
         ((2, 50, 33), 37, 3, 6), ((100, 256), 64, 8, 16), ((0, 64), 5, 2, 16), ((2, 0), 5, 1, 16), ((3, 1), 1, 1, 1)]


def case(x, n, blocks, width, bits, zero):
    rng = np.random.default_rng([n, bits])
    block = width * 8 // bits
    blocks = max(1, blocks, -(-x[-1] // block))
    a, w = rng.standard_normal(x).astype(np.float32), rng.integers(0, 256, (n, blocks, width), np.uint8)
    scale = rng.standard_normal((n, blocks)).astype(np.float32)
    zeros = rng.integers(0, 2**bits, (n, blocks)).astype(np.float32) + np.float32(0.25)
    return [a, w, scale] + [zeros] * zero


def rounded_blocks(x, block):
    """x, each block of it rounded to multiples of a 127th of its largest element."""
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -x.shape[-1] % block)])
    parts = padded.reshape(*x.shape[:-1], padded.shape[-1] // block, block)
    step = np.abs(parts).max(-1, keepdims=True, initial=0) / np.float32(127)
    with np.errstate(invalid="ignore"):
        return (np.round(parts / np.where(step > 0, step, np.float32(1))) * step).reshape(padded.shape)[..., :x.shape[-1]]


def wanted(x, w, scale, zero=None, bits=4, rounded=False):
    """The product, and a bound of its rounding errors."""
    n, blocks, width = w.shape
    if rounded:
        x = rounded_blocks(x, width * 8 // bits)
    q = np.stack([(w >> at) & (2**bits - 1) for at in range(0, 8, bits)], -1).reshape(n, blocks, -1).astype(np.float64)
    centre = 2.0**(bits - 1) if zero is None else zero[..., None].astype(np.float64)
    full = ((q - centre) * scale[..., None]).reshape(n, -1)[:, :x.shape[-1]]
    reach = ((q + np.abs(centre)) * np.abs(scale[..., None])).reshape(n, -1)[:, :x.shape[-1]]
    return x.astype(np.float64) @ full.T, np.abs(x).astype(np.float64) @ reach.T


def product(inputs, bits, threads=2, device="cpu", constants=True, rounded=False):
    fed, fixed = (inputs[:1], inputs[1:]) if constants else (inputs, [])
    plan = as_nodes(keel_abi.Context(threads=threads), lambda g, *xs: g.node("matmul_blocks", *xs, bits=bits, rounded=rounded), fed, fixed, device=device)
    return np.array(plan.run(*fed)[0]), [launch["impl"] for launch in plan.report(*fed)["launches"]]


def is_right(got, inputs, bits, rounded=False):
    want, reach = wanted(*inputs, bits=bits, rounded=rounded)
    return got.shape == want.shape and got.dtype == np.float32 and (np.abs(got - want) <= 3e-6 * reach + 1e-7).all()


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("constants", [True, False])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products(size, bits, zero, constants, rounded):
    inputs = case(*size, bits, zero)
    got, impls = product(inputs, bits, constants=constants, rounded=rounded)
    assert is_right(got, inputs, bits, rounded)
    few, width = np.prod(size[0][:-1]) <= 16, size[3]
    served = width >= 4 and width & (width - 1) == 0 if rounded else few
    by_class = rounded and bits == 8 and not few  # many rows: depends on the class of processor
    assert ("weights unpacked in loops" + ", x rounded" * rounded in impls) == served or got.size == 0 or by_class


@pytest.mark.parametrize("width", [4, 8, 16, 32, 64, 128, 256, 1024])
@pytest.mark.parametrize("k", [1, 2000, 4096])
@pytest.mark.parametrize("rounded", [False, True])
def test_products_of_blocks_of_each_size(rounded, k, width):
    for bits in (2, 4, 8):
        for m in (1, 2, 5):
            inputs = case((m, k), 9, 0, width, bits, m == 2)
            got, impls = product(inputs, bits, rounded=rounded)
            assert is_right(got, inputs, bits, rounded) and "weights unpacked in loops" + ", x rounded" * rounded in impls, (bits, m)


def test_rounding_to_even_and_blocks_of_zeros():
    """Literals: 127 is the largest, so the step is 1."""
    x = np.zeros((1, 96), np.float32)
    x[0, :6] = 127, 0.5, 1.5, -2.5, -0.75, 3.25
    w = np.full((3, 3, 16), 0x99, np.uint8)  # ones
    got, _ = product([x, w, np.full((3, 3), 2, np.float32)], 4, rounded=True)
    assert got.tolist() == [[2.0 * (127 + 0 + 2 - 2 - 1 + 3)] * 3]


@pytest.mark.parametrize("rounded", [False, True])
def test_the_reference_agrees(rounded):
    inputs = case((3, 60), 40, 2, 16, 4, True)
    assert is_right(product(inputs, 4, device="reference", rounded=rounded)[0], inputs, 4, rounded)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("m", [1, 4, 40])
def test_threads_do_not_change_the_bits(m, rounded):
    inputs = case((m, 4096), 256, 128, 16, 4, False)
    one, *others = (product(inputs, 4, threads=n, rounded=rounded)[0] for n in (1, 2, 5))
    assert all(np.array_equal(one, y) for y in others)


@pytest.mark.parametrize("m", [1, 20])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_block_that_is_not_finite_has_no_rounded_values(value, m):
    inputs = case((m, 64), 5, 2, 16, 4, False)
    inputs[0][m // 2, 7] = value
    for device in ("cpu", "reference"):
        got = product(inputs, 4, device=device, rounded=True)[0]
        assert np.isnan(got[m // 2]).all() and np.isfinite(np.delete(got, m // 2, 0)).all()


def test_infinities_and_nan_reach_their_rows():
    inputs = case((20, 64), 5, 2, 16, 4, False)
    inputs[0][3, 7] = np.nan
    got = product(inputs, 4)[0]
    assert np.isnan(got[3]).all() and np.isfinite(np.delete(got, 3, 0)).all()


@pytest.mark.parametrize("made, text", [
    (lambda x, w, s: ([x, w, s], 3), "bits is 3; expected 2, 4 or 8"),
    (lambda x, w, s: ([np.zeros((2, 65), np.float32), w, s], 4), "2 blocks of 32 weights in a row, which are fewer than the 65 columns")])
def test_what_does_not_fit(made, text):
    inputs, bits = made(*case((1, 64), 5, 2, 16, 4, False))
    with pytest.raises(keel_abi.KeelError, match=text):
        product(inputs, bits)


def test_each_class_of_processor():
    """The same products, by the loops of each class."""
    call_in_each_class("test_cpu_blocks", "all_products")


def all_products():
    for size in SIZES:
        for bits in (2, 4, 8):
            for zero in (False, True):
                inputs = case(*size, bits, zero)
                for rounded in (False, True):
                    assert is_right(product(inputs, bits, rounded=rounded)[0], inputs, bits, rounded), (size, bits, zero, rounded)
