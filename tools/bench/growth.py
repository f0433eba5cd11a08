#!/usr/bin/env python3
"""Scaling of loading, optimising, planning and running with the number of nodes: microseconds and bytes per node.

    .venv/bin/python tools/bench/growth.py [NAME...] [--nodes 1000,10000,100000,1000000] [--level 2] [--json FILE] [--plot FILE.svg]

Each figure comes from a separate process (`keel bench`). A figure of linear growth is constant from row to row; the last
lines give the exponent of n between the two largest graphs.
"""
import argparse
import json
import math
import os
import subprocess
import tempfile
from pathlib import Path

from plot import svg

BUILD = Path(os.environ.get("KEEL_BUILD", Path(__file__).resolve().parents[2] / "build" / "release"))
OPS = ("neg({})", "add({}, x)", "tanh({})", "mul({}, x)", "relu({})", "sub({}, x)", "exp({})", "maximum({}, x)")
FIGURES = {"load": "load, µs", "prepare": "passes and plan, µs", "first": "first run, µs",
           "run": "run, µs", "memory": "memory, bytes"}  # of a node


def block(number, start, count, indent="  "):
    """A chain of elementwise nodes. -> lines, name of the last value."""
    names = [start] + [f"{number}_{i}" for i in range(count)]
    return [f"{indent}{b} = {OPS[i % len(OPS)].format(a)}" for i, (a, b) in enumerate(zip(names, names[1:]))], names[-1]


def chain(n):
    lines, last = block("n", "x", n)
    return [], lines, last


def dense(n):
    """Layers of three nodes, each with its own weight."""
    data = " = [" + ", ".join(["0.25"] * 16) + "]"
    constants, lines, last = [], [], "x"
    for i in range(n // 3):
        constants.append(f"const w{i}: f32[4, 4]{data}")
        lines += [f"  m{i} = matmul({last}, w{i})", f"  a{i} = add(m{i}, x)", f"  r{i} = relu(a{i})"]
        last = f"r{i}"
    return constants, lines, last


def wide(n):
    """Nodes that all read one value, then a tree of additions."""
    names = [f"l{i}" for i in range(n // 2)]
    lines = [f"  {name} = mul(x, {i}.5)" for i, name in enumerate(names)]  # all different
    while len(names) > 1:
        pairs = list(zip(names[::2], names[1::2]))
        sums = [f"{a}s" for a, _ in pairs]
        lines += [f"  {s} = add({a}, {b})" for s, (a, b) in zip(sums, pairs)]
        names = sums + names[2 * len(pairs):]
    return [], lines, names[0]


def nested(head, tail, around, inside):
    """A chain of nodes with bodies of the given number of nodes."""
    def make(n):
        lines, last = [], "x"
        for i in range(n // (inside + 2)):
            inner, result = block("b", "s", inside, "      ")
            lines += [f"  o{i} = " + head.format(last), "    " + around, *inner, f"      yield {result} }}{tail}"]
            last = f"o{i}"
        return [], lines, last
    return make


def effects(n):
    """Variable reads, writes and assertions between other nodes."""
    lines, last = [], "x"
    for i in range(n * 100 // 801):  # of 8 nodes, and each hundredth of 9
        more, last = block(f"e{i}", last, 4)
        lines += [*more, f"  k{i} = is_finite({last})", f"  q{i} = reduce_min(k{i}){{axes=[0, 1]}}",
                  f"  w{i} = read(v)", f"  assign(v, {last})"]
        lines += [f"  assert(q{i})"] if i % 100 == 0 else []
    return ["var v: f32[4, 4] = [" + ", ".join(["0.25"] * 16) + "]"], lines, last


SHAPES = {
    "chain": (chain, "elementwise nodes, one behind the other"),
    "dense": (dense, "product, sum and relu, a weight for each layer"),
    "wide": (wide, "nodes that read one value, and a tree of sums"),
    "scans": (nested("scan({0}, x){{carry=1, invariants=1, length=1}}", "", "body(s, x) {", 18),
              "scans, each with a body of 18 nodes"),
    "conds": (nested("cond(flag, {0}, x)", " else(s, x) { yield s }", "then(s, x) {", 38),
              "conditions, each with a branch of 38 nodes"),
    "effects": (effects, "reads, writes and assertions among elementwise nodes"),
}


def text(shape, n):
    declared, lines, last = SHAPES[shape][0](n)
    flag = ", flag: bool[]" if shape == "conds" else ""
    return "\n".join(["keel 1", *declared, f"fn @main(x: f32[4, 4]{flag}) {{", *lines, f"  return {last}", "}",
                      f"entry main = @main (x{flag and ', flag'})", ""])


def keel(*arguments):
    done = subprocess.run([BUILD / "bin" / "keel", "--json", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"keel {' '.join(map(str, arguments))}: {done.stderr}")
    return json.loads(done.stdout or "{}")


def measure(folder, shape, n, level):
    source, path = folder / "g.keelt", folder / "g.keel"
    source.write_text(text(shape, n))
    keel("convert", source, path)
    feeds = ["-i", "x=randn"] + (["-i", "flag=1"] if shape == "conds" else [])
    got = keel("--threads", 1, "bench", path, *feeds, "--level", level, "-n", max(3, 30000 // n), "--warmup", 1)
    return {"load": 1e3 * (got["load_ms"] - got["prepare_ms"]) / n, "prepare": 1e3 * got["prepare_ms"] / n,
            "first": 1e3 * got["first_ms"] / n, "run": 1e3 * got["p50_ms"] / n, "memory": got["rss_peak_bytes"] / n}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SHAPES))
    parser.add_argument("--nodes", default="1000,10000,100000,1000000")
    parser.add_argument("--level", type=int, default=2, help="of the passes; 0: none")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, help="curves of all figures over the number of nodes: flat is linear")
    args = parser.parse_args()
    sizes, found = [int(n) for n in args.nodes.split(",")], {}
    print("| graph | nodes | " + " | ".join(FIGURES.values()) + " |\n" + "| --- " * (2 + len(FIGURES)) + "|")
    for shape in args.names or SHAPES:
        rows = found[shape] = {}
        with tempfile.TemporaryDirectory() as folder:
            for n in sizes:
                rows[n] = measure(Path(folder), shape, n, args.level)
                print(f"| {shape} | {n:,} | " + " | ".join(f"{rows[n][k]:,.3g}" if k != "memory" else f"{rows[n][k]:,.0f}"
                                                           for k in FIGURES) + " |", flush=True)
        if len(sizes) > 1:
            a, b = sizes[-2:]
            power = [1 + math.log(rows[b][k] / rows[a][k]) / math.log(b / a) for k in FIGURES]
            print(f"| {shape} | power | " + " | ".join(f"{p:.2f}" for p in power) + " |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    if args.plot:
        args.plot.write_text(svg({f"{title} a node": {shape: {n: row[k] for n, row in rows.items()} for shape, rows in found.items()}
                                  for k, title in FIGURES.items()}))


if __name__ == "__main__":
    main()
