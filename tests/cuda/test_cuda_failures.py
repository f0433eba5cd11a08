"""The driver fails at each of its calls, in turn: an error that names the call, no crash, no leak; afterwards everything works again, or,
if the device is lost, other devices do."""
import gc

import keel_abi
import numpy as np
import pytest
from cuda_build import PLUGIN

OOM, LOST = 2, 719
TEXT = """keel 1
fn @main(x: f32[n, 4], i: i32[2]) -> f32[2, 4] {
  a = add(x, x)
  b = reverse(a){axes=[1]}
  c = add(b, a)
  d = gather(c, i)
  e = add(d, d)
  return e
}
entry main = @main (x, i) -> (_)
"""
X = np.arange(12, dtype=np.float32).reshape(3, 4)
INDEX = np.array([2, 0], np.int32)
WANT = 2 * (2 * X[:, ::-1] + 2 * X)[INDEX]


class Program:
    """Runs of a plan (the second is recorded, the third replayed) and eager ops, in a context of their own."""

    def __init__(self):
        self.context = keel_abi.Context()
        for plugin in (PLUGIN.with_name("keel-cpu.so"), PLUGIN):
            self.context.load_plugin(plugin)
        self.module = self.context.parse(TEXT)

    def run(self):
        """The error, or None."""
        try:
            plan = self.module.session("cuda", level=0).prepare()
            for _ in range(4):
                np.testing.assert_array_equal(plan.run(X, INDEX)[0], WANT)
            there = self.context.array(X).to("cuda")
            y, = self.context.bind("cuda", "add").arrays(there, there)
            np.testing.assert_array_equal(y.numpy(), 2 * X)
        except keel_abi.KeelError as e:
            return str(e)
        return None

    def check_cpu(self):
        np.testing.assert_array_equal(self.context.apply("cpu", "add", X, X), 2 * X)


FUNCTIONS = ["cuCtxSetCurrent", "cuDevicePrimaryCtxRetain", "cuEventCreate", "cuEventQuery", "cuEventRecord", "cuGraphInstantiate",
             "cuGraphLaunch", "cuLaunchKernel", "cuLibraryGetKernel", "cuLibraryLoadData", "cuMemAlloc", "cuMemHostAlloc",
             "cuMemHostGetDevicePointer", "cuMemcpyAsync", "cuStreamBeginCapture", "cuStreamCreate", "cuStreamEndCapture"]


@pytest.mark.parametrize("code", [OOM, LOST], ids=["out of memory", "lost"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_call_fails(fake, function, code):
    """The first, second, ... call of the function fails, until none does; the first 12 and then every seventh."""
    assert Program().run() is None
    gc.collect()
    alive, seen, number = fake.alive(), 0, 0
    while True:
        number += 1 if number < 12 else 7
        fake.fail(function, number, code)
        program = Program()
        error, fired = program.run(), fake.fired()
        fake.fail()
        if fired:
            seen += 1
            if error:  # Keel can do without some calls, such as recordings
                assert f"{function} gave CUDA_ERROR" in error or "lost earlier" in error, error
                assert error.startswith("OOM" if code == OOM else "UNAVAILABLE"), error
            program.check_cpu()
            again = program.run()
            if code == OOM:
                assert again is None, (number, again)
            elif error and function != "cuDevicePrimaryCtxRetain":
                assert again and "the device was lost earlier" in again, (number, again)
        del program
        gc.collect()
        if code == OOM:  # a lost context keeps its objects
            assert fake.alive() == alive, f"call {number} of {function}: objects are left"
        if not fired:
            break
    assert seen > 0


def test_closing_frees_all(fake):
    gc.collect()
    before = fake.alive()
    program = Program()
    assert program.run() is None and fake.alive() > before
    del program
    gc.collect()
    assert fake.alive() == before


def test_code_for_another_chip_is_named(fake):
    fake.fail("cuLibraryLoadData", 1, 209)
    error = Program().run()
    assert "cuLibraryLoadData gave" in error and "this build has no code for compute capability 9.0" in error, error


