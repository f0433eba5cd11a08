#!/usr/bin/env python3
"""A step of a Llama-like decoder, one token, beside PyTorch, ONNX Runtime and llama.cpp: it reads all weights once, so memory bounds it.

Usage: decoder.py [FORM...] [--layers 4] [--rounds 15] [--threads 1] [--wall]
  FORM: f32, bf16 (values too), q8, q4 (weights in blocks of 32 with a scale, MatMulNBits), q8i, q4i (the same with
        accuracy_level 4: values are rounded to 8 bits) (default: all)
  --layers: of width 2048, 16 heads, 5504 hidden units, 256 tokens before; 4 are 0.8 GB of f32
  --wall: wall time instead of processor time

Answers are compared first, except for llama.cpp (see decoder_llama.py). Each side is a process; they alternate within each round. A line
has the medians, the median of the per-round ratios to the best peer with its 95 % interval, and the bytes that Keel reads in a second, of
weights alone and of weights, keys and values, and those of a sum of 512 MB.
"""
import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent)]
import peers  # noqa: E402

if __name__ == "__main__":
    peers.use()

import decoder_llama  # noqa: E402
import numpy as np  # noqa: E402
from bench import rounds_of  # noqa: E402
from decoder_sides import HEADS, KEPT, MATRICES, SIDES, WIDTH, write_onnx  # noqa: E402
from figures import host_text, medians_text, ratio_to_best  # noqa: E402
from host import host  # noqa: E402
from worker import Worker, failure, timed  # noqa: E402

FORMS = {"f32": ("keel", "onnxruntime", "torch"), "bf16": ("keel", "torch"), "q8": ("keel_import", "onnxruntime"),
         "q4": ("keel_import", "onnxruntime"), "q8i": ("keel_import", "onnxruntime"), "q4i": ("keel_import", "onnxruntime")}
BYTES = {"f32": 4, "bf16": 2, "q8": 1 + 4 / 32, "q4": 0.5 + 4 / 32}  # of a weight, with its part of a scale
APART = {"f32": 1e-3, "bf16": 3e-2, "q8": 1e-3, "q4": 1e-3, "q8i": 1e-2, "q4i": 1e-2}  # of the largest value


def sides(form):
    return FORMS[form] + (("llama",) if form in decoder_llama.TYPES and peers.has("llama_cpp") else ())


def inputs(layers):
    random = np.random.default_rng(1)
    kept = [0.3 * random.standard_normal((HEADS, KEPT, WIDTH // HEADS)) for _ in range(2 * layers)]
    return [x.astype(np.float32) for x in (random.standard_normal((1, WIDTH)), *kept)]


def serve(connection, side, form, path, layers, threads, cpu_time):
    """Sends the answer; then, per received number of runs, the seconds of one run."""
    clock = time.process_time if cpu_time else time.perf_counter
    try:
        run = (SIDES | {"llama": decoder_llama.side})[side](form, path, inputs(layers), threads)
        connection.send(run())
        while (runs := connection.recv()) is not None:
            run()
            connection.send(timed(run, runs, clock))
    except Exception as e:  # the parent reports it
        connection.send(failure(side, e))


def bandwidth():
    """GB per second that one thread reads."""
    numbers = np.ones(1 << 26, np.int64)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        numbers.sum()
        times.append(time.perf_counter() - start)
    return numbers.nbytes / min(times) / 1e9


def measured(form, folder, args):
    """-> times of each side, one per round."""
    path, workers = str(Path(folder) / "model.onnx"), {}
    if form != "bf16":
        write_onnx(form, path, args.layers)
    try:
        for side in sides(form):
            workers[side] = Worker(serve, side, form, path, args.layers, args.threads, not args.wall)
            answer, ours = workers[side].first, workers[FORMS[form][0]].first
            if answer is not None and np.abs(answer - ours).max() > APART[form] * np.abs(answer).max():
                raise RuntimeError(f"{form}: the answer of {side} differs from Keel's by more than {APART[form]} of the largest value")
        return rounds_of(workers, args.rounds, dict.fromkeys(workers, 2))
    finally:
        for worker in workers.values():
            worker.stop()


def line(form, layers, times):
    ours = next(iter(times))
    best, ratio, (low, high) = ratio_to_best(times, ours)
    seconds = statistics.median(times[ours])
    read = layers * sum(rows * columns for rows, columns in MATRICES.values()) * BYTES[form.rstrip("i")]
    kept = layers * 2 * KEPT * WIDTH * (2 if form == "bf16" else 4)
    rates = f"{read / seconds / 1e9:.1f} GB/s of weights, {(read + kept) / seconds / 1e9:.1f} with keys and values, of {bandwidth():.1f}"
    return f"{form:5} {medians_text(times)}  ratio to {best} {ratio:.2f} [{low:.2f}, {high:.2f}]  {rates}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forms", nargs="*", metavar="FORM", help="what to measure")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--wall", action="store_true")
    args = parser.parse_args()
    if wrong := set(args.forms) - set(FORMS):
        parser.error(f"no form {', '.join(sorted(wrong))}; there are {', '.join(FORMS)}")
    if not peers.has("llama_cpp"):
        print(f"llama.cpp is not measured: {peers.PYTHON} -m pip install {decoder_llama.PACKAGES} (compiles for ten minutes)")
    print(host_text(host()))
    for form in args.forms or FORMS:
        with tempfile.TemporaryDirectory(prefix="keel-bench-") as folder:
            print(line(form, args.layers, measured(form, folder, args)), flush=True)


if __name__ == "__main__":
    main()
