"""A Drawer writes one block of a random graph, node by node, and knows the type and a sample of each value; Shared belongs to the drawers
of one graph. Each node is tried on the reference device immediately: nodes with invalid types are refused, nodes that fail at run time are
rarely kept."""
import re

import numpy as np
from elements import elements, is_float, numbers, spelled
from graphs import Block, Graph, Node, Type, read_type, split

SIZES = {"b": 3, "s": 2}  # values of symbols in samples
DTYPES = ["f32"] * 9 + ["f64", "f16", "bf16", "i32", "i32", "i64", "u8", "bool", "i8", "i16", "u16", "u32", "u64"]
DIMS = [1, 2, 3, 3, 4, 4, 2, 17, 0, "b", "b"]
MOST_ELEMENTS = 3000


class Refused(Exception):
    """The drawn node is invalid."""


class Value:
    def __init__(self, name, type, sample):
        self.name, self.type, self.sample = name, type, sample


class Drawer:
    def __init__(self, shared, block, values=(), top=True):
        self.shared, self.block, self.values, self.top = shared, block, list(values), top
        self.random, self.graph = shared.random, shared.graph
        self.wrong, self.last_first = False, ""  # of a bait: a detail is wrong; the last first operand of turn()
        self.alone = self.strict = self.logarithm = False  # of a single bait: on parameters, few wrong details

    # -- choices
    def one(self, among):
        return among[int(self.random.integers(len(among)))]

    def chance(self, p):
        return self.random.random() < p

    def dim(self):
        return self.one([d for d in DIMS if self.top or d != "b"])

    def dims(self, rank=None):
        return tuple(self.dim() for _ in range(self.one([0, 1, 1, 2, 2, 2, 3, 3, 4]) if rank is None else rank))

    def value(self, fits=lambda v: True):
        """Newer values are likelier."""
        among = [v for v in self.values if fits(v)]
        if not among:
            raise Refused("no value fits")
        return among[max(int(self.random.integers(len(among))) for _ in range(2))]

    # -- new values
    def fresh(self, type, kind=None):
        sized = type.sized(SIZES)
        if np.prod(sized, dtype=np.int64) > MOST_ELEMENTS:
            raise Refused("too large")
        fixed = all(isinstance(d, int) for d in type.dims)
        if self.top and (not fixed or (self.alone and kind != "same") or (kind is None and self.chance(0.5))):
            return self.parameter(type, kind)
        if self.top:
            kind = kind or self.one(["plain", "special", "same", "same", "round"])
            array = elements(type.dtype, sized, self.random, kind)
            return self.constant(type, array)
        number = self.one(numbers(type.dtype)) if kind is None else "0" if not is_float(type.dtype) else "1.0"
        number = {"bool": "true"}.get(type.dtype, number) if kind else number
        return self.add(Node("fill", [f"{type.dtype}({number})"], {"dims": listed(type.dims)}))[0]

    def parameter(self, type, kind=None):
        name = self.shared.name("i" if kind == "index" else "p")
        self.block.params[name] = type
        sample = elements(type.dtype, type.sized(SIZES), self.random, kind or self.one(["plain", "plain", "special"]))
        self.values.append(Value(name, type, sample))
        return self.values[-1]

    def constant(self, type, array):
        name = self.shared.name("k")
        self.graph.constants[name] = (type, spelled(array))
        self.values.append(Value(name, type, np.asarray(array)))
        return self.values[-1]

    # -- nodes
    def add(self, node):
        """Types and runs the node on samples; returns its results."""
        types, arrays = self.shared.tried(node, self.values)
        if any(a.size > MOST_ELEMENTS for a in arrays):
            raise Refused("too large")
        node.types, node.outs = types, node.outs or [self.shared.name("n") for _ in types]
        self.block.nodes.append(node)
        made = [Value(*v) for v in zip(node.outs, types, arrays)]
        self.values += made
        self.shared.count(node)
        return made

    def apply(self, op, *ins, **attrs):
        """For bait: one result, operands as values or literals."""
        ins = [i.name if isinstance(i, Value) else i for i in ins]
        return self.add(Node(op, ins, {k: spell(v) for k, v in attrs.items()}))[0]

    def turn(self, op, a, b):
        """Operands in random order."""
        a, b = (a, b) if self.chance(0.5) else (b, a)
        self.last_first = a.name if isinstance(a, Value) else a
        return self.apply(op, a, b)

    def finish(self):
        """Results: mostly unused values, and some others."""
        used = {i for n in self.block.nodes for i in n.ins}
        made = [o for n in self.block.nodes for o in n.outs]
        wanted = [o for o in made if (o not in used and self.chance(0.9)) or self.chance(0.08)]
        self.block.results = wanted or made[-1:] or [v.name for v in self.values[:1]]


def spell(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    return listed(v) if isinstance(v, (tuple, list)) else str(v)


def listed(dims):
    return "[" + ", ".join(map(str, dims)) + "]"


class Shared:
    """Shared by the drawers of one graph."""

    def __init__(self, context, ops, seed):
        self.context, self.ops = context, ops
        self.random, self.graph, self.names = np.random.default_rng(seed), Graph(Block({}), seed=seed), 0
        self.baits = []  # names of the fragments in it

    def name(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def count(self, node):
        pass

    def tried(self, node, values):
        """Returns types and sample arrays of the results of a single node."""
        from keel_abi import KeelError
        known = {v.name: v for v in values}
        used = {name: known[name] for name in dict.fromkeys(node.ins) if name in known}
        results = self.results_of(node)
        node.outs = [self.name("n") for _ in range(results)]
        alone = Graph(Block({n: v.type for n, v in used.items()}, [node], node.outs), {}, self.graph.variables, self.graph.functions)
        if "b" in alone.text() and not any("b" in v.type.dims for v in used.values()):
            alone.main.params["zb"] = Type("bool", ("b",))
        arrays = [v.sample for v in used.values()] + [np.zeros(3, bool)] * ("zb" in alone.main.params)
        try:
            module = self.context.parse(alone.text())
            types = types_of(module.to_text())
            plan = module.session("reference", level=0).prepare()
        except KeelError as e:
            raise Refused(str(e)) from e
        try:
            return types, [np.array(y) for y in plan.run(*arrays)]
        except KeelError as e:
            if self.random.random() < 0.9:
                raise Refused(str(e)) from e
            return types, [np.zeros(t.sized(SIZES), bool) for t in types]

    def results_of(self, node):
        op = self.ops[node.op]
        if node.op == "split":
            return len(split(node.attrs["sizes"][1:-1]))
        if node.bodies:
            from bodies import results_of
            return results_of(node, self.graph)
        if node.op == "call":
            return len(self.graph.functions[node.attrs["body"][1:]].results)
        return len(op["results"])


def types_of(text):
    head = re.search(r"fn @main\(.*?\)(?: -> (.*?))? \{", text)
    return [read_type(t) for t in split(head[1])] if head[1] else []
