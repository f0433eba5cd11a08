"""Searches for graphs that the passes break: `proof.py [--seed N] [--count N | --minutes M] [--keep FOLDER]`.

Shrinks, prints and keeps each one as text; the exit status is then 1. Needs KEEL_BUILD, the build folder.
"""
import argparse
import sys
import time
from pathlib import Path

import conftest
import keel_abi
from draw import draw
from kept import CHECKS, cause, keep, smaller
from oracle import Oracle
from tested_devices import DEVICES


def catalogue(context):
    return {op["name"]: op for op in context.report("ops")}


def new_context(passes=None):
    """A context with all devices of the build, and a device that accepts calls for grouping passes."""
    context = keel_abi.Context(plugins=False, threads=1)  # a process without threads of its own may fork
    for plugin in dict.fromkeys(("reference", "cpu", *DEVICES)):
        context.load_plugin(keel_abi.BUILD / "lib/keel/plugins" / f"keel-{plugin}.so")
    context.load_plugin(passes or keel_abi.BUILD / "lib/keel/plugins" / "keel-passes.so")
    for rules in sorted((keel_abi.BUILD / "lib/keel/plugins").glob("*.rules")) if passes is None or "mutants" in str(passes) else ():
        context.load_plugin(rules)
    context.load_plugin(keel_abi.BUILD / "tests" / "passes" / "keel-claims.so")
    return context


def new_oracle():
    return Oracle(new_context(), timeout_ms=60_000)


def look(seeds, folder, checks, length):
    bad, oracle, ops = 0, new_oracle(), None
    for seed in seeds:
        ops = ops or catalogue(oracle.context)
        graph = draw(oracle.context, ops, seed, length).graph
        text = cause(oracle, graph, checks)
        if text:
            bad, oracle = bad + 1, new_oracle()  # a failed pass stays off
            small = smaller(new_oracle, graph, text)
            text = cause(new_oracle(), small, checks) or text
            print(f"seed {seed}: {text[:2000]}\n{small.text()}kept as {keep(small, text, folder)}\n", flush=True)
    return bad


def until(first, count, minutes):
    end = time.monotonic() + 60 * minutes
    seed = first
    while seed < first + count or time.monotonic() < end:
        yield seed
        seed += 1
    print(f"seeds {first} to {seed - 1}")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--count", type=int, default=0)
    options.add_argument("--minutes", type=float, default=0)
    options.add_argument("--length", type=int, default=18, help="nodes of a graph")
    options.add_argument("--keep", type=Path, default=Path("found"))
    options.add_argument("--checks", default=",".join(c.__name__ for c in CHECKS))
    given = options.parse_args()
    chosen = [c for c in CHECKS if c.__name__ in given.checks.split(",")]
    bad = look(until(given.seed, given.count or (0 if given.minutes else 100), given.minutes), given.keep, chosen, given.length)
    print(f"{bad} graphs failed")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
