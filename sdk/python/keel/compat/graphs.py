"""Graphs of TensorFlow 1: there always is a default graph, everything in it has a name, variables must be initialised.

How to read it: Graph, and which one is current; Operation; Variable, which keeps track of its reads, for gradients
and for the order of reads and writes; then the functions that add to the current graph.
"""
import contextlib
import weakref

from .. import _keel, graph as _graph, shapes
from ..errors import NotFoundError
from .devices import keel_name
from .functions import ints, tensor as _tensor
from .printing import shape_text

_all_graphs = weakref.WeakSet()


class Graph(_graph.Graph):
    """tf.Graph."""

    def __init__(self):
        super().__init__()
        self.variables, self.dependencies = [], []  # dependencies: (from node, before node, the targets they need)
        _all_graphs.add(self)

    def as_default(self):
        return _keel.Writing(self, True)

    def get_tensor_by_name(self, name):
        """The tensor "const:0". Raises ValueError for a name without a number, KeyError for one that is not there."""
        operation, colon, index = name.partition(":")
        if not colon:
            raise ValueError(f"The name '{name}' refers to an Operation, not a Tensor. Tensor names must be of the "
                             'form "<op_name>:<output_index>".')
        for variable in self.variables:
            if variable.name == name:
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
        """All Operations in the order of the program, parameters and constants first."""
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
        """The name, or with the first number behind it, that is free in the name_scope; without the scope."""
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
    """A graph as text, which keel.parse() reads."""


class _State:
    eager, default = False, None


def current_graph():
    """That of the innermost as_default(), else the default one if there is one yet."""
    return _keel.default_graph() or _State.default


def get_default_graph():
    graph = _keel.default_graph()
    if graph is None:
        graph = _State.default = _State.default or Graph()
    return graph


def reset_default_graph():
    _State.default = None


def is_eager():
    """Do ops run at once? Not in a graph, and only after enable_eager_execution()."""
    return _State.eager and _keel.default_graph() is None


def written():
    """A scope in which ops are written: of the default graph, or where this thread writes something else already."""
    if not is_eager() and not _keel.writes() and _keel.written_graph() is None:
        return get_default_graph().as_default()
    return contextlib.nullcontext()


def graph_of(value):
    """The graph that a tensor belongs to."""
    found = next((g for g in [get_default_graph(), *_all_graphs] if g._owns(value)), None)
    return found or get_default_graph()


class Operation:
    """tf.Operation: what computes. targets: the names of the nodes that run where it is fetched."""

    def __init__(self, graph, node, targets=None, value=None):
        self.graph, self.name, self.type, self.value = graph, node.name, node.op, value
        self.targets = [node.name] if targets is None else targets
        self._inputs, self._outputs = node.inputs, node.outputs

    inputs = property(lambda self: [self.graph.value(name) for name in self._inputs if "(" not in name])
    outputs = property(lambda self: [self.graph.value(name) for name in self._outputs])

    def run(self, feed_dict=None, session=None):
        from ..session import evaluate
        evaluate(self, feed_dict, session)

    def __repr__(self):
        return f"<tf.Operation {self.name!r} type={self.type}>"


def group(*operations, name=None):
    """One Operation that runs them all."""
    graph = operations[0].graph if operations else get_default_graph()
    targets = [target for each in operations for target in each.targets]
    return Operation(graph, _graph.Node(name or "group", "group", [], []), targets)


class Variable:
    """tf.Variable in a graph. Its value is shared by all sessions. Read it after its initializer ran."""

    def __init__(self, initial_value, trainable=True, collections=None, name=None, dtype=None, **_):
        self.graph, self.ready, self._reads, self._written = get_default_graph(), False, [], 0
        with written():
            initial = constant(initial_value() if callable(initial_value) else initial_value, dtype)
        if not all(isinstance(d, int) for d in initial.shape):
            raise ValueError(f"initial_value must have a shape specified: {initial.type}")
        name = self.graph._scope() + self.graph.free_name(name or "Variable")
        with _keel.Writing(self.graph, False):
            zeros = shapes.zeros(initial.shape, initial.dtype)
            self._variable = _keel.Variable(zeros, name=name, trainable=trainable)
        self.name, self.trainable, self.initial_value = name + ":0", trainable, initial
        self.dtype, self.shape = initial.dtype, initial.shape
        self.initializer = self._write("assign", initial)
        self.value()
        self.graph.variables.append(self)

    @property
    def op(self):
        return self.initializer

    def value(self):
        """What it holds at this place of the program: a new read where there was a write since the last."""
        here = _keel.written_graph()
        if here is None and _keel.default_graph() is not None:  # in a body of a loop or branch: captured
            return self._reads[-1]
        if not self._reads or self._written:
            with self.graph.as_default() if here is None else contextlib.nullcontext():
                self._reads.append(self._variable.value())
            self._written = 0
        return self._reads[-1]

    read_value = value

    def reads(self):
        return list(self._reads)

    def _write(self, how, value):
        with self.graph.as_default() if _keel.written_graph() is None else contextlib.nullcontext():
            getattr(self._variable, how)(plain(value))
            self._written += 1
            return Operation(self.graph, self.graph.node(self.graph._last_node()))

    def _assigned(self, how, value):
        operation = self._write(how, value)
        operation.value = self.value()
        return operation

    def assign(self, value, **_):
        """An Operation; fetched it runs, and gives the new value."""
        return self._assigned("assign", value)

    def assign_add(self, delta, **_):
        return self._assigned("assign_add", delta)

    def assign_sub(self, delta, **_):
        return self._assigned("assign_sub", delta)

    def eval(self, session=None):
        from ..session import evaluate
        return evaluate(self, None, session)

    def get_shape(self):
        return self.shape

    def __repr__(self):
        return f"<tf.Variable {self.name!r} shape={shape_text(self.shape)} dtype={self.dtype.numpy_name}>"


def _install_operators():
    from ..variable import _BINARY, _OTHERS

    def forward(name):
        return lambda self, *args: getattr(self.value(), name)(*map(plain, args))
    unreadable = {"bool", "int", "float", "index", "array", "format", "eq", "ne"}
    for name in [f"__{n}__" for n in _BINARY + _OTHERS if n not in unreadable] + [f"__r{n}__" for n in _BINARY]:
        setattr(Variable, name, forward(name))


_install_operators()


def plain(value):
    """With reads in place of Variables, and new values in place of assignments, also in lists."""
    if isinstance(value, Variable):
        return value.value()
    if isinstance(value, Operation) and value.value is not None:
        return value.value
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


def lifted(name, function):
    """The function with its result in the default graph, where it has the given name."""
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
    """tf.placeholder. shape: of known length; None for sizes that feeds tell."""
    if is_eager():
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    if shape is None:
        raise ValueError("tf.placeholder(): give a shape, with None for each size that is not known, as [None, 784]: "
                         "Keel knows the number of dims of every tensor")
    with written():
        made = _graph.placeholder(dtype, ints(shape))
        return _graph.named(made, name, unique=True) if name else made


@contextlib.contextmanager
def device(name):
    """with tf.device("/gpu:0"): nodes are placed there. Raises DeviceError for one that is not there."""
    with written():
        with _keel.device(keel_name(name)) if name else contextlib.nullcontext():
            yield


@contextlib.contextmanager
def name_scope(name, *_, **__):
    with written(), _graph.name_scope(name):
        yield name + "/"


@contextlib.contextmanager
def control_dependencies(operations):
    """Where a run needs what is written in it, these run too, before it: effects go by the order of the program."""
    with written():
        graph = get_default_graph()
        targets = [target for each in operations for target in _targets(graph, each)]
        first = len(graph._nodes())
        yield
        graph.dependencies.append((first, len(graph._nodes()), targets))


def _targets(graph, each):
    return each.targets if isinstance(each, Operation) else [graph.name_of(each).partition(":")[0]]


def gradients(ys, xs, grad_ys=None, **_):
    """tf.gradients: a list with a tensor, or None, for each of xs: tensors and Variables."""
    ys, xs = ([v] if not isinstance(v, (list, tuple)) else list(v) for v in (ys, xs))
    with written():
        graph = graph_of(plain(ys[0]))
        sources = [x.reads() if isinstance(x, Variable) else [x] for x in xs]
        seeds = None if grad_ys is None else plain(grad_ys if isinstance(grad_ys, (list, tuple)) else [grad_ys])
        found = graph.gradient(plain(ys), sources, seeds)
        return [_sum([g for g in each if g is not None]) for each in found]


def _sum(tensors):
    return sum(tensors[1:], tensors[0]) if tensors else None


def global_variables():
    return list(get_default_graph().variables)


def trainable_variables():
    return [v for v in global_variables() if v.trainable]


def variables_initializer(var_list, name="init"):
    return group(*[v.initializer for v in var_list], name=name)


def global_variables_initializer():
    return variables_initializer(global_variables())


def enable_eager_execution(*_, **__):
    """From now on ops run at once, outside of graphs. Raises ValueError where the default graph has something."""
    if _State.default is not None and _State.default._values():
        raise ValueError("tf.enable_eager_execution must be called at program startup.")
    _State.eager = True


def disable_eager_execution():
    _State.eager = False


def executing_eagerly():
    return is_eager() and _keel.executing_eagerly()
