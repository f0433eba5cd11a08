"""Shared by the tests of this folder: the package `keel` from the build's folder, with the plugin cuda loaded and the fake driver of
fake/ in place of libcuda.so.1 and libnvrtc.so.13; with KEEL_CUDA_GPU=1 on the machine's GPU. A process sees one driver, so these tests
run by themselves only: where pytest is given other folders too, they are not collected."""
import ctypes
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
from cuda_build import BUILD, FAKE, FAKED, GPU, LOAD, PLUGIN  # noqa: E402

sys.path.insert(0, str(BUILD / "python"))
keel = pytest.importorskip("keel", reason="the package was not built: CMake found no nanobind")


def is_alone(config):
    return all(Path(arg.split("::")[0]).resolve().is_relative_to(HERE) for arg in config.args)


def pytest_configure(config):
    if is_alone(config):
        os.environ.update(FAKED)


def pytest_ignore_collect(config):
    return None if is_alone(config) else True


@pytest.fixture(scope="session")
def loaded():
    if not PLUGIN.exists():
        pytest.skip("not built: CMake found no CUDA toolkit")
    keel.load_plugin(str(PLUGIN))
    assert "cuda:0" in keel.devices(), keel.report("plugins")


@pytest.fixture(autouse=True)
def no_complaints(capfd):
    """A finding of the fake driver fails the test."""
    yield
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("fakecuda:")]
    assert lines == []


class Fake:
    """The fake driver: counts calls, and fails them."""

    def __init__(self):
        self.library = ctypes.CDLL(str(FAKE))
        self.library.fake_calls.restype = ctypes.c_uint64
        self.library.fake_all_calls.restype = ctypes.c_char_p
        self.library.fake_alive.restype = ctypes.c_longlong
        self.library.fake_fired.restype = ctypes.c_char_p

    def calls(self, function):
        return self.library.fake_calls(function.encode())

    def all_calls(self):
        """Calls of each function of the driver and of cuBLASLt so far."""
        lines = self.library.fake_all_calls().decode().splitlines()
        return Counter({name: int(n) for n, name in map(str.split, lines)})

    def alive(self):
        """Objects that were created and are not destroyed."""
        return self.library.fake_alive()

    def fail(self, function="", number=0, code=0):
        self.library.fake_fail(function.encode(), ctypes.c_uint64(number), code)

    def fired(self):
        return self.library.fake_fired().decode()


@pytest.fixture
def fake(loaded):
    if GPU:
        pytest.skip("needs the fake driver")
    made = Fake()
    yield made
    made.fail()


@pytest.fixture
def calls_in(request):
    """calls_in(f, function) calls f and returns how often that called the function of a fake library."""
    if not GPU:
        fake = request.getfixturevalue("fake")

    def count(f, function):
        if GPU:
            f()
            pytest.skip("the numbers are right; the fake library counts the calls")
        before = fake.calls(function)
        f()
        return fake.calls(function) - before
    return count


@pytest.fixture
def context(loaded):
    """A context of the C API with a device of its own."""
    import keel_abi
    made = keel_abi.Context()
    made.load_plugin(PLUGIN)
    return made


@pytest.fixture
def cuda(loaded):
    """Ops run on the device."""
    with keel.device("cuda"):
        yield


@pytest.fixture(scope="session")
def in_child():
    """Runs code with the plugin loaded in a new process: the driver is loaded once in a process. Returns stdout and stderr."""
    if not PLUGIN.exists():
        pytest.skip("not built: CMake found no CUDA toolkit")

    def run(code, load=LOAD, **environment):
        if GPU and any(key.startswith(("FAKE", "KEEL_CUDA_")) for key in environment):
            pytest.skip("needs the fake driver")
        env = os.environ | FAKED | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
        done = subprocess.run([sys.executable, "-c", load + code], capture_output=True, text=True, timeout=120, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr
    return run
