"""Fused bodies, compiled at run time: results are those of the reference, and the text is taken by a real NVRTC."""
import ctypes
import os
from pathlib import Path

import keel_abi
import numpy as np
import pytest
from cuda_build import COMPILER, PLUGIN, compiled

pytestmark = pytest.mark.usefixtures("loaded")
REAL = next((str(p) for p in (Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64/libnvrtc.so.13",) if p.exists()), None)
BODY = """keel 1
fn @body(x: T[n, m], y: T[m], z: T[]) -> T[n, m], bool[n, m] {
STEPS
  return r, p
}
fn @main(x: T[n, m], y: T[m], z: T[]) -> T[n, m], bool[n, m] {
  a, b = call(x, y, z){body=@body}
  return a, b
}
entry main = @main (x, y, z) -> (_, _)
"""
FLOATS = ["a = add(x, y)\n  b = mul(a, z)\n  c = maximum(b, y)\n  r = tanh(c)\n  p = less(r, x)",
          "a = sigmoid(x)\n  b = div(a, exp(y))\n  c = gelu(b){tanh=true}\n  r = leaky_relu(sub(c, z)){alpha=0.3}\n  p = is_nan(r)",
          "a = pow(abs(x), y)\n  b = select(less(a, x), a, x)\n  c = mod(b, z)\n  r = rsqrt(add(square(c), square(x)))\n  p = greater(a, c)"]
INTEGERS = ["a = add(x, y)\n  b = mul(a, z)\n  c = bit_xor(b, x)\n  r = minimum(c, y)\n  p = equal(r, x)",
            "a = div(x, y)\n  b = rem(x, y)\n  r = add(mul(a, y), b)\n  p = not_equal(r, x)",
            "f = cast(x){to=f32}\n  g = mul(f, sqrt(cast(y){to=f32}))\n  r = cast(g){to=T}\n  p = logical_and(less(f, g), less(x, y))"]


def context():
    made = keel_abi.Context()
    for plugin in (PLUGIN.with_name("keel-reference.so"), PLUGIN):
        made.load_plugin(plugin)
    return made


def run(text, feeds):
    before = compiled()
    got, want = (context().parse(text).session(device, level=0).prepare().run(*feeds) for device in ("cuda", "reference"))
    assert compiled() > before, "the body ran op by op"
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        if a.dtype.kind == "f":
            bound = {2: 4e-3, 4: 2e-5, 8: 1e-12}[a.itemsize]
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=bound, atol=bound)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.fixture(autouse=True)
def real_compiler(monkeypatch):
    if REAL:
        monkeypatch.setenv("FAKENVRTC_REAL", REAL)


@pytest.mark.parametrize("steps", FLOATS, ids=range(3))
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_bodies_of_floats(dtype, steps):
    rng, kind = np.random.default_rng(1), {"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype]
    text = BODY.replace("STEPS", "  " + steps).replace("T[", f"{dtype}[")
    run(text, [rng.standard_normal(s).astype(kind) for s in ((5, 7), (7,), ())])


@pytest.mark.parametrize("steps", INTEGERS, ids=range(3))
@pytest.mark.parametrize("dtype", ["i8", "u16", "i32", "i64"])
def test_bodies_of_integers(dtype, steps):
    rng, kind = np.random.default_rng(2), {"i8": np.int8, "u16": np.uint16, "i32": np.int32, "i64": np.int64}[dtype]
    text = BODY.replace("STEPS", "  " + steps).replace("T[", f"{dtype}[").replace("to=T", f"to={dtype}")
    run(text, [rng.integers(1, 100, s).astype(kind) for s in ((5, 7), (7,), ())])


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 1)], ids=str)
def test_sizes_zero_and_one(shape):
    text = BODY.replace("STEPS", "  " + FLOATS[0]).replace("T[", "f32[")
    feeds = [np.ones(s, np.float32) for s in (shape, shape[1:], ())]
    got, want = (context().parse(text).session(device, level=0).prepare().run(*feeds) for device in ("cuda", "reference"))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b) if a.dtype == bool else np.testing.assert_allclose(a, b, rtol=1e-6)


CACHED = f"""
import ctypes, keel_abi
text = {BODY.replace("STEPS", "  " + FLOATS[0]).replace("T[", "f32[")!r}
made = keel_abi.Context()
made.load_plugin({str(PLUGIN)!r})
x = np.ones((2, 2), np.float32)
def body(): return made.parse(text).session("cuda", level=0).prepare().run(x, x[0], x[0, 0])[0][0, 0]
"""
COUNT = f"print(body() > 0, ctypes.CDLL({str(COMPILER)!r}).fake_compiled())"


def test_code_is_kept_on_disk(in_child, tmp_path):
    on = {"KEEL_CUDA_CACHE": "1", "XDG_CACHE_HOME": str(tmp_path)}
    assert [in_child(CACHED + COUNT, **on)[0] for _ in range(2)] == ["True 1\n", "True 0\n"]
    file, = (tmp_path / "keel").iterdir()
    file.write_bytes(file.read_bytes()[:-9] + b"damaged!!")
    assert in_child(CACHED + COUNT, **on)[0] == "True 1\n"


@pytest.mark.parametrize("nvrtc", ["0", "/none/libnvrtc.so.13"])
def test_without_a_compiler_bodies_run_op_by_op(in_child, nvrtc):
    assert in_child(CACHED + "print(body())", KEEL_CUDA_NVRTC=nvrtc)[0].startswith("0.96")
