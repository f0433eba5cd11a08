"""Compares Keel on the device cuda with PyTorch (eager, compiled, as a CUDA graph) and JAX on the same GPU: arrays stay on it.

Usage: run.py [PATTERN...] [--sides keel,torch,...] [--rounds 7] [--seconds 0] [--json FILE]
  PATTERN: a part of the name of a program of programs.py (default: all)
  --seconds: begin no further program after that time

Each side is a process, which first prepares all programs; the sides are then measured in turn, one at a time. A time is that of many calls and
one wait, per call; answers are compared with Keel's. A ratio is the median of the ratios of the rounds, Keel's time to the fastest
peer's: below 1 Keel is ahead. Operands are random; those of large programs exceed the cache of the GPU, those of tiny ones measure the host.
"""
import argparse
import json
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import numpy as np  # noqa: E402
from figures import ratio_to_best  # noqa: E402
from programs import PROGRAMS  # noqa: E402
from runtimes import RUNTIMES  # noqa: E402
from worker import Worker  # noqa: E402

SPAN = 0.1  # s of one measurement


def operand(shape, dtype, scale, seed):
    """Random values: a block of a million of them, repeated."""
    import ml_dtypes
    rng, n = np.random.default_rng(seed), int(np.prod(shape))
    if dtype == "i64":
        return rng.integers(0, scale, shape)
    block = (scale * rng.standard_normal(min(n, 1 << 20), np.float32)).astype({"bf16": ml_dtypes.bfloat16, "f32": np.float32}[dtype])
    return np.resize(block, shape)


def measured(form, once, calls):
    start = time.perf_counter()
    for _ in range(calls):
        y = once()
    form.wait(y)
    return (time.perf_counter() - start) / calls


def sampled(y):
    """What is compared: up to a million values, evenly spaced."""
    y = np.asarray(y, np.float32).reshape(-1)
    return y[:: max(1, y.size // (1 << 20))]


def serve(connection, side, names):
    """Sends what the side is and, for each name that it receives, calls and seconds of a call, or the error."""
    try:
        form = RUNTIMES[side]()
        connection.send(side)
    except Exception as e:
        connection.send(RuntimeError(f"{side}: {type(e).__name__}: {e}"))
        return
    while (asked := connection.recv()) is not None:
        name, what = asked
        try:
            if what == "prepare":
                arrays = [form.put(operand(*o, seed)) for seed, o in enumerate(PROGRAMS[name].operands)]
                once = form.train(*arrays) if PROGRAMS[name].trains else form.prepare(PROGRAMS[name], arrays)
                for _ in range(4):  # compiles, records
                    y = once()
                answer = sampled(form.take(y))
                took = measured(form, once, 3)
                calls = max(2, min(2000, int(SPAN / max(took, 1e-6))))
                connection.send((answer, calls))
            else:
                connection.send(measured(form, once, what))
        except Exception as e:
            connection.send(RuntimeError(f"{side}: {type(e).__name__}: {str(e)[:300]}"))


def compare(name, workers, rounds):
    """-> a row of results: seconds of each side, the reason for a missing one, and ratios."""
    row, calls, answers = {"name": name, "errors": {}}, {}, {}
    for side, worker in workers.items():  # side by side: compilers work at the same time
        worker.connection.send((name, "prepare"))
    for side, worker in workers.items():
        try:
            answers[side], calls[side] = worker.receive()
        except RuntimeError as e:
            row["errors"][side] = str(e)
    first = answers.get("keel", next(iter(answers.values()), None))
    for side, answer in answers.items():
        off = float(np.abs(answer - first).max() / max(np.abs(first).max(), 1e-6))
        if not off <= PROGRAMS[name].bound:
            row["errors"][side] = f"the answer differs by {off:.3g} of the largest value"
    times, order = {side: [] for side in calls}, list(calls)
    for i in range(rounds):
        for side in order[i % len(order):] + order[:i % len(order)]:
            times[side].append(workers[side].ask((name, calls[side])))
    row["us"] = {side: 1e6 * statistics.median(t) for side, t in times.items()}
    if "keel" in times and len(times) > 1:
        row["best"], row["ratio"], row["interval"] = ratio_to_best(times, "keel")
    if "keel" in row["us"]:
        seconds = 1e-6 * row["us"]["keel"]
        row["GB/s"], row["TFLOP/s"] = PROGRAMS[name].bytes / seconds / 1e9, PROGRAMS[name].operations / seconds / 1e12
    return row


def show(row):
    times = " ".join(f"{side} {us:.1f}" for side, us in row["us"].items())
    ratio = f" ratio {row['ratio']:.2f} ({row['interval'][0]:.2f} to {row['interval'][1]:.2f}) to {row['best']}" if "ratio" in row else ""
    rate = "".join(f", {row[unit]:.0f} {unit}" for unit in ("GB/s", "TFLOP/s") if row.get(unit, 0) > 1)
    errors = "".join(f"\n    {e}" for e in row["errors"].values())
    return f"{row['name']}:{ratio}; us: {times}{rate}{errors}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PATTERN", help="what to measure")
    parser.add_argument("--sides", default=",".join(RUNTIMES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--json", help="a file for all figures")
    args = parser.parse_args()
    names = [n for n in PROGRAMS if not args.names or any(part in n for part in args.names)]
    workers, start, rows = {side: Worker(serve, side, names) for side in args.sides.split(",")}, time.monotonic(), []
    for side in list(workers):
        try:
            workers[side].first
        except RuntimeError as e:
            print(e)
            workers.pop(side)
    for name in names:
        if args.seconds and time.monotonic() - start > args.seconds:
            print(f"{name}: not measured: the time is up")
            continue
        rows.append(compare(name, workers, args.rounds))
        print(show(rows[-1]), flush=True)
        if args.json:
            Path(args.json).write_text(json.dumps({"schema": "keel.cuda-bench/1", "results": rows}, indent=1) + "\n")
    for worker in workers.values():
        worker.stop()


if __name__ == "__main__":
    main()
