"""One step of SGD on the MLP 784-128-128-128-10, 128 rows, compared with PyTorch, JAX and TensorFlow.

Usage: train.py [--sides keel_graph,torch,...] [--rounds 15] [--threads N] [--device cpu] [--cpu-time] [--json FILE]

A step is forward, mean cross-entropy, gradients of all parameters, and p - 0.05 dp. Keel runs from C++
(bench_mlp: built by `ninja bench_mlp`) and from Python, the peers from Python. All start from the same numbers; the loss
after 10 steps is compared. Each side is a process; they alternate, and only the last step of a measurement is
awaited. A graph is compared with the best compiled peer, eager code with the best eager one.
"""
import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
import peers  # noqa: E402

if __name__ == "__main__":
    peers.use()

import numpy as np  # noqa: E402
from bench import SPAN, rounds_of, row_of, start_sides  # noqa: E402
from figures import ratio_text, summary, time_text  # noqa: E402
from forms.train_form import PEERS, WIDTHS, begin  # noqa: E402
from host import host  # noqa: E402
from worker import Worker, failure  # noqa: E402

# side: (peers that it is compared with, limit in ms)
GRAPHS, EAGER = ("torch_compiled", "jax", "tensorflow_graph", "tensorflow_xla"), ("torch", "tensorflow")
KEEL = {"keel_graph": (GRAPHS, 0.300), "keel_eager": (EAGER, 0.450),
        "keel_python_graph": (GRAPHS, 0.310), "keel_python_eager": (EAGER, 0.600)}
WHAT = {"keel_graph": "a graph, from C++", "keel_eager": "eager, from C++", "keel_python_graph": "a graph, from Python",
        "keel_python_eager": "eager, from Python"}
ROWS = 128


def numbers():
    """Rows, labels, and the parameters of each layer."""
    rng = np.random.default_rng(11)
    data = [rng.standard_normal((ROWS, WIDTHS[0])).astype(np.float32), rng.integers(0, 10, ROWS).astype(np.int32)]
    for inside, outside in zip(WIDTHS, WIDTHS[1:]):
        data += [(rng.standard_normal((inside, outside)) * inside**-0.5).astype(np.float32),
                 np.zeros(outside, np.float32)]
    return data


class Binary:
    """bench_mlp as a side, with the interface of Worker."""

    def __init__(self, mode, path, args):
        from keel_abi import BUILD
        command = [BUILD / "bin" / "bench_mlp", "step", mode, path, "--threads", str(args.threads), "--device", args.device]
        self.process = subprocess.Popen(command + ["--cpu-time"] * args.cpu_time, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    @functools.cached_property
    def first(self):
        return self.receive()

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"bench_mlp ended with {self.process.wait()}")
        return float(line)

    def ask(self, runs):
        self.process.stdin.write(f"{runs}\n")
        self.process.stdin.flush()
        return self.receive()

    def stop(self):
        self.process.stdin.close()
        self.process.wait(10)


def serve(connection, name, data, threads, cpu_time):
    """Sends the loss after 10 steps; then, per received number of steps, the seconds of one step."""
    clock = time.process_time if cpu_time else time.perf_counter
    try:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        step = begin(name, data, threads)
        for _ in range(10):
            step()
        connection.send(float(step()))
        while (runs := connection.recv()) is not None:
            start = clock()
            for _ in range(runs):
                loss = step()
            float(loss)
            connection.send((clock() - start) / runs)
    except Exception as e:  # the parent reports it
        connection.send(failure(name, e))


def start(args, folder):
    data = numbers()
    path = Path(folder) / "numbers.bin"
    path.write_bytes(b"".join(a.tobytes() for a in data))

    def begun(side):
        if side in ("keel_graph", "keel_eager"):
            return Binary(side.removeprefix("keel_"), path, args)
        return Worker(serve, side, data, args.threads, args.cpu_time)
    workers, missing = start_sides(args.sides, {side: (None, None) for side in args.sides}, begun)
    for side, why in missing.items():
        print(f"{side}: not measured: {why}", file=sys.stderr)
    losses = {n: w.first for n, w in workers.items()}
    if losses and max(losses.values()) - min(losses.values()) > 1e-3:
        raise RuntimeError(f"losses differ: {losses}")
    return workers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", type=lambda s: s.split(","), default=[*KEEL, *PEERS])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--json", help="a file for all figures")
    args = parser.parse_args()
    if unknown := set(args.sides) - {*KEEL, *PEERS}:
        parser.error(f"unknown side: {', '.join(sorted(unknown))}; the sides are {', '.join([*KEEL, *PEERS])}")
    report = {"schema": "keel.train-bench/2", "threads": args.threads, "cpu_time": args.cpu_time, "host": host()}
    print(summary(report), flush=True)
    with tempfile.TemporaryDirectory(prefix="keel-bench-") as folder:
        workers = start(args, folder)
        try:
            runs = {n: max(10, min(2000, int(SPAN / w.ask(10)))) for n, w in workers.items()}
            times = rounds_of(workers, args.rounds, runs)
        finally:
            for worker in workers.values():
                worker.stop()
    rows = [row_of(n, n, {n: t}) for n, t in times.items()]
    print("  ".join(f"{r['name']} {time_text(r['ms'][r['name']])}" for r in rows))
    for side, (rivals, limit) in KEEL.items():
        if side in times:
            row = row_of(side, WHAT[side], {"keel": times[side], **{n: times[n] for n in rivals if n in times}})
            rows.append({**row, "limit_ms": limit, "met": row["ms"]["keel"] <= limit})
            print(f"{side}: {time_text(row['ms']['keel'])}, limit {time_text(limit)}; ratio to the best of its kind "
                  f"({row.get('best', 'none')}) {ratio_text(row)}")
    if args.json:
        Path(args.json).write_text(json.dumps({**report, "results": rows}, indent=1) + "\n")
    return 0 if all(r.get("ratio", 0) <= 1 and r.get("met", True) for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
