"""Shared by the tests of this folder: a context with all plugins, and the devices to run on."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tested_devices import DEVICES  # noqa: E402


@pytest.fixture(scope="session")
def context():
    import keel_abi
    return keel_abi.Context()


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param
