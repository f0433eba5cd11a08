"""Runs the programs of tests/python_sdk/programs under keel.compat and, if installed, under TensorFlow, and
prints both outputs of each row side by side, with a verdict.

Usage: tf_rows.py [--build BUILD] [--keel-only] [PROGRAM...]   BUILD contains python/keel (default: build/release)
       tf_rows.py --play PROGRAM [--tensorflow]                one program in this process, like a notebook
Exit 1: an output differs from the expected one, and no line "#! " gives a reason.

TensorFlow is taken from the benchmark peers (build/peers, 1 GB; tools/bench/peers.py installs it).
"""
import argparse
import ast
import doctest
import linecache
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests/python_sdk/programs"
PEERS = ROOT / "build/peers/bin/python"
IMPORTS = {"import keel.compat.v2 as tf": "import tensorflow as tf",
           "import keel.compat.v1 as tf": "import tensorflow.compat.v1 as tf; tf.disable_eager_execution()"}


def play(path, tensorflow):
    """Runs each top-level statement; expressions print their values; "-- T9" marks the start of a row."""
    text = source = Path(path).read_text()
    for ours, theirs in IMPORTS.items() if tensorflow else ():
        text = text.replace(ours, theirs)
    linecache.cache[str(path)] = len(source), None, text.splitlines(True), str(path)
    marks = [(n, line[2:]) for n, line in enumerate(text.splitlines(), 1) if line.startswith("# -- ")]
    names = {"__name__": "__main__", "__file__": str(path)}
    tree = ast.parse(text)
    for statement in tree.body[ast.get_docstring(tree) is not None:]:
        while marks and marks[0][0] < statement.lineno:
            print(marks.pop(0)[1])
        exec(compile(ast.Interactive([statement]), str(path), "single"), names)


def sections(path):
    """{row: (expected output, reason for a different TensorFlow output or "")}; "" is the part before the first row."""
    out, name = {"": ("", "")}, ""
    for line in Path(path).read_text().splitlines():
        said, why = out[name]
        if line.startswith("# -- "):
            name = line[5:]
            out[name] = "", ""
        elif line.startswith("#>"):
            out[name] = said + line[3:] + "\n", why
        elif line.startswith("#! "):
            out[name] = said, line[3:]
    return out


def output(python, path, *more, **environment):
    """{row: its output}"""
    done = subprocess.run([python, Path(__file__).resolve(), "--play", path, *more], capture_output=True, text=True,
                          env={**os.environ, **environment})
    parts = re.split(r"^-- (\w+)\n", done.stdout, flags=re.M)
    out = {"": parts[0], **dict(zip(parts[1::2], parts[2::2]))}
    if done.returncode:
        out[list(out)[-1]] += "exit %d: %s\n" % (done.returncode, (done.stderr.strip().splitlines() or [""])[-1])
    return out


def fits(said, printed):
    return doctest.OutputChecker().check_output(said, printed, doctest.ELLIPSIS)


def verdict(said, why, keel, tensorflow):
    """(verdict, whether it is a fault)"""
    if not fits(said, keel):
        return "KEEL DIFFERS from the expected output", True
    if tensorflow is None or fits(said, tensorflow):
        return "as said" if tensorflow is None else "both as said", False
    return (f"Keel as said; {why}", False) if why else ("TENSORFLOW DIFFERS", True)


def beside(left, right, width=62, most=20):
    rows = [(side or "").splitlines() for side in (left, right)]
    rows = [row if len(row) <= most else [*row[:most], f"... {len(row) - most} more lines"] for row in rows]
    for k in range(max(map(len, rows))):
        a, b = (row[k] if k < len(row) else "" for row in rows)
        print(f"  {a[:width]:<{width}} | {b[:width]}".rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    parser.add_argument("--keel-only", action="store_true")
    parser.add_argument("--play")
    parser.add_argument("--tensorflow", action="store_true")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    if options.play:
        return play(options.play, options.tensorflow)
    both = PEERS.exists() and not options.keel_only
    print("left: keel.compat;", "right: TensorFlow" if both else "no TensorFlow here: tools/bench/peers.py installs it")
    faults = 0
    for path in map(Path, options.programs or sorted(PROGRAMS.glob("*.py"))):
        keel = output(sys.executable, path, PYTHONPATH=os.path.join(os.path.abspath(options.build), "python"))
        tensorflow = output(PEERS, path, "--tensorflow", TF_CPP_MIN_LOG_LEVEL="3") if both else {}
        for row, (said, why) in sections(path).items():
            got, theirs = keel.get(row, ""), tensorflow.get(row, "") if both else None
            if not (said or got or theirs):
                continue
            text, fault = verdict(said, why, got, theirs)
            faults += fault
            print(f"\n{path.name} {row}: {text}")
            beside(got, theirs)
    print(f"\n{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
