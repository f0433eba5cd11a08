"""Compares the stubs of the Python package (sdk/python/keel/*.pyi) with the package.

Usage: check_stubs.py BUILD    exit 1 and list differences; BUILD contains python/keel with links to the stubs

mypy.stubtest imports the package and compares names, arguments and their defaults. tools/gen_ops.py generates
the stub of the ops; its --check verifies that it is up to date.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Regular expressions of names that stubtest cannot inspect.
ALLOWED = r"""
# written in Python, and typed by keel/__init__.pyi
keel\.(control|custom|display|elsewhere|entry|errors|foreign|function|graph|methods|module|progress|random|saved|selection|session|shapes|signature|tape|timeline|variable)
keel\.(__main__|command|onnx.*)
# inside of other ways to write programs
keel\.(compat\.(?!v1|v2)|convert\.)\w+(\..*)?
# names of TensorFlow that are Any
keel\.compat\.v[12]\.(?!(DType|Tensor|function)$)\w+(\..*)?
# of the extension, seen through keel alone
keel\._keel\.(?!ops\b).*
# classes of nanobind, whose metaclass and constructor have no signature
keel\.(DType|Dim|Eagerly|Function|Graph|Module|Tape|Variable|no_record)(\.__init__)?
# functions of nanobind
keel\.(array|asarray|assert_|cancel|device|devices|einsum|executing_eagerly|load_plugin|parse|print|report|run_eagerly|same)
# functions of a module that became its methods
keel\.Module\.(svg|variables)
# forwarded to the variable's value
keel\.Variable\.(__\w+__|item|numpy|tolist)
# a module that can be called, and ops whose names have NumPy's forms
keel\._keel\.ops\.(einsum|nonzero|random|unique)
# for the stubs alone
keel\._(TensorLike|DTypeLike|Sizes)
keel\.random.*
"""


def main():
    package = Path(sys.argv[1], "python")
    stubs = package / "keel"
    with tempfile.TemporaryDirectory() as folder:
        for stub in stubs.rglob("*.pyi"):  # a copy without sources, which stubtest would take for stubs
            to = Path(folder, "keel", stub.relative_to(stubs))
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(stub, to)
        allowed = Path(folder, "allowed")
        allowed.write_text(ALLOWED)
        done = subprocess.run(
            [sys.executable, "-m", "mypy.stubtest", "keel", "--concise", "--allowlist", allowed, "--ignore-unused-allowlist"],
            cwd=folder, env={**os.environ, "MYPYPATH": folder, "PYTHONPATH": str(package.resolve())},
            capture_output=True, text=True)
    print(done.stdout + done.stderr or "stubs: as the package")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
