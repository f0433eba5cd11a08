"""Fixtures of the command's tests: `keel` runs the command, `graph` writes a graph text to a file.

The command is $KEEL_BIN, else bin/keel of the build $KEEL_BUILD.
"""
import shutil
import subprocess
from pathlib import Path

import pytest
from command import ADD, command

ROOT = Path(__file__).parents[2]
BUILD = Path(command()).parents[1]


@pytest.fixture
def keel(tmp_path):
    """keel("run", "g.txt", code=2): runs the command in a fresh folder, checks the exit code, returns stdout and stderr."""
    def run(*arguments, code=0, stdin=None):
        done = subprocess.run([command(), *map(str, arguments)], cwd=tmp_path, input=stdin, timeout=60,
                              stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True)
        done.out, done.err = (s.decode("utf-8", "replace") for s in (done.stdout, done.stderr))
        assert done.returncode == code, f"exit {done.returncode}, expected {code}\n{done.out}\n{done.err}"
        return done
    return run


@pytest.fixture
def graph(tmp_path):
    """graph(text) writes it and returns the path; graph() writes y = x + 1 on f32[b, 2]."""
    def write(text=ADD, name="g.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path
    return write


@pytest.fixture
def one(graph):
    """one("exp(x)", "f32[3]"): a graph of one statement, y = ..., on parameters of these types."""
    def write(expression, *types, result=None, name="one.txt"):
        names = "xzuvw"[:len(types)]
        params = ", ".join(f"{n}: {t}" for n, t in zip(names, types))
        return graph(f"keel 1\n\nfn @main({params}) -> {result or types[0]} {{\n"
                     f"  y = {expression}\n  return y\n}}\n\nentry main = @main ({', '.join(names)}) -> (y)\n", name)
    return write


@pytest.fixture
def example_device():
    """example_device(file, right, wrong) compiles sdk/examples/queue_device.c with this replacement."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler")

    def compile_device(file, right="", wrong=""):
        text = (ROOT / "sdk/examples/queue_device.c").read_text()
        assert right in text
        source = file.with_suffix(".c")
        source.write_text(text.replace(right, wrong) if right else text)
        subprocess.run(["cc", "-shared", "-fPIC", f"-I{BUILD}/include", source, "-o", file], check=True)
    return compile_device
