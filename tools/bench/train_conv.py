#!/usr/bin/env python3
"""A step of SGD on a small convolution net, compared with PyTorch, JAX and TensorFlow.

    .venv/bin/python tools/bench/train_conv.py [--sides keel,torch_last,...] [--rounds 15] [--threads 2] [--batch 32] [--json FILE]

Images 3x32x32; conv 3x3 to 32, relu, conv 3x3 to 32, relu, max pool 2x2; conv 3x3 to 64, relu, max pool 2x2; dense 128,
relu, dense 10; mean cross entropy; w - 0.01 dw. Each side is a process, with images channels first or last, eager or compiled:
the fastest variant of each peer in a short trial is measured. Sides alternate; the losses of five steps are compared
first.
"""
import argparse
import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
import peers  # noqa: E402

if __name__ == "__main__":
    peers.use()

from bench import Field, refuse_unknown, row_of  # noqa: E402
from figures import show, summary  # noqa: E402
from forms.conv_form import SIDES, begin  # noqa: E402
from host import host  # noqa: E402
from worker import Worker, failure, timed  # noqa: E402


def serve(connection, name, batch, threads, device):
    """Sends the losses of the first steps; then, per received number of steps, the seconds of one step."""
    try:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        step = begin(name, batch, threads, device)
        connection.send([step() for _ in range(5)])
        while (runs := connection.recv()) is not None:
            step()
            connection.send(timed(step, runs, time.perf_counter))
    except Exception as e:  # the parent reports it
        connection.send(failure(name, e))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", type=lambda s: s.split(","), default=list(SIDES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", help="a file for all figures")
    args = parser.parse_args()
    refuse_unknown(parser, (args.sides, SIDES))
    report = {"schema": "keel.train-conv-bench/1", "threads": args.threads, "batch": args.batch, "host": host()}
    field = Field(args.sides, SIDES, lambda side: Worker(serve, side, args.batch, args.threads, args.device))
    try:
        times = field.times(args.rounds)
    finally:
        field.stop()
    what = f"training step of a convolution net, {args.batch} images 3x32x32"
    report["results"] = [row_of("train_conv", what, times, **field.row())]
    print(summary(report), show(report["results"][0]), sep="\n")
    if args.json:
        Path(args.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
