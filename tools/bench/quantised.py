#!/usr/bin/env python3
"""Keel beside ONNX Runtime on models that ONNX Runtime's quantiser wrote, with 8-bit weights and values.

Usage: quantised.py [NAME...] [--forms QDQ,QOperator] [--rounds 15] [--threads 1] [--wall]
  NAME: a model of models.py, such as resnet50, mobilenet, bert (default: resnet50 mobilenet)
  --forms: QDQ (operators between QuantizeLinear and DequantizeLinear), QOperator (QLinearConv and others), dynamic (values are
           quantised in each run)
  --wall: wall time instead of processor time

Calibrated with the input that is measured. Answers are compared first; they may differ by rounding to the next integer. Each side is a
process; they alternate within each round. A line has the medians, and the median of the per-round ratios with its 95 % interval.
"""
import argparse
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent)]
import peers  # noqa: E402

if __name__ == "__main__":
    peers.use()

import numpy as np  # noqa: E402
from bench import SPAN, rounds_of  # noqa: E402
from figures import host_text, medians_text, ratio_to_best  # noqa: E402
from forms import onnx_form  # noqa: E402
from host import host  # noqa: E402
from models import WORKLOADS  # noqa: E402
from sides import serve  # noqa: E402
from worker import Worker  # noqa: E402

SIDES = ("keel_python", "onnxruntime")
MOST_APART = 0.1  # of the largest value


def quantised(name, form, folder):
    """Writes the model with batch norms folded, then the quantised one; returns its path."""
    import onnxruntime
    from onnxruntime import quantization
    model, inputs, _ = WORKLOADS[name]
    values = inputs()
    plain, folded, made = (str(Path(folder) / f"{kind}.onnx") for kind in ("plain", "folded", "model"))
    onnx_form.write(model, values, plain)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = folded
    onnxruntime.InferenceSession(plain, options, providers=["CPUExecutionProvider"])
    kinds = {"weight_type": quantization.QuantType.QInt8}
    if form == "dynamic":
        quantization.quantize_dynamic(folded, made, **kinds)
        return made

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.left = [{f"x{i}": x for i, x in enumerate(values)}]

        def get_next(self):
            return self.left.pop() if self.left else None
    quantization.quantize_static(folded, made, Reader(), quant_format=quantization.QuantFormat[form], per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8, **kinds)
    return made


def measured(name, form, folder, args):
    """-> times of each side, one per round."""
    path, workers = quantised(name, form, folder), {}
    try:
        for side in SIDES:
            workers[side] = Worker(serve, side, name, path, args.threads, "cpu", not args.wall)
        ours, theirs = (np.asarray(workers[side].first) for side in SIDES)
        apart = np.abs(ours - theirs.reshape(ours.shape)).max() / np.abs(theirs).max()
        if not apart <= MOST_APART:
            raise RuntimeError(f"{name}: the answers differ by {apart:.3g} of the largest value")
        runs = {side: max(1, int(SPAN / w.ask(3))) for side, w in workers.items()}
        return rounds_of(workers, args.rounds, runs)
    finally:
        for worker in workers.values():
            worker.stop()


def line(name, form, times):
    _, ratio, (low, high) = ratio_to_best(times, SIDES[0])
    return f"{WORKLOADS[name][2]:32} {form:9} {medians_text(times)}  ratio {ratio:.2f} [{low:.2f}, {high:.2f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure")
    parser.add_argument("--forms", type=lambda s: s.split(","), default=["QDQ", "QOperator"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--wall", action="store_true")
    args = parser.parse_args()
    print(host_text(host()))
    for name in args.names or ("resnet50", "mobilenet"):
        for form in args.forms:
            with tempfile.TemporaryDirectory(prefix="keel-bench-") as folder:
                print(line(name, form, measured(name, form, folder, args)), flush=True)


if __name__ == "__main__":
    main()
