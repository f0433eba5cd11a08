"""Shared by fragments (bait.py, composites.py): fitting values, and details that may be wrong.

`d` is a Drawer; d.wrong marks a wrong detail of the fragment.
"""
from graphs import Type

WIDE = ("f32", "f32", "f32", "f64", "f16", "bf16")


def floats(d, least=0, dtypes=WIDE):
    """A float, existing or new."""
    found = [v for v in d.values if v.type.dtype in dtypes and len(v.type.dims) >= least]
    if found and d.chance(0.7):
        return d.one(found)
    return d.fresh(Type(d.one(dtypes), d.dims(d.one([least, least, least + 1, max(least, 2)]))))


def mostly(d, right, *others):
    if d.chance(0.96 if d.strict else 0.75):
        return right
    d.wrong = True
    return d.one([right, *others])


def itself(d, x):
    """x, or occasionally another value of its type."""
    d.wrong |= (other := d.chance(0.04 if d.strict else 0.2))
    return d.fresh(x.type, "plain") if other else x


def vector(d, like, n, kind="round"):
    return d.fresh(Type(like.type.dtype, (n,)), mostly(d, kind, "plain", "special"))
