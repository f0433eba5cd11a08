"""Examples on the command line use the fixtures of tests/cli: keel(...) runs the command, graph(text) writes a text to a file."""
import importlib.util
import json
import sys
from pathlib import Path

import pytest

CLI = Path(__file__).resolve().parent.parent / "cli"
sys.path.insert(0, str(CLI))

_spec = importlib.util.spec_from_file_location("cli_fixtures", CLI / "conftest.py")
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)
keel, graph = _fixtures.keel, _fixtures.graph


@pytest.fixture(params=["reference", "cpu", "vulkan"])
def on(request, keel):
    found = [row["plugin"] for row in json.loads(keel("devices", "--json").out)["devices"]]
    if request.param not in found:
        pytest.skip(f"no device {request.param}: keel doctor says why")
    return ["-d", request.param]
