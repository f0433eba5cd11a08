"""Whether optimised graphs are equivalent to the original: `Oracle(context).check(graph)` returns the fault, or None.

`Outcome` is one run: results, or the kind of failure; printed lines; final values of variables. The first run is of the original
graph on the reference device; `Base` keeps it, with the float64 result and the effect of one rounding per node. An exact pass
must give the same bits; others an error of at most twice the original's plus 4 units in the last place, with NaN and infinities
in the same places. Both hold for each kind of input and size of symbols.
"""
import re

import numpy as np
from elements import inputs, is_tame
from graphs import FLOATS, WIDTH, Noise
from operands import holds_floats

EXACT_RUNS = [("plain", 3), ("special", 3), ("special", 1), ("special", 17), ("plain", 0)]  # kind of inputs, size of symbols
CLOSE_RUNS = [("plain", 3), ("tame", 3), ("plain", 1), ("tame", 17), ("plain", 0)]
RANDOM_OPS = {"random", "random_uniform"}  # different numbers for each dtype


class Outcome:
    def __init__(self, values, failure, lines, nodes, variables):
        self.values, self.failure, self.lines, self.variables = values, failure, lines, variables
        self.nodes = nodes  # by name, the nodes that run; None: not recorded


class Different(Exception):
    pass


def check_passes(passes):
    for done in passes:
        if "error" in done or "skipped" in done:
            raise Different(f"pass {done['name']} failed: {done.get('error') or done['skipped']}")


def wide(arrays):
    return [a.astype(np.float64) if holds_floats(a) else a for a in arrays]


def has_inputs(graph, size):
    """Whether no parameter, such as one of b - 1 rows, would have a negative dim."""
    sizes = {s: size for s in graph.symbols()}
    return all(d >= 0 for t in graph.main.params.values() for d in t.sized(sizes))


class Oracle:
    def __init__(self, context, **options):
        """options: of all sessions. With timeout_ms an original that runs longer, such as an endless loop, is KeelError CANCELLED."""
        self.context, self.options, self.lines = context, options, []
        context.print_hook(lambda stream, line: self.lines.append(line))
        self.passes = context.report("passes")
        self.exact = [p["name"] for p in self.passes if p["exactness"] == 0]

    # -- runs
    def run(self, module, device, arrays, level=0, **options):
        from keel_abi import KeelError
        self.lines.clear()
        values, failure, nodes = [], None, None
        try:
            plan = module.session(device, level=level, **self.options, **options).prepare()
            nodes = self.looked_at(plan) if level else None
            values = [np.array(y) for y in plan.run(*arrays)]
        except KeelError as e:
            if e.code == "CANCELLED" and device == "reference" and not level:
                raise
            failure = e.code, e.message.split("\n")[0], e.node
        names = [v["name"] for v in module.info().get("variables", [])]
        return Outcome(values, failure, list(self.lines), nodes, [np.array(module.variable(n).read()) for n in names])

    def looked_at(self, plan):
        """The names of the nodes that run; no pass may have failed."""
        report = plan.report()
        check_passes(report["passes"])
        return {launch["node"] for launch in report["launches"]}

    def run_text(self, text, device, arrays, level=0, **options):
        return self.run(self.context.parse(text), device, arrays, level, **options)

    # -- optimised texts
    def optimized(self, text, device, **options):
        """The text after the passes; a second run must change nothing, and no pass may fail. For a device that only accepts short
        calls a second run may group more: the search continues after the refused node."""
        module = self.context.parse(text)
        made = self.rewrite(module, device, options)
        if device == "claims:1":
            return made
        again = self.context.parse(made)
        second = self.rewrite(again, device, options)
        if re.sub(" #.*", "", second) != re.sub(" #.*", "", made):
            raise Different(f"a second run of the passes for {device} changed something\n{made}\n-- again\n{second}")
        return made

    def rewrite(self, module, device, options):
        import ctypes as C
        import json

        from keel_abi import call, encode, lib
        from keel_abi import options as pairs
        out = C.c_void_p()
        call("keel_module_optimize", module, None, encode(device), *pairs(options), C.byref(out))
        report = json.loads(lib().keel_text_data(out, None))
        lib().keel_text_free(out)
        check_passes(report["passes"])
        return module.to_text()


class Base:
    """The original graph: texts, inputs, and outcomes, computed on first use."""

    def __init__(self, oracle, graph):
        self.oracle, self.graph, self.made = oracle, graph, {}
        self.normal = {}  # check -> its text without a mutant, which is right
        self.text, self.texts = graph.text(), {}
        self.wide = graph.text(wide=True)
        self.exact_runs, self.close_runs = ([(kind, size) for kind, size in runs if (size == 3 or graph.symbols()) and has_inputs(graph, size)]
                                            for runs in (EXACT_RUNS, CLOSE_RUNS))
        self.tame = is_tame(graph)
        self.has_wide = self.is_graph(self.wide)
        self.comparable = self.has_wide and not graph.ops() & RANDOM_OPS

    def is_graph(self, text):
        """With f64 for other floats; a default dtype may not fit any more."""
        from keel_abi import KeelError
        try:
            return bool(self.oracle.context.parse(text))
        except KeelError:
            return False

    def arrays(self, kind, size):
        key = ("arrays", kind, size)
        if key not in self.made:
            self.made[key] = inputs(self.graph, self.graph.seed, kind, {s: size for s in self.graph.symbols()})
        return self.made[key]

    def outcome(self, kind, size, how="as it is"):
        key = (how, kind, size)
        if key not in self.made:
            arrays = self.arrays(kind, size)
            if how == "as it is":
                self.made[key] = self.oracle.run_text(self.text, "reference", arrays)
            elif how == "wide":
                self.made[key] = self.oracle.run_text(self.wide, "reference", wide(arrays))
            else:  # the number of a perturbed run, in the original dtypes or in float64
                self.made[key] = self.disturbed(how, arrays)
        return self.made[key]

    def disturbed(self, how, arrays):
        number, tiny = how
        random = np.random.default_rng([self.graph.seed, number])
        text = self.graph.text(wide=True, noise=Noise(random, tiny))
        types = [t.dtype for t in self.graph.main.params.values()]
        moved = []
        for a, dtype in zip(wide(arrays), types):
            if dtype in FLOATS:
                with np.errstate(all="ignore"):
                    a = a * (1 + random.choice([-1, 1], a.shape) * (2 * WIDTH["f64"] if tiny else WIDTH[dtype]))
            moved.append(a)
        return self.oracle.run_text(text, "reference", moved)

    def spread(self, i, kind, size, tiny=False, count=3):
        """The tolerance of result i, and its stable elements: from perturbed runs."""
        truth = self.outcome(kind, size, "wide").values[i]
        runs = [self.outcome(kind, size, (n, tiny)) for n in range(count)]
        if any(r.failure for r in runs):
            return None, None
        found, steady = np.zeros(truth.shape), np.ones(truth.shape, bool)
        with np.errstate(all="ignore"):
            for r in runs:
                other = r.values[i]
                if truth.dtype.kind != "f":
                    steady &= other == truth
                    continue
                steady &= (np.isnan(other) == np.isnan(truth)) & (np.isinf(other) == np.isinf(truth))
                found = np.fmax(found, np.abs(other - truth))
        return np.nan_to_num(found, nan=0, posinf=0), steady
