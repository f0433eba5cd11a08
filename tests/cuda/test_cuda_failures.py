"""The driver fails at each of its calls, in turn: an error that names the call, no crash, no leak; afterwards everything works again, or,
if the device is lost, other devices do."""
import gc

import pytest
from cuda_build import PLUGIN
from device_program import DeviceProgram

OOM, LOST = 2, 719


def new_program():
    return DeviceProgram("cuda", PLUGIN.with_name("keel-cpu.so"), PLUGIN)


FUNCTIONS = ["cuCtxSetCurrent", "cuDevicePrimaryCtxRetain", "cuEventCreate", "cuEventQuery", "cuEventRecord", "cuGraphInstantiate",
             "cuGraphLaunch", "cuLaunchKernel", "cuLibraryGetKernel", "cuLibraryLoadData", "cuMemAlloc", "cuMemHostAlloc",
             "cuMemHostGetDevicePointer", "cuMemcpyAsync", "cuStreamBeginCapture", "cuStreamCreate", "cuStreamEndCapture"]


@pytest.mark.parametrize("code", [OOM, LOST], ids=["out of memory", "lost"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_call_fails(fake, function, code):
    """The first, second, ... call of the function fails, until none does; the first 12 and then every seventh."""
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
    program = new_program()
    assert program.run() is None and fake.alive() > before
    del program
    gc.collect()
    assert fake.alive() == before


def test_code_for_another_chip_is_named(fake):
    fake.fail("cuLibraryLoadData", 1, 209)
    error = new_program().run()
    assert "cuLibraryLoadData gave" in error and "this build has no code for compute capability 9.0" in error, error


