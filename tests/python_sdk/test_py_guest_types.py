"""Type stubs: mypy --strict accepts a correct program, and reports each wrong line."""
import os
import re
import subprocess
import sys
from pathlib import Path

import keel
import pytest

PROGRAM = Path(__file__).with_name("typed_program.py")


def test_mypy_takes_right_lines_and_refuses_wrong_ones(tmp_path):
    pytest.importorskip("mypy")
    package = Path(keel.__file__).absolute().parents[1]
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, PROGRAM], capture_output=True, text=True,
                          env={**os.environ, "MYPYPATH": str(package)}, cwd=tmp_path)
    found = re.findall(r"typed_program\.py:(\d+): error: .*\[([\w-]+)\]", done.stdout)
    wanted = [(str(k), code) for k, line in enumerate(PROGRAM.read_text().splitlines(), 1) for code in re.findall("# E: (.*)", line)]
    assert found == wanted and len(wanted) >= 20, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    folder = Path(keel.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "__init__.pyi").exists() and (folder / "_keel" / "ops.pyi").exists()
