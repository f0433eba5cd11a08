"""Products by cuBLASLt, here the fake one (fake/blas.cc), against the device reference; products that run by the plugin's own tiles; a missing
library, and failures of each of its functions."""
import keel_abi
import numpy as np
import pytest
from compared import FLOATS, INTEGERS, NUMBERS, Against, name, values
from cuda_build import PLUGIN

import keel

pytestmark = pytest.mark.usefixtures("loaded")
same = Against("cuda").same
BOUND = {1: 0, 2: 0.15, 4: 1e-4, 8: 1e-12}
CALLS = ["cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatrixLayoutCreate", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"]


@pytest.fixture
def by_blas(calls_in):
    """by_blas(f) calls f and returns how many products were by cuBLASLt."""
    return lambda f: calls_in(f, "cublasLtMatmul")


def bound(dtype):
    return BOUND[np.dtype(dtype).itemsize]


@pytest.mark.parametrize("ta, tb", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_dtypes_and_transposes(by_blas, dtype, ta, tb):
    a, b = values(dtype, *((70, 65) if ta else (65, 70))), values(dtype, *((67, 70) if tb else (70, 67)), seed=1)
    assert by_blas(lambda: same(lambda a, b: keel.matmul(a, b, ta=ta, tb=tb), a, b, tolerance=bound(dtype))) == 1


@pytest.mark.parametrize("a, b, large", [
    ((3, 64, 64), (3, 64, 64), True), ((3, 64, 64), (64, 64), True), ((64, 64), (3, 64, 64), True), ((2, 3, 64, 64), (2, 3, 64, 64), True),
    ((2, 3, 64, 64), (64, 64), True), ((2, 3, 64, 64), (1, 1, 64, 64), True), ((1, 3, 64, 64), (1, 3, 64, 64), True),
    ((2, 1, 64, 64), (1, 3, 64, 64), False), ((2, 3, 64, 64), (3, 64, 64), False), ((9, 1, 128), (128, 1024), True), ((9, 4096), (4096, 65), True),
    ((65, 4096), (4096, 9), True)], ids=str)
def test_batches(by_blas, a, b, large):
    """Batches at one distance only; others by tiles."""
    assert by_blas(lambda: same(keel.matmul, values(np.float32, *a), values(np.float32, *b, seed=1), tolerance=1e-3)) == large


def test_transposed_batches(by_blas):
    a, b = values(np.float32, 3, 64, 50), values(np.float32, 3, 70, 64, seed=1)
    assert by_blas(lambda: same(lambda a, b: keel.matmul(a, b, ta=True, tb=True), a, b, tolerance=1e-4)) == 1

@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_linear(by_blas, dtype):
    x, w, bias = values(dtype, 2, 33, 70), values(dtype, 70, 65, seed=1), values(dtype, 65, seed=2)
    assert by_blas(lambda: same(keel.linear, x, w, bias, tolerance=bound(dtype))) == 1


@pytest.mark.parametrize("m, k, n", [(0, 512, 512), (512, 0, 512), (512, 512, 0), (1, 1, 1), (63, 64, 64)])
def test_small_products_run_by_tiles(by_blas, m, k, n):
    assert by_blas(lambda: same(keel.matmul, values(np.float32, m, k), values(np.float32, k, n, seed=1), tolerance=1e-4)) == 0


@pytest.mark.parametrize("dtype", INTEGERS, ids=name)
def test_integers_run_by_tiles(by_blas, dtype):
    assert by_blas(lambda: same(keel.matmul, values(dtype, 64, 65), values(dtype, 65, 64, seed=1))) == 0


@pytest.mark.parametrize("ta, tb", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_tiles_of_64(by_blas, dtype, ta, tb):
    """Batches at several distances, which cuBLASLt does not take; enough of them for large tiles."""
    a, b = values(dtype, 4, 1, *((33, 70) if ta else (70, 33))), values(dtype, 1, 5, *((66, 33) if tb else (33, 66)), seed=1)
    assert by_blas(lambda: same(lambda a, b: keel.matmul(a, b, ta=ta, tb=tb), a, b, tolerance=bound(dtype))) == 0


@pytest.mark.parametrize("m, k, n", [(600, 5, 500), (600, 0, 500), (513, 16, 513), (64, 1, 4096)])
def test_many_tiles_of_64(m, k, n):
    same(keel.matmul, values(np.int32, m, k), values(np.int32, k, n, seed=1))


def test_infinities_and_nan(by_blas):
    a, b = values(np.float32, 64, 64), values(np.float32, 64, 64, seed=1)
    a[3, 5], a[7, 9], b[11, 13] = np.inf, np.nan, -np.inf
    assert by_blas(lambda: same(keel.matmul, a, b, tolerance=1e-4)) == 1


def test_the_plan_names_it(context):
    text = "keel 1\nfn @main(x: f32[64, 64]) -> f32[64, 64] {\n  y = matmul(x, x)\n  return y\n}\nentry main = @main (x) -> (_)\n"
    report = context.parse(text).session("cuda").prepare().report(context.array(np.ones((64, 64), "f4")))
    assert [launch["impl"] for launch in report["launches"]] == ["cuBLASLt"]


@pytest.mark.parametrize("code, status", [(2, "CUBLAS_STATUS_ALLOC_FAILED"), (719, "CUBLAS_STATUS_EXECUTION_FAILED")])
@pytest.mark.parametrize("function", CALLS)
def test_each_function_fails(loaded, fake, function, code, status):
    context = keel_abi.Context()  # with a device of its own, which has not opened the library
    context.load_plugin(PLUGIN)
    a, b = values(np.float32, 64, 71), values(np.float32, 71, 64, seed=1)
    fake.fail(function, 1, code)
    with pytest.raises(keel_abi.KeelError) as e:
        context.apply("cuda", "matmul", a, b)
    assert f"{function} gave {status}" in e.value.message and e.value.code == ("OOM" if code == 2 else "UNAVAILABLE")
    fake.fail()
    np.testing.assert_allclose(context.apply("cuda", "matmul", a, b), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("library", ["0", "/nowhere/libcublasLt.so.13"])
def test_without_the_library_products_run_by_tiles(in_child, library):
    out, _ = in_child("""
a, b = np.random.default_rng(1).random((2, 80, 80), np.float32)
with keel.device("cuda"):
    got = keel.matmul(keel.array(a), keel.array(b)).numpy()
print(abs(got - a @ b).max() < 1e-3)
""", KEEL_CUDA_CUBLASLT=library)
    assert out == "True\n"


TF32 = """
a, b = np.random.default_rng(1).random((2, 80, 80), np.float32)
with keel.device("cuda"):
    got = keel.matmul(keel.array(a), keel.array(b)).numpy()
    half = keel.matmul(keel.array(a.astype(np.float16)), keel.array(b.astype(np.float16))).numpy()
def rounded(x):  # to 10 bits after the point, by NumPy's conversion to f16, whose exponents hold numbers of [0, 1) times 2^10
    return (x * 1024).astype(np.float16).astype(np.float64) / 1024
exact, tf32 = a.astype(np.float64) @ b, rounded(a) @ rounded(b)
print(abs(got - exact).max() < 1e-5, abs(got - tf32).max() < 1e-5, abs(half - exact).max() < 0.05)
"""


@pytest.mark.parametrize("chosen, want", [("", "True False True"), ("0", "True False True"), ("1", "False True True")])
def test_f32_is_rounded_to_tf32_by_choice_only(in_child, chosen, want):
    assert in_child(TF32, KEEL_CUDA_TF32=chosen)[0] == f"{want}\n"


def launches_of(context, text, *feeds):
    """The impls of an optimised plan, whose results are near the reference's."""
    module = context.parse(text)
    plan, oracle = (module.session(device).prepare() for device in ("cuda", "reference"))
    for _ in range(4):  # the last ones by a graph
        for got, want in zip(plan.run(*feeds), oracle.run(*feeds), strict=True):
            np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=bound(got.dtype), atol=bound(got.dtype))
    return [launch["impl"] for launch in plan.report(*map(context.array, feeds))["launches"]]


SUMS = {"bias": ("f = add(p, b)", 1), "bias first": ("f = add(b, p)", 1), "matrix": ("f = add(p, m)", 1), "both": ("e = add(p, b)\n  f = add(m, e)", 1),
        "matrix, then bias": ("e = add(p, m)\n  f = add(e, b)", 1), "two biases": ("e = add(p, b)\n  f = add(e, b)", 2), "another op": ("f = mul(p, b)", 2),
        "with itself": ("f = add(p, p)", 2), "column": ("f = add(p, c)", 2), "relu": ("e = add(p, b)\n  f = relu(e)", 2)}


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
@pytest.mark.parametrize("sums, launches", SUMS.values(), ids=SUMS)
def test_sums_after_a_product(context, sums, launches, dtype):
    t = {2: "f16", 4: "f32", 8: "f64"}[np.dtype(dtype).itemsize] if dtype in (np.float16, np.float32, np.float64) else "bf16"
    text = f"""keel 1
fn @main(x: {t}[3, 30, 70], w: {t}[70, 66], b: {t}[66], m: {t}[3, 30, 66], c: {t}[3, 30, 1]) -> {t}[3, 30, 66] {{
  p = matmul(x, w)
  {sums}
  return f
}}
entry main = @main (x, w, b, m, c) -> (f)
"""
    feeds = [values(dtype, *shape, seed=k) for k, shape in enumerate(((3, 30, 70), (70, 66), (66,), (3, 30, 66), (3, 30, 1)))]
    impls = launches_of(context, text, *feeds)
    assert len(impls) == launches and impls[0] == ("cuBLASLt, with sums" if launches == 1 or sums.startswith("e = add(p, b)") else "cuBLASLt"), impls


@pytest.mark.parametrize("x, w, why", [("8, 70", "70, 660", "few rows"), ("20, 30", "30, 40", "small"), ("n, 70", "70, 66", "not known")])
def test_sums_after_other_products_are_fused_among_themselves(context, x, w, why):
    n = w.split(", ")[1]
    text = f"""keel 1
fn @main(x: f32[{x}], w: f32[{w}], b: f32[{n}]) -> f32[{x.split(',')[0]}, {n}] {{
  p = matmul(x, w)
  e = add(p, b)
  f = neg(e)
  return f
}}
entry main = @main (x, w, b) -> (f)
"""
    shapes = [tuple(int(d) for d in dims.replace("n", "90").split(", ")) for dims in (x, w, n)]
    impls = launches_of(context, text, *(values(np.float32, *shape, seed=k) for k, shape in enumerate(shapes)))
    assert len(impls) == 2 and "cuBLASLt, with sums" not in impls, impls


def test_transposed_batches_with_a_matrix(context):
    text = """keel 1
fn @main(x: f32[3, 64, 50], w: f32[3, 70, 64], m: f32[3, 50, 70], b: f32[1, 1, 70]) -> f32[3, 50, 70] {
  p = matmul(x, w){ta=true, tb=true}
  e = add(p, m)
  f = add(e, b)
  return f
}
entry main = @main (x, w, m, b) -> (f)
"""
    feeds = (values(np.float32, *shape, seed=k) for k, shape in enumerate(((3, 64, 50), (3, 70, 64), (3, 50, 70), (1, 1, 70))))
    assert launches_of(context, text, *feeds) == ["cuBLASLt, with sums"]
