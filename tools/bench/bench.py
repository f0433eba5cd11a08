"""Compares Keel with other runtimes in one run, and measures the figures that have an absolute limit.

Usage: bench.py [NAME...] [--sides keel_python,onnxruntime,...] [--rounds 15] [--threads N] [--device cpu]
                [--cpu-time] [--memory] [--json FILE] [--markdown FILE]
  NAME: a workload of models.py, or start load size (default: all)
  --sides: of sides.py; default all but torch_tuned, which tunes for minutes per model, and the sides of vulkan/run.py. Runtimes that are not installed are named
  --cpu-time: processor time instead of wall time; with --threads 1 usable on a busy machine
  --memory: peak memory only, of a process that loads the model and runs it once

All sides run the same model with the same weights, the same number of threads and bound inputs, called from Python;
answers are compared first. Each side is a separate process. The fastest variant of each peer (compiled, frozen, composite ops) in a
short trial is measured; the sides alternate within each round. The tables show medians, and the median of the
per-round ratios to the best peer with its 95 % interval (by order statistics). The first line names other busy processes; no table is written if
the intervals of more than a quarter of its rows span a factor of more than 1.3.
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
from figures import MEMORY, UnsettledError, markdown, ratio_to_best, show, summary  # noqa: E402
from host import host  # noqa: E402
from models import DEVICE_WORKLOADS, WORKLOADS  # noqa: E402
from others import OTHERS  # noqa: E402
from sides import PEERS, SIDES, serve  # noqa: E402
from worker import Worker  # noqa: E402

SETTLE, SPAN = 0.03, 0.1  # s between measurements: the other sides' threads go to sleep; of one measurement
REQUESTED = ("torch_tuned", "keel_host", "ncnn")  # only on request: slow, and the sides of vulkan/run.py
UNTIMED = ("keel_import",)  # only for its memory


def check(answers):
    """Checks each answer against the first one, with a tolerance relative to the scale of the answers."""
    first = np.asarray(next(iter(answers.values()), 0))
    for name, answer in answers.items():
        scale = max(float(np.abs(first).max()), 1e-6)
        off = float(np.abs(np.asarray(answer).astype(np.float64).reshape(first.shape) - first).max()) / scale
        if not off <= 2e-3:
            raise RuntimeError(f"{name}: the answer differs by {off:.3g} of the largest value")


def start_sides(names, sides, begin):
    """sides: {name: required module}. -> the workers started by begin(), by name, and the reason for each missing one. They start
    in parallel."""
    workers, missing = {}, {}
    for side in names:
        try:
            if not peers.has(sides[side][1]):
                raise OSError("not installed")
            workers[side] = begin(side)
        except OSError as e:
            missing[side] = str(e)
    for side in list(workers):
        try:
            workers[side].first
        except RuntimeError as e:
            missing[side] = str(e)
            workers.pop(side).stop()
    return workers, missing


def look(worker):
    """Seconds of a run, from a short trial."""
    once = worker.ask(1)
    return min(worker.ask(1), worker.ask(1)) if once > SPAN else min(worker.ask(3) for _ in range(3))


def peer_of(side):
    return side.split("_")[0]


class Field:
    """The sides of one workload: Keel's sides, and the fastest variant of each peer in a short trial. Peers start one after
    the other, so that few variants are in memory at a time. Peak memory is measured for the sides in `memory`."""

    def __init__(self, names, sides, begin, memory=()):
        self.workers, self.missing, self.answers, self.chosen, self.looks, self.peak = {}, {}, {}, {}, {}, {}
        self.sides, self.begin, self.memory = sides, begin, memory
        try:
            for peer in dict.fromkeys(map(peer_of, names)):
                self.enter(peer, [n for n in names if peer_of(n) == peer])
            check(self.answers)
        except BaseException:
            self.stop()
            raise

    def enter(self, peer, names):
        workers, missing = start_sides(names, self.sides, self.begin)
        self.missing |= missing
        self.answers |= {n: w.first for n, w in workers.items()}
        self.peak |= {n: w.ask("peak") for n, w in workers.items() if n in self.memory}
        looks = {n: look(w) for n, w in workers.items() if n not in UNTIMED}
        best = "keel_python" if "keel_python" in looks else min(looks, key=looks.get, default=None)
        self.looks |= looks
        for name, worker in workers.items():
            if name == best:
                self.workers[peer if peer != "keel" else name] = worker
                self.chosen |= {peer: name} if peer != "keel" else {}
            else:
                worker.stop()

    def times(self, rounds):
        runs = {n: max(1, min(20000, int(SPAN / self.looks[self.chosen.get(n, n)]))) for n in self.workers}
        return rounds_of(self.workers, rounds, runs)

    def row(self):
        """The fields that this adds to a row of results."""
        return {"missing": self.missing, "variants": self.chosen, "looks_ms": {n: 1e3 * s for n, s in self.looks.items()}}

    def stop(self):
        for worker in self.workers.values():
            worker.stop()


def rounds_of(workers, rounds, runs):
    """Times by side, one per round; the side that starts rotates."""
    times, order = {n: [] for n in workers}, list(workers)
    for i in range(rounds):
        for name in order[i % len(order):] + order[:i % len(order)]:
            time.sleep(SETTLE)
            times[name].append(workers[name].ask(runs[name]))
    return times


def row_of(name, what, times, **more):
    """Medians of all sides, and the ratio to the best peer, for Keel from Python if it was measured."""
    row = {"name": name, "what": what, "ms": {n: 1e3 * statistics.median(t) for n, t in times.items()}, **more}
    row["rounds"] = max((len(t) for t in times.values()), default=0)
    others = [n for n in times if not n.startswith("keel")]
    ours = next((n for n in ("keel_python", "keel_host") if n in times), "keel")
    if {"keel", "keel_python"} <= set(times):
        row["from_python"] = statistics.median(a / b for a, b in zip(times["keel_python"], times["keel"]))
    if ours in times and others:
        row["best"], row["ratio"], (row["ratio_low"], row["ratio_high"]) = ratio_to_best({n: times[n] for n in (ours, *others)}, ours)
    return row


def compare(name, folder, args):
    from forms import onnx_form
    model, inputs, what = (WORKLOADS | DEVICE_WORKLOADS)[name]
    path = onnx_form.write(model, inputs(), Path(folder) / "model.onnx", free_rows=name.startswith("mlp"))
    field = None
    try:
        field = Field([s for s in args.sides if not args.memory or s in MEMORY], SIDES, lambda side: Worker(
            serve, side, name, path, args.threads, args.device, args.cpu_time), MEMORY)
        if args.memory:
            return {"name": name, "what": what, "peak_bytes": field.peak, "missing": field.missing}
        return row_of(name, what, field.times(args.rounds), peak_bytes=field.peak, **field.row())
    finally:
        if field:
            field.stop()
        for file in Path(folder).glob("model*.onnx*"):
            file.unlink()


def refuse_unknown(parser, *pairs):
    for got, known in pairs:
        if unknown := set(got) - set(known):
            parser.error(f"unknown name: {', '.join(sorted(unknown))}; the names are {', '.join(known)}")


def parse(names):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure")
    parser.add_argument("--sides", type=lambda s: s.split(","), default=[s for s in SIDES if s not in REQUESTED])
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
    report = {"schema": "keel.compare-bench/3", "threads": args.threads, "device": args.device, "cpu_time": args.cpu_time,
              "host": host(), "results": rows}
    print(summary(report), flush=True)
    with tempfile.TemporaryDirectory(prefix="keel-bench-") as folder:
        for name in args.names or names:
            try:
                rows.append(OTHERS[name](folder, args) if name in OTHERS else compare(name, folder, args))
            except RuntimeError as e:
                rows.append({"name": name, "what": name, "error": str(e)})
            print(show(rows[-1]), flush=True)
            if args.json:  # after each workload, so that results survive an abort
                Path(args.json).write_text(json.dumps(report, indent=1) + "\n")
    if args.markdown:
        try:
            Path(args.markdown).write_text(markdown(report, [p for p in PEERS if any(s.startswith(p) for s in args.sides)]))
        except UnsettledError as e:
            sys.exit(str(e))
    return 0 if all("error" not in r and r.get("ratio", 0) <= 1 and r.get("met", True) for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
