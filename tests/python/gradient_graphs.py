"""Small graphs as text, and entries with their gradients, for tests of gradients of whole graphs."""
import numpy as np


def graph_of(context, params, body, results="y"):
    return context.parse(f"keel 1\n\nfn @main({params}) {{\n{body}\n  return {results}\n}}\n\nentry main = @main\n")


def gradients(module, of, wrt, seeds=None, zeros=False, order=1):
    """Adds the entry "grad" to the module: the values `of`, then their gradients; returns them by number."""
    source = module.graph_of("main")
    graph = source.copy("grad")
    ys, xs = [source.find(n) for n in of], [source.find(n) for n in wrt]
    found = graph.gradient(ys, xs, seeds, zeros)
    for _ in range(order - 1):
        found = graph.gradient(found, xs)
    for name, value in zip(of + [f"d_{n}" for n in wrt], ys + found):
        if value is not None:
            graph.result(name, value)
    module.entry("grad", graph)
    return found


def run(module, device, inputs, entry="grad"):
    plan = module.session(device, entry=entry).prepare(list(inputs))
    return [np.array(a) for a in plan.run(*inputs.values())]
