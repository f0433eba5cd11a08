"""Calls of the command `keel` for the tests of passes."""
import os
import subprocess
from pathlib import Path

BUILD = Path(os.environ.get("KEEL_BUILD", "build/release")).resolve()
CLAIMS = BUILD / "tests" / "passes"  # the folder of the device that accepts calls


def keel(*arguments):
    paths = ":".join(str(p) for p in (BUILD / "lib/keel/plugins", CLAIMS))
    done = subprocess.run([BUILD / "bin" / "keel", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "KEEL_PLUGIN_PATH": paths}, timeout=300)
    assert done.returncode == 0, f"keel {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}"
    return done.stdout


def optimize(path, out, device, only=None, level=3):
    chosen = ["--passes", only] if only else []
    return keel("optimize", path, "-o", out, "-d", device, "--level", level, *chosen)


def dump(path):
    return keel("dump", path, "--weights")
