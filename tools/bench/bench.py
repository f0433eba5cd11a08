"""Measures Keel beside other runtimes in one run, and the figures that have a limit of their own.

Usage: bench.py [NAME...] [--sides keel,onnxruntime,...] [--rounds 15] [--threads N] [--device cpu]
                [--cpu-time] [--memory] [--json FILE] [--markdown FILE]
  NAME: a workload of models.py, or start load size native (default: all)
  --sides: default all of sides.py; what is not installed is shown as not measured
  --cpu-time: seconds of processor in place of seconds; with --threads 1 it serves on a busy machine
  --memory: peak memory only, of a process that loads the model and runs it once

All sides run the same model with the same weights, the same number of threads and bound inputs; answers
are compared first. Each is a process of its own; they take turns in every round. The tables show medians,
and the median of the rounds' ratios to the best peer with its 95 % interval (by order statistics).
"""
import argparse
import json
import os
import statistics
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
from figures import interval, markdown, show  # noqa: E402
from models import WORKLOADS  # noqa: E402
from others import OTHERS  # noqa: E402
from sides import SIDES, serve  # noqa: E402
from worker import Worker  # noqa: E402

SETTLE, SPAN = 0.03, 0.2  # s between measurements: the other sides' threads go to sleep; of one measurement


def check(answers):
    """The largest difference from Keel's answer, by the scale of the answers."""
    first = next(iter(answers.values()))
    for name, answer in answers.items():
        scale = max(float(np.abs(first).max()), 1e-6)
        off = float(np.abs(answer.astype(np.float64).reshape(first.shape) - first).max()) / scale
        if not off <= 2e-3:
            raise RuntimeError(f"{name}: the answer differs by {off:.3g} of the largest value")


def start_sides(names, sides, begin):
    """sides: what module each needs. -> workers by name, as begin() makes them, and why there are no others."""
    workers, missing = {}, {}
    for side in names:
        try:
            if not peers.has(sides[side][1]):
                raise RuntimeError("not installed")
            workers[side] = begin(side)
        except RuntimeError as e:
            missing[side] = str(e)
    return workers, missing


def rounds_of(workers, rounds, runs):
    """Times by side, one for each round, each round begun by another side."""
    times, order = {n: [] for n in workers}, list(workers)
    for i in range(rounds):
        for name in order[i % len(order):] + order[:i % len(order)]:
            time.sleep(SETTLE)
            times[name].append(workers[name].ask(runs[name]))
    return times


def row_of(name, what, times, **more):
    """Medians of all sides, and the ratio to the best peer."""
    row = {"name": name, "what": what, "ms": {n: 1e3 * statistics.median(t) for n, t in times.items()}, **more}
    others = [n for n in times if not n.startswith("keel")]
    if "keel" in times and "keel_python" in times:
        row["from_python"] = statistics.median(a / b for a, b in zip(times["keel_python"], times["keel"]))
    if "keel" in times and others:
        best = min(others, key=row["ms"].get)
        ratios = [a / b for a, b in zip(times["keel"], times[best])]
        row.update(best=best, ratio=statistics.median(ratios), rounds=len(ratios))
        row["ratio_low"], row["ratio_high"] = interval(ratios)
    return row


def compare(name, folder, args):
    from forms import onnx_form
    model, inputs, what = WORKLOADS[name]
    path = onnx_form.write(model, inputs(), Path(folder) / "model.onnx", free_rows=name.startswith("mlp"))
    workers, missing = start_sides(args.sides, SIDES, lambda side: Worker(
        serve, side, name, path, args.threads, args.device, args.cpu_time))
    try:
        check({n: w.first for n, w in workers.items()})
        peak = {n: w.ask("peak") for n, w in workers.items()}
        if args.memory:
            return {"name": name, "what": what, "ms": {}, "peak_bytes": peak, "missing": missing}
        runs = {n: max(1, min(20000, int(SPAN / w.ask(3)))) for n, w in workers.items()}
        times = rounds_of(workers, args.rounds, runs)
    finally:
        for worker in workers.values():
            worker.stop()
        path.unlink()
    return row_of(name, what, times, peak_bytes=peak, missing=missing)


def refuse_unknown(parser, *pairs):
    for got, known in pairs:
        if unknown := set(got) - set(known):
            parser.error(f"nothing is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")


def parse(names):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure")
    parser.add_argument("--sides", type=lambda s: s.split(","), default=list(SIDES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--json", help="a file for all figures")
    parser.add_argument("--markdown", help="a file for the tables")
    args = parser.parse_args()
    refuse_unknown(parser, (args.names, names), (args.sides, SIDES))
    return args


def main():
    names = [*WORKLOADS, *OTHERS]
    args, rows = parse(names), []
    with tempfile.TemporaryDirectory(prefix="keel-bench-") as folder:
        for name in args.names or names:
            try:
                rows.append(OTHERS[name](folder, args) if name in OTHERS else compare(name, folder, args))
            except RuntimeError as e:
                rows.append({"name": name, "what": name, "error": str(e)})
            print(show(rows[-1]), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps({"schema": "keel.compare-bench/2", "threads": args.threads,
                                               "device": args.device, "cpu_time": args.cpu_time,
                                               "results": rows}, indent=1) + "\n")
    if args.markdown:
        Path(args.markdown).write_text(markdown(rows, args.sides))
    return 0 if all("error" not in r and r.get("ratio", 0) <= 1 and r.get("met", True) for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
