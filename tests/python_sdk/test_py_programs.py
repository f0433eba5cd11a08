"""The example programs written for TensorFlow, whole files with other import lines, print the expected output."""
import doctest
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keel  # noqa: F401  skips if the package is missing
import pytest

HERE = Path(__file__).resolve().parent
TOOL = HERE.parents[1] / "tools/tf_rows.py"
PROGRAMS = [pytest.param(path, id=path.stem) for path in sorted((HERE / "programs").glob("*.py"))]


def said(path):
    """The lines after "#> " are printed, between the marks of the examples."""
    lines = path.read_text().splitlines()
    return "".join(line[2:].removeprefix(" ") + "\n" for line in lines if line.startswith(("#>", "# -- ")))


@pytest.mark.parametrize("path", PROGRAMS)
def test_a_program_prints_the_expected_output(path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, TOOL, "--play", path], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert doctest.OutputChecker().check_output(said(path), done.stdout, doctest.ELLIPSIS), done.stdout


def test_the_side_by_side_tool_tells_differences(tmp_path):
    spec = importlib.util.spec_from_file_location("tf_rows", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.verdict("6\n", "", "6\n", "6\n") == ("both as said", False)
    assert tool.verdict("6\n", "", "7\n", "6\n")[1]
    assert tool.verdict("6\n", "", "6\n", "7\n") == ("TENSORFLOW DIFFERS", True)
    assert tool.verdict("6\n", "why", "6\n", "7\n") == ("Keel as said; why", False)
    program = tmp_path / "p.py"
    program.write_text("# -- T1\nprint(1)\n#> 1\n#! why\n# -- T2\n3 + 4\n#> ...\n")
    assert tool.sections(program) == {"": ("", ""), "T1": ("1\n", "why"), "T2": ("...\n", "")}
    assert tool.output(sys.executable, program) == {"": "", "T1": "1\n", "T2": "7\n"}
    program.write_text("# -- T1\n1 / 0\n")
    assert tool.output(sys.executable, program)["T1"] == "exit 1: ZeroDivisionError: division by zero\n"
