"""Shared by the tests of plugins with a driver (tests/cuda, tests/vulkan): fixtures for a plugin, and a library that counts the driver's
calls and fails them."""
import ctypes
import os
import subprocess
import sys

import pytest


def no_complaints(prefix):
    """A line on stderr with this prefix fails the test."""
    @pytest.fixture(autouse=True)
    def fixture(capfd):
        yield
        lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith(prefix)]
        assert not lines, lines
    return fixture


def own_context(plugin):
    """A context of the C API with a device of its own."""
    @pytest.fixture
    def context(loaded):
        import keel_abi
        made = keel_abi.Context()
        made.load_plugin(plugin)
        return made
    return context


def ops_on(device):
    """Ops run on the device."""
    @pytest.fixture
    def fixture(loaded):
        import keel
        with keel.device(device):
            yield
    return fixture


def output_of(code, environment, timeout):
    """stdout and stderr of code that runs in a new process, which succeeds."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


class Driver:
    """A library that counts calls, and fails them; its functions begin with a prefix."""

    def __init__(self, path, prefix):
        self.library, self.prefix = ctypes.CDLL(str(path)), prefix
        self.function("calls", ctypes.c_uint64)
        self.function("alive", ctypes.c_int64)
        self.function("fired", ctypes.c_char_p)

    def function(self, name, result=None):
        found = getattr(self.library, f"{self.prefix}_{name}")
        if result is not None:
            found.restype = result
        return found

    def calls(self, function):
        return self.function("calls")(function.encode())

    def alive(self):
        """Objects that were created and are not destroyed."""
        return self.function("alive")()

    def fail(self, function="", number=0, code=0):
        self.function("fail")(function.encode(), ctypes.c_uint64(number), code)

    def fired(self):
        return self.function("fired")().decode()
