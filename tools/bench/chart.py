"""The README's chart: four workloads, a bar for each runtime, as an SVG file.

    .venv/bin/python tools/bench/chart.py FOLDER/models.json docs/figures.svg

models.json is written by report.py --measure or bench.py --json. A bar is a runtime's time relative to the slowest one of its workload, with
the time next to it; the last line gives machine, date, versions and rounds.
"""
import json
import sys
import textwrap
from html import escape
from pathlib import Path

from figures import NAMES, summary, time_text

WORKLOADS = {"resnet50": "ResNet-50, 1x3x224x224", "bert": "BERT-base, 1x128", "gpt2": "GPT-2 small, 1x128", "mlp60000": "MLP, 60,000 rows"}
SIDES = {"keel_python": "#1b6ca8", "onnxruntime": "#b9770e", "torch": "#c0392b", "jax": "#8e44ad", "tensorflow": "#7f8c8d"}
LABEL, BAR, ROW, GAP, WIDTH = 170, 320, 16, 14, 620


def bars(result, top):
    slowest = max(result["ms"].values())
    yield f'<text x="{LABEL - 10}" y="{top + ROW * len(SIDES) / 2 + 4}" text-anchor="end" font-weight="bold">{escape(WORKLOADS[result["name"]])}</text>'
    for i, (side, colour) in enumerate(SIDES.items()):
        ms, y = result["ms"][side], top + i * ROW
        length = BAR * ms / slowest
        name = "Keel" if side == "keel_python" else NAMES[side]
        yield (f'<rect x="{LABEL}" y="{y + 2}" width="{length:.1f}" height="{ROW - 4}" fill="{colour}"/>'
               f'<text x="{LABEL + length + 5:.1f}" y="{y + 12}">{escape(name)} {escape(time_text(ms))}</text>')


def svg(report):
    results = {r["name"]: r for r in report["results"]}
    missing = [f"{name}: {side}" for name in WORKLOADS for side in SIDES if side not in results.get(name, {}).get("ms", {})]
    if missing:
        sys.exit(f"chart: not measured: {', '.join(missing)}; run bench.py {' '.join(WORKLOADS)} --json FILE")
    group = ROW * len(SIDES) + GAP
    parts = [part for i, name in enumerate(WORKLOADS) for part in bars(results[name], 10 + i * group)]
    bottom = 10 + len(WORKLOADS) * group
    rounds = min(results[name]["rounds"] for name in WORKLOADS)
    lines = [f"Time per run, shorter is better; each runtime with its fastest settings, {rounds} interleaved rounds.", *textwrap.wrap(summary(report), 95)]
    foot = "".join(f'<text x="10" y="{bottom + 14 * (i + 1)}" fill="#555">{escape(line)}</text>' for i, line in enumerate(lines))
    height = bottom + 14 * len(lines) + 10
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="11">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + f"\n{foot}\n</svg>\n")


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: chart.py models.json OUT.svg")
    Path(sys.argv[2]).write_text(svg(json.loads(Path(sys.argv[1]).read_text())))


if __name__ == "__main__":
    main()
