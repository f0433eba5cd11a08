"""Graphs that a program writes node by node, and runs with a session when it wants values, as TensorFlow 1 had them.

    g = keel.Graph()
    with g.as_default():                             # the default graph of this thread
        x = keel.placeholder(keel.f32, [None, 784], name="x")
        y = keel.named(keel.relu(x - 1), "y")
    keel.Session(g).run(y, {x: numbers})             # or run("y:0", {"x": numbers})

Everything has a name: the one given, which must be free, or that of its op, then name_1, name_2; case counts. Ops on
concrete tensors still run at once: keel.constant() is what puts a number into a graph. Tapes, cond, loops, functions
and variables work as in traced functions. One thread at a time writes a graph.
"""
from . import _keel
from .errors import Code, PreconditionError


class Node:
    """What computes: name, op, and the names of its operands ("": left out) and results."""

    def __init__(self, name, op, inputs, outputs):
        self.name, self.op, self.inputs, self.outputs = name, op, inputs, outputs

    def __repr__(self):
        return f"<keel.Node {self.name}: {', '.join(self.outputs)} = {self.op}({', '.join(self.inputs)})>"


class Value:
    """What is computed with: name, dtype, and shape with -1 where a size is not known before a run."""

    def __init__(self, name, dtype, shape):
        self.name, self.dtype, self.shape = name, dtype, shape

    def __repr__(self):
        return f"<keel.Value {self.name}: {self.dtype.name}{list(self.shape)}>"


class Graph(_keel.Graph):
    """A graph of its own, on the context and device in use where it is made."""

    def __init__(self):
        super().__init__()
        self.each_run = []  # names of nodes that every run of a session executes: generators that count on

    def as_default(self):
        """with g.as_default(): this thread's placeholders, constants and ops on the graph's tensors belong to it."""
        return _keel.Writing(self, False)

    def value(self, name):
        """The tensor of a name: "x", "x:0", "split:1". Raises NotFoundError."""
        return self._value(name)

    def node(self, name):
        """The Node of a name, its own or of one of its results; of parameters and constants the op says that."""
        return Node(*self._node(name))

    def nodes(self):
        """All Nodes in the order of the program."""
        return [Node(*node) for node in self._nodes()]

    def values(self):
        """All Values: parameters, constants and results of nodes."""
        return [Value(*value) for value in self._values()]

    def name_of(self, tensor):
        """The name by which a tensor of this graph is found. Raises InvalidError for one that is not of it."""
        return self._name_of(tensor)

    def result(self, name, tensor):
        """Declares a result, for those who run a saved graph by entry."""
        self._result(name, tensor)

    def gradient(self, targets, sources, seeds=None, zeros=False):
        """Adds the gradients of the sum of all elements of the targets, with the structure of the sources: tensors of
        the graph, whatever computed them; None (zeros: zeros) where no target depends on one. seeds: for each target
        what its elements count."""
        ys, xs = _keel.leaves(targets), _keel.leaves(sources)
        found = iter(self._gradient(ys, xs, [] if seeds is None else _keel.leaves(seeds), zeros))
        return _keel.map_leaves(sources, lambda _: next(found))

    @property
    def module(self):
        """The keel.Module that is being written: text(), save(path). It shows what is added later too."""
        return self._module()


def default_graph():
    """That of the innermost g.as_default() of this thread. Raises PreconditionError where there is none."""
    found = _keel.default_graph()
    if found is None:
        raise PreconditionError("there is no default graph: programs run eagerly", Code.PRECONDITION,
                                hint="g = keel.Graph() and with g.as_default(): make one")
    return found


def placeholder(dtype, shape=(), name=""):
    """A tensor of the default graph that each run must feed. shape: numbers, None where what is fed tells the size,
    names as "b" for sizes that are equal. Raises PreconditionError outside of a graph."""
    if _keel.written_graph() is None:
        raise PreconditionError("keel.placeholder() is not compatible with eager execution.", Code.PRECONDITION,
                                hint="write a graph: with keel.Graph().as_default(): or use tensors with values")
    return _keel.placeholder(dtype, [shape] if isinstance(shape, (int, str)) else list(shape), name or "")


def constant(value, dtype=None, name=""):
    """In a graph a constant of that name (a new one by default); else a tensor, whose name means nothing."""
    return _keel.constant(value, dtype, name or "")


def named(tensor, name, unique=False):
    """The same tensor of the default graph under another name, which must be free, or with unique gets a number
    behind it. A tensor with a value has no name: nothing happens."""
    return _keel.named(tensor, name, unique)


def name_scope(name):
    """with keel.name_scope("layer1"): names of the default graph begin with "layer1/"."""
    return _keel.NameScope(name)
