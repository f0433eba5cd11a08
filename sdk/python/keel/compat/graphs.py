"""Graphs of TensorFlow 1: there is always a default graph, and all its values have names.

How to read it: Graph and the current graph; Operation; then functions that add to the current graph. variables.py has
reads and writes of variables.
"""
import contextlib
import weakref

from .. import _keel, graph as _graph
from ..errors import NotFoundError
from ..session import evaluate
from .devices import keel_name
from .functions import ints, plain, tensor as _tensor

_all_graphs = weakref.WeakSet()


class Graph(_graph.Graph):
    """tf.Graph."""

    def __init__(self):
        super().__init__()
        self.variables, self.dependencies = [], []  # dependencies: (first node, end node, targets that these nodes require)
        _all_graphs.add(self)

    def as_default(self):
        return _keel.Writing(self, True)

    def get_tensor_by_name(self, name):
        """The tensor "const:0". Raises ValueError for a name without a number, KeyError for an unknown name."""
        operation, colon, index = name.partition(":")
        if not colon:
            raise ValueError(f"The name '{name}' refers to an Operation, not a Tensor. Tensor names must be of the "
                             'form "<op_name>:<output_index>".')
        variable = next((v for v in self.variables if v.name == name), None)
        if variable is not None:
            return variable.value()
        with self._known(name, f"refers to a Tensor which does not exist. The operation, {operation!r}, does not have "
                               f"that many outputs or does not exist in the graph."):
            return self.value(name)

    def get_operation_by_name(self, name):
        """The Operation "const". Raises KeyError."""
        if ":" in name:
            raise ValueError(f"The name '{name}' refers to a Tensor, not an Operation.")
        with self._known(name, "refers to an Operation not in the graph."):
            return Operation(self, self.node(name))

    def get_operations(self):
        """All Operations in program order, parameters and constants first."""
        computed = {name for node in self._nodes() for name in node[3]}
        first = [value[0] for value in self._values() if value[0] not in computed and "(" not in value[0]]
        return [Operation(self, self.node(name)) for name in first] + [Operation(self, node) for node in self.nodes()]

    def as_graph_def(self):
        return GraphDef(self.module.text())

    @contextlib.contextmanager
    def _known(self, name, what):
        try:
            yield
        except NotFoundError:
            raise KeyError(f"The name '{name}' {what}") from None

    def free_name(self, name):
        """The name if it is unused in the name_scope, else with the first unused number appended; without the scope."""
        number, tried = 0, name
        while self._has(self._scope() + tried):
            number += 1
            tried = f"{name}_{number}"
        return tried

    def _has(self, name):
        try:
            self._node(name)
        except NotFoundError:
            return any(v.name == name + ":0" for v in self.variables)
        return True


class GraphDef(str):
    """A graph as text, input of keel.parse()."""


class _State:
    eager, default = False, None


def current_graph():
    """The graph of the innermost as_default(), else the default graph or None."""
    return _keel.default_graph() or _State.default


def get_default_graph():
    graph = _keel.default_graph()
    if graph is None:
        graph = _State.default = _State.default or Graph()
    return graph


def reset_default_graph():
    """The next addition creates a new default graph."""
    _State.default = None


def is_eager():
    """Whether ops run immediately: only after enable_eager_execution(), and not in a graph."""
    return _State.eager and _keel.default_graph() is None


def written():
    """A scope that writes ops to the default graph, or to the graph or body that this thread is already writing."""
    return contextlib.nullcontext() if is_eager() or _keel.writes() else get_default_graph().as_default()


def graph_of(value):
    """The graph that a tensor belongs to."""
    found = next((g for g in [get_default_graph(), *_all_graphs] if g._owns(value)), None)
    return found or get_default_graph()


class Operation:
    """tf.Operation. targets: names of the nodes that run if it is fetched; value: the tensor that it then returns, or
    None."""

    def __init__(self, graph, node, targets=None, value=None):
        self.graph, self.name, self.type, self.value = graph, node.name, node.op, value
        self.targets = [node.name] if targets is None else targets
        self._inputs, self._outputs = node.inputs, node.outputs

    inputs = property(lambda self: [self.graph.value(name) for name in self._inputs if "(" not in name])
    outputs = property(lambda self: [self.graph.value(name) for name in self._outputs])

    def _as_tensor(self):
        return self if self.value is None else self.value

    def run(self, feed_dict=None, session=None):
        evaluate(self, feed_dict, session)

    def __repr__(self):
        return f"<tf.Operation {self.name!r} type={self.type}>"


def group(*operations, name=None):
    """An Operation that runs all of them."""
    graph = operations[0].graph if operations else get_default_graph()
    targets = [target for each in operations for target in each.targets]
    return Operation(graph, _graph.Node(name or "group", "group", [], []), targets)


def lifted(function):
    """The function with its result in the default graph, under the given name."""
    def call(*args, name=None, **keywords):
        if is_eager():
            return function(*args, **keywords)
        args = [plain(a) for a in args]
        keywords = {key: plain(value) for key, value in keywords.items()}
        symbolic = [a for a in _keel.leaves(args) if isinstance(a, _keel.Tensor) and a.symbolic]
        scope = graph_of(symbolic[0]).as_default() if symbolic and _keel.executing_eagerly() else written()
        with scope:
            out, graph = function(*args, **keywords), _keel.written_graph()
            return out if graph is None else _settled(graph, out, name)
    return call


def _settled(graph, out, name):
    if not isinstance(out, _keel.Tensor):
        return out
    if not out.symbolic:
        return constant(out, name=name)
    return _graph.named(out, name, unique=True) if name else out


def constant(value, dtype=None, shape=None, name=None):
    """tf.constant."""
    if is_eager():
        return _tensor(value, dtype, shape)
    with written():
        value = plain(value)
        if isinstance(value, _keel.Tensor) and value.symbolic:
            return value
        graph = _keel.written_graph()
        with _keel.Writing(graph, False) if graph is not None else contextlib.nullcontext():
            made = _tensor(value, dtype, shape)
            return _graph.constant(made, name=graph.free_name(name) if name and graph is not None else "")


def placeholder(dtype, shape=None, name=None):
    """tf.placeholder. shape: of known length; None for sizes given by the feeds."""
    if is_eager():
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    if shape is None:
        raise ValueError("tf.placeholder(): give a shape, with None for each unknown size, such as [None, 784]: "
                         "Keel requires the number of dims")
    with written():
        made = _graph.placeholder(dtype, ints(shape))
        return _graph.named(made, name, unique=True) if name else made


@contextlib.contextmanager
def device(name):
    """with tf.device("/gpu:0"): places nodes there; None: on the session's device. Raises DeviceError for an unknown
    device."""
    with written(), _keel.device(keel_name(name) if name else get_default_graph()._device()):
        yield


@contextlib.contextmanager
def name_scope(name, *_, **__):
    with written(), _graph.name_scope(name):
        yield name + "/"


@contextlib.contextmanager
def control_dependencies(operations):
    """Runs these first if a run needs a node written in the scope: effects follow program order."""
    with written():
        graph = get_default_graph()
        targets = [target for each in operations for target in _targets(graph, each)]
        first = len(graph._nodes())
        yield
        graph.dependencies.append((first, len(graph._nodes()), targets))


def _targets(graph, each):
    return each.targets if isinstance(each, Operation) else [graph.name_of(each).partition(":")[0]]


def enable_eager_execution(*_, **__):
    """Runs later ops immediately, outside of graphs. Raises ValueError if the default graph is not empty."""
    if _State.default is not None and _State.default._values():
        raise ValueError("tf.enable_eager_execution must be called at program startup.")
    _State.eager = True


def disable_eager_execution():
    _State.eager = False


def executing_eagerly():
    return is_eager() and _keel.executing_eagerly()
