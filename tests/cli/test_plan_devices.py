"""`keel plan --devices A,B,...`: the placement and the cost of each node on several devices. The device
of sdk/examples/queue_device.c has the op add only."""
import json

import pytest

GRAPH = """keel 1
fn @main(x: f32[n], y: f32[n]) -> twice: f32[n], root: f32[n] {
  sum = add(x, y)
  root = sqrt(sum)
  rows = softmax(root){axis=0}
  twice = add(rows, rows)
  unused = exp(x)
  return twice, root
}
entry main = @main (x, y) -> (twice, root)
"""
NODES = {"sum": "add", "root": "sqrt", "rows": "softmax", "twice": "add"}


@pytest.fixture
def add_only(tmp_path, monkeypatch, example_device):
    monkeypatch.setenv("KEEL_PLUGIN_PATH", str(tmp_path))
    example_device(tmp_path / "keel-queue_device.so")


@pytest.mark.parametrize("n", [0, 1, 5, 4096])
def test_each_node_is_on_the_first_device_that_has_its_op(keel, graph, add_only, n):
    found = json.loads(keel("plan", graph(GRAPH), "--devices", "queue_device,cpu,reference", "--dim", f"n={n}", "--json").out)
    assert found["schema"] == "keel.plan.devices/1"
    nodes = {node["node"]: node for node in found["nodes"] if node["op"]}
    assert {name: node["op"] for name, node in nodes.items()} == NODES
    for name, node in nodes.items():
        first = "queue_device:0" if node["op"] == "add" else "cpu:0"
        costs = node["costs"]
        assert node["device"] == first and list(costs) == ["queue_device:0", "cpu:0", "reference:0"]
        assert costs["cpu:0"]["ms"] >= 0 and costs["reference:0"]["ms"] >= 0
        if node["op"] == "add":
            assert costs["queue_device:0"]["ms"] >= 0
        else:
            assert costs["queue_device:0"]["lacks"].startswith("fallback: queue_device:0 lacks "), name
    runs = {run["device"]: run for run in found["runs"]}
    assert [runs[d]["nodes_elsewhere"] for d in ("queue_device:0", "cpu:0", "reference:0")] == [2, 0, 0]
    assert runs["queue_device:0"]["copies"] == len(found["copies"]) > 0 == runs["cpu:0"]["copies"]
    assert all(run["ms"] > 0 for run in runs.values())


def test_table(keel, graph, add_only):
    lines = [line.split("  ") for line in keel("plan", graph(GRAPH), "--devices", "queue_device,cpu", "--dim", "n=3").out.splitlines()]
    cells = {line[0]: [c.strip() for c in line[1:] if c.strip()] for line in lines if line[0]}
    assert cells["node"] == ["op", "device", "queue_device:0 ms", "cpu:0 ms"]
    assert cells["root"][:3] == ["sqrt", "cpu:0", "lacks sqrt (T=f32)"] and float(cells["root"][3]) >= 0
    assert cells["sum"][:2] == ["add", "queue_device:0"] and all(float(c) >= 0 for c in cells["sum"][2:])
    assert cells["queue_device:0"][0] == "2" and cells["cpu:0"][:2] == ["0", "0"]


def test_launches_of_a_loop_belong_to_it(keel, graph):
    path = graph("""keel 1

fn @main(k: i32[], x: f32[2]) -> f32[2] {
  i, y = while(0, x, k){carry=2}
    test(i, a, k) {
      t = less(i, k)
      yield t
    }
    body(i, a, k) {
      j = i + 1
      c = sin(a)
      yield j, c
    }
  return y
}

entry main = @main (k, x) -> (y)
""")
    found = json.loads(keel("plan", path, "--devices", "reference,cpu", "-i", "k=9", "--json").out)
    loop, = (node for node in found["nodes"] if node["op"] == "while")
    assert all(cost["ms"] > 0 for cost in loop["costs"].values())
    assert [node["node"] for node in found["nodes"]] == [loop["node"]]


def test_bad_lists(keel, graph, add_only):
    path = graph(GRAPH)
    assert "expected two devices or more" in keel("plan", path, "--devices", "cpu", code=2).err
    assert "cpu:0 is named twice" in keel("plan", path, "--devices", "cpu,reference,cpu:0", code=2).err
    assert 'no device "nosuch"' in keel("plan", path, "--devices", "cpu,nosuch", code=4).err
    assert "--fallback" in keel("plan", path, "--devices", "cpu,reference", "--fallback", "cpu", code=2).err
    done = keel("plan", path, "--devices", "queue_device,queue_device:1", code=4)
    assert "queue_device:1" in done.err


def test_an_op_that_no_device_has_is_named(keel, graph, add_only, monkeypatch, example_device, tmp_path):
    example_device(tmp_path / "keel-other.so", '.name = "queue_device"', '.name = "other"')
    done = keel("plan", graph(GRAPH), "--devices", "queue_device,other", code=5)
    assert 'sqrt (T=f32) "root" on other:0' in done.err
