"""Draws random ONNX graphs from tables of operators (rows_*.py).

A row names an operator, the dtypes of its main operand, the first opset, and a function that draws operands and attributes so that
the node is valid. `graph(seed)` draws an opset and one to eight nodes; operands are results of earlier nodes or new inputs. Values
are computed at once by the oracles (oracles.py), so no shape has to be inferred here; a node that no oracle takes is dropped.
"""
import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
from onnx import NodeProto, helper

BF16 = np.dtype(ml_dtypes.bfloat16)
HALF, SINGLE, DOUBLE = (np.dtype(x) for x in "efd")
WIDE = [SINGLE, DOUBLE]
FLOATS = [SINGLE, DOUBLE, HALF, BF16]
SIGNED, UNSIGNED = ([np.dtype(x) for x in names] for names in ("bhil", "BHIL"))
INTS = SIGNED + UNSIGNED
NUMBERS, BOOL = FLOATS + INTS, [np.dtype(bool)]
ALL = NUMBERS + BOOL
LONG, INT = np.dtype(np.int64), np.dtype(np.int32)
OPSETS = [13, 15, 17, 18, 19, 20, 21, 22, 23, 24]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, 60000.0, 0.5, -1.5, 2.5]


def finite(array):
    """No NaN or infinity, on which pools and sums with padding differ."""
    return not is_float(array.dtype) or bool(np.isfinite(array.astype(np.float64)).all())


def is_float(dtype):
    return dtype.kind == "f" or dtype == BF16


@dataclass
class Row:
    op: str
    dtypes: list
    make: Callable  # (Draw, dtype) -> operands, attributes
    since: int = 1
    results: int = 1
    domain: str = ""
    before: int = 1000


@dataclass
class Graph:
    seed: int
    opset: int
    inputs: dict = field(default_factory=dict)  # name -> array
    constants: dict = field(default_factory=dict)
    nodes: list = field(default_factory=list)  # NodeProto


class Skip(Exception):
    """These draws make no valid node."""


class Draw:
    def __init__(self, seed, opset=None):
        self.random = np.random.default_rng(seed)
        self.opset = opset or int(self.pick(OPSETS))
        self.graph = Graph(seed, self.opset)
        self.values = {}  # all values by name
        self.zeros = self.chance(0.15)  # whether dims may be 0
        self.specials = self.chance(0.25)

    # ---- numbers
    def pick(self, items):
        items = list(items)
        if not items:
            raise Skip
        return items[int(self.random.integers(len(items)))]

    def chance(self, p):
        return self.random.uniform() < p

    def int(self, least, most):
        return int(self.random.integers(least, most + 1))

    def some(self, items, least=0):
        """A part of the items, in order."""
        items = list(items)
        count = self.int(min(least, len(items)), len(items))
        return sorted(self.random.choice(len(items), count, replace=False).tolist())

    def size(self):
        return self.pick([0, 1, 2, 3] if self.zeros else [1, 1, 2, 3, 4, 5])

    def dims(self, least=0, most=4):
        return tuple(self.size() for _ in range(self.int(least, most)))

    def axis(self, rank, beyond=0):
        """Of both signs."""
        n = rank + beyond
        if n == 0:
            raise Skip
        return self.int(-n, n - 1)

    def optional(self, **attributes):
        """Each attribute or not, so that defaults are tested."""
        return {k: v for k, v in attributes.items() if v is not None and self.chance(0.7)}

    # ---- values
    def array(self, dtype, shape, kind="any"):
        """any: with special numbers in some graphs; plain: none; positive; unit: from -1 to 1; small: integers from 0 to 3."""
        dtype, r = np.dtype(dtype), self.random
        if dtype == bool:
            return np.asarray(r.integers(0, 2, shape), bool)
        if not is_float(dtype):
            info = np.iinfo(dtype)
            low = 0 if kind in ("positive", "small") or info.min == 0 else -4
            made = np.asarray(r.integers(low + (kind == "positive"), 4 if kind == "small" else 8, shape))
            made = made.astype(dtype)
            if kind == "any" and self.specials:
                made = np.where(r.uniform(size=shape) < 0.1, r.choice(np.array([info.min, info.max], dtype), shape), made)
            return np.asarray(made, dtype)
        made = r.uniform(-1, 1, shape) if kind == "unit" else r.standard_normal(shape) * 2
        made = np.abs(made) + 0.1 if kind == "positive" else np.round(made * 4) / 4 if kind == "small" else made
        if kind == "any" and self.specials:
            made = np.where(r.uniform(size=shape) < 0.15, r.choice(SPECIAL, shape), made)
        with np.errstate(over="ignore"):
            return np.asarray(made).astype(dtype)

    def add(self, array, constant=False):
        name = f"{'c' if constant else 'x'}{len(self.values)}"
        self.values[name] = array
        (self.graph.constants if constant else self.graph.inputs)[name] = array
        return name

    def const(self, value, dtype=LONG):
        return self.add(np.asarray(value, dtype), True)

    def new(self, dtype, shape, kind="any"):
        return self.add(self.array(dtype, shape, kind), self.chance(0.2))

    def either(self, value, dtype=LONG):
        """A constant in most graphs."""
        return self.add(np.asarray(value, dtype), self.chance(0.8))

    def tensor(self, dtype, least=0, most=4, shape=None, kind="any", fits=lambda array: True):
        """A value of this dtype and rank, or shape; an earlier value where one fits."""
        fitting = [k for k, v in self.values.items() if v.dtype == dtype and v.size < 400 and
                   (least <= v.ndim <= most if shape is None else v.shape == tuple(shape)) and kind == "any" and fits(v)]
        if fitting and self.chance(0.7):
            return fitting[-1] if self.chance(0.6) else self.pick(fitting)
        for last in (False,) * 9 + (True,) * 3:
            made = self.array(dtype, self.dims(least, most) if shape is None else tuple(shape), "plain" if last and kind == "any" else kind)
            if fits(made):
                return self.add(made, self.chance(0.2))
        raise Skip

    def shape(self, name):
        return self.values[name].shape

    def beside(self, name, dtype, kind="any", within=False):
        """A tensor that broadcasts with this one; `within`: to its shape."""
        dims = [1 if self.chance(0.3) else n for n in self.shape(name)]
        dims = dims[self.int(0, len(dims)) if self.chance(0.4) else 0:]
        if not within:
            dims = [self.size() if n == 1 and self.chance(0.3) else n for n in dims]
            dims = [self.size()] * (len(dims) == len(self.shape(name)) and len(dims) < 4 and self.chance(0.15)) + dims
        return self.tensor(np.dtype(dtype), shape=dims, kind=kind)


def node_of(draw, row):
    dtype = draw.pick(row.dtypes)
    operands, attributes = row.make(draw, dtype)
    n = len(draw.graph.nodes)
    results = [f"y{n}_{k}" for k in range(row.results(draw, operands, attributes) if callable(row.results) else row.results)]
    return helper.make_node(row.op, operands, results, name=f"n{n}", domain=row.domain, **attributes)


@functools.cache
def all_rows():
    import rows_elementwise
    import rows_indexing
    import rows_layers
    import rows_more
    import rows_products
    import rows_shapes
    return [r for m in (rows_elementwise, rows_shapes, rows_indexing, rows_products, rows_layers, rows_more) for r in m.ROWS]


def rows_of(opset, ops=None):
    return [r for r in all_rows() if r.since <= opset < r.before and (ops is None or r.op in ops)]


def graph(seed, settle, ops=None, longest=8):
    """A graph and its values by name. settle(graph, node, values) -> arrays, or None: no oracle takes the node."""
    draw = Draw(seed)
    wanted = 1 if draw.chance(0.4) else draw.int(2, longest)
    for _ in range(3 * wanted):
        if len(draw.graph.nodes) == wanted:
            break
        before = dict(draw.values), dict(draw.graph.inputs), dict(draw.graph.constants)
        try:
            node = node_of(draw, draw.pick(rows_of(draw.opset, ops)))
            made = settle(draw.graph, node, draw.values)
        except Skip:
            made = None
        if made is None:
            draw.values, draw.graph.inputs, draw.graph.constants = before
            continue
        draw.graph.nodes.append(node)
        draw.values.update({name: v for name, v in zip(node.output, made) if name})
    swept(draw.graph)
    return draw.graph, draw.values


def swept(graph):
    """Without inputs and constants that no node reads."""
    used = {i for node in graph.nodes for i in names_read(node)}
    graph.inputs = {k: v for k, v in graph.inputs.items() if k in used}
    graph.constants = {k: v for k, v in graph.constants.items() if k in used}


def names_read(node: NodeProto):
    yield from (i for i in node.input if i)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from names_read(inner)
