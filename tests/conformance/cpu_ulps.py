"""Errors of the unary ops of f32 on the device cpu, in units in the last place, against NumPy and the C library in f64.

    cpu_ulps.py STEP [OP...]     every STEP-th of the 2^32 numbers; 1: all. KEEL_CPU_ISA chooses the class of processor
    cpu_ulps.py STEP region:OP   the same of finite numbers, after a product with 1 in a oneDNN region, if KEEL_CPU_PRODUCTS=onednn

Prints a line for each op: the op, its largest error in multiples of its bound, in ulp, the operand. Exits with 1 if a bound is exceeded.
"""
import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import keel_abi  # noqa: E402
from regions import as_call  # noqa: E402

BLOCK = 1 << 21
LAST = 1 << 32
ROWS, SIDE = 512, 64  # of a product that oneDNN computes


def each(function):
    return lambda x: np.fromiter(map(function, x.tolist()), np.float64, x.size)


def gelu(x):
    return x * each(math.erfc)(x * -math.sqrt(0.5)) / 2


def logistic(x):
    return 1 / (1 + np.exp(-x))


def gelu_tanh(x):
    return x * logistic(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


# Oracle in f64 and bound in ulp; 0: rounded once.
OPS = {
    "neg": (np.negative, 0), "abs": (np.abs, 0), "sign": (np.sign, 0), "floor": (np.floor, 0), "ceil": (np.ceil, 0), "round": (np.rint, 0),
    "relu": (lambda x: np.where(x < 0, 0, x), 0), "square": (np.square, 0), "sqrt": (np.sqrt, 0), "reciprocal": (lambda x: 1 / x, 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5), "exp": (np.exp, 2.5), "log": (np.log, 2.5), "log1p": (np.log1p, 2.5), "sin": (np.sin, 2.5),
    "cos": (np.cos, 2.5), "tanh": (np.tanh, 2.5), "erf": (each(math.erf), 2.5), "sigmoid": (logistic, 2.5), "softplus": (softplus, 2.5),
    "silu": (lambda x: x * logistic(x), 2.5), "gelu": (gelu, 2.5), "gelu.tanh": (gelu_tanh, 2.5),
}
# Where a branch, a denormal result or an infinity begins, or a sweep found the largest error, with their neighbours.
ENDS = np.float32([0, 1e-45, 1.1754944e-38, 1e-8, 2.4414062e-4, 0.061199747, 0.061636437, 0.14, 0.25, 0.3125, 0.5, 0.75, 0.9375, 1, 1.5, 2, 2.1875, 2.5, 3, 4, 4.996174, 4.99726, 4.998565, 5, 5.1, 5.5, 6, 7, 9, 9.01, 11, 11.71, 13, 14.4,
                   14.75, 15.9, 16.6357, 16.7, 17.4, 20, 36, 40, 85, 87.33655, 88.02969, 88.72284, 91, 103.28, 103.97208, 104, 133, 1e6, 2.0**24, 2.0**31, 3.4028235e38, np.inf, np.nan])


def near_ends():
    bits = ENDS.view(np.uint32)[:, None] + np.arange(-64, 65).astype(np.uint32)
    both = np.concatenate([bits.ravel(), bits.ravel() ^ np.uint32(1 << 31)])
    return both.view(np.float32)


def error(got, x, op):
    """(multiples of the bound, ulp, operand) where they are largest. A result that is the nearest number has no error; NaN is NaN."""
    oracle, bound = OPS[op]
    with np.errstate(all="ignore"):
        wanted = oracle(x.astype(np.float64))
        nearest = wanted.astype(np.float32)
        off = np.flatnonzero((got != nearest) & ~(np.isnan(got) & np.isnan(nearest)))
        if off.size == 0:
            return 0.0, 0.0, float(x[0])
        ulps = abs(got[off] - wanted[off]) / np.spacing(np.minimum(abs(nearest[off]), np.finfo(np.float32).max))
        ulps[np.isnan(ulps)] = np.inf
    i = int(ulps.argmax())
    return float(ulps[i] / (bound or 1e-9)), float(ulps[i]), float(x[off[i]])


def blocks(step):
    yield near_ends()
    for first in range(0, LAST, BLOCK * step):
        yield np.arange(first, min(LAST, first + BLOCK * step), step, dtype=np.uint64).astype(np.uint32).view(np.float32)


def node(op):
    return (op.split(".")[0], {"tanh": op == "gelu.tanh"}) if "gelu" in op else (op, {})


def worst(context, op, step):
    name, attributes = node(op)
    return max(error(np.array(context.apply("cpu", name, x, **attributes)), x, op) for x in blocks(step))


def worst_in_region(context, op, step):
    name, attributes = node(op)
    zeros, one, worst = np.zeros((ROWS, SIDE), np.float32), np.eye(SIDE, dtype=np.float32), (0.0, 0.0, 0.0)
    plan = as_call(context, lambda g, x, w: g.node(name, g.node("matmul", x, w), **attributes), [zeros], [one])
    impl = plan.report(zeros)["launches"][0]["impl"]
    if impl != "oneDNN region":
        sys.exit(f"the product ran by {impl!r}, not in a oneDNN region: set KEEL_CPU_PRODUCTS=onednn")
    for x in blocks(step):
        x = np.where(np.isfinite(x), x, 0)
        padded = np.pad(x, (0, -x.size % zeros.size))
        for part in np.split(padded, padded.size // zeros.size):
            worst = max(worst, error(np.array(plan.run(part.reshape(ROWS, SIDE))[0]).ravel(), part, op))
    return worst


def main(step, *ops):
    context, wrong = keel_abi.Context(), False
    for op in ops or OPS:
        measure = worst_in_region if op.startswith("region:") else worst
        times, ulps, x = measure(context, op.removeprefix("region:"), int(step))
        print(f"{op} {times:.3f} {ulps:.3f} {x!r}", flush=True)
        wrong |= times > 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
