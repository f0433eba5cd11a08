"""The import path of this folder's tests, and one context for them."""
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]
BUILD = Path(os.environ.get("KEEL_BUILD", HERE.parents[1] / "build" / "release"))
sys.path.insert(0, str(BUILD / "python"))


@pytest.fixture(scope="session")
def context():
    import keel_abi
    return keel_abi.Context(threads=1)
