#!/usr/bin/env python3
"""Factors and spectra of matrices on the device cpu, next to numpy.linalg (LAPACK of OpenBLAS), in f64. Both use one thread for a matrix.

Usage: matrices.py [PATTERN...] [--rounds 9] [--sizes 8,64,256,512]
  PATTERN: a substring of a case's name, as in the table (default: all)

Both sides are in one process and alternate; processor time, so it is usable on a busy machine. Singular and eigenvalues
are compared first. A line has the medians, and the median of the per-round ratios with its 95 % interval.
"""
import argparse
import os
import sys
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "build" / "release" / "python"), str(ROOT / "tools" / "bench")]
import keel  # noqa: E402
from figures import medians_text, ratio_to_best  # noqa: E402

SPAN = 0.03  # seconds of one measurement
LAPACK = {"cholesky": np.linalg.cholesky, "solve": np.linalg.solve, "inv": np.linalg.inv, "det": np.linalg.det, "qr": np.linalg.qr,
          "svd": lambda a: np.linalg.svd(a, full_matrices=False), "eigh": np.linalg.eigh}
UNIQUE = {"qr": (), "svd": (1,), "eigh": (0,)}  # results without a choice of signs


def operands(op, n):
    a = np.random.default_rng(n).standard_normal((n, n))
    if op == "solve":
        return a / n**0.5 + 2 * np.eye(n), np.ones((n, 1))
    a = a / n**0.5 if op == "det" else a
    return ({"cholesky": a @ a.T / n + np.eye(n), "eigh": a + a.T}.get(op, a),)


def compare(op, got, wanted):
    got, wanted = (x if isinstance(x, tuple) else (x,) for x in (got, wanted))
    for i in UNIQUE.get(op, (0,)):
        np.testing.assert_allclose(np.asarray(got[i]), wanted[i], rtol=1e-6, atol=1e-9 * np.abs(wanted[i]).max())


def sides(op, n):
    given = operands(op, n)
    tensors, call = [keel.array(x) for x in given], getattr(keel, op)
    runs = {"keel": lambda: call(*tensors), "numpy": lambda: LAPACK[op](*given)}
    compare(op, runs["keel"](), runs["numpy"]())
    return runs


def seconds(run):
    """Of processor time, for one run."""
    start, count = time.process_time(), 0
    while count == 0 or time.process_time() - start < SPAN:
        run()
        count += 1
    return (time.process_time() - start) / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sizes", default="8,64,256,512")
    args = parser.parse_args()
    for op in LAPACK:
        for n in map(int, args.sizes.split(",")):
            name = f"{op} {n}x{n}"
            if args.patterns and not any(p in name for p in args.patterns):
                continue
            runs, times = sides(op, n), {"keel": [], "numpy": []}
            for _ in range(args.rounds):
                for side, run in runs.items():
                    times[side].append(seconds(run))
            _, ratio, (low, high) = ratio_to_best(times, "keel")
            print(f"{name:16} {ratio:.2f} [{low:.2f}, {high:.2f}]  {medians_text(times)}", flush=True)


if __name__ == "__main__":
    main()
