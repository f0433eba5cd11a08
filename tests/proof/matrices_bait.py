"""Factors and spectra of matrices. Of a random matrix they often do not exist or depend on rounding errors, so these ops are
drawn only here: of matrices that are well conditioned, with eigenvalues that are well apart. See bait.py for the return values."""
import numpy as np
from draw import MATRIX_OPS
from drawer import Refused
from graphs import Node, Type


def regular(d):
    """A symmetric matrix with eigenvalues near 4, 8, 12, ...: products of lines below 1 / 2 are at most 1."""
    if not d.top:
        raise Refused("the diagonal is a constant")
    dtype, n = d.one(["f32", "f32", "f64"]), d.one([1, 2, 3, 4])
    x = d.apply("tanh", d.fresh(Type(dtype, (*d.one([(), (), (2,), ("b",), (0,)]), n, n)), "plain"))
    x = d.apply("mul", x, "0.5")
    diagonal = d.constant(Type(dtype, (n, n)), np.diag(4.0 * np.arange(1, n + 1)))
    return d.turn("add", d.apply("matmul", x, x, tb=True), diagonal)


def matrices(d):
    a = regular(d)
    results = []
    for op in d.random.permutation(sorted(MATRIX_OPS))[:3]:
        ins = [a.name]
        if "solve" in op:
            ins.append(d.fresh(Type(a.type.dtype, (*a.type.dims[:-1], d.one([0, 1, 2, 3]))), "plain").name)
        flags = [f["name"] for f in d.shared.ops[op]["attributes"] if f["type"] == "bool"]
        results += d.add(Node(str(op), ins, {f: d.one(["true", "false"]) for f in flags}))
    d.apply(d.one(["neg", "relu", "exp"]), d.one(results))
    return f"~{op}" if results[-1].name in d.block.nodes[-1].ins else None
