"""Shared by the tests of this folder: the import path of helpers, and one context per process."""
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python"), str(HERE.parents[1] / "tools")]
BUILD = Path(os.environ.get("KEEL_BUILD", HERE.parents[1] / "build" / "release"))
sys.path.insert(0, str(BUILD / "python"))


@pytest.fixture(scope="session")
def context():
    import keel_abi
    return keel_abi.Context()
