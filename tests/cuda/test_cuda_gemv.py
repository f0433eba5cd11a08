"""Products of few rows or few columns (kernels/gemv.cu) against the device reference: dtypes, strides, alignments, batches, sums in parts,
recordings."""
import numpy as np
import pytest
from compared import FLOATS, Against, name, values

import keel

pytestmark = pytest.mark.usefixtures("loaded")
same = Against("cuda").same
DTYPES = FLOATS[:3]
BOUND = {2: 0.1, 4: 2e-5}


def drawn(dtype, *shape, seed=0):
    """Numbers with which sums of thousands of products stay small."""
    return (values(np.float32, *shape, seed=seed) / 4).astype(dtype)


def check(dtype, a, b, ta=False, tb=False):
    same(lambda a, b: keel.matmul(a, b, ta=ta, tb=tb), a, b, tolerance=BOUND[np.dtype(dtype).itemsize])


def pair(dtype, m, k, n, ta=False, tb=False):
    return drawn(dtype, *((k, m) if ta else (m, k))), drawn(dtype, *((n, k) if tb else (k, n)), seed=1)


@pytest.mark.parametrize("ta, tb", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("m", range(1, 10))
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_rows(dtype, m, ta, tb):
    """Words of 16 bytes: 40 columns and 520 elements of the inner dim are whole words in each dtype, but no whole tiles and steps."""
    check(dtype, *pair(dtype, m, 520, 40, ta, tb), ta, tb)


@pytest.mark.parametrize("ta, tb", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("n", [1, 3, 8, 9])
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_columns(dtype, n, ta, tb):
    check(dtype, *pair(dtype, 40, 520, n, ta, tb), ta, tb)


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (2, 1, 33), (3, 7, 31), (1, 255, 65), (8, 257, 129), (5, 129, 1), (1, 513, 1), (4, 0, 5), (0, 5, 4), (4, 5, 0), (6, 64, 6)])
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_sizes(dtype, m, k, n, tb):
    check(dtype, *pair(dtype, m, k, n, False, tb), False, tb)


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_misaligned_views(dtype, tb):
    """Operands that begin at any element; the same numbers give the same bits at each place."""
    flat, k, n = drawn(dtype, 3 + 264 * 48), 264, 48
    x = drawn(dtype, 2 * k + 1, seed=1)
    shape = [n, k] if tb else [k, n]

    def at(first, begin):
        def product(flat, x):
            w = keel.reshape(keel.slice(flat, stop=[first + k * n], start=[first]), shape)
            return keel.matmul(keel.reshape(keel.slice(x, stop=[begin + 2 * k], start=[begin]), [2, k]), w, tb=tb)
        return product
    for first, begin in ((0, 0), (1, 0), (3, 1)):
        same(at(first, begin), flat, x, tolerance=BOUND[np.dtype(dtype).itemsize])
    w = flat[:k * n].reshape(shape)
    moved = np.concatenate([flat[:1], w.ravel(), flat[:2]])
    here, there = (Against("cuda").results("cuda", at(first, 0), [a, x])[0] for first, a in ((0, flat), (1, moved)))
    assert here.tobytes() == there.tobytes()


@pytest.mark.parametrize("a, b, ta, tb", [
    ((3, 2, 40), (3, 40, 33), False, False), ((2, 3, 1, 40), (2, 3, 50, 40), False, True), ((2, 1, 4, 40), (3, 40, 33), False, False),
    ((3, 40, 24), (3, 40, 2), True, False), ((4, 1, 40), (40, 33), False, False), ((40, 1, 40), (40, 33), False, False), ((2, 70, 40), (40, 3), False, False),
    ((0, 2, 40), (0, 40, 3), False, False), ((1, 2, 40), (3, 40, 33), False, False)], ids=str)
def test_batches(a, b, ta, tb):
    check(np.float32, drawn(np.float32, *a), drawn(np.float32, *b, seed=1), ta, tb)


@pytest.mark.parametrize("m, n", [(1, 40), (3, 40), (8, 33), (40, 1), (41, 3)])
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_linear(dtype, m, n):
    x, w, bias = drawn(dtype, m, 72), drawn(dtype, 72, n, seed=1), drawn(dtype, n, seed=2)
    same(keel.linear, x, w, bias, tolerance=BOUND[np.dtype(dtype).itemsize])
    same(keel.linear, x[None], w, bias, tolerance=BOUND[np.dtype(dtype).itemsize])


@pytest.mark.parametrize("m, n, tb", [(1, 40, False), (2, 40, True), (40, 3, False)])
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_a_long_inner_dim_is_summed_in_parts(loaded, dtype, m, n, tb):
    a, b = pair(dtype, m, 8300, n, False, tb)
    same(lambda a, b: keel.matmul(a, b, tb=tb), a / 8, b / 8, tolerance=BOUND[np.dtype(dtype).itemsize])
    if not tb:
        same(keel.linear, a / 8, b / 8, drawn(dtype, n, seed=2), tolerance=BOUND[np.dtype(dtype).itemsize])


def test_infinities_and_nan():
    a, b = pair(np.float32, 3, 70, 40)
    a[1, 5], b[11, 13], b[12, 14] = np.inf, -np.inf, np.nan
    check(np.float32, a, b)


PROGRAM = """keel 1
fn @main(x: bf16[n, 264], w: bf16[264, 512], u: bf16[512, 264], b: bf16[264]) -> bf16[n, 264] {
  h0 = matmul(x, w)
  h1 = relu(h0)
  h2 = linear(h1, u, b)
  h3 = softmax(h2)
  y = add(h2, h3)
  return y
}
entry main = @main (x, w, u, b) -> (y)
"""


def test_plans_are_recorded(context, fake):
    bf16 = DTYPES[1]
    w, u, b = drawn(bf16, 264, 512), drawn(bf16, 512, 264, seed=1), drawn(bf16, 264, seed=2)
    plan, oracle = (context.parse(PROGRAM).session(device).prepare() for device in ("cuda", "reference"))
    before = fake.calls("cublasLtMatmul"), fake.calls("cuGraphLaunch")
    for k in range(4):
        x = drawn(bf16, 1, 264, seed=k)
        np.testing.assert_allclose(plan.run(x, w, u, b)[0].astype("f4"), oracle.run(x, w, u, b)[0].astype("f4"), rtol=0.1, atol=0.2)
    assert (fake.calls("cublasLtMatmul") - before[0], fake.calls("cuGraphLaunch") - before[1]) == (0, 3)


@pytest.mark.parametrize("m, n, impl", [(1, 512, "one row or column"), (512, 1, "one row or column"), (2, 4096, "cuBLASLt"), (4096, 2, "cuBLASLt"),
                                        (3, 8, "few rows or columns")])
def test_the_plan_names_it(context, m, n, impl):
    a, b = pair(np.float32, m, 64, n)
    text = f"keel 1\nfn @main(a: f32[{m}, 64], b: f32[64, {n}]) -> f32[{m}, {n}] {{\n  y = matmul(a, b)\n  return y\n}}\nentry main = @main (a, b) -> (y)\n"
    report = context.parse(text).session("cuda").prepare().report(*map(context.array, (a, b)))
    assert [launch["impl"] for launch in report["launches"]] == [impl]
