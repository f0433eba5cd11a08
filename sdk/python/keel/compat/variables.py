"""Variables of TensorFlow 1, set by initializers, read and written by nodes of a graph; and gradients.

How to read it: Variable records its reads, for gradients, and adds a new read after each write.
"""
import contextlib

from .. import _keel, shapes
from ..graph import Node
from ..session import evaluate
from ..variable import _BINARY, _OTHERS
from .graphs import Operation, constant, get_default_graph, graph_of, group, is_eager, plain, written
from .printing import shape_text


def _in_body():
    """Whether this thread writes a body of a branch or a loop, which captures values of the graph."""
    return _keel.written_graph() is None and _keel.default_graph() is not None


class Variable:
    """tf.Variable in a graph. All sessions share its value. Read it after its initializer has run.

    ready: whether a run has set it. fills: the names of the nodes that set it.
    """

    def __init__(self, initial_value, trainable=True, collections=None, name=None, dtype=None, **_):
        self.graph, self.ready, self.fills, self._reads = get_default_graph(), False, set(), []
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

    def _as_tensor(self):
        return self.value()

    def value(self):
        """Its value at this point of the program: a new read if it was written since the last one."""
        if not self._written:
            return self._reads[-1]
        if _in_body():
            return self._variable.value()
        with self._scope():
            self._reads.append(self._variable.value())
        self._written = False
        return self._reads[-1]

    read_value = value

    def reads(self):
        """The tensors of all reads, for gradients."""
        return list(self._reads)

    def _write(self, how, value):
        if _in_body():  # written in the body, where its value is the new value
            getattr(self._variable, how)(plain(value))
            self._written = True
            return Operation(self.graph, Node(how, how, [], []), [], self._variable.value())
        with self._scope():
            getattr(self._variable, how)(plain(value))
            node = self.graph.node(self.graph._last_node())
        self._written = True
        if how == "assign":
            self.fills.add(node.name)
        return Operation(self.graph, node)

    def _scope(self):
        return self.graph.as_default() if _keel.written_graph() is None else contextlib.nullcontext()

    def _assigned(self, how, value):
        operation = self._write(how, value)
        if operation.value is None:
            operation.value = self.value()
        return operation

    def assign(self, value, **_):
        """An Operation, which a fetch runs; its value is the new value."""
        return self._assigned("assign", value)

    def assign_add(self, delta, **_):
        return self._assigned("assign_add", delta)

    def assign_sub(self, delta, **_):
        return self._assigned("assign_sub", delta)

    def eval(self, session=None):
        return evaluate(self, None, session)

    def get_shape(self):
        return self.shape

    def __repr__(self):
        return f"<tf.Variable {self.name!r} shape={shape_text(self.shape)} dtype={self.dtype.numpy_name}>"


def _install_operators():
    def forward(name):
        return lambda self, *args: getattr(self.value(), name)(*map(plain, args))
    unreadable = {"bool", "int", "float", "index", "array", "format", "eq", "ne"}
    for name in [f"__{n}__" for n in _BINARY + _OTHERS if n not in unreadable] + [f"__r{n}__" for n in _BINARY]:
        setattr(Variable, name, forward(name))


_install_operators()


def gradients(ys, xs, grad_ys=None, **_):
    """tf.gradients: a list with a tensor or None for each of xs, tensors and Variables."""
    if is_eager():
        raise RuntimeError("tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.")
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
