"""Shared by the tests of this folder: the package `keel` from the build's folder, with the plugin cuda loaded and the fake driver of
fake/ in place of libcuda.so.1 and libnvrtc.so.13; with KEEL_CUDA_GPU=1 on the machine's GPU. A process sees one driver, so these tests
run by themselves only: where pytest is given other folders too, they are not collected."""
import ctypes
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
import device_fixtures  # noqa: E402
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


no_complaints = device_fixtures.no_complaints("fakecuda:")  # of the fake driver
context = device_fixtures.own_context(PLUGIN)
cuda = device_fixtures.ops_on("cuda")


class Fake(device_fixtures.Driver):
    """The fake driver."""

    def __init__(self):
        super().__init__(FAKE, "fake")
        self.function("all_calls", ctypes.c_char_p)

    def all_calls(self):
        """Calls of each function of the driver and of cuBLASLt so far."""
        lines = self.function("all_calls")().decode().splitlines()
        return Counter({name: int(n) for n, name in map(str.split, lines)})


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


@pytest.fixture(scope="session")
def in_child():
    """Runs code with the plugin loaded in a new process: the driver is loaded once in a process. Returns stdout and stderr."""
    if not PLUGIN.exists():
        pytest.skip("not built: CMake found no CUDA toolkit")

    def run(code, load=LOAD, **environment):
        if GPU and any(key.startswith(("FAKE", "KEEL_CUDA_")) for key in environment):
            pytest.skip("needs the fake driver")
        return device_fixtures.output_of(load + code, FAKED | environment, timeout=120)
    return run
