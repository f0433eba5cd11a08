"""Shared by the tests of this folder: the package `keel` from the build's folder, with the plugin vulkan loaded. Without a driver
every test is skipped, with the plugin's reason."""
import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
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


@pytest.fixture(autouse=True)
def no_complaints(capfd):
    """A message of the validation layer or of the verifier fails the test."""
    yield
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("keel-vulkan:")]
    assert lines == []


class Driver:
    """The loader between the plugin and libvulkan (driver/driver.h): counts calls, and fails them."""

    def __init__(self):
        self.library = ctypes.CDLL(str(DRIVER))
        self.library.driver_calls.restype = ctypes.c_uint64
        self.library.driver_parts.restype = ctypes.c_uint64
        self.library.driver_copied.restype = ctypes.c_uint64
        self.library.driver_cache_bytes.restype = ctypes.c_uint64
        self.library.driver_alive.restype = ctypes.c_int64
        self.library.driver_fired.restype = ctypes.c_char_p

    def calls(self, function):
        return self.library.driver_calls(function.encode())

    def parts(self):
        """Parts of batches, over all calls of vkQueueSubmit2."""
        return self.library.driver_parts()

    def copied(self):
        """Bytes that vkCmdCopyBuffer moves, over all calls."""
        return self.library.driver_copied()

    def alive(self):
        """Objects that were created and are not destroyed."""
        return self.library.driver_alive()

    def fail(self, function="", number=0, code=0):
        self.library.driver_fail(function.encode(), ctypes.c_uint64(number), code)

    def fired(self):
        return self.library.driver_fired().decode()


@pytest.fixture
def driver(loaded):
    made = Driver()
    yield made
    made.fail()


@pytest.fixture
def context(loaded):
    """A context of the C API with a device of its own."""
    import keel_abi
    made = keel_abi.Context()
    made.load_plugin(PLUGIN)
    return made


@pytest.fixture
def vulkan(loaded):
    """Ops run on the device."""
    with keel.device("vulkan"):
        yield


@pytest.fixture(scope="session")
def in_child(loaded):
    """Runs code with the plugin loaded in a new process: switches are read once in a process. Returns stdout and stderr."""
    def run(code, load=LOAD, **environment):
        env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
        done = subprocess.run([sys.executable, "-c", load + code], capture_output=True, text=True, timeout=400, env=env)  # GPU-assisted validation is slow
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr
    return run
