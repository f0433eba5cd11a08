#!/usr/bin/env python3
"""Keel on models decomposed into primitive ops, compared with the same models in composite ops (softmax, layer norm, gelu, attention).

Usage: spelled.py [NAME...] [--rounds 15] [--threads 1] [--wall]
  NAME: bert, bert8, bert512, gpt2 of models.py (default: bert bert512 gpt2)
  --wall: wall time instead of processor time

Both files have the same weights; answers are compared first. Each is a separate process; they alternate within
each round. A line has the medians, and the median of the per-round ratios with its 95 % interval and quartiles.
"""
import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent)]
from bench import SPAN, check, rounds_of  # noqa: E402
from figures import medians_text, ratio_to_best  # noqa: E402
from forms import onnx_form  # noqa: E402
from forms.composite_form import CompositeForm, SpelledForm  # noqa: E402
from models import WORKLOADS  # noqa: E402
from sides import serve  # noqa: E402
from worker import Worker  # noqa: E402

KINDS = {"composite": CompositeForm, "spelled": SpelledForm}


def measured(name, folder, args):
    """-> times of each form, one per round."""
    model, inputs, _ = WORKLOADS[name]
    workers = {}
    try:
        for kind, form in KINDS.items():
            path = onnx_form.write(model, inputs(), Path(folder) / f"{kind}.onnx", kind=form)
            workers[kind] = Worker(serve, "keel", name, path, args.threads, "cpu", not args.wall)
        check({kind: w.first for kind, w in workers.items()})
        runs = {kind: max(1, int(SPAN / w.ask(3))) for kind, w in workers.items()}
        return rounds_of(workers, args.rounds, runs)
    finally:
        for worker in workers.values():
            worker.stop()


def line(name, times):
    _, ratio, (low, high) = ratio_to_best(times, "spelled")
    first, _, third = statistics.quantiles((a / b for a, b in zip(times["spelled"], times["composite"])), n=4)
    return f"{WORKLOADS[name][2]:32} {medians_text(times)}  ratio {ratio:.3f} [{low:.3f}, {high:.3f}]" \
        f"  quartiles {first:.3f}, {third:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--wall", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keel-bench-") as folder:
        for name in args.names or ("bert", "bert512", "gpt2"):
            print(line(name, measured(name, folder, args)), flush=True)


if __name__ == "__main__":
    main()
