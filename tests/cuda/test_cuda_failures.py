"""The driver fails at each of its calls, in turn: an error that names the call, no crash, no leak; afterwards everything works again, or,
if the device is lost, other devices do."""
import gc

import keel_abi
import numpy as np
import pytest
from cuda_build import PLUGIN
from device_program import DeviceProgram

OOM, LOST = 2, 719


def new_program():
    return DeviceProgram("cuda", PLUGIN.with_name("keel-cpu.so"), PLUGIN)


PRODUCTS = """keel 1
fn @main(x: f32[64, 64]) -> f32[64, 64] {
  a = matmul(x, x)
  b = neg(a)
  c = matmul(b, x)
  d = add(c, a)
  return d
}
entry main = @main (x) -> (_)
"""


class ProductProgram(DeviceProgram):
    """Runs of a plan with products by cuBLASLt: recorded, encoded, replayed, with copies of operands that are elsewhere each time."""

    def __init__(self):
        super().__init__("cuda", PLUGIN.with_name("keel-cpu.so"), PLUGIN)
        self.module = self.context.parse(PRODUCTS)

    def run(self):
        try:
            plan = self.module.session("cuda", level=0, results="device").prepare()
            xs = [np.eye(64, dtype=np.float32) * k for k in range(12)]
            there = [self.context.array(x).to("cuda").wait() for x in xs]
            for k in (0, 0, 1, 1, 0, *range(12)):
                got, = plan.run_arrays(there[k])
                np.testing.assert_array_equal(got.numpy(), xs[k] @ xs[k] - xs[k] @ xs[k] @ xs[k])
        except keel_abi.KeelError as e:
            return str(e)
        return None


FUNCTIONS = ["cuCtxSetCurrent", "cuDevicePrimaryCtxRetain", "cuEventCreate", "cuEventQuery", "cuEventRecord", "cuGraphInstantiate",
             "cuGraphLaunch", "cuKernelGetFunction", "cuLaunchKernel", "cuLibraryGetKernel", "cuLibraryLoadData", "cuMemAlloc", "cuMemHostAlloc",
             "cuMemHostGetDevicePointer", "cuMemcpyAsync", "cuStreamBeginCapture", "cuStreamCreate", "cuStreamEndCapture"]


CASES = [(new_program, f) for f in FUNCTIONS] + [
    (ProductProgram, f) for f in ("cuGraphInstantiate", "cuGraphLaunch", "cuLaunchKernel", "cuMemAlloc", "cuStreamBeginCapture", "cuStreamEndCapture",
                                  "cublasLtCreate", "cublasLtMatmul")]


@pytest.mark.parametrize("code", [OOM, LOST], ids=["out of memory", "lost"])
@pytest.mark.parametrize("new_program, function", CASES)
def test_each_call_fails(fake, new_program, function, code):
    """The first, second, ... call of the function fails, until none does; the first 12 and then every seventh."""
    by_driver = function.startswith("cu") and not function.startswith("cublas")
    assert new_program().run() is None
    gc.collect()
    alive, seen, number = fake.alive(), 0, 0
    while True:
        number += 1 if number < 12 else 7
        fake.fail(function, number, code)
        program = new_program()
        error, fired = program.run(), fake.fired()
        fake.fail()
        if fired:
            seen += 1
            if error:  # Keel can do without some calls, such as recordings
                assert f"{function} gave CU{'DA_ERROR' if by_driver else 'BLAS_STATUS'}" in error or "lost earlier" in error, error
                assert error.startswith("OOM" if code == OOM else "UNAVAILABLE"), error
            program.check_cpu()
            again = program.run()
            if code == OOM or not by_driver:
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


@pytest.mark.parametrize("new_program", [new_program, ProductProgram])
def test_closing_frees_all(fake, new_program):
    gc.collect()
    before = fake.alive()
    program = new_program()
    assert program.run() is None and fake.alive() > before
    del program
    gc.collect()
    assert fake.alive() == before


def test_code_for_another_chip_is_named(fake):
    fake.fail("cuLibraryLoadData", 1, 209)
    error = new_program().run()
    assert "cuLibraryLoadData gave" in error and "this build has no code for compute capability 9.0" in error, error


