"""Shared by the tests of the example programs (tests/rows): the modules of keel.compat under their original names, and programs
in separate processes. Importing compat changes how all tensors print, so it is active only during a test."""
import os
import subprocess
import sys
from pathlib import Path

import keel
import pytest


def _library():
    """The libkeel of this process."""
    with open("/proc/self/maps") as maps:
        return Path(next(line.split()[-1] for line in maps if "/libkeel.so" in line))


LIBRARY = _library()
BUILD = LIBRARY.parents[1]  # with bin/keel and tests/hostile, if libkeel is that of a build tree


@pytest.fixture
def tf():
    """import keel.compat.v2 as tf"""
    import keel.compat.v2 as module
    keel.compat.enable()
    yield module
    module.config.run_functions_eagerly(False)
    keel.compat.enable(False)


@pytest.fixture
def tf1():
    """import keel.compat.v1 as tf, with a default graph of its own"""
    import keel.compat.v1 as module
    keel.compat.enable()
    module.reset_default_graph()
    yield module
    module.disable_eager_execution()
    module.reset_default_graph()
    keel.compat.enable(False)


@pytest.fixture
def regular(tf):
    """The first function of both examples, and its arguments."""
    def a_regular_function(x, y, b):
        x = tf.matmul(x, y)
        x = x + b
        return x
    return a_regular_function, (tf.constant([[1.0, 2.0]]), tf.constant([[2.0], [3.0]]), tf.constant(4.0))


SIGNATURES = """\
my_relu(x)
  Args:
    x: float32 Tensor, shape=()
  Returns:
    float32 Tensor, shape=()

my_relu(x=[1, -1])
  Returns:
    float32 Tensor, shape=(2,)

my_relu(x)
  Args:
    x: float32 Tensor, shape=(2,)
  Returns:
    float32 Tensor, shape=(2,)
"""  # row T11


def run(code, *arguments, device="", **environment):
    """The output of a fresh Python with keel for the code, on the device."""
    code = f"import keel\nkeel.device({device!r}).__enter__()\n{code}" if device else code
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment}
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, env=env,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_hostile(code):
    """The same with one more device, "hostile:0", whose memory the host cannot read."""
    plugins = BUILD / "tests/hostile"
    if not (plugins / "keel-hostile.so").exists():
        pytest.skip("the hostile device is not beside this libkeel")
    return run(code, KEEL_PLUGIN_PATH=str(plugins))
