"""The other runtimes, in a separate venv (build/peers), installed on first use.

Usage: peers.py    installs the packages of peers.txt and lists missing ones
From Python: peers.use() restarts the current program in that venv; with KEEL_CPU_ISA=avx2, all peers are limited too (limited.py).
"""
import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import limited

HERE = Path(__file__).resolve().parent
VENV = HERE.parents[1] / "build" / "peers"
PYTHON, STAMP = VENV / "bin" / "python", VENV / "installed.txt"
LIST = HERE / "peers.txt"


def lines():
    return [s for s in LIST.read_text().splitlines() if s and not s.startswith("#")]


def missing():
    done = STAMP.read_text().splitlines() if STAMP.exists() else []
    return [line for line in lines() if line not in done]


def install():
    """Installs line by line; -> the lines that pip failed on, with its last line of output."""
    if VENV.is_symlink() and not VENV.exists():
        sys.exit(f"peers: build/peers is a link to {os.readlink(VENV)}, which does not exist: remove the link "
                 "and rerun peers.py to install the peers, or link to another build/peers")
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    failed = {}
    for line in missing():
        print(f"peers: installing {line} into build/peers", file=sys.stderr, flush=True)
        done = subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", *line.split()],
                              capture_output=True, text=True)
        if done.returncode:
            failed[line] = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        else:
            with STAMP.open("a") as file:
                file.write(line + "\n")
    return failed


def packages():
    """The venv's folder of packages: its Python is the one that made it."""
    return Path(sysconfig.get_path("purelib", "posix_prefix", vars={"base": str(VENV)}))


def has(module):
    return module is None or importlib.util.find_spec(module) is not None


def use():
    """Restarts in the venv's Python. Peers that cannot be installed are listed and omitted from the comparison.
    --help is answered without installing anything."""
    if Path(sys.prefix) != VENV and not {"-h", "--help"} & set(sys.argv[1:]):
        for line, why in install().items():
            print(f"peers: no {line}: {why}", file=sys.stderr)
        limits = limited.environment(packages()) if os.environ.get("KEEL_CPU_ISA") == "avx2" else {}
        os.execve(PYTHON, [str(PYTHON), *sys.argv], os.environ | limits)


if __name__ == "__main__":
    absent = install()
    for line in lines():
        print(f"{line}: {'missing: ' + absent[line] if line in absent else 'ready'}")
    sys.exit(bool(absent))
