"""Shared by the tests of this folder: the package `keel` from the build's folder, with the counting device loaded."""
import ctypes as C
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
    door = counting.door("null")
    door.null_hash.restype = C.c_uint64
    return door


@pytest.fixture
def null(null_plugin):
    """Ops run on the counting device; afterwards no ticket is held, and it has all that is optional."""
    with keel.device("null"):
        yield null_plugin
    null_plugin.null_hold(0)
    null_plugin.null_lack(0)
    null_plugin.null_decline(b"", 0)
    null_plugin.null_watch_calls(0)
