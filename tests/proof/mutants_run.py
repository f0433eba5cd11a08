"""Runs mutants of the passes (tools/mutants.py) and reports which seed and check, or which known case, detects each.

`Trial` draws the graphs and records, without a mutant, which sites in the passes each graph and each known case reaches; each
must hold. `Trial.try_all` then forks for each mutant, because some crash or hang, and runs only the graphs and cases that reach
its site. A mutant is detected if a test of the suite would fail: a check fails, a known case contradicts its file (a different
text alone is not enough), it crashes, or it takes LONGEST seconds of processor time instead of milliseconds. Effects of a busy
machine, such as a long wait or lack of memory, do not count.
"""
import ctypes as C
import faulthandler
import json
import os
import resource
import signal
import time
import zlib
from pathlib import Path

import conftest
import keel_abi
from bait import BAIT
from becomes import becomes, elementwise, grouped
from checks import PASSES
from draw import draw, draw_bait
from oracle import Base, Different, Oracle
from proof import catalogue, new_context

FOLDER = keel_abi.BUILD / "tests" / "proof" / "mutants"
LONGEST = 20  # seconds of processor time for one mutant; the wall-clock limit is ten times that


class Switch:
    """The active mutant of the built passes, and the sites that they reached."""

    def __init__(self):
        self.names = {int(k): v for k, v in json.loads((FOLDER / "mutants.json").read_text()).items()}
        library = C.CDLL(str(FOLDER / "keel-mutants.so"))
        self.number = C.c_int.in_dll(library, "keel_mutant")
        self.hit = (C.c_ubyte * (max(self.names) + 1)).in_dll(library, "keel_mutant_hit")

    def reached(self, do):
        C.memset(C.addressof(self.hit), 0, len(self.hit))
        do()
        return [n for n, hit in enumerate(bytes(self.hit)) if hit]

    def sample(self, count, without=()):
        """The sample does not depend on other mutants."""
        named = [n for n in self.names if self.names[n] not in without]
        return sorted(named, key=lambda n: zlib.crc32(self.names[n].encode()))[:count]


def explained(still_open=False):
    """name: why it has no observable effect, or why it is not detected yet."""
    lines = (Path(__file__).resolve().parent / "explained.txt").read_text().splitlines()
    listed = dict(line.split(" -- ", 1) for line in lines if line and not line.startswith("#"))
    return {name: why for name, why in listed.items() if why.startswith("OPEN") == still_open}


def oracle():
    return Oracle(new_context(FOLDER / "keel-mutants.so"))


class Trial:
    def __init__(self, seeds, cases, length=18, alone=12):
        self.switch = Switch()
        self.by_mutant = {n: ([], []) for n in self.switch.names}
        plain = self.oracle = oracle()
        ops = catalogue(plain.context)
        for seed in seeds:
            self.add_graph(Base(plain, draw(plain.context, ops, seed, length).graph), f"seed {seed}")
        for name in sorted(BAIT):
            for seed in range(alone):
                self.add_bait(plain.context, ops, name, seed)
        for name, operands in elementwise(ops):
            task = lambda o, name=name, operands=operands: grouped(o, name, operands)
            self.note(lambda: task(plain), f"group with {name}", task)
        for case in cases:
            for n in self.switch.reached(lambda c=case: c.hold(plain)):
                self.by_mutant[n][1].append(case)

    def add_graph(self, base, title):
        for check in PASSES:
            def run(base=base, check=check):
                base.normal[check.__name__] = check(base)
            self.note(run, f"{title}, {check.__name__}", lambda o, base=base, check=check: again(base, check, o))

    def add_bait(self, context, ops, name, seed):
        graph, wanted = draw_bait(context, ops, name, seed)
        if graph is not None and graph.main.results:
            self.add_graph(Base(self.oracle, graph), f"{name} {seed}")
        if wanted is not None:
            self.note(lambda: becomes(self.oracle, graph, wanted), f"{name} {seed}", lambda o: becomes(o, graph, wanted))

    def note(self, run, title, task):
        for n in self.switch.reached(run):
            self.by_mutant[n][0].append((title, task))

    # -- one mutant, in its own process
    def by_graphs(self, n):
        o = oracle()
        for title, task in self.by_mutant[n][0]:
            try:
                task(o)
            except Different as e:
                return f"{title}: {str(e).splitlines()[0][:90]}"
        return ""

    def by_cases(self, n):
        o = oracle()
        for case in self.by_mutant[n][1]:
            try:
                case.hold(o)
            except (Different, AssertionError) as e:
                return f"{case.title}: {(str(e) or 'another result').splitlines()[0][:90]}"
        return ""

    def child(self, n, how, out):
        faulthandler.disable()  # some crash, and pytest would report it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, 3 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST + 5))
        signal.alarm(10 * LONGEST)
        self.switch.number.value = n
        try:
            said = how(n)
        except MemoryError:
            said = ""
        except Exception as e:  # a test would fail
            said = f"raises {type(e).__name__}: {str(e).splitlines()[0][:90] if str(e) else ''}"
        os.write(out, said.encode())
        os._exit(0)

    def start(self, n, how):
        inside, out = os.pipe()
        child = os.fork()
        if not child:
            try:
                self.child(n, how, out)
            finally:
                os._exit(1)
        os.close(out)
        return child, inside

    def try_all(self, numbers, jobs=2):
        """Returns {mutant: (message of the graphs, message of the cases)}; "" if not detected."""
        waiting = [(n, place) for n in numbers for place in (0, 1) if self.by_mutant[n][place]]
        found, running = {n: ["", ""] for n in numbers}, {}
        while waiting or running:
            while waiting and len(running) < jobs:
                n, place = waiting.pop(0)
                child, inside = self.start(n, (self.by_graphs, self.by_cases)[place])
                running[child] = n, place, inside
            child, status = os.wait()
            n, place, inside = running.pop(child)
            with os.fdopen(inside) as said:
                found[n][place] = said.read() or ("" if status in (0, signal.SIGALRM) else f"ends with signal {status & 127} or status {status >> 8}")
        return {n: tuple(v) for n, v in found.items()}


def again(base, check, o):
    base.oracle = o
    check(base)


class Case:
    """A known case of tests/passes: text, call of the pass, and assertion: fits(text before, text after, normal)."""

    def __init__(self, title, text, device, only, fits):
        self.title, self.text, self.device, self.only, self.fits = title, text, device, only, fits

    def hold(self, o):
        def normal(text):
            return o.context.parse(text).to_text()
        self.fits(normal(self.text), o.optimized(self.text, self.device, passes=self.only, level=3), normal)


def known_cases():
    import test_ahead
    import test_inline
    import test_loops
    import test_text
    import test_within
    for case in test_text.all_cases():
        name, device, constants, params, body, wanted = case.values
        yield Case(case.id, test_text.whole(constants, params, body), test_text.DEVICES.get(name, "reference").format(device), name,
                   lambda before, after, normal, name=name, rest=case.values[2:]: test_text.fits(name, after, *rest, normal))
    for title, body, *left in test_loops.CASES:
        yield Case(f"loop: {title}", test_loops.text(body), "reference", "loop",
                   lambda before, after, normal, left=left: test_loops.fits(before, after, *left))
    for title, main, *left in test_ahead.CASES:
        yield Case(f"ahead: {title}", test_ahead.whole(main), "reference", "ahead",
                   lambda before, after, normal, left=left: test_ahead.fits(before, after, *left))
    for title, main, *left in test_within.CASES:
        yield Case(f"within: {title}", test_within.whole(main), "cpu", "within",
                   lambda before, after, normal, left=left: test_ahead.fits(before, after, *left))
    for title, device, head, body, left in test_inline.CASES:
        yield Case(f"inline: {title}", test_inline.text(head, body), device, "inline",
                   lambda before, after, normal, left=left: test_inline.fits(after, left))


def report(trial, found, seconds):
    by_graphs = [n for n, (g, _) in found.items() if g]
    by_cases = [n for n, (_, c) in found.items() if c]
    both = set(by_graphs) | set(by_cases)
    left = [n for n in found if n not in both]
    yield (f"{len(found)} mutants: {len(by_graphs)} seen by random graphs, {len(by_cases)} by known cases, {len(both)} by either; "
           f"{len(left)} by none; {seconds:.0f} s")
    for n in left:
        graphs, cases = trial.by_mutant[n]
        yield f"  left: {trial.switch.names[n]}  [{len(graphs)} checks and {len(cases)} cases reach it]"


def main():
    import argparse
    options = argparse.ArgumentParser(description="Tries mutants of the passes.")
    options.add_argument("--seeds", type=int, default=120)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--count", type=int, default=100, help="how many mutants; 0: all")
    options.add_argument("--all", action="store_true", help="print which check detects each")
    given = options.parse_args()
    begin = time.monotonic()
    trial = Trial(range(given.first, given.first + given.seeds), list(known_cases()))
    print(f"{time.monotonic() - begin:.0f} s to run {given.seeds} graphs as they are", flush=True)
    found = trial.try_all(trial.switch.sample(given.count or len(trial.switch.names), () if given.all else explained()))
    for n, (graphs, cases) in found.items() if given.all else ():
        print(f"{trial.switch.names[n]}\n    {graphs or '-'}\n    {cases or '-'}")
    print("\n".join(report(trial, found, time.monotonic() - begin)))


if __name__ == "__main__":
    main()
