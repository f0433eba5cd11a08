"""Profiles: the device's clock, by keel.profile and `keel profile`."""
import json
import os
import subprocess
import time

import numpy as np
import pytest
from vulkan_build import BUILD, PLUGIN

import keel

SIZE = 160


def launches(path):
    return [e for e in json.loads(path.read_text()) if e["ph"] == "X" and e.get("cat") in ("matmul", "add", "softmax")]


@pytest.mark.usefixtures("vulkan")
def test_launches_have_times_of_the_device(tmp_path):
    x, y = np.ones((SIZE, SIZE), np.float32), np.ones((2, 3), np.float32)
    f = keel.function(lambda x, y: (x @ x, keel.softmax(y + y, axis=1)))
    [r.numpy() for r in f(keel.array(x), keel.array(y))]
    began = time.perf_counter()
    with keel.profile(tmp_path / "out.json"):
        [r.numpy() for r in f(keel.array(x), keel.array(y))]
    took = 1e6 * (time.perf_counter() - began)
    seen = launches(tmp_path / "out.json")
    assert sorted(e["cat"] for e in seen) == ["add", "matmul", "softmax"]
    assert all(0 < e["dur"] < took for e in seen) and sum(e["dur"] for e in seen) < took
    assert max(seen, key=lambda e: e["dur"])["cat"] == "matmul"  # 4 million products, next to 6 elements


def test_more_launches_than_clocks(loaded, tmp_path):
    """A queue has 256 timestamps; they are reused within a run."""
    lines = "".join(f"  s{k + 1} = add(s{k}, y)\n" for k in range(600))
    module = keel.parse(
        f"keel 1\nfn @main(s0: f32[3], y: f32[3]) -> f32[3] {{\n{lines}  return s600\n}}\nentry main = @main (s0, y) -> (_)\n")
    session, y = keel.Session(module, "vulkan", level=0), np.ones(3, np.float32)
    with keel.profile(tmp_path / "out.json"):
        session.run(s0=y, y=y)
    seen = launches(tmp_path / "out.json")
    assert len(seen) == 600 and all(e["dur"] > 0 for e in seen)
    assert all(before["ts"] + before["dur"] <= after["ts"] + 0.01 for before, after in zip(seen, seen[1:]))


def test_keel_profile_shows_the_device(loaded, tmp_path):
    path = tmp_path / "f.keel"
    keel.save(path, main=keel.function(lambda x: x @ x + x).concrete(keel.array(np.ones((SIZE, SIZE), np.float32))))
    run = subprocess.run([BUILD / "bin" / "keel", "profile", path, "-d", "vulkan", "-n", "3", "-i", "x=randn(1)"],
                         capture_output=True, text=True, env=os.environ | {"KEEL_PLUGIN_PATH": str(PLUGIN.parent)}, timeout=60)
    assert run.returncode == 0, run.stderr
    assert "matmul" in run.stdout and "add" in run.stdout
