"""Searches for ONNX graphs that Keel computes wrongly: `onnx_proof.py [--seed N] [--count N | --minutes M] [--keep FOLDER] [--ops OP ...]`.

Shrinks, prints and keeps each one; the exit status is then 1. `onnx_proof.py FILE` runs a kept graph again. Needs KEEL_BUILD.
"""
import argparse
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]

import keel_abi  # noqa: E402
from onnx_checks import failure  # noqa: E402
from onnx_draw import graph  # noqa: E402
from onnx_kept import keep, load  # noqa: E402
from onnx_oracles import Oracles  # noqa: E402
from onnx_shrink import shrink  # noqa: E402
from tested_devices import DEVICES  # noqa: E402


def look(context, seed, ops=None, counts=None, notes=None, devices=DEVICES):
    """The smallest failing graph of a seed with its reason, or None."""
    oracles = Oracles()
    drawn, values = graph(seed, oracles.settle, ops)
    wrong = failure(context, drawn, values, oracles, devices)
    if counts is not None:
        counts.update(oracles.counts)
    if notes is not None:
        notes.extend((seed, *n) for n in oracles.notes)
    if wrong is None:
        return None
    return shrink(drawn, values, lambda g, v: failure(context, g, v, oracles, devices), wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="*", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--ops", nargs="*")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--disagreements", action="store_true", help="print where the oracles differ")
    args = parser.parse_args()
    context, bad, counts, notes = keel_abi.Context(threads=1), 0, Counter(), []
    for path in args.file:
        kept, values, oracles = load(path)
        wrong = failure(context, kept, values, oracles, DEVICES)
        print(f"{path.name}: {wrong or 'ok'}")
        bad += wrong is not None
    end, seed = time.monotonic() + 60 * args.minutes, args.seed
    while not args.file and (seed < args.seed + args.count if not args.minutes else time.monotonic() < end):
        found = look(context, seed, args.ops, counts, notes)
        if found:
            small, values, wrong = found
            bad += 1
            print(f"seed {seed}: {wrong}", flush=True)
            if args.keep:
                print(f"kept as {keep(small, values, wrong, args.keep)}", flush=True)
        seed += 1
    if args.disagreements:
        for line in notes:
            print("oracles differ: seed", *line)
    nodes = Counter()
    for (op, which), n in counts.items():
        nodes[which or "neither"] += n
    print(f"seeds {args.seed} to {seed - 1}: {bad} failed; nodes by oracles: {dict(nodes)}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
