"""Compares Keel on the device vulkan with ncnn's Vulkan path on the same driver, from host memory to host memory, in f32.

Usage: run.py [NAME...] [--rounds 15] [--json FILE]
  NAME: mobilenet resnet50 bert2 matmul128 matmul256 matmul512 matmul1024 (default: all)

Both sides have the same weights; answers are compared first. Each side is a separate process, and the sides alternate. A ratio is the
median of the ratios of the rounds, Keel's time to ncnn's, with its 95 % interval: below 1 Keel is ahead. Needs numpy and onnx; ncnn is
installed with `pip install --target FOLDER` and its line of peers.txt, and found with PYTHONPATH=FOLDER.
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
import bench  # noqa: E402
import peers  # noqa: E402
from host import host  # noqa: E402
from models import DEVICE_WORKLOADS  # noqa: E402

NAMES = ["mobilenet", "resnet50", *DEVICE_WORKLOADS]


def show(row):
    if "error" in row:
        return f"{row['name']}: {row['error']}"
    times = ", ".join(f"{side} {ms:.2f} ms" for side, ms in row["ms"].items())
    ratio = f", ratio {row['ratio']:.2f} ({row['ratio_low']:.2f} to {row['ratio_high']:.2f})" if "ratio" in row else ""
    missing = "".join(f"; no {side}: {why}" for side, why in row["missing"].items())
    return f"{row['what']}: {times}{ratio}{missing}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", help="a file for all figures")
    args = parser.parse_args()
    bench.refuse_unknown(parser, (args.names, NAMES))
    if not peers.has("ncnn"):
        line = next(s for s in peers.lines() if s.startswith("ncnn"))
        print(f"ncnn is not installed, so Keel is measured alone: pip install --target FOLDER {line}; PYTHONPATH=FOLDER", file=sys.stderr)
    sides = argparse.Namespace(sides=["keel_host", "ncnn"], threads=2, device="vulkan", cpu_time=False, memory=False, rounds=args.rounds)
    report = {"schema": "keel.vulkan-bench/1", "host": host(), "results": []}
    with tempfile.TemporaryDirectory(prefix="keel-bench-") as folder:
        for name in args.names or NAMES:
            try:
                row = bench.compare(name, folder, sides)
            except RuntimeError as e:
                row = {"name": name, "error": str(e)}
            report["results"].append(row)
            print(show(row), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
