"""Figures that are no model run beside peers: start to answer, load, size, and calls from C."""
import importlib.util
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python")]
import keel_abi  # noqa: E402

KEEL = keel_abi.BUILD / "bin" / "keel"
START_MS, LOAD_MS, LOAD_NODES, SIZE_BYTES = 25, 150, 100_000, 1_572_864

# A Python program that answers once with each peer, from the start of its process.
SCRIPTS = {
    "onnxruntime": "import onnxruntime as o, numpy as n; s = o.InferenceSession({path!r}, providers="
                   "['CPUExecutionProvider']); print(s.run(None, {{'x0': n.zeros((1, 784), 'f4')}})[0])",
    "torch": "import torch; print(torch.nn.functional.linear(torch.zeros(1, 784), torch.ones(10, 784)))",
    "jax": "import jax.numpy as j; print(j.zeros((1, 784)) @ j.ones((784, 10)))",
    "tensorflow": "import tensorflow as t; print(t.zeros((1, 784)) @ t.ones((784, 10)))",
}


def start_to_answer(folder, args):
    """A process that loads the MLP, runs it once and prints the answer; frameworks: one layer of it, without a file."""
    from bench import row_of
    from forms import onnx_form
    from models import mlp
    path, converted = Path(folder) / "small.onnx", Path(folder) / "small.keel"
    onnx_form.write(mlp, [np.zeros((1, 784), np.float32)], path)
    subprocess.run([KEEL, "convert", path, converted], check=True, capture_output=True)
    commands = {"keel": [KEEL, "run", converted, "-d", args.device, "-i", "x0=f32[1,784]=0"]}
    for name, script in SCRIPTS.items():
        if name in args.sides and importlib.util.find_spec(name):
            commands[name] = [sys.executable, "-c", script.format(path=str(path))]
    times = {name: [] for name in commands}
    for i in range(args.rounds):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times[name].append(time.perf_counter() - start)
    row = row_of("start", "process start to answer, MLP 1 row", times, limit_ms=START_MS)
    return {**row, "met": row["ms"]["keel"] <= START_MS}


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
    """libkeel without symbols, beside the installed size of the peers' packages."""
    stripped = Path(folder) / "libkeel.so"
    subprocess.run(["strip", "-o", stripped, keel_abi.LIBRARY], check=True)
    size, others = stripped.stat().st_size, {}
    for name in SCRIPTS:
        if found := importlib.util.find_spec(name):
            others[name] = sum(f.stat().st_size for f in Path(found.origin).parent.rglob("*") if f.is_file())
    sizes = ", ".join(f"{name} {b / 1e6:.0f} MB" for name, b in others.items())
    return {"name": "size", "what": "libkeel, stripped" + (f" ({sizes})" if sizes else ""), "bytes": size,
            "peers_bytes": others, "limit_bytes": SIZE_BYTES, "met": size <= SIZE_BYTES}


OTHERS = {"start": start_to_answer, "load": load_many_nodes, "size": library_size}
