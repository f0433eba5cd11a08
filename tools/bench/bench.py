"""Measures Keel beside ONNX Runtime in one run, and the figures that have a limit of their own.

Usage: bench.py [NAME...] [--pairs 15] [--threads N] [--device cpu] [--json FILE]
  NAME: resnet50 bert mlp60000 mlp1 start load size (default: all)

Both sides read the same ONNX file, get the same number of threads and bound inputs; their answers are
compared. Measurements alternate in pairs, the first of a pair in turn; the table shows medians and the
median of the pairs' ratios with its 95 % interval (by order statistics).
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from models import WORKLOADS, mlp
from sides import Worker

import keel_abi

KEEL = keel_abi.BUILD / "bin" / "keel"
LIMITS = {"resnet50": 2.0, "bert": 2.0, "mlp60000": 2.0, "mlp1": 2.0}  # times ONNX Runtime's time
START_MS, LOAD_MS, LOAD_NODES, SIZE_BYTES = 40, 150, 100_000, 1_572_864
SETTLE = 0.03  # s between measurements: the other side's threads go to sleep


def interval(values):
    """95 % interval of the median: the k-th smallest and largest, k from the binomial distribution."""
    ordered, n, k, below = sorted(values), len(values), 0, 0.0
    while (below := below + math.comb(n, k) / 2**n) <= 0.025:
        k += 1
    return ordered[max(0, k - 1)], ordered[min(n - 1, n - k)]


def pairs_of(first, second, count):
    """Measures two functions in turn; -> the two lists of times."""
    times = ([], [])
    for i in range(count):
        for side in ((0, 1) if i % 2 == 0 else (1, 0)):
            time.sleep(SETTLE)
            times[side].append((first, second)[side]())
    return times


def row(name, what, keel, other, limit, **more):
    ratios = [a / b for a, b in zip(keel, other)]
    low, high = interval(ratios)
    return {"name": name, "what": what, "keel_ms": 1e3 * statistics.median(keel),
            "onnxruntime_ms": 1e3 * statistics.median(other), "ratio": statistics.median(ratios),
            "ratio_low": low, "ratio_high": high, "limit": limit, "pairs": len(ratios),
            "met": limit is None or statistics.median(ratios) <= limit, **more}


def compare(name, folder, args):
    make, data, what = WORKLOADS[name]
    path, x = make(Path(folder) / f"{name}.onnx"), data()
    sides = [Worker(side, path, x, args.threads, args.device) for side in ("keel", "onnxruntime")]
    try:
        difference = float(np.abs(sides[0].answer - sides[1].answer).max())
        scale = float(np.abs(sides[1].answer).max())
        if not difference <= 1e-3 * scale:
            raise RuntimeError(f"{name}: the answers differ by {difference:.3g} (largest value {scale:.3g})")
        once = max(side.measure(3) for side in sides)
        runs = max(1, min(20000, int(0.2 / once)))
        times = pairs_of(lambda: sides[0].measure(runs), lambda: sides[1].measure(runs), args.pairs)
    finally:
        for side in sides:
            side.stop()
    return row(name, what, *times, LIMITS[name], difference=difference, runs=runs)


def start_to_answer(folder, args):
    """A process that loads a small model, runs it once and prints the answer."""
    model, converted = mlp(Path(folder) / "small.onnx"), Path(folder) / "small.keel"
    subprocess.run([KEEL, "convert", model, converted], check=True, capture_output=True)
    script = ("import onnxruntime as o, numpy as n, sys; s = o.InferenceSession(sys.argv[1], "
              "providers=['CPUExecutionProvider']); print(s.run(None, {'x': n.zeros((1, 784), 'f4')})[0])")

    def timed(*command):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - start
    times = pairs_of(lambda: timed(KEEL, "run", converted, "-d", args.device, "-i", "x=f32[1,784]=0"),
                     lambda: timed(sys.executable, "-c", script, model), args.pairs)
    made = row("start", "process start to answer, MLP 1 row", *times, None, limit_ms=START_MS)
    return {**made, "met": made["keel_ms"] <= START_MS}


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
    for _ in range(args.pairs):
        start = time.perf_counter()
        loaded = context.load(path)
        times.append(time.perf_counter() - start)
        del loaded
    median = 1e3 * statistics.median(times)
    return {"name": "load", "what": f"load of {LOAD_NODES:,} nodes ({path.stat().st_size:,} bytes)", "keel_ms": median,
            "limit_ms": LOAD_MS, "met": median <= LOAD_MS}


def library_size(folder, _):
    stripped = Path(folder) / "libkeel.so"
    subprocess.run(["strip", "-o", stripped, keel_abi.LIBRARY], check=True)
    size = stripped.stat().st_size
    return {"name": "size", "what": "libkeel, stripped", "bytes": size, "limit_bytes": SIZE_BYTES,
            "met": size <= SIZE_BYTES}


OTHERS = {"start": start_to_answer, "load": load_many_nodes, "size": library_size}


def show(r):
    if "bytes" in r:
        text = f"{r['bytes']:,} bytes, limit {r['limit_bytes']:,}"
    else:
        text = f"{r['keel_ms']:10.4g} ms"
        if "ratio" in r:
            text += (f"  ONNX Runtime {r['onnxruntime_ms']:10.4g} ms  ratio {r['ratio']:.3f} "
                     f"[{r['ratio_low']:.3f}, {r['ratio_high']:.3f}]")
        text += f", limit {r['limit_ms']} ms" if "limit_ms" in r else f", limit {r['limit']}"
    print(f"{r['what']:45} {text}{'' if r['met'] else '   MISSED'}", flush=True)


def main():
    names = [*WORKLOADS, *OTHERS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", help="a file for the same as JSON")
    args = parser.parse_args()
    if unknown := set(args.names) - set(names):
        parser.error(f"nothing is called {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    results = []
    with tempfile.TemporaryDirectory(prefix="keel-bench-") as folder:
        for name in args.names or names:
            results.append(OTHERS[name](folder, args) if name in OTHERS else compare(name, folder, args))
            show(results[-1])
    if args.json:
        Path(args.json).write_text(json.dumps({"schema": "keel.compare-bench/1", "threads": args.threads,
                                               "device": args.device, "results": results}, indent=1) + "\n")
    return 0 if all(r["met"] for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
