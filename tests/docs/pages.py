"""Runs the programs of the manual's pages, and compares their output with the page.

A page is Markdown with three kinds of blocks that count:

- ```python: part of the page's one Python program. The ```text block behind it is its output.
- any block behind a line that ends with `NAME.EXT`: in backquotes and a colon: the file of that name.
- ```{literalinclude} PATH: a file of the repository, under its own name.
- ```console: commands after `$`, run by one bash in the folder of the page's files, each followed by its output. There a line
  `...` matches any lines, and `...` in a line for any text.

Files are written first, then the Python program runs, then the commands. `pages.py --write [PAGE...]` writes outputs into the
pages as the programs print them now.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BUILD = Path(os.environ.get("KEEL_BUILD", ROOT / "build" / "release")).resolve()
PAGES = [ROOT / "README.md"] + sorted(p for p in DOCS.rglob("*.md") if p.relative_to(DOCS).parts[0] != "notes")
_MARK = "=== end of a block ==="
_PYTHON = re.compile(r"^```python\n(?P<code>.*?)^```\n(\n```text\n(?P<text>.*?)^```\n)?", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"`(?P<name>[\w./-]+\.\w+)`:\n\n```(?P<language>\w*)\n(?P<text>.*?)^```\n", re.DOTALL | re.MULTILINE)
_INCLUDED = re.compile(r"^```\{literalinclude\} (?P<path>\S+)$", re.MULTILINE)
_CONSOLE = re.compile(r"^```console\n(?P<text>.*?)^```\n", re.DOTALL | re.MULTILINE)


def environment(folder, prefix):
    """As after an installation of Keel on a machine without a GPU: the command, the package, headers and libraries are found."""
    shims = Path(folder) / ".bin"
    shims.mkdir(exist_ok=True)
    for name in ("python", "python3"):
        if not (shims / name).exists():
            (shims / name).symlink_to(sys.executable)
    out = {k: v for k, v in os.environ.items() if not k.startswith("KEEL_")}
    out |= {"PYTHONPATH": str(BUILD / "python"), "PYTHONUNBUFFERED": "1", "TERM": "dumb", "HOME": str(folder), "COLUMNS": "120", "KEEL_PLUGINS_SKIP": "vulkan",
            "PATH": os.pathsep.join([str(shims), str(BUILD / "bin"), os.environ["PATH"]]), "KEEL_SOURCE": str(ROOT)}
    if prefix:
        out |= {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig"), "LD_LIBRARY_PATH": str(prefix / "lib"), "CMAKE_PREFIX_PATH": str(prefix)}
    return out


def install(prefix):
    """Headers, libraries and pkg-config's file of the build, as `cmake --install` puts them."""
    subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(prefix)], check=True, stdout=subprocess.DEVNULL)
    return prefix


def tidy(text, folder):
    """Output without trailing blanks and without the folder that a test runs in."""
    text = text.replace(f"{folder}/", "").replace(str(folder), ".")
    return "".join(line.rstrip() + "\n" for line in text.rstrip().splitlines())


def run_python(blocks, folder, env):
    """The output of each block on both streams, run as one program."""
    program = Path(folder) / "chapter.py"  # a file, so that functions have a source
    program.write_text("".join(f"{code}\nprint({_MARK!r})\n" for code in blocks))
    done = subprocess.run([sys.executable, "chapter.py"], cwd=folder, env=env, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise RuntimeError(f"the page's program failed:\n{done.stdout}")
    program.unlink()
    return [tidy(text, folder) for text in done.stdout.split(_MARK + "\n")[:-1]]


def commands(text):
    """(command, expected output) of a console block; a command goes on behind a backslash."""
    out = []
    for line in text.splitlines():
        if line.startswith("$ "):
            out.append([line[2:], []])
        elif out and out[-1][0].endswith("\\") and not out[-1][1]:
            out[-1][0] += "\n" + line
        elif out:
            out[-1][1].append(line)
    return [(command, "".join(f"{line}\n" for line in lines)) for command, lines in out]


def run_commands(all_commands, folder, env):
    """The output of each command; one shell runs them all, so that cd and export hold."""
    script = "".join(f"{command}\necho \"{_MARK} $?\"\n" for command in all_commands)
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=env, text=True, timeout=300, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    parts = re.split(rf"{_MARK} (\d+)\n", done.stdout)
    if len(parts) != 2 * len(all_commands) + 1:
        raise RuntimeError(f"the shell stopped after {len(parts) // 2} of {len(all_commands)} commands:\n{parts[-1]}")
    return [tidy(text, folder) for text in parts[:-1:2]]


def fits(printed, expected):
    """Is this the output that a page shows, where `...` matches anything?"""
    if "..." not in expected:
        return printed == expected
    pattern = re.escape(expected).replace(r"\.\.\.\n", "(.*\n)?").replace(r"\.\.\.", ".*")
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def write_files(text, folder):
    """The files that a page shows. Included ones are named relative to a folder of docs/, whichever."""
    for found in _FILE.finditer(text):
        path = Path(folder) / found["name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found["text"])
    for found in _INCLUDED.finditer(text):
        source = ROOT / found["path"].lstrip("./")
        (Path(folder) / source.name).write_bytes(source.read_bytes())


def rewritten(text, prefix=None):
    """The page with each output as the programs print it now; where an output fits it stays as it is."""
    with tempfile.TemporaryDirectory(prefix="keel-page-") as folder:
        env = environment(folder, prefix)
        write_files(text, folder)
        without_files = _FILE.sub(lambda found: "\0" * len(found[0]), text)
        blocks = [found["code"] for found in _PYTHON.finditer(without_files)]
        outputs = iter(run_python(blocks, folder, env) if blocks else [])
        written = [command for block in _CONSOLE.finditer(text) for command, _ in commands(block["text"])]
        printed = iter(run_commands(written, folder, env) if written else [])

        def python(found):
            if without_files[found.start()] == "\0":
                return found[0]
            output = next(outputs)
            return f"```python\n{found['code']}```\n" + (f"\n```text\n{output}```\n" if output else "")

        def console(found):
            parts = []
            for command, expected in commands(found["text"]):
                output = next(printed)
                parts.append(f"$ {command}\n" + (expected if fits(output, expected) else output))
            return "```console\n" + "".join(parts) + "```\n"
        return _CONSOLE.sub(console, _PYTHON.sub(python, text))


def needs_install(text):
    return re.search(r"pkg-config|find_package|cmake ", text) is not None


def main():
    chosen = [Path(a).resolve() for a in sys.argv[1:] if a != "--write"] or PAGES
    with tempfile.TemporaryDirectory(prefix="keel-prefix-") as folder:
        prefix = Path(folder) / "installed"
        for page in chosen:
            before = page.read_text()
            if needs_install(before) and not prefix.exists():
                install(prefix)
            after = rewritten(before, prefix)
            print(f"{page.relative_to(ROOT)}: {'as it was' if after == before else 'changed'}")
            if "--write" in sys.argv:
                page.write_text(after)


if __name__ == "__main__":
    main()
