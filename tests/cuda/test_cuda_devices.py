"""Two devices of cuda in a process: copies between them, graphs on both, and memory of other libraries."""
import pytest
from cuda_build import PLUGIN

PROGRAM = """
before = fake_calls("cuMemcpyPeerAsync")
text = '''keel 1
fn @main(x: f32[n, 8], w: f32[8, 8]) -> f32[n, 8] {
  a = matmul(x, w)
  b = tanh(a)
  c = matmul(b, w)
  y = add(c, a)
  return y
}
entry main = @main (x, w) -> (y)
'''
rng = np.random.default_rng(1)
w = rng.standard_normal((8, 8)).astype(np.float32)
module = keel.parse(text)
session = keel.Session(module, "cuda:0", place=["b=cuda:1", "y=cuda:1"])
for n in (0, 1, 5, 300, 5):
    x = rng.standard_normal((n, 8)).astype(np.float32)
    got = session.run("y", x=x, w=w)
    np.testing.assert_allclose(got.numpy(), np.tanh(x @ w) @ w + x @ w, rtol=1e-4, atol=1e-4)
print(fake_calls("cuMemcpyPeerAsync") > before)
"""
LOAD = """
import ctypes, os
library = ctypes.CDLL(os.environ["KEEL_CUDA_LIBRARY"])
library.fake_calls.restype = ctypes.c_uint64
def fake_calls(name):
    return library.fake_calls(name.encode())
"""


@pytest.mark.parametrize("peers", ["1", "0"])
@pytest.mark.parametrize("seed", range(3))
def test_an_array_moves_between_devices(in_child, seed, peers):
    out, err = in_child(LOAD + """
for n in (0, 1, 1000, 5_000_000):
    x = np.arange(n, dtype=np.float32)
    with keel.device("cuda:0"):
        a = keel.array(x) + 1
    b = a.to("cuda:1")
    with keel.device("cuda:1"):
        c = b * 2
    assert str(c.device) == "cuda:1"
    np.testing.assert_array_equal(c.to("cuda:0").numpy(), (x + 1) * 2)
print(fake_calls("cuMemcpyPeerAsync"), fake_calls("cuCtxEnablePeerAccess"))
""", FAKECUDA_DEVICES="2", FAKECUDA_SEED=str(seed), FAKECUDA_PEERS=peers)
    copies, enabled = map(int, out.split())
    assert copies >= 6 and enabled == (2 if peers == "1" else 0) and "fakecuda:" not in err


@pytest.mark.parametrize("seed", range(3))
def test_a_graph_on_both(in_child, seed):
    out, err = in_child(LOAD + PROGRAM, FAKECUDA_DEVICES="2", FAKECUDA_SEED=str(seed))
    assert out == "True\n" and "fakecuda:" not in err


def test_memory_of_another_library(in_child):
    """By DLPack: one context exports it, another context imports it."""
    out, err = in_child(f"""
import ctypes as C, keel_abi
first, second = keel_abi.Context(), keel_abi.Context()
for context in (first, second):
    context.load_plugin({str(PLUGIN)!r})
x = np.arange(6, dtype=np.float32).reshape(2, 3)
there = first.bind("cuda:1", "neg").arrays(first.array(x))[0]
managed, out = C.c_void_p(), C.c_void_p()
keel_abi.call("keel_array_to_dlpack", there, C.byref(managed), None)
del there
keel_abi.call("keel_array_from_dlpack", second, managed, None, C.byref(out))
back = keel_abi.Array(out, second)
assert back.device == "cuda:1"
further = second.bind("cuda:1", "neg").arrays(back)[0]
np.testing.assert_array_equal(further.numpy(), x)
np.testing.assert_array_equal(back.numpy(), -x)
del back, further
print("done")
""", FAKECUDA_DEVICES="2")
    assert out == "done\n" and "fakecuda:" not in err
