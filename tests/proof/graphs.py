"""Graphs as Python data, for the generator, the shrinker and the oracle.

A Graph has constants, variables, functions and a Block; a Block has parameters, nodes and results; a Node may have its own blocks
(bodies). `text` writes a graph as graph text. `text(wide=True)` uses f64 for every other float, and a `Noise` multiplies every
float result by a number next to 1: the resulting difference bounds the effect of one rounding per node. `read` parses graph text
in the form of `text`.
"""
import re
from dataclasses import dataclass, field

from keel_text import split

FLOATS = ("f16", "bf16", "f32", "f64")
WIDTH = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}


@dataclass(frozen=True)
class Type:
    dtype: str
    dims: tuple = ()  # ints, or expressions of symbols as text

    def __str__(self):
        return f"{self.dtype}[{', '.join(map(str, self.dims))}]"

    def sized(self, sizes):
        """The dims as numbers."""
        return tuple(d if isinstance(d, int) else int(eval(d, {"max": max, "min": min}, sizes)) for d in self.dims)


def read_type(text):
    dtype, dims = re.fullmatch(r"(\w+)\[(.*)\]", text.strip()).groups()
    return Type(dtype, tuple(int(d) if d.lstrip("-").isdigit() else d for d in split(dims)))


@dataclass
class Node:
    op: str
    ins: list
    attrs: dict = field(default_factory=dict)
    outs: list = field(default_factory=list)
    types: list = field(default_factory=list)
    bodies: list = field(default_factory=list)  # (attribute, Block)
    var: str = ""


@dataclass
class Block:
    params: dict  # name: Type
    nodes: list = field(default_factory=list)
    results: list = field(default_factory=list)

    def all_nodes(self):
        for node in self.nodes:
            yield node
            for _, block in node.bodies:
                yield from block.all_nodes()


@dataclass
class Graph:
    main: Block
    constants: dict = field(default_factory=dict)  # name: (Type, elements as text)
    variables: dict = field(default_factory=dict)
    functions: dict = field(default_factory=dict)  # name: Block
    seed: int = 0

    def blocks(self):
        return [*self.functions.values(), self.main]

    def nodes(self):
        for block in self.blocks():
            yield from block.all_nodes()

    def ops(self):
        return {node.op for node in self.nodes()}

    def symbols(self):
        types = [*self.main.params.values(), *(t for b in self.functions.values() for t in b.params.values())]
        return {s for t in types for d in t.dims if isinstance(d, str) for s in re.findall(r"[a-z_]\w*", d)} - {"max", "min"}

    def text(self, wide=False, noise=None):
        lines = ["keel 1"]
        lines += [f"const {n}: {t} = {noise.elements(t, v) if noise else v}" for n, (t, v) in self.constants.items()]
        lines += [f"var {n}: {t} = {v}" for n, (t, v) in self.variables.items()]
        for name, block in [*self.functions.items(), ("main", self.main)]:
            params = ", ".join(f"{n}: {t}" for n, t in block.params.items())
            lines += ["", f"fn @{name}({params}) {{", *written(block, "  ", noise if name == "main" else None), f"  return {', '.join(block.results)}", "}"]
        lines += ["", f"entry main = @main ({', '.join(self.main.params)})", ""]
        text = "\n".join(lines)
        return re.sub(r"\b(f16|bf16|f32)\b", "f64", text) if wide else text


class Noise:
    """Numbers next to 1, as literals; multiplies constants by such numbers."""

    def __init__(self, random, tiny=False):
        self.random, self.tiny = random, tiny  # as in a float64 run

    def factor(self, dtype):
        return repr(1 + float(self.random.choice([-1, 1])) * (2 * WIDTH["f64"] if self.tiny else WIDTH[dtype]))


    def elements(self, type, listed):
        if type.dtype not in FLOATS:
            return listed
        return "[" + ", ".join(repr(float(v) * float(self.factor(type.dtype))) for v in split(listed[1:-1])) + "]"


def written(block, pad, noise):
    for node in block.nodes:
        disturbed = noise and node.op not in ("scan", "while", "cond", "switch", "call")
        renamed = {o: o + "_" for o, t in zip(node.outs, node.types) if disturbed and t.dtype in FLOATS}
        outs = ", ".join(renamed.get(o, o) for o in node.outs)
        attrs = "{" + ", ".join(f"{k}={v}" for k, v in node.attrs.items()) + "}" if node.attrs else ""
        ins = ", ".join(([node.var] if node.var else []) + node.ins)
        yield f"{pad}{outs}{' = ' if outs else ''}{node.op}({ins}){attrs}"
        for label, body in node.bodies:
            yield f"{pad}  {label}({', '.join(body.params)}) {{"
            yield from written(body, pad + "    ", noise)
            yield f"{pad}    yield {', '.join(body.results)}".rstrip()
            yield f"{pad}  }}"
        for old, new in renamed.items():
            dtype = node.types[node.outs.index(old)].dtype
            yield f"{pad}{old} = mul({new}, {noise.factor(dtype)})"


NODE = re.compile(r"(?:([\w, ]+) = )?(\w+)\((.*?)\)(\{.*\})?")


def read(text):
    """Parses a text that `text` has written; types of results are omitted."""
    graph, block, stack = Graph(Block({})), None, []
    for line in text.splitlines():
        bare = line.strip()
        if found := re.match(r"(const|var) (\w+): (\S.*?) = (.*)$", bare):
            table = graph.constants if found[1] == "const" else graph.variables
            table[found[2]] = (read_type(found[3]), found[4])
        elif found := re.match(r"fn @(\w+)\((.*)\) \{", bare):
            block = Block({n: read_type(t) for n, t in (p.split(": ", 1) for p in split(found[2]))})
            stack = [block]
            if found[1] == "main":
                graph.main = block
            else:
                graph.functions[found[1]] = block
        elif found := re.match(r"# seed (\d+)", bare):
            graph.seed = int(found[1])
        elif bare == "}" and stack:
            stack.pop()
        elif found := re.fullmatch(r"(\w+)\(([\w, ]*)\) \{", bare):
            body = Block(dict.fromkeys(split(found[2])))
            stack[-1].nodes[-1].bodies.append((found[1], body))
            stack.append(body)
        elif found := re.match(r"(return|yield)(.*)", bare):
            stack[-1].results = split(found[2])
        elif stack and (found := NODE.fullmatch(bare)):
            ins, attrs = split(found[3]), dict(a.split("=", 1) for a in split((found[4] or "{}")[1:-1]))
            var = ins.pop(0) if ins and ins[0] in graph.variables else ""
            stack[-1].nodes.append(Node(found[2], ins, attrs, split(found[1] or ""), [], [], var))
    return graph
