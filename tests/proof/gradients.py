"""The gradient of an optimised graph and the optimised gradient graph, in float64, each against the gradient of the original
graph. Where two values tie, or a rounding decides, perturbed runs differ and the bound is loose."""
import ctypes as C

import numpy as np
from compare import one
from graphs import Noise
from keel_abi import KeelError, call
from oracle import Different, wide

RUN = ("plain", 3)
LEAST = 1e-12  # below this, a gradient has cancelled to 0
SLACK = 1000  # gradients are written in other orders, and cancel; a wrong gradient exceeds this bound by far in float64


def port(graph, result, i):
    out = C.c_uint32()
    call("keel_graph_port", graph, C.c_int32(result), C.c_uint32(i), C.byref(out), None)
    return out.value


def ports(graph):
    """Returns the floats among parameters and results."""
    counts = [C.c_uint32() for _ in range(4)]
    call("keel_graph_counts", graph, *[C.byref(c) for c in counts])
    both = [[port(graph, r, i) for i in range(counts[2 + r].value)] for r in (0, 1)]
    return [[v for v in values if graph.type(v)[0].kind == "f"] for values in both]


def with_gradient(context, text):
    """A module whose entry "grad" returns the gradient of the sum of all results by each parameter; None: there is none."""
    module = context.parse(text)
    graph = module.graph_of(None).copy("grad")
    xs, ys = ports(module.graph_of(None))
    if not xs or not ys:
        return None
    for i, d in enumerate(graph.gradient(ys, xs, zeros=True)):
        graph.result(f"d{i}", d)
    module.entry("grad", graph)
    return module


def run(module, arrays, level=0):
    return [np.array(y) for y in module.session("reference", entry="grad", level=level).prepare().run(*arrays)]


def gradients(base):
    o = base.oracle
    arrays = wide(base.arrays(*RUN))
    try:
        module = with_gradient(o.context, base.wide) if base.has_wide else None
        if module is None or base.outcome(*RUN, "wide").failure:
            return
        plain = run(module, arrays)
    except KeelError:
        return
    better = o.optimized(base.wide, "cpu", level=2, passes="-layout,-epilogue,-map")
    try:
        others = {"of the optimised graph": run(with_gradient(o.context, better), arrays), "optimised": run(with_gradient(o.context, base.wide), arrays, level=2)}
    except KeelError as e:
        raise Different(f"gradient of the optimised graph: {e}") from e
    try:
        disturbed = [shaken(base, arrays, n) for n in range(3)]
    except KeelError:  # an assertion that holds only for the unperturbed numbers
        return
    for what, got in others.items():
        for i, (a, b) in enumerate(zip(plain, got, strict=True)):
            compare(f"gradient {i} {what}", a, b, [d[i] for d in disturbed])


def shaken(base, arrays, number):
    random = np.random.default_rng([base.graph.seed, number])
    text = base.graph.text(wide=True, noise=Noise(random, True))
    with np.errstate(all="ignore"):
        moved = [a * (1 + random.choice([-1, 1], a.shape) * 2.0**-51) if a.dtype.kind == "f" else a for a in arrays]
    return run(with_gradient(base.oracle.context, text), moved)


def compare(what, a, b, disturbed):
    with np.errstate(all="ignore"):
        steady = np.all([np.isfinite(d) & np.isfinite(a) for d in disturbed], axis=0) & np.isfinite(b)
        steady &= (np.abs(a) > LEAST) | (np.abs(b) > LEAST)
        spread = np.nan_to_num(np.max([np.abs(d - a) for d in disturbed], axis=0), nan=0, posinf=0)
    try:
        one(a, b, a, spread, steady, [], False, SLACK)
    except Different as e:
        raise Different(f"{what}: {e}") from e
