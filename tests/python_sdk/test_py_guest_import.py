"""Importing keel loads no plugin and no NumPy, starts no thread and sets no signal handler; it works with other libraries in any
order."""
import subprocess
import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).resolve().parents[2] / "build" / "peers" / "bin" / "python"  # of tools/bench/peers.py
ENV = {"PYTHONPATH": ":".join(sys.path)}

IMPORTED = """
import os, signal, sys
before = set(sys.modules), signal.getsignal(signal.SIGINT), sorted(os.listdir("/proc/self/fd"))
import keel
maps = open("/proc/self/maps").read()
assert "libkeel" in maps and "keel-cpu" not in maps and "keel-reference" not in maps and "libkdnn" not in maps
assert "numpy" not in sys.modules and "asyncio" not in sys.modules and "multiprocessing" not in sys.modules
assert len(os.listdir("/proc/self/task")) == 1 and signal.getsignal(signal.SIGINT) is before[1]
assert sorted(os.listdir("/proc/self/fd")) == before[2]
f, w = keel.function(lambda x: x + 1), keel.f32["b", 784]
assert "keel-cpu" not in open("/proc/self/maps").read()
assert keel.add(1, 2).item() == 3 and f(keel.array([1.]))[0].item() == 2
assert "keel-cpu" in open("/proc/self/maps").read() and "numpy" not in sys.modules
sys.modules["numpy"] = None  # as if it were not installed
assert keel.arange(2, 9, 3).tolist() == [2, 5, 8] and keel.arange(0).size == 0 and keel.arange(0., .5, .25).tolist() == [0, .25]
"""


def test_importing_touches_nothing_before_a_device_is_used():
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, env=ENV)
    assert (done.returncode, done.stderr) == (0, "")


USED = """
import numpy as np
x = np.ones((200, 200), "f4")
assert (keel.matmul(x, x).numpy() == 200).all() and keel.from_dlpack(torch.ones(3)).tolist() == [1, 1, 1]
assert (torch.from_numpy(x) @ torch.from_numpy(x)).sum().item() == 200**3 == tensorflow.reduce_sum(tensorflow.linalg.matmul(x, x)).numpy()
assert torch.from_dlpack(keel.array([1., 2.])).tolist() == [1, 2] and "CPUExecutionProvider" in onnxruntime.get_available_providers()
try:
    keel.add(x, keel.ones(3))
except keel.ShapeError:
    print("done")
"""


@pytest.mark.parametrize("order", ["keel, torch, tensorflow, onnxruntime", "tensorflow, onnxruntime, torch, keel"])
def test_beside_other_runtimes(order):
    imports = order.replace(" ", "").split(",")
    has = subprocess.run([PEERS, "-c", "import importlib.util as u; assert all(map(u.find_spec, ('torch', 'tensorflow', 'onnxruntime')))"],
                         capture_output=True) if PEERS.exists() else None
    if has is None or has.returncode:
        pytest.skip("the other runtimes are not in build/peers: tools/bench/peers.py installs them")
    package = next(p for p in sys.path if (Path(p) / "keel" / "py.typed").exists())
    code = "".join(f"import {name}\n" for name in imports) + USED
    done = subprocess.run([PEERS, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": package, "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr[-3000:]
