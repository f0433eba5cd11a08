"""What the tests of passes share: where helpers are found, and one context for each process."""
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("python", "conformance")), str(HERE.parents[1] / "tools")]


@pytest.fixture(scope="session")
def context():
    import keel_abi
    return keel_abi.Context()
