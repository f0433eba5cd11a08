"""What the tests of this folder share: one context for each process, and the order of slow cases."""
import sys
import warnings
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python"), str(HERE.parents[1] / "tools")]
warnings.filterwarnings("ignore", category=RuntimeWarning)  # numpy's, while onnx makes its cases


@pytest.fixture(scope="session")
def context():
    import keel_abi
    return keel_abi.Context()
