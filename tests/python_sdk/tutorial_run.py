"""Runs the chapters of sdk/python/tutorial: each ```python block in order, in one program for each chapter; the ```text
block behind it is what it prints. test_py_tutorial.py compares, this program writes:

    KEEL_BUILD=build/release .venv/bin/python tests/python_sdk/tutorial_run.py --write
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "sdk/python/tutorial").glob("*.md"))
_PAIR = re.compile(r"```python\n(?P<code>.*?)```\n(\n```text\n(?P<text>.*?)```\n)?", re.DOTALL)
_MARK = "=== end of a block ==="


def printed(blocks, folder):
    """What each block prints on both streams, run as one program in that folder."""
    program = Path(folder) / "chapter.py"  # a file, so that functions have a source
    program.write_text("".join(f"{code}\nprint({_MARK!r})\n" for code in blocks))
    package = Path(os.environ.get("KEEL_BUILD", ROOT / "build" / "release")) / "python"
    environment = {**os.environ, "PYTHONPATH": str(package.resolve()), "PYTHONUNBUFFERED": "1"}
    done = subprocess.run([sys.executable, "chapter.py"], cwd=folder, env=environment, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise RuntimeError(f"the chapter's program failed:\n{done.stdout}")
    return done.stdout.replace(f"{folder}/", "").split(_MARK + "\n")[:-1]  # errors name lines of the program


def rewritten(text):
    """The chapter with each ```text block as the program prints it now."""
    with tempfile.TemporaryDirectory(prefix="keel-") as folder:
        outputs = iter(printed([pair["code"] for pair in _PAIR.finditer(text)], folder))

    def pair(found):
        output = "".join(line.rstrip() + "\n" for line in next(outputs).rstrip().splitlines())
        return f"```python\n{found['code']}```\n" + (f"\n```text\n{output}```\n" if output else "")
    return _PAIR.sub(pair, text)


def main():
    for chapter in CHAPTERS:
        before = chapter.read_text()
        after = rewritten(before)
        print(f"{chapter.name}: {'as it was' if after == before else 'changed'}")
        if "--write" in sys.argv:
            chapter.write_text(after)


if __name__ == "__main__":
    main()
