"""Shared by the tests of this folder: the package `keel` from the build's folder, with the counting device loaded."""
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("KEEL_BUILD", HERE.parents[1] / "build" / "release"))
sys.path[:0] = [str(HERE), str(HERE.parent / "python"), str(BUILD / "python")]
keel = pytest.importorskip("keel", reason="the package was not built: CMake found no nanobind")


@pytest.fixture(scope="session")
def null_plugin():
    import counting
    keel.load_plugin(str(counting.plugin("null")))
    return counting.door("null")


@pytest.fixture
def null(null_plugin):
    """Ops run on the counting device; afterwards no ticket is held."""
    with keel.device("null"):
        yield null_plugin
    null_plugin.null_hold(0)
