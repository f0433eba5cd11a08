"""Comparison of two outcomes of a graph: bit by bit, or against float64."""
import re

import numpy as np
from draw import MATRIX_OPS
from operands import holds_floats, same_bits
from oracle import Different

LARGE = {"float32": 1e37, "float64": 1e300, "float16": 6e3, "bfloat16": 1e37}
SMALL = {"float16": 1e-3, "bfloat16": 1e-36, "float32": 1e-36, "float64": 1e-290}
OF_FACTORS = 16  # units in the last place of the largest element: the error of factors and spectra of a small matrix
MANY_RUNS = 32  # perturbed runs that must agree on an integer that another device or the passes changed
ULP = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def same_failure(expected, got, text):
    """Both ran, or both failed in the same way. A failure may disappear with the node that failed."""
    if expected.failure and not got.failure:
        name = expected.failure[2]
        if name and (name not in got.nodes if got.nodes is not None else f"{name} = " not in text):
            return False
        if not name and got.nodes is None and f" = {expected.failure[1].split(':')[0]}(" not in text:  # a size check
            return False
    if bool(expected.failure) != bool(got.failure) or (expected.failure and expected.failure[0] != got.failure[0]):
        raise Different(f"failure: {expected.failure} became {got.failure}")
    return not expected.failure


def words(lines):
    return [re.sub(r"[-+]?(?:nan|inf|[\d.]+(?:e[-+]?\d+)?)", "#", line) for line in lines]


def gone(expected, got):
    """The failing node was removed: later nodes now run."""
    return expected.failure and not got.failure


def exactly(expected, got, text):
    ran = same_failure(expected, got, text)
    if not gone(expected, got) and expected.lines != got.lines:
        raise Different(f"printed {expected.lines}, then {got.lines}")
    for a, b in zip([*expected.values, *expected.variables], [*got.values, *got.variables], strict=True) if ran else ():
        if not same_bits(a, b):
            raise Different(f"bits: {a} became {b}")


def closely(base, expected, got, text, kind, size, more=(), tiny=False, finite=False):
    """more: other outcomes of the original graph, such as another device's, with errors that are tolerated too. finite: another
    device's outcome, with sums in a different order, so NaN and infinities are ignored."""
    ran = same_failure(expected, got, text)
    if not gone(expected, got) and words(expected.lines) != words(got.lines):
        raise Different(f"printed {expected.lines}, then {got.lines}")
    if not ran:
        return
    truth = base.outcome(kind, size, "wide")
    if truth.failure:
        return
    for i, (a, b, t) in enumerate(zip(expected.values, got.values, truth.values, strict=True)):
        spread, steady = base.spread(i, kind, size, tiny)
        if spread is not None and not holds_floats(a) and not same_integers(a, b, t, steady):
            steady = base.spread(i, kind, size, tiny, MANY_RUNS)[1]  # few runs miss some of the elements that a rounding decides
        if spread is not None and holds_floats(a) and base.graph.ops() & MATRIX_OPS:
            spread, steady = of_factors(a, t, spread, steady)
        if spread is not None:
            one(a, b, t, spread, steady, [o.values[i] for o in more if not o.failure], base.tame and not finite, 16 if finite else 1)


def of_factors(a, t, spread, steady):
    """A perturbation multiplies a matrix by one number, to which factors hardly react; and float64 has the errors of f64 itself.
    Vectors of equal eigenvalues are arbitrary: they follow any perturbation."""
    unit, largest = ULP[a.dtype.name], np.abs(np.where(np.isfinite(t), t, 0)).max(initial=0)
    arbitrary = spread.max(initial=0) > unit**0.5 * largest
    return spread + OF_FACTORS * unit * largest, steady & (not arbitrary)


def same_integers(a, b, t, steady):
    steady = steady & (a == t)
    return np.array_equal(a[steady], b[steady])


def one(a, b, t, spread, steady, others, tame, slack=1):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise Different(f"{a.dtype}{a.shape} became {b.dtype}{b.shape}")
    if not holds_floats(a):
        if not same_integers(a, b, t, steady):
            raise Different(f"{a} became {b}")
        return
    with np.errstate(all="ignore"):
        low, high = SMALL[a.dtype.name], LARGE[a.dtype.name]
        unit, a, b, others = ULP[a.dtype.name], *(x.astype(np.float64) for x in (a, b)), [o.astype(np.float64) for o in others]
        inside = ~(np.abs(t) > high) & ~(np.abs(a) > high) & ((np.abs(t) > low) | (t == 0))
        steady = steady & (inside | np.isinf(t)) & (np.isnan(a) == np.isnan(t)) & (np.isinf(a) == np.isinf(t))
        for o in others:
            steady &= (np.isnan(a) == np.isnan(o)) & (np.isinf(a) == np.isinf(o))
        if tame and not np.array_equal(np.isnan(a[steady]), np.isnan(b[steady])):
            raise Different(f"NaN elsewhere: {a} became {b}")
        if tame and not np.array_equal(np.where(np.isinf(a), a, 0)[steady], np.where(np.isinf(b), b, 0)[steady]):
            raise Different(f"infinity elsewhere: {a} became {b}")
        err = lambda x: np.where(np.isfinite(t) & steady & (np.isfinite(x) if not tame else True), np.abs(x - t), 0)
        before = np.max([err(x) for x in (a, *others)], axis=0)
        sizes = np.where(np.isfinite(t) & steady & np.isfinite(a), np.abs(t), 0)
        worst = before.max(initial=0) + unit * sizes.max(initial=0)  # a sum with cancellation has the error of its largest term
        allowed = 2 * (before + 2 * spread) + 4 * unit * sizes + worst
        allowed = slack * allowed
        if not (err(b) <= allowed).all():
            at = np.unravel_index(np.argmax(err(b) - allowed), t.shape)
            raise Different(f"error: at {at} {a[at]} became {b[at]}, float64 says {t[at]}; allowed {allowed[at]}\n{a}\n{b}\n{t}")
