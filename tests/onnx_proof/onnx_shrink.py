"""Shrinks a failing graph to the smallest: a node is dropped by making its results inputs, or with all that follows it."""
from dataclasses import replace

from onnx_draw import names_read, swept


def without(graph, values, node):
    """The graph with the results of this node as inputs."""
    nodes = [n for n in graph.nodes if n is not node]
    read = {i for n in nodes for i in names_read(n)}
    more = {name: values[name] for name in node.output if name in read}
    made = replace(graph, nodes=nodes, inputs=graph.inputs | more, constants=dict(graph.constants))
    swept(made)
    return made


def kind(wrong):
    """The device, and the operator or the code of the error."""
    return wrong.split(" n")[0].split(": ")[:2]


def shrink(graph, values, failure, wrong):
    """failure(graph, values) -> the reason or None. A smaller graph counts only if it fails for a like reason."""
    changed = True
    while changed and len(graph.nodes) > 1:
        changed = False
        for node in list(graph.nodes):
            smaller = without(graph, values, node)
            reason = failure(smaller, values)
            if reason is not None and kind(reason) == kind(wrong):
                graph, wrong, changed = smaller, reason, True
                break
    return graph, values, wrong
