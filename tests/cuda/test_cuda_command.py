"""The command with the fake driver: one file on several devices, compared node by node, placed and timed."""
import json
import os
import subprocess

import pytest
from cuda_build import BUILD, FAKED, PLUGIN

import keel

PROGRAM = """keel 1

fn @main(x: f32[n, 6], w: f32[6, 4]) -> y: f32[n, 4], best: i64[n, 2], total: f32[n, 4] {
  h = matmul(x, w)
  r = gelu(h)
  y = softmax(r){axis=1}
  top, best = top_k(y){k=2}
  i, total = while(0, r){carry=2}
    test(i, a) {
      t = less(i, 3)
      yield t
    }
    body(i, a) {
      j = i + 1
      b = a + a
      yield j, b
    }
  return y, best, total
}

entry main = @main (x, w) -> (y, best, total)
"""
OTHERS = ["cuda"] + sorted({"vulkan"} & {device.split(":")[0] for device in keel.devices()})


@pytest.fixture
def run(loaded, tmp_path):
    def call(*arguments):
        (tmp_path / "g.keelt").write_text(PROGRAM)
        env = os.environ | FAKED | {"KEEL_PLUGIN_PATH": str(PLUGIN)}
        done = subprocess.run([BUILD / "bin" / "keel", *arguments, "--json", tmp_path / "g.keelt"], env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)
    return call


@pytest.mark.parametrize("n", [0, 1, 3])
def test_compare_all_devices_node_by_node(run, n):
    found = run("compare", "-d", ",".join(["reference", "cpu", *OTHERS]), "--nodes", "--dim", f"n={n}")
    assert found["ok"] and found["first_difference"] == [None] * (1 + len(OTHERS))
    assert {(o["output"], o["device"]) for o in found["outputs"]} == {(o, d) for o in ("y", "best", "total") for d in ("cpu", *OTHERS)}


def test_placement_and_costs_on_each_device(run):
    devices = [name + ":0" for name in (*OTHERS, "cpu")]
    found = run("plan", "--devices", ",".join(devices), "--dim", "n=3")
    assert [r["device"] for r in found["runs"]] == devices and all(r["ms"] > 0 and r["nodes_elsewhere"] == 0 for r in found["runs"])
    nodes = {node["op"]: node for node in found["nodes"]}
    assert {"matmul", "gelu", "softmax", "top_k", "while"} <= set(nodes)
    for op in ("matmul", "gelu", "softmax", "top_k", "while"):
        assert nodes[op]["device"] == "cuda:0" and all(cost["ms"] > 0 for cost in nodes[op]["costs"].values()), op
