"""Shrinks a failing graph: `shrink(graph, fails)` drops results, nodes, parameters and attributes, shrinks dims and simplifies
constants as long as `fails(graph)` stays true. It ends when no step succeeds."""
import copy
import re

from elements import numbers
from graphs import Type, split


def shrink(graph, fails, most=4000):
    tries = [0]

    def works(candidate):
        tries[0] += 1
        return tries[0] < most and fails(candidate)

    changed = True
    while changed and tries[0] < most:
        changed = False
        for steps in (fewer_results, cut_nodes, to_parameters, fewer_attributes, smaller_dims, simpler_operands, simpler_constants):
            position = 0
            while True:
                candidates = list(steps(graph))
                if position >= len(candidates):
                    break
                candidate = copy.deepcopy(graph)
                candidates[position](candidate)
                swept(candidate)
                if candidate.text() != graph.text() and works(candidate):
                    graph, changed = candidate, True
                else:
                    position += 1
    return graph


def swept(graph):
    """Without unused nodes, constants and functions."""
    while True:
        used = {i for b in every_block(graph) for i in b.results} | {i for n in graph.nodes() for i in n.ins}
        before = graph.text()
        for block in every_block(graph):
            block.nodes = [n for n in block.nodes if not n.outs or n.bodies or used & set(n.outs)]
        called = {n.attrs.get("body", "")[1:] for n in graph.nodes()}
        graph.functions = {k: v for k, v in graph.functions.items() if k in called}
        graph.main.params = {k: v for k, v in graph.main.params.items() if k in used or any(isinstance(d, str) for d in v.dims)}
        graph.constants = {k: v for k, v in graph.constants.items() if k in used}
        variables = {n.var for n in graph.nodes()}
        graph.variables = {k: v for k, v in graph.variables.items() if k in variables}
        if graph.text() == before:
            return


def every_block(graph):
    for block in graph.blocks():
        yield block
        yield from inner(block)


def inner(block):
    for node in block.nodes:
        for _, body in node.bodies:
            yield body
            yield from inner(body)


def fewer_results(graph):
    for i in range(len(graph.main.results)):
        if len(graph.main.results) > 1:
            yield lambda g, i=i: g.main.results.pop(i)
    for p in list(graph.main.params):
        yield lambda g, p=p: g.main.params.pop(p)


def cut_nodes(graph):
    """Removes nodes, the last first; operands replace their results."""
    for b, block in enumerate(every_block(graph)):
        for i in reversed(range(len(block.nodes))):
            def cut(g, b=b, i=i):
                list(every_block(g))[b].nodes.pop(i)
            yield cut
            for operand in dict.fromkeys(block.nodes[i].ins):
                def replace(g, b=b, i=i, operand=operand):
                    node = list(every_block(g))[b].nodes.pop(i)
                    rename(g, node.outs[0] if node.outs else "", operand)
                if block.nodes[i].outs:
                    yield replace


def rename(graph, old, new):
    for block in every_block(graph):
        block.results = [new if r == old else r for r in block.results]
        for node in block.nodes:
            node.ins = [new if i == old else i for i in node.ins]


def to_parameters(graph):
    """Replaces the results of a node, or a constant, by parameters."""
    for i, node in enumerate(graph.main.nodes):
        def become(g, i=i):
            node = g.main.nodes.pop(i)
            g.main.params.update(zip(node.outs, node.types))
        if node.outs and node.types:
            yield become
    for name in graph.constants:
        def fed(g, name=name):
            g.main.params[name] = g.constants.pop(name)[0]
        yield fed


def fewer_attributes(graph):
    for n, node in enumerate(graph.nodes()):
        for name in node.attrs:
            yield lambda g, n=n, name=name: list(g.nodes())[n].attrs.pop(name)


def smaller_dims(graph):
    """The same size everywhere, in types and attributes."""
    text = " ".join(str(t) for t in types(graph)) + " ".join(v for n in graph.nodes() for v in n.attrs.values())
    for size in sorted({int(s) for s in re.findall(r"(?<![\w.])\d+(?![\w.])", text)}, reverse=True):
        for less in (1, 2, size - 1):
            if less < size and size > 1:
                yield lambda g, size=size, less=less: resize(g, str(size), str(less))
    for symbol in graph.symbols():
        yield lambda g, symbol=symbol: resize(g, symbol, "2")


def types(graph):
    return [*graph.main.params.values(), *(t for t, _ in graph.constants.values()), *(t for t, _ in graph.variables.values())]


def resize(graph, old, new):
    def other(t):
        return Type(t.dtype, tuple(int(new) if str(d) == old else d for d in t.dims)) if isinstance(t, Type) else t
    for table in (graph.constants, graph.variables):
        for name, (t, elements) in table.items():
            made, listed = other(t), split(elements[1:-1])
            count = 1
            for d in made.dims:
                count *= d
            table[name] = made, "[" + ", ".join((listed * (count + 1))[:count]) + "]"
    for block in every_block(graph):
        block.params = {k: other(t) for k, t in block.params.items()}
        for node in block.nodes:
            node.types = [other(t) for t in node.types]
            node.attrs = {k: re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w.])", new, v) for k, v in node.attrs.items()}


def simpler_operands(graph):
    """A parameter in place of another value of its type."""
    known = {o: t for n in graph.main.nodes for o, t in zip(n.outs, n.types)} | graph.main.params
    for i, node in enumerate(graph.main.nodes):
        for j, name in enumerate(node.ins):
            for p, t in graph.main.params.items():
                if p != name and known.get(name) == t:
                    def other(g, i=i, j=j, p=p):
                        g.main.nodes[i].ins[j] = p
                    if not (name in graph.main.params and name < p):
                        yield other


def simpler_constants(graph):
    for table in ("constants", "variables"):
        for name, (t, elements) in getattr(graph, table).items():
            listed = split(elements[1:-1])
            for number in [n for n in numbers(t.dtype)[:4] if len(set(listed)) > 1 or n < listed[0]] if listed else []:
                def same(g, table=table, name=name, t=t, number=number, count=len(listed)):
                    getattr(g, table)[name] = t, "[" + ", ".join([number] * count) + "]"
                yield same


def with_types(context, graph):
    """Adds the types of results to nodes that were read from text."""
    found, open_names = {}, []
    for line in context.parse(graph.text()).to_text().splitlines():
        bare = line.strip().replace('"', "")
        if head := re.match(r"([\w, ]+) = \w+\(.*", bare):
            tail = re.search(r" : ([^:]*)$", bare)
            names = split(head[1])
            if tail and bare.count("(") and not bare.endswith("{"):
                found.update(zip(names, split(tail[1])))
            else:
                open_names.append(names)
        elif (tail := re.match(r"\} : (.*)$", bare)) and open_names:
            found.update(zip(open_names.pop(), split(tail[1])))
    from graphs import read_type
    for node in graph.nodes():
        node.types = [read_type(found[o]) for o in node.outs if o in found]
    return graph
