"""Figures other than model runs: process start to answer, load time, size."""
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python")]
import keel_abi  # noqa: E402
from sides import PEERS  # noqa: E402

KEEL = keel_abi.BUILD / "bin" / "keel"
START_MS, LOAD_MS, LOAD_NODES, SIZE_BYTES = 25, 150, 100_000, 1_572_864

# One Python program per runtime: imports the runtime, loads the weights from a file, runs one row, prints.
HEAD = "import numpy as n; zeros = n.zeros((1, 784), 'f4'); ws = list(n.load({npz!r}).values())\n"
LOOP = "for k in range(0, 8, 2): x = x @ w[k] + w[k + 1]; x = {relu}(x) if k < 6 else x\n"
SCRIPTS = {
    "keel_python": "import sys; sys.path.insert(0, {package!r}); import keel, numpy as n; print(keel.Session({kept!r}, {device!r})"
                   ".run('y', {{'x0': n.zeros((1, 784), 'f4')}}))",
    "onnxruntime": "import onnxruntime as o, numpy as n; s = o.InferenceSession({onnx!r}, providers="
                   "['CPUExecutionProvider']); print(s.run(None, {{'x0': n.zeros((1, 784), 'f4')}})[0])",
    "torch": "import torch\n" + HEAD + "x, w = torch.tensor(zeros), [torch.tensor(a) for a in ws]\n" + LOOP.replace("{relu}", "torch.relu")
             + "print(x)",
    "jax": "import jax\n" + HEAD + "@jax.jit\ndef run(x, w):\n  " + LOOP.replace("{relu}", "jax.nn.relu") + "  return x\nprint(run(zeros, ws))",
    "tensorflow": "import tensorflow as tf\n" + HEAD + "x, w = tf.constant(zeros), [tf.constant(a) for a in ws]\n"
                  + LOOP.replace("{relu}", "tf.nn.relu") + "print(x)",
}
START = ("a Python process that imports its package, loads the weights from a file (Keel's, ONNX, .npz for the others), runs one row and "
         "prints it; JAX by jit, PyTorch and TensorFlow eagerly. The command `keel run` on the same file takes {time}, {ratio} of the best peer")


def start_to_answer(folder, args):
    """A process that loads the MLP, runs one row and prints the answer."""
    from bench import row_of
    from figures import ratio_text, time_text
    from forms import onnx_form
    from models import mlp
    names = {"onnx": Path(folder) / "small.onnx", "kept": Path(folder) / "small.keel", "npz": Path(folder) / "small.npz"}
    onnx_form.write(mlp, [np.zeros((1, 784), np.float32)], names["onnx"])
    np.savez(names["npz"], *onnx_form.weights_of(names["onnx"]))
    subprocess.run([KEEL, "convert", names["onnx"], names["kept"]], check=True, capture_output=True)
    given = {**{k: str(v) for k, v in names.items()}, "package": str(keel_abi.BUILD / "python"), "device": args.device}
    commands = {"keel": [KEEL, "run", names["kept"], "-d", args.device, "-i", "x0=f32[1,784]=0"]}
    for name, script in SCRIPTS.items():
        if name in args.sides and (name == "keel_python" or importlib.util.find_spec(name)):
            commands[name] = [sys.executable, "-c", script.format(**given)]
    times, order = {name: [] for name in commands}, list(commands)
    # Installed packages have their bytecode; the packages of a build get it in the first run only if nothing forbids it.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for i in range(args.rounds):
        for name in order[i % len(order):] + order[:i % len(order)]:
            start = time.perf_counter()
            subprocess.run(commands[name], check=True, capture_output=True, env=env)
            times[name].append(time.perf_counter() - start)
    command = row_of("start", "", {n: t for n, t in times.items() if n != "keel_python"})
    row = row_of("start", "process start to answer, MLP 1 row", times, limit_ms=START_MS)
    note = START.format(time=time_text(command["ms"]["keel"]), ratio=ratio_text(command))
    return {**row, "met": row["ms"]["keel"] <= START_MS, "note": note}


def load_many_nodes(folder, args):
    """A file of 100,000 nodes, mapped and verified."""
    context = keel_abi.Context()
    module = context.module()
    graph = module.graph("main")
    x = v = graph.param("x", np.float32, [8])
    for _ in range(LOAD_NODES):
        v = graph.node("add", v, x)
    graph.result("y", v)
    module.entry("main", graph)
    path, times = Path(folder) / "nodes.keel", []
    module.save(path)
    del graph, module
    for _ in range(args.rounds):
        start = time.perf_counter()
        loaded = context.load(path)
        times.append(time.perf_counter() - start)
        del loaded
    median = 1e3 * statistics.median(times)
    return {"name": "load", "what": f"load of {LOAD_NODES:,} nodes ({path.stat().st_size:,} bytes)",
            "ms": {"keel": median}, "limit_ms": LOAD_MS, "met": median <= LOAD_MS}


def library_size(folder, args):
    """The stripped size of libkeel, and the installed sizes of the peers' packages."""
    stripped = Path(folder) / "libkeel.so"
    subprocess.run(["strip", "-o", stripped, keel_abi.LIBRARY], check=True)
    size, others = stripped.stat().st_size, {}
    for name in PEERS:
        if found := importlib.util.find_spec(name):
            others[name] = sum(f.stat().st_size for f in Path(found.origin).parent.rglob("*") if f.is_file())
    sizes = ", ".join(f"{name} {b / 1e6:.0f} MB" for name, b in others.items())
    return {"name": "size", "what": "libkeel, stripped" + (f" ({sizes})" if sizes else ""), "bytes": size,
            "peers_bytes": others, "limit_bytes": SIZE_BYTES, "met": size <= SIZE_BYTES}


OTHERS = {"start": start_to_answer, "load": load_many_nodes, "size": library_size}
