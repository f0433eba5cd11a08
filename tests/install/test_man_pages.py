"""Manual pages: one for each subcommand, with every flag that --help shows, and roff that `mandoc` and `man` accept."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("KEEL_BUILD", Path(__file__).resolve().parents[2] / "build/release"))
PAGES = BUILD / "share/man/man1"
KEEL = BUILD / "bin/keel"


def output(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True,
                          env={**os.environ, "MANWIDTH": "100", "LANG": "C.UTF-8"}).stdout


def subcommands():
    return re.findall(r"^  (\w+) ", output(KEEL, "--help").split("Subcommands:")[1], re.M)


def plain(page):
    """The text of a page without fonts and escaped hyphens."""
    return re.sub(r"\\f[BIR]", "", page.read_text()).replace("\\-", "-")


def flags(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def test_there_is_a_page_for_each_subcommand():
    assert {p.name for p in PAGES.glob("*.1")} == {"keel.1"} | {f"keel-{name}.1" for name in subcommands()}


def test_a_page_has_every_flag_of_help():
    for name in subcommands():
        page = plain(PAGES / f"keel-{name}.1")
        wanted = flags(output(KEEL, name, "--help").split("Options:")[1])
        assert wanted <= flags(page), name
    assert "--threads" in flags(plain(PAGES / "keel-run.1")), "options of every command"


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed")
def test_mandoc_finds_no_fault():
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *sorted(PAGES.glob("*.1"))], capture_output=True, text=True)
    faults = [line for line in done.stdout.splitlines() if "missing date" not in line]  # a page is the same on every day
    assert not faults, "\n".join(faults)


@pytest.mark.skipif(not shutil.which("man"), reason="man is not installed")
def test_man_shows_a_page():
    text = output("man", "-l", PAGES / "keel-run.1")
    assert "keel-run - run a graph on inputs" in text and re.search(r"^ +-i, --input INPUT$", text, re.M)
    assert re.search(r"^ +keel run \[OPTIONS\] FILE$", text, re.M)
