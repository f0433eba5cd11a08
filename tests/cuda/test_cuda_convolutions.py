"""Convolutions and their gradients by cuDNN, here the fake one (fake/dnn.cc), against the device reference; convolutions that run by the
plugin's own kernels; a missing library, and failures of each of its functions."""
import ctypes
import gc

import keel_abi
import numpy as np
import pytest
from compared import FLOATS, Against, name, values
from cuda_build import DNN, GPU, PLUGIN
from kernel_cases import check_conv_and_gradients, quarters, small

import keel

pytestmark = [pytest.mark.usefixtures("loaded"), pytest.mark.skipif(not GPU and not DNN.exists(), reason="the build found no header of cuDNN")]
on = Against("cuda")
# x, w, options
LARGE = [((1, 16, 12, 11), (32, 16, 3, 3), {}), ((2, 16, 20, 17), (24, 8, 3, 2), dict(groups=2, stride=[2, 1], lo=[1, 1], hi=[0, 2])),
         ((2, 64, 16, 16), (64, 1, 3, 3), dict(groups=64, lo=[1, 1], hi=[1, 1])), ((1, 20, 11, 10), (16, 20, 3, 3), dict(lo=[2, 2], hi=[2, 2], dil=[2, 2])),
         ((2, 16, 200), (24, 16, 5), dict(stride=[2], lo=[3], hi=[1])), ((1, 8, 5, 6, 7), (16, 8, 2, 3, 3), dict(dil=[1, 2, 1], lo=[1, 0, 2], hi=[0, 2, 1])),
         ((1, 70, 11, 13), (40, 70, 1, 1), {}), ((2, 70, 13, 13), (64, 70, 1, 1), dict(stride=[2, 2])), ((2, 32, 17, 16), (32, 32, 3, 3), dict(stride=[3, 3])),
         ((1, 1, 100, 100), (4, 1, 3, 3), {}), ((1, 513, 1, 1), (520, 513, 1, 1), {})]
# By products for result and image.
POINTS = [((1, 70, 12, 12), (40, 70, 1, 1), {}), ((3, 32, 6, 12), (64, 32, 1, 1), {}), ((2, 33, 8), (600, 33, 1), {}),
          ((1, 70, 16, 10), (66, 35, 1, 1), dict(groups=2)), ((3, 6, 8, 3, 4), (260, 6, 1, 1, 1), {})]
OWN = [((0, 16, 40, 40), (32, 16, 3, 3), {}), ((1, 1, 1, 1), (1, 1, 1, 1), {}), ((2, 16, 9, 9), (8, 16, 3, 3), {}), ((5, 400), (300, 400), {}),
       ((40, 80, 0), (80, 80, 1), dict(lo=[1], hi=[1])), ((1, 32, 4, 4, 4, 4), (32, 32, 2, 2, 2, 2), {}), ((2, 0, 99, 99), (64, 0, 2, 2), {})]
PADDED = dict(lo=[1, 1], hi=[1, 1])


@pytest.fixture
def by_dnn(calls_in):
    """by_dnn(f) calls f and returns how many convolutions were by cuDNN."""
    return lambda f: calls_in(f, "cudnnBackendExecute")


def case(v):
    return str(v) if isinstance(v, tuple) else ""


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
@pytest.mark.parametrize("x, w, options", LARGE, ids=case)
def test_dtypes_and_windows(by_dnn, x, w, options, dtype):
    assert by_dnn(lambda: check_conv_and_gradients(on, dtype, x, w, options)) == 3


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
@pytest.mark.parametrize("x, w, options", POINTS, ids=case)
def test_windows_of_one_cell_are_products(calls_in, x, w, options, dtype):
    assert calls_in(lambda: check_conv_and_gradients(on, dtype, x, w, options), "cublasLtMatmul") == 2


@pytest.mark.parametrize("x, w, options", OWN, ids=case)
def test_small_and_unusual_ones_run_by_own_kernels(by_dnn, x, w, options):
    assert by_dnn(lambda: check_conv_and_gradients(on, np.float32, x, w, options)) == 0


def test_gradients_with_fewer_places_than_the_image_has(by_dnn):
    """cuDNN would compute another convolution's gradient."""
    dy, w, x = small(np.float32, 2, 32, 9, 9), quarters(np.float32, 32, 16, 3, 3, seed=1), small(np.float32, 2, 16, 20, 20, seed=2)

    def check():
        on.same(lambda d, b: keel.conv_grad_x(d, b, dims=list(x.shape)), dy, w, tolerance=2e-4)
        on.same(lambda d, a: keel.conv_grad_w(d, a, dims=list(w.shape)), dy, x, tolerance=2e-3)
    assert by_dnn(check) == 0


def exactly(dtype):
    return {np.float32: 1e-3, np.float64: None}.get(dtype, 0.1)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_padding_adds_zero_even_for_infinite_weights(by_dnn, dtype, bad):
    x, w = small(dtype, 1, 16, 12, 11), quarters(dtype, 33, 16, 3, 3, seed=1)
    dy = quarters(dtype, 1, 33, 12, 11, seed=2)
    w[5, 2, 0, 0], w[7, 3, 1, 2], w[32, 15, 2, 2] = bad, bad, bad

    def check():
        on.same(lambda a, b: keel.conv(a, b, **PADDED), x, w, tolerance=exactly(dtype))
        on.same(lambda d, b: keel.conv_grad_x(d, b, dims=list(x.shape), lo=[1, 1]), dy, w, tolerance=exactly(dtype))
    assert by_dnn(check) == 2


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_skipped_cells_have_no_gradient_even_for_infinite_weights(by_dnn, dtype):
    w, dy = quarters(dtype, 64, 70, 1, 1, seed=1), quarters(dtype, 2, 64, 7, 7, seed=2)
    w[5, 2] = np.inf
    assert by_dnn(lambda: on.same(lambda d, b: keel.conv_grad_x(d, b, dims=[2, 70, 13, 13], stride=[2, 2]), dy, w, tolerance=exactly(dtype))) == 1


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_gradients_of_weights_with_infinities(by_dnn, dtype):
    x, dy = small(dtype, 1, 16, 12, 11), quarters(dtype, 1, 33, 12, 11, seed=2)
    dy[0, 3, 0, 0], dy[0, 32, 11, 5], dy[0, 4, 5, 5] = np.inf, np.nan, -np.inf
    assert by_dnn(lambda: on.same(lambda d, a: keel.conv_grad_w(d, a, dims=[33, 16, 3, 3], lo=[1, 1]), dy, x, tolerance=exactly(dtype))) == 1


def test_nan_and_infinity_in_the_image_reach_their_windows_only(by_dnn):
    x, w = small(np.float32, 2, 16, 12, 11), quarters(np.float32, 32, 16, 3, 3, seed=1)
    x[0, 1, 0, 0], x[1, 3, 5, 5] = np.nan, np.inf
    assert by_dnn(lambda: on.same(lambda a, b: keel.conv(a, b, **PADDED), x, w, tolerance=1e-3)) == 1


def test_f32_is_not_rounded_to_tf32(by_dnn):
    """Sums of numbers with more bits than tf32 has."""
    x, w = np.full((1, 64, 12, 12), 1 + 2**-12, np.float32), np.full((64, 64, 3, 3), 1 + 2**-13, np.float32)
    assert by_dnn(lambda: on.same(keel.conv, x, w, tolerance=1e-6)) == 1


def test_tf32_by_choice(in_child):
    """The operands are numbers that tf32 has only 1 of."""
    out, _ = in_child("""
x, w = np.full((1, 64, 12, 12), 1 + 2**-12, np.float32), np.full((64, 64, 3, 3), 1 - 2**-13, np.float32)
with keel.device("cuda"):
    print(set(keel.conv(keel.array(x), keel.array(w)).numpy().reshape(-1).tolist()))
""", KEEL_CUDA_TF32="1")
    assert out == "{576.0}\n"


def test_results_are_the_same_bits_in_each_run(by_dnn):
    n, size = (8, 28) if GPU else (1, 12)
    x, w, dy = small(np.float32, n, 32, size, size), quarters(np.float32, 64, 32, 3, 3, seed=1), small(np.float32, n, 64, size, size, seed=2)
    ops = [(lambda a, b: keel.conv(a, b, **PADDED), x, w), (lambda d, b: keel.conv_grad_x(d, b, dims=list(x.shape), lo=[1, 1]), dy, w),
           (lambda d, a: keel.conv_grad_w(d, a, dims=list(w.shape), lo=[1, 1]), dy, x)]
    for op, *operands in ops:
        first = on.results("cuda", op, operands)[0].tobytes()
        for _ in range(1 if not GPU else 20):
            assert on.results("cuda", op, operands)[0].tobytes() == first


PROGRAM = """keel 1
fn @main(x: f32[n, 16, 14, 14], w: f32[32, 16, 3, 3], v: f32[32, 32, 1, 1]) -> f32[n, 32, 14, 14] {
  a = conv(x, w){lo=[1, 1], hi=[1, 1]}
  b = relu(a)
  c = conv(b, v)
  y = add(b, c)
  return y
}
entry main = @main (x, w, v) -> (y)
"""


def test_a_plan_runs_again_with_other_numbers_and_sizes(context):
    plan, oracle = (context.parse(PROGRAM).session(device).prepare() for device in ("cuda", "reference"))
    w, v = values(np.float32, 32, 16, 3, 3, seed=1) / 8, values(np.float32, 32, 32, 1, 1, seed=2) / 8
    for k, n in enumerate([2, 2, 2, 2, 1, 3, 2, 2]):
        x = values(np.float32, n, 16, 14, 14, seed=k)
        np.testing.assert_allclose(plan.run(x, w, v)[0], oracle.run(x, w, v)[0], rtol=1e-4, atol=1e-4)


ALL = """keel 1
fn @main(x: f32[2, 16, 14, 14], w: f32[32, 16, 3, 3], v: f32[32, 32, 1, 1]) -> (f32[2, 32, 14, 14], f32[2, 16, 14, 14], f32[32, 16, 3, 3]) {
  a = conv(x, w){lo=[1, 1], hi=[1, 1]}
  b = conv(a, v)
  c = conv_grad_x(b, w){dims=[2, 16, 14, 14], lo=[1, 1]}
  d = conv_grad_w(b, c){dims=[32, 16, 3, 3], lo=[1, 1]}
  return b, c, d
}
entry main = @main (x, w, v) -> (b, c, d)
"""


def test_the_plan_names_the_library(context):
    operands = (np.ones((2, 16, 14, 14), "f4"), np.ones((32, 16, 3, 3), "f4"), np.ones((32, 32, 1, 1), "f4"))
    report = context.parse(ALL).session("cuda").prepare().report(*map(context.array, operands))
    assert [launch["impl"] for launch in report["launches"]] == ["cuDNN", "cuBLASLt", "cuDNN", "cuDNN"]


def test_replays_with_infinite_weights(context):
    """Corrections are part of the graph, and so is their absence."""
    plan, oracle = (context.parse(ALL).session(device).prepare() for device in ("cuda", "reference"))
    x, v = values(np.float32, 2, 16, 14, 14), values(np.float32, 32, 32, 1, 1, seed=2) / 8
    for k in range(8):
        w = values(np.float32, 32, 16, 3, 3, seed=k) / 8
        if k % 2:
            w[k, 0, 0, 0] = np.inf
        for got, want in zip(plan.run(x, w, v), oracle.run(x, w, v), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


X, W = values(np.float32, 2, 16, 12, 11), values(np.float32, 32, 16, 3, 3, seed=1)
CALLS = ["cudnnCreate", "cudnnSetStream", "cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute", "cudnnBackendFinalize",
         "cudnnBackendGetAttribute", "cudnnBackendExecute"]


def new_context():
    """With a device of its own, which has not opened the library."""
    context = keel_abi.Context()
    context.load_plugin(PLUGIN)
    return context


def run(context):
    """The error, or None: the result is right."""
    with keel.device("reference"):
        want = keel.conv(keel.array(X), keel.array(W)).numpy()
    try:
        got = context.apply("cuda", "conv", X, W)
    except keel_abi.KeelError as e:
        return e
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    return None


@pytest.mark.parametrize("code, status", [(2, "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"), (719, "CUDNN_STATUS_EXECUTION_FAILED")])
@pytest.mark.parametrize("function", CALLS)
def test_each_function_fails(fake, function, code, status):
    context = new_context()
    fake.fail(function, 1, code)
    error = run(context)
    assert f"{function} gave {status}" in error.message and error.code == ("OOM" if code == 2 else "UNAVAILABLE")
    fake.fail()
    assert run(context) is None


@pytest.mark.parametrize("code", [2, 719, 801], ids=["out of memory", "failed", "not supported"])
@pytest.mark.parametrize("function", CALLS)
def test_each_call_fails(fake, function, code):
    """The first, second, ... call of the function, until none does: an error that names it, or another engine, or own kernels."""
    number, seen = 0, 0
    while True:
        number += 1 if number < 30 else 9
        context = new_context()
        fake.fail(function, number, code)
        error, fired = run(context), fake.fired()
        fake.fail()
        if not fired:
            break
        seen += 1
        assert error is None or f"{function} gave CUDNN_STATUS" in error.message
        if code == 801 and function not in ("cudnnSetStream", "cudnnBackendExecute", "cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute",
                                            "cudnnBackendFinalize"):
            assert error is None
        assert run(context) is None
    assert seen > 0


def test_what_the_library_refuses_runs_by_own_kernels(fake):
    for function in ("cudnnCreate", "cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute", "cudnnBackendFinalize"):
        context, before = new_context(), fake.calls("cudnnBackendExecute")
        fake.fail(function, 1, 801)
        assert run(context) is None and run(context) is None
        assert fake.fired() == function and fake.calls("cudnnBackendExecute") == before


def test_closing_frees_all(fake):
    alive = ctypes.CDLL(str(DNN)).fake_dnn_alive
    alive.restype = ctypes.c_longlong
    gc.collect()
    before = alive()
    context = new_context()
    assert run(context) is None and alive() > before
    del context
    gc.collect()
    assert alive() == before


@pytest.mark.parametrize("library", ["0", "/nowhere/libcudnn.so.9"])
def test_without_the_library_convolutions_run_by_own_kernels(in_child, library):
    out, _ = in_child("""
rng = np.random.default_rng(1)
x, w = keel.array(rng.random((2, 16, 12, 12), np.float32)), keel.array(rng.random((32, 16, 3, 3), np.float32))
got, want = [], []
for device, made in (("cuda", got), ("reference", want)):
    with keel.device(device):
        made.append(keel.conv(x, w).numpy())
print(abs(got[0] - want[0]).max() < 1e-3)
""", KEEL_CUDA_CUDNN=library)
    assert out == "True\n"
