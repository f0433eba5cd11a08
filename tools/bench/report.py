#!/usr/bin/env python3
"""Measures the figures of docs/notes and writes them between their marks.

    .venv/bin/python tools/bench/report.py FOLDER --measure [--rounds 15] [--only models,train,...]
    .venv/bin/python tools/bench/report.py FOLDER --into docs/notes/figures.md

FOLDER holds one JSON file per script. The text between a mark `<!-- figures: NAME -->` and `<!-- end -->` is replaced by the table
NAME, or left unchanged if its JSON file is missing or its ratios vary too much (UnsettledError). Without --into all tables are printed.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from figures import NAMES, UnsettledError, markdown, memory, refuse_unsettled, show, summary, table, time_text, verdict

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("KEEL_BUILD", HERE.parents[1] / "build" / "release"))
PEERS = ("onnxruntime", "torch", "jax", "tensorflow")
SCRIPTS = {"hot": [], "loops": ["loops.py"], "calls": ["calls.py"], "train": ["train.py"], "train_conv": ["train_conv.py"],
           "busy": ["busy.py", "sum", "product", "conv", "mobilenet", "resnet50", "mlp1"], "models": ["bench.py"]}
BUSY_ROUNDS = 7  # one round is dozens of runs


def measure(folder, name, rounds):
    """-> seconds. The scripts exit with 1 if a peer is ahead somewhere, which is not a failure here."""
    path, begin = folder / f"{name}.json", time.monotonic()
    if name == "hot":
        path.write_text(subprocess.run([BUILD / "bin" / "bench_hot", "--json"], stdout=subprocess.PIPE, text=True, check=True).stdout)
    else:
        script, *more = SCRIPTS[name]
        rounds = min(rounds, BUSY_ROUNDS) if name == "busy" else rounds
        subprocess.run([sys.executable, HERE / script, *more, "--rounds", str(rounds), "--json", path], check=False)
    return time.monotonic() - begin


def models(report):
    """Without peak memory, which is a separate table."""
    rows = [{k: v for k, v in r.items() if k != "peak_bytes"} for r in report["results"]]
    return markdown({**report, "results": [r for r in rows if "best" in r]}, PEERS)


def own(report):
    return "\n".join(f"- {' '.join(show(r).split())}" for r in report["results"] if "best" not in r) + "\n"


def training(report):
    """Each Keel side with the best peer of its kind."""
    rows = [r for r in report["results"] if "best" in r]
    refuse_unsettled({r["what"]: (r["ratio_low"], r["ratio_high"]) for r in rows})
    lines = [summary(report), "", "| step of SGD, MLP, 128 rows | Keel | best of its kind | of its time [95 %] | rounds |", "| --- | --- | --- | --- | --- |"]
    for r in rows:
        peer = f"{time_text(r['ms'][r['best']])} ({NAMES[r['best']]})"
        lines.append(f"| {r['what']} | {time_text(r['ms']['keel'])} | {peer} | {verdict(r)} | {r['rounds']} |")
    return "\n".join(lines) + "\n"


def calls(report):
    lines = table([r for r in report["results"] if "best" in r], ("keel_function", "torch", "jax", "tensorflow", "numpy"), "keel")
    return "\n".join([summary(report), "", *lines]) + "\n"


def hot(report):
    lines = ["| from C, one thread | median, ns | 10 % to 90 % | limit |", "| --- | --- | --- | --- |"]
    for f in report["figures"]:
        lines.append(f"| {f['name']} | {f['median']:,.4g} | {f['p10']:,.4g} to {f['p90']:,.4g} | {f['limit'] or ''} |")
    return "\n".join(lines) + "\n"


LOADS = {"quiet": "nothing else", "busy": "{} busy process{}", "part": "{} busy 4 ms of 7", "again": "the same in a second Keel",
         "quota": "a quota of {} % of a core", "cores": "all but {} core{s} taken away"}


def busy(report):
    lines = [summary(report), "", "| work | other load | all threads | one thread | ONNX Runtime, all | Keel, of its own one thread | longest run |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for r in report["results"]:
        count = "".join(c for c in r["load"] if c.isdigit())
        other = LOADS[r["load"].rstrip("0123456789")].format(count, "es" * (count != "1"), s="s" * (count != "1"))
        times = [time_text(r["ms"][s]) if s in r["ms"] else "–" for s in ("keel", "one_thread", "onnxruntime")]
        lines.append(f"| {r['what']} | {other} | {' | '.join(times)} | {r['ratio']:.2f} | {time_text(r['worst_ms'])} |")
    return "\n".join(lines) + "\n"


def plain(report):
    """A table of times and ratios."""
    found = [p for p in PEERS if any(p in r.get("ms", {}) for r in report["results"])]
    return markdown(report, found, "keel")


# table: (JSON file, formatter)
TABLES = {"models": ("models", models), "memory": ("models", lambda r: "\n".join(memory(r["results"])) + "\n"), "own": ("models", own),
          "train": ("train", training), "train_conv": ("train_conv", plain), "loops": ("loops", plain), "calls": ("calls", calls),
          "hot": ("hot", hot), "busy": ("busy", busy)}


def tables(folder):
    """Without tables whose ratios vary too much, which are named."""
    for name, (source, make) in TABLES.items():
        path = folder / f"{source}.json"
        if not path.exists():
            continue
        try:
            yield name, make(json.loads(path.read_text()))
        except UnsettledError as e:
            print(f"{name}: {e}", file=sys.stderr)


def put(text, name, body):
    """The text with the table between the marks of that name."""
    return re.sub(rf"(<!-- figures: {name} -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}{body}{m[2]}", text, flags=re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--only", type=lambda s: s.split(","), default=list(SCRIPTS), help=", ".join(SCRIPTS))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--into", nargs="*", type=Path, default=[])
    args = parser.parse_args()
    if unknown := set(args.only) - set(SCRIPTS):
        parser.error(f"unknown name: {', '.join(sorted(unknown))}; the names are {', '.join(SCRIPTS)}")
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.only if args.measure else []:
        print(f"{name}: {measure(args.folder, name, args.rounds):.0f} s", flush=True)
    for name, body in tables(args.folder):
        if not args.into:
            print(f"<!-- figures: {name} -->\n{body}<!-- end -->\n")
        for path in args.into:
            path.write_text(put(path.read_text(), name, body))


if __name__ == "__main__":
    main()
