"""Shared by the tests of this folder: the package `keel` from the build's folder, with the plugin vulkan loaded. Without a driver
every test is skipped, with the plugin's reason."""
import ctypes
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
import device_fixtures  # noqa: E402
from vulkan_build import BUILD, DRIVER, LOAD, PLUGIN, reasons  # noqa: E402

sys.path.insert(0, str(BUILD / "python"))
keel = pytest.importorskip("keel", reason="the package was not built: CMake found no nanobind")
os.environ.setdefault("KEEL_VULKAN_CACHE", "0")


@pytest.fixture(scope="session")
def loaded():
    if not PLUGIN.exists():
        pytest.skip("not built: CMake found no vulkan/vulkan.h or glslangValidator")
    keel.load_plugin(str(PLUGIN))
    if "vulkan:0" not in keel.devices():
        pytest.skip(f"no driver: {reasons(keel.report('plugins'))}")


no_complaints = device_fixtures.no_complaints("keel-vulkan:")  # of the validation layer or the verifier
context = device_fixtures.own_context(PLUGIN)
vulkan = device_fixtures.ops_on("vulkan")


class Driver(device_fixtures.Driver):
    """The loader between the plugin and libvulkan (driver/driver.h)."""

    def __init__(self):
        super().__init__(DRIVER, "driver")
        for name in ("parts", "copied"):
            self.function(name, ctypes.c_uint64)

    def parts(self):
        """Parts of batches, over all calls of vkQueueSubmit2."""
        return self.function("parts")()

    def copied(self):
        """Bytes that vkCmdCopyBuffer moves, over all calls."""
        return self.function("copied")()


@pytest.fixture
def driver(loaded):
    made = Driver()
    yield made
    made.fail()


@pytest.fixture(scope="session")
def in_child(loaded):
    """Runs code with the plugin loaded in a new process: switches are read once in a process. Returns stdout and stderr."""
    def run(code, load=LOAD, **environment):
        return device_fixtures.output_of(load + code, environment, timeout=400)  # GPU-assisted validation is slow
    return run
