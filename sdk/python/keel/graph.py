"""Graphs built by a program node by node, and run by sessions, in the style of TensorFlow 1.

    g = keel.Graph()
    with g.as_default():                             # the default graph of this thread
        x = keel.placeholder(keel.f32, [None, 784], name="x")
        y = keel.named(keel.relu(x - 1), "y")
    keel.Session(g).run(y, {x: numbers})             # or run("y:0", {"x": numbers})

All values have names: the given one, which must be unused, or that of the op (name, name_1, name_2); names are
case-sensitive. Ops on concrete tensors still run immediately: keel.constant() adds a number to a graph. Tapes, cond,
loops, functions and variables work as in traced functions. One thread at a time writes a graph.
"""
from . import _keel
from .errors import Code, PreconditionError


class Node:
    """An op of a graph: name, op, and the names of its operands ("": omitted) and results."""

    def __init__(self, name, op, inputs, outputs):
        self.name, self.op, self.inputs, self.outputs = name, op, inputs, outputs

    def __repr__(self):
        return f"<keel.Node {self.name}: {', '.join(self.outputs)} = {self.op}({', '.join(self.inputs)})>"


class Value:
    """A value of a graph: name, dtype, and shape, with -1 for sizes unknown before a run."""

    def __init__(self, name, dtype, shape):
        self.name, self.dtype, self.shape = name, dtype, shape

    def __repr__(self):
        return f"<keel.Value {self.name}: {self.dtype.name}{list(self.shape)}>"


class Graph(_keel.Graph):
    """A new graph, on the context and device current at its construction."""

    def __init__(self):
        super().__init__()
        self.each_run = []  # names of nodes executed by every run of a session: counters of generators

    def as_default(self):
        """with g.as_default(): placeholders, constants and ops on its tensors in this thread are added to it."""
        return _keel.Writing(self, False)

    def value(self, name):
        """The tensor of a name: "x", "x:0", "split:1". Raises NotFoundError."""
        return self._value(name)

    def node(self, name):
        """The Node of a name, or of the name of its result; op "parameter" or "constant" for these. Raises NotFoundError."""
        return Node(*self._node(name))

    def nodes(self):
        """All Nodes in program order."""
        return [Node(*node) for node in self._nodes()]

    def values(self):
        """All Values: parameters, constants and results of nodes."""
        return [Value(*value) for value in self._values()]

    def name_of(self, tensor):
        """The name of a tensor of this graph, for value(). Raises InvalidError for other tensors."""
        return self._name_of(tensor)

    def result(self, name, tensor):
        """Declares a result, for runs of the saved graph's entry."""
        self._result(name, tensor)

    def gradient(self, targets, sources, seeds=None, zeros=False):
        """Adds the gradients of the sum of all elements of the targets, structured as the sources: any tensors of the graph.
        None (zeros: zeros) if no target depends on a source. seeds: a tensor per target with the weights of its elements."""
        ys, xs = _keel.leaves(targets), _keel.leaves(sources)
        found = iter(self._gradient(ys, xs, [] if seeds is None else _keel.leaves(seeds), zeros))
        return _keel.map_leaves(sources, lambda _: next(found))

    @property
    def module(self):
        """The keel.Module of this graph: text(), save(path). It includes later additions."""
        return self._module()


def default_graph():
    """The graph of the innermost g.as_default() of this thread. Raises PreconditionError if there is none."""
    found = _keel.default_graph()
    if found is None:
        raise PreconditionError("there is no default graph: this thread runs eagerly", Code.PRECONDITION,
                                hint="create one with g = keel.Graph() and with g.as_default():")
    return found


def placeholder(dtype, shape=(), name=""):
    """A tensor of the default graph that each run must feed. shape: numbers, None for sizes given by the feed, names such
    as "b" for equal sizes. Raises PreconditionError outside of a graph."""
    if _keel.written_graph() is None:
        raise PreconditionError("keel.placeholder() is not compatible with eager execution.", Code.PRECONDITION,
                                hint="write a graph: with keel.Graph().as_default(): or use tensors with values")
    return _keel.placeholder(dtype, [shape] if isinstance(shape, (int, str)) else list(shape), name or "")


def constant(value, dtype=None, name=""):
    """In a graph: a constant of that name (default: a new name). Eagerly: a tensor; the name is ignored."""
    return _keel.constant(value, dtype, name or "")


def named(tensor, name, unique=False):
    """Renames a tensor of the default graph. The name must be unused; with unique a number is appended. No effect on a
    tensor with a value."""
    return _keel.named(tensor, name, unique)


def name_scope(name):
    """with keel.name_scope("layer1"): names of the default graph begin with "layer1/"."""
    return _keel.NameScope(name)
