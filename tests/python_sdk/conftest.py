"""What the tests of the package `keel` share: it is imported from the build's folder python."""
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(os.environ.get("KEEL_BUILD", ROOT / "build" / "release")) / "python"))
keel = pytest.importorskip("keel", reason="the package was not built: CMake found no nanobind")


@pytest.fixture(params=("reference", "cpu"))
def device(request):
    with keel.device(request.param):
        yield request.param
