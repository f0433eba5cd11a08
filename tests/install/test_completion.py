"""Completion in real shells: bash at a terminal with a TAB, fish by its own `complete -C`, zsh by its parser and its lines."""
import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("KEEL_BUILD", Path(__file__).resolve().parents[2] / "build/release"))
SHARE = BUILD / "share"
ENV = {"PATH": f"{BUILD / 'bin'}:/usr/bin:/bin", "HOME": "/nonexistent", "TERM": "dumb", "LANG": "C.UTF-8"}


def offered(*words):
    """The command's candidates for the last word."""
    out = subprocess.run([BUILD / "bin/keel", "--complete", *words], check=True, capture_output=True, text=True).stdout
    return [line.split("\t")[0] for line in out.splitlines()]


def help_of(*command):
    return subprocess.run([BUILD / "bin/keel", *command, "--help"], check=True, capture_output=True, text=True).stdout


def test_every_subcommand_and_flag_is_offered():
    names = re.findall(r"^  (\w+) ", help_of().split("Subcommands:")[1], re.M)
    assert sorted(offered("")) == sorted(names)
    for name in names:
        shown = set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", help_of(name), re.M))
        assert shown <= set(offered(name, "-")), name


@pytest.mark.parametrize("words, found", [
    (["ru"], ["run"]), (["run", "--in"], ["--input"]), (["run", "--lanes", "a"], ["auto", "all"]),
    (["run", "--lanes=o"], ["--lanes=off"]), (["run", "--lanes", "=", "o"], ["off"]), (["--threads", "2", "ru"], ["run"]),
    (["run", ""], []), (["run", "-o", ""], []), (["nothing"], [])])
def test_what_can_follow(words, found):
    assert offered(*words) == found


def typed(shell, text, wanted, seconds=20):
    """The output of a shell at a terminal after the input `text`."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(shell[0], shell, ENV)
    seen, end = "", time.monotonic() + seconds
    os.write(fd, text.encode())
    while wanted not in seen and time.monotonic() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                seen += os.read(fd, 4096).decode(errors="replace")
            except OSError:
                break
    os.write(fd, b"\x03\x04")
    os.close(fd)
    os.waitpid(pid, 0)
    return seen


def test_bash_at_a_terminal():
    load = f"source {SHARE}/bash-completion/completions/keel; PS1='> '\n"
    shell = ["/bin/bash", "--norc", "--noprofile", "-i"]
    assert "keel inspect " in typed(shell, load + "keel insp\t", "keel inspect ")
    assert "keel run --watch " in typed(shell, load + "keel run --watc\t", "keel run --watch ")
    assert "keel run --lanes=off " in typed(shell, load + "keel run --lanes=of\t", "keel run --lanes=off ")
    assert "keel run /etc/hostname " in typed(shell, load + "keel run /etc/hostn\t", "keel run /etc/hostname "), "file names"


@pytest.mark.skipif(not os.path.exists("/usr/share/bash-completion/bash_completion"), reason="no bash-completion")
def test_bash_completion_finds_the_file():
    code = (f"XDG_DATA_DIRS={SHARE}; . /usr/share/bash-completion/bash_completion; _completion_loader keel; complete -p keel")
    done = subprocess.run(["bash", "--norc", "-c", code], env={**ENV, "BASH_VERSINFO": ""}, capture_output=True, text=True)
    assert "-F _keel keel" in done.stdout, done.stderr


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish(tmp_path):
    def ask(line):
        code = f"source {SHARE}/fish/vendor_completions.d/keel.fish; complete -C '{line}'"
        return subprocess.run(["fish", "--no-config", "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path,
                              env={**ENV, "HOME": str(tmp_path)}).stdout.splitlines()
    (tmp_path / "model.keel").touch()
    assert [line.split("\t")[0] for line in ask("keel insp")] == ["inspect"]
    assert "--lanes=off" in [line.split("\t")[0] for line in ask("keel run --lanes=o")]
    assert "model.keel" in [line.split("\t")[0] for line in ask("keel run mod")]


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh():
    file = SHARE / "zsh/site-functions/_keel"
    subprocess.run(["zsh", "-n", file], check=True)
    code = (f'_describe() {{ print -l -- "${{(@P)2}}" }}; _files() {{ print files }}; complete() {{ source {file} }}; CURRENT=3; '
            "words=(keel run --lan); complete; words=(keel run mod); complete")
    done = subprocess.run(["zsh", "-f", "-c", code], check=True, capture_output=True, text=True, env=ENV)
    assert done.stdout.startswith("--lanes:") and done.stdout.splitlines()[-1] == "files", done.stdout
