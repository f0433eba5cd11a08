"""Compares each op on the `cpu` device, shape by shape, with the best of ONNX Runtime and eager PyTorch; programs too (programs.py).

Usage: run.py [PATTERN...] [--rounds 15] [--threads N] [--device cpu] [--json FILE] [--cpu-time]
  PATTERN: a substring of a case's name, as in the table (default: all cases of cases.py and programs.py)
  --cpu-time: processor time instead of wall time; with --threads 1 usable on a busy machine

Each side is a separate process; the sides alternate within each round, and answers are compared first. `ratio`
is Keel's time divided by that of the peer with the smaller median: the median over the rounds, with its 95 %
interval. Times include the call from Python: about 1 us in Keel and PyTorch, 3 us in ONNX Runtime.
"""
import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import peers  # noqa: E402

if __name__ == "__main__":
    peers.use()

import numpy as np  # noqa: E402
from cases import CASES  # noqa: E402
from figures import UnsettledError, host_text, ratio_to_best, refuse_unsettled  # noqa: E402
from host import host  # noqa: E402
from runners import serve  # noqa: E402
from worker import Worker  # noqa: E402

SETTLE, SPAN = 0.01, 0.01  # seconds between measurements; seconds of one measurement


def start(args):
    sides, why = {}, []
    for name in ("keel", "onnxruntime", "torch"):
        try:
            worker = Worker(serve, name, args.threads, args.device, args.cpu_time)
            worker.first  # an exception if it cannot start
            sides[name] = worker
        except Exception as e:
            why.append(f"{name} is not measured: {e}")
    return sides, why


def differs(got, wanted):
    """The fault of an answer, or ''."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype}{list(got.shape)} in place of {wanted.dtype}{list(wanted.shape)}"
    if wanted.dtype.kind in "iub":
        return "" if (got == wanted).all() else "other numbers"
    scale = max(1.0, float(np.abs(wanted).max()))
    off = float(np.abs(got.astype(np.float64) - wanted).max())
    return "" if off <= 2e-3 * scale else f"differs by {off:.3g} of {scale:.3g}"


def compare(case, sides, rounds):
    answers, notes = {}, []
    for name, side in sides.items():
        if name == "torch" and case.torch is None:
            continue
        try:
            answers[name] = side.ask(case.name)
        except RuntimeError as e:
            notes.append(str(e))
    if "keel" in answers:
        notes += [f"{n}: {d}" for n, a in answers.items() if (d := differs(a, answers["keel"]))]
    row = {"name": case.name, "notes": notes}
    if "keel" not in answers or len(answers) < 2:
        return row
    once = max(sides[n].ask(2) for n in answers)
    runs, times = max(1, min(5000, int(SPAN / once))), {n: [] for n in answers}
    order = list(answers)
    for i in range(rounds):
        for name in order[i % len(order):] + order[:i % len(order)]:
            time.sleep(SETTLE)
            times[name].append(sides[name].ask(runs))
    best, ratio, (low, high) = ratio_to_best(times, "keel")
    return {**row, "best": best, "ratio": ratio, "low": low, "high": high,
            "us": {n: 1e6 * statistics.median(t) for n, t in times.items()}}


def line(row):
    if "ratio" not in row:
        return f"{row['name']:48} not measured: {'; '.join(row['notes'])}"
    us = "".join(f"{row['us'].get(n, float('nan')):11.1f}" for n in ("keel", "onnxruntime", "torch"))
    return (f"{row['name']:48}{us}  {row['ratio']:6.2f} [{row['low']:.2f}, {row['high']:.2f}] {row['best']}"
            f"{'  LOSES' if row['low'] > 1 else ''}{'  ! ' + '; '.join(row['notes']) if row['notes'] else ''}")


def losses(rows):
    """Rows where Keel is significantly slower, largest loss first, as a Markdown table; UnsettledError."""
    refuse_unsettled({r["name"]: (r["low"], r["high"]) for r in rows if "ratio" in r})
    lost = sorted((r for r in rows if r.get("low", 0) > 1), key=lambda r: -r["ratio"])
    text = ["| op, shape | Keel, µs | best peer, µs | ratio [95 %] | peer |", "| --- | --- | --- | --- | --- |"]
    text += [f"| {r['name']} | {r['us']['keel']:.4g} | {r['us'][r['best']]:.4g} | {r['ratio']:.2f} "
             f"[{r['low']:.2f}, {r['high']:.2f}] | {r['best']} |" for r in lost]
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--json", help="a file for all figures")
    parser.add_argument("--markdown", help="a file for the list of losses")
    args = parser.parse_args()
    chosen = [c for c in CASES.values() if not args.patterns or any(p in c.name for p in args.patterns)]
    if not chosen:
        parser.error(f"no case has {' or '.join(args.patterns)} in its name")
    sides, why = start(args)
    if "keel" not in sides:
        sys.exit("\n".join(why))
    print(host_text(host()))
    print("\n".join(why + [f"{'us, ' + str(args.threads) + ' threads':48}{'keel':>11}{'onnxruntime':>11}{'torch':>11}"]))
    rows = []
    for case in chosen:
        rows.append(compare(case, sides, args.rounds))
        print(line(rows[-1]), flush=True)
    for side in sides.values():
        side.stop()
    if args.json:
        Path(args.json).write_text(json.dumps({"schema": "keel.ops-bench/1", "threads": args.threads,
                                               "device": args.device, "cases": rows}, indent=1) + "\n")
    try:
        table = losses(rows)
    except UnsettledError as e:
        sys.exit(f"\n{e}")
    lost = [r for r in rows if r.get("low", 0) > 1]
    print(f"\nKeel loses {len(lost)} of {sum('ratio' in r for r in rows)}:\n\n{table}", end="")
    if args.markdown:
        Path(args.markdown).write_text(table)


if __name__ == "__main__":
    main()
