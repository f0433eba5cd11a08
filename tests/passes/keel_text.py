"""Graph text of `keel dump` in a form for comparison: names of values and the order of independent nodes are ignored; ops,
attributes, types and bits of constants are not.

Start with `read`, which parses the graphs of a text; `expression` writes a result as nested calls; `outline` lists a graph's ops,
with those of a call's body in parentheses.
"""
import re
from dataclasses import dataclass, field

NAME = r'(?:"(?:[^"\\]|\\.)*"|[\w.]+)'
NODE = re.compile(rf"^  ({NAME}(?:, {NAME})*) = ([\w.@]+)\((.*?)\)(\{{.*\}})? : (.*)$")


@dataclass
class Graph:
    params: list
    nodes: list = field(default_factory=list)  # (results, op, operands, attributes, types)
    results: list = field(default_factory=list)


def split(text):
    """Splits at commas outside brackets and quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for at, c in enumerate(text):
        if c == '"' and text[at - 1:at] != "\\":
            quoted = not quoted
        depth += 0 if quoted else (c in "([{") - (c in ")]}")
        if c == "," and depth == 0 and not quoted:
            parts.append(text[start:at].strip())
            start = at + 1
    return [p for p in parts + [text[start:].strip()] if p]


def read(text):
    """Returns graphs by name, constants by name."""
    graphs, constants, graph = {}, {}, None
    for line in text.splitlines():
        if found := re.match(rf"const ({NAME}): (\S.*?) = (.*)$", line):
            constants[found[1]] = (found[2], found[3])
        elif found := re.match(rf"fn @({NAME})\((.*)\)", line):
            params = split(line[line.index("(") + 1:line.index(") ->") if ") ->" in line else line.rindex(")")])
            graph = graphs[found[1]] = Graph([p.rsplit(": ", 1)[0] for p in params])
        elif line.startswith("  return"):
            graph.results = split(line[len("  return"):])
        elif found := NODE.match(line):
            graph.nodes.append((split(found[1]), found[2], split(found[3]), found[4] or "", found[5]))
        elif graph is not None and line.startswith("  "):
            raise ValueError(f"not a node: {line}")
    return graphs, constants


def spelled(attributes):
    """Removes attributes with their default values, including lists that repeat the default."""
    kept = [a for a in split(attributes[1:-1]) if not re.fullmatch(r"(?:stride|dil)=\[1(?:, 1)*\]|(?:lo|hi)=\[0(?:, 0)*\]", a)]
    return "{" + ", ".join(kept) + "}" if kept else ""


def literal(text):
    typed = re.fullmatch(r"\w+\((.*)\)", text)
    return typed[1] if typed else text


def expression(graphs, constants, name="main"):
    """Each result of the graph as an expression."""
    graph = graphs[name]
    known = {p: p for p in graph.params}
    for constant, (kind, data) in constants.items():
        known[constant] = data.strip("[]") if kind.endswith("[]") else f"{kind}={data}"
    for results, op, operands, attributes, types in graph.nodes:
        made = f"{op}({', '.join(known.get(o, literal(o)) for o in operands)}){spelled(attributes)}:{types}"
        known.update({r: made if len(results) == 1 else f"{made}#{i}" for i, r in enumerate(results)})
    return [known.get(r, literal(r)) for r in graph.results]


def outline(graphs, name="main"):
    """The ops in program order: "(conv relu) softmax"."""
    words = []
    for _, op, _, attributes, _ in graphs[name].nodes:
        body = re.search(rf"body=@({NAME})", attributes)
        words.append(f"({outline(graphs, body[1])})" if body else op)
    return " ".join(words)
