"""Shared by the tests of the package `keel`, which is imported from the build's folder python."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(os.environ.get("KEEL_BUILD", ROOT / "build" / "release")) / "python"))
keel = pytest.importorskip("keel", reason="the package was not built: CMake found no nanobind")
sys.path.append(str(ROOT / "tests" / "python"))
from tested_devices import DEVICES  # noqa: E402


@pytest.fixture(params=DEVICES)
def device(request):
    with keel.device(request.param):
        yield request.param


@pytest.fixture
def script():
    """Runs code in a separate process, for at most a minute, and returns its output."""
    def run(code, *args, timeout=60, **environment):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
        done = subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, timeout=timeout, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run
