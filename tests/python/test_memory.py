"""Memory of a process that loads and prepares a model: the weights once, not twice.

Each case runs in a separate process and measures the increase: pages of the model's file count while they are mapped, so they
must be released once the weights are packed or copied.
"""
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from keel_abi import Context
from onnx import TensorProto, helper, numpy_helper

SIDE, LAYERS = 1024, 12
WEIGHTS = LAYERS * SIDE * SIDE * 4  # bytes
LIMIT = 1.5

CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import keel_abi


def held(what):
    return next(int(s.split()[1]) for s in open("/proc/self/status") if s.startswith(what)) * 1024


context = keel_abi.Context(threads=1)
before, mapped = held("VmRSS"), held("RssFile")
open("/proc/self/clear_refs", "w").write("5")  # resets the peak
path, device = sys.argv[2:]
module = context.import_file(path) if path.endswith(".onnx") else context.load(path)
if device != "none":
    module.session(device).prepare().run(np.ones([1, %d], np.float32))
print(held("VmHWM") - before, held("RssFile") - mapped)
""" % SIDE


def growth(path, device):
    """Bytes: peak, and mapped pages at the end."""
    here = Path(__file__).resolve().parent
    done = subprocess.run([sys.executable, "-c", CHILD, here, path, device], capture_output=True, text=True)
    if done.returncode and re.search("clear_refs|status", done.stderr):
        pytest.skip("the peak memory of a process is unavailable: " + done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return [int(n) for n in done.stdout.split()]


def weights(i):
    return np.full((SIDE, SIDE), (i + 1) / 1e6, np.float32)


def keel_file(folder, scale):
    module = Context().module()
    graph = module.graph("main")
    y = graph.param("x", np.float32, [1, SIDE])
    for i in range(LAYERS):
        y = graph.node("matmul", y, graph.constant(weights(i)))
        if scale:  # a pass multiplies this into new weights
            y = graph.node("mul", y, graph.constant(np.arange(SIDE, dtype=np.float32)))
        y = graph.node("relu", y)
    graph.result("y", y)
    module.entry("main", graph)
    module.save(folder / "m.keel")
    return folder / "m.keel"


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_weights_of_a_file_are_packed_one_after_another(tmp_path, device):
    assert growth(keel_file(tmp_path, False), device)[0] < LIMIT * WEIGHTS


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_weights_that_a_pass_rewrote_give_their_pages_back(tmp_path, device):
    assert growth(keel_file(tmp_path, True), device)[1] < (LIMIT - 1) * WEIGHTS


def test_an_import_holds_what_it_copied_once(tmp_path):
    initial = [numpy_helper.from_array(weights(i), "w" * (i % 4 + 1) + str(i)) for i in range(LAYERS)]
    nodes, last = [], "x"
    for i, w in enumerate(initial):
        nodes.append(helper.make_node("MatMul", [last, w.name], [f"y{i}"]))
        last = f"y{i}"
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, SIDE]) for n in ("x", last)]
    model = helper.make_model(helper.make_graph(nodes, "g", info[:1], info[1:], initial),
                              opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert growth(tmp_path / "m.onnx", "none")[0] < LIMIT * WEIGHTS
