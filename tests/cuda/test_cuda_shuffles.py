"""The fake driver's shuffles: a warp's threads get each other's numbers, at a different pace than other warps; misuse is a finding."""
import pytest
from cuda_build import FAKE, HERE

pytestmark = pytest.mark.usefixtures("fake")
KERNELS = HERE.parents[1] / "plugins" / "cuda" / "kernels"
# Runs the body with 64 threads in one block: y is 64 zeros at first.
RUN = """
import ctypes as C
driver = C.CDLL({fake!r})
text = "fake code\\n" + "".join(open({folder!r} + "/" + name).read() for name in ("args.h", "scalar.cuh", "common.cuh")) + {kernel!r}
def call(name, *args):
    assert getattr(driver, name)(*args) == 0, name
context, stream, library, kernel, memory = (C.c_void_p() for _ in range(5))
call("cuDevicePrimaryCtxRetain", C.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuStreamCreate", C.byref(stream), 0)
call("cuMemHostAlloc", C.byref(memory), C.c_size_t(256), 0)
y = (C.c_float * 64).from_address(memory.value)
y[:] = [0] * 64
call("cuLibraryLoadData", C.byref(library), text.encode(), None, None, 0, None, None, 0)
call("cuLibraryGetKernel", C.byref(kernel), library, b"keel_test")
args = (C.c_uint64 * 256)(0, memory.value)  # the table, the first address
C.memset(C.byref(args, 8 + 24 * 8 + 8), 0xff, 50)  # no slots
call("cuLaunchKernel", kernel, 1, 1, 1, 64, 1, 1, 0, stream, (C.c_void_p * 1)(C.addressof(args)), None)
call("cuStreamSynchronize", stream)
print([int(each) for each in y])
"""


@pytest.fixture
def run(in_child):
    def run(body, kind="BLOCK_KERNEL"):
        text = kind + "(test) { float* y = operand<float>(args, 0); const int t = (int)threadIdx.x; " + body + " }"
        out, err = in_child(RUN.format(fake=str(FAKE), folder=str(KERNELS), kernel=text), load="")
        return out.strip(), [line for line in err.splitlines() if line.startswith("fakecuda:")]
    return run


def test_numbers_are_exchanged_in_each_warp(run):
    assert run("y[t] = __shfl_xor_sync(0xffffffff, (float)t, 5);") == (str([t ^ 5 for t in range(64)]), [])
    assert run("y[t] = __shfl_down_sync(0xffffffff, (float)t, 30);") == (str([t + 30 if t % 32 < 2 else t for t in range(64)]), [])
    assert run("if (t < 4) y[t] = (float)__shfl_xor_sync(0xfu, (long long)t << 40, 1) / (1ll << 40);")[0].startswith("[1, 0, 3, 2, 0,")


def test_a_warp_goes_on_while_another_one_waits(run):
    body = "if (t < 32) { float s = t; for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d); y[t] = s; } __syncthreads(); y[t] += 1;"
    assert run(body) == (str([497] * 32 + [1] * 32), [])


@pytest.mark.parametrize("body, finding", [
    ("if (t % 2) y[t] = __shfl_xor_sync(0xffffffff, 1.f, 2);", "threads wait at a shuffle for others of their warp"),
    ("if (t % 2) __syncthreads(); else y[t] = __shfl_xor_sync(0xffffffff, 1.f, 2);", "threads wait at a shuffle for others of their warp"),
    ("y[t] = __shfl_xor_sync(t % 2 ? 0xffffffff : 0xfffffffe, 1.f, 2);", "a thread is not in the mask of its own shuffle"),
    ("y[t] = __shfl_xor_sync(t % 32 < 16 ? 0xffff : 0xffff0000, 1.f, 16);", "a shuffle reads from a lane that takes no part"),
], ids=["some threads only", "others wait for the block", "not in its mask", "from outside of the mask"])
def test_misuse_is_found(run, body, finding):
    assert f"fakecuda: {finding}" in run(body)[1]


def test_a_kernel_whose_threads_do_not_meet_has_no_shuffles(run):
    assert "fakecuda: threads meet in a kernel that is no BLOCK_KERNEL" in run("y[t] = __shfl_xor_sync(~0u, 1.f, 1);", "KERNEL")[1]
