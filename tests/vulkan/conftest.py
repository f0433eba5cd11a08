"""Shared by the tests of this folder: the package `keel` from the build's folder, with the plugin vulkan loaded. Without a driver
every test is skipped, with the plugin's reason."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("KEEL_BUILD", HERE.parents[1] / "build" / "release"))
PLUGIN = BUILD / "lib" / "keel" / "plugins" / "keel-vulkan.so"
sys.path[:0] = [str(HERE), str(HERE.parent / "python"), str(BUILD / "python")]
keel = pytest.importorskip("keel", reason="the package was not built: CMake found no nanobind")


def reasons(report):
    return " ".join(each.get("reason", "") for each in json.loads(report) if "keel-vulkan" in each.get("path", ""))


@pytest.fixture(scope="session")
def loaded():
    if not PLUGIN.exists():
        pytest.skip("not built: CMake found no vulkan/vulkan.h or glslangValidator")
    keel.load_plugin(str(PLUGIN))
    if "vulkan:0" not in keel.devices():
        pytest.skip(f"no driver: {reasons(keel.report('plugins'))}")


@pytest.fixture
def vulkan(loaded):
    """Ops run on the device."""
    with keel.device("vulkan"):
        yield


LOAD = f"""
import json, keel, numpy as np
keel.load_plugin({str(PLUGIN)!r})
if "vulkan:0" not in keel.devices(): print(keel.report("plugins")); raise SystemExit
"""


@pytest.fixture
def in_child(loaded):
    """Runs code with the plugin loaded in a new process: switches are read once in a process. Returns stdout and stderr."""
    def run(code, load=LOAD, **environment):
        env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
        done = subprocess.run([sys.executable, "-c", load + code], capture_output=True, text=True, timeout=120, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr
    return run
