"""Shared by the command's tests and their fixtures: the path of the command, and a small graph."""
import os
from pathlib import Path

import pytest

ADD = """keel 1

fn @main(x: f32[b, 2]) -> f32[b, 2] {
  y = add(x, 1) : f32[b, 2]
  return y
}

entry main = @main (x) -> (y)
"""


def command():
    path = os.environ.get("KEEL_BIN") or os.path.abspath(os.path.join(os.environ.get("KEEL_BUILD", "build/release"), "bin", "keel"))
    if not Path(path).is_file():
        pytest.skip(f"no command at {path}: set KEEL_BIN or KEEL_BUILD")
    return path
