"""Sessions of TensorFlow 1: run() returns NumPy arrays, feeds are cast, errors have TensorFlow's texts.

How to read it: Session.run, then needed(), which finds the nodes that the fetches need.
"""
import re

from .. import _keel, session as _session
from ..errors import Code, InvalidError, PreconditionError, UnimplementedError
from . import errors
from .graphs import Graph, Operation, get_default_graph, plain
from .printing import shape_text
from .variables import Variable

_SHORT = {"float16": "half", "float32": "float", "float64": "double"}  # dtypes in TensorFlow's messages


class ConfigProto:
    """tf.ConfigProto: any fields; a session uses the number of threads, refuses a cluster, and ignores the rest."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __getattr__(self, name):  # unset fields are created on access: config.gpu_options.allow_growth = True
        if name.startswith("_"):
            raise AttributeError(name)
        made = self.__dict__[name] = ConfigProto()
        return made


GPUOptions = ConfigProto


def no_cluster(what):
    return UnimplementedError(f"{what}: clusters are not supported; all devices are on this machine",
                              Code.UNIMPLEMENTED, hint="omit target and cluster_def")


def _options(target, config):
    fields = vars(config) if config is not None else {}
    if target or fields.get("cluster_def"):
        raise no_cluster(f"Session(target={target!r})" if target else "ConfigProto(cluster_def=...)")
    threads = fields.get("intra_op_parallelism_threads", 0)
    return {"threads": threads} if threads else {}


class Session(_session.Session):
    """tf.Session."""

    def __init__(self, target="", graph=None, config=None):
        graph = get_default_graph() if graph is None else graph
        if not isinstance(graph, Graph):
            raise TypeError(f"graph must be a tf.Graph, but got {type(graph)}")
        super().__init__(graph, **_options(target, config))
        self._scopes, self._closed = [], False

    def __enter__(self):
        self._scopes.append(self.graph.as_default())
        self._scopes[-1].__enter__()
        return super().__enter__()

    def __exit__(self, *problem):
        super().__exit__(*problem)
        self._scopes.pop().__exit__(*problem)
        self.close()

    def close(self):
        self._closed = True

    def as_default(self):
        """with session.as_default(): as `with session:`, but leaves it open."""
        return _Open(self)

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Values of tensors, Operations (None), Variables and names, in any structure, as NumPy arrays and scalars."""
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        wanted = _keel.map_leaves(fetches, self._fetched)
        leaves = _keel.leaves(wanted)
        targets = [target for leaf in leaves if isinstance(leaf, Operation) for target in leaf.targets]
        values = {self._name(t): t for t in map(_value_of, leaves) if t is not None}
        feeds = {self._key(key): value for key, value in (feed_dict or {}).items()}
        targets = self._checked(list(values), targets, feeds)
        try:
            got = dict(zip(values, super().run(list(values.values()), feeds, targets)))
        except InvalidError as error:
            raise _as_tensorflow(error) from None
        for variable in self.graph.variables:
            variable.ready = variable.ready or not variable.fills.isdisjoint(targets)
        return _keel.map_leaves(wanted, lambda leaf: self._given(leaf, got))

    def _given(self, leaf, got):
        value = _value_of(leaf)
        if value is None:
            return None
        array = got[self._name(value)].numpy()
        return array[()] if not array.ndim else array.copy()

    def _fetched(self, leaf):
        """The tensor or Operation of a fetch."""
        if isinstance(leaf, Variable):
            return leaf.value()
        if isinstance(leaf, str):
            return self.graph.get_tensor_by_name(leaf) if ":" in leaf else self.graph.get_operation_by_name(leaf)
        if isinstance(leaf, Operation) or isinstance(leaf, _keel.Tensor) and leaf.symbolic:
            if leaf.graph is not self.graph if isinstance(leaf, Operation) else not self.graph._owns(leaf):
                raise ValueError(f"Fetch argument {leaf!r} cannot be interpreted as a Tensor. (It is not an element of "
                                 "this graph.)")
            return leaf
        raise TypeError(f"Fetch argument {leaf!r} has invalid type {type(leaf).__name__}, must be a string, a Tensor "
                        "or an Operation")

    def _key(self, key):
        return self._name(plain(key)) if not isinstance(key, str) else key

    def _fed(self, name, value):
        tensor, shape = super()._fed(name, value), self.graph.value(name).shape
        fits = tensor.ndim == len(shape) and all(not isinstance(d, int) or d == n for n, d in zip(tensor.shape, shape))
        if not fits:
            raise ValueError(f"Cannot feed value of shape {shape_text(tensor.shape)} for Tensor "
                             f"{name if ':' in name else name + ':0'}, which has shape {shape_text(shape)}")
        return tensor

    def _checked(self, fetches, targets, feeds):
        """The targets including control_dependencies. Raises if an uninitialised variable is needed."""
        graph = self.graph
        waiting = {t: v for v in graph.variables if not v.ready for t in map(graph.name_of, v.reads())}
        if not waiting and not graph.dependencies:
            return targets
        targets, found = needed(graph, fetches, targets, feeds)
        for name in found & waiting.keys():
            variable = waiting[name]
            if variable.fills.isdisjoint(targets):
                raise errors.of(PreconditionError, f"Attempting to use uninitialized value {variable.name[:-2]}",
                                Code.PRECONDITION)
        return targets


class _Open:
    def __init__(self, session):
        self._session = session

    def __enter__(self):
        return _session.Session.__enter__(self._session)

    def __exit__(self, *problem):
        _session.Session.__exit__(self._session, *problem)


class InteractiveSession(Session):
    """tf.InteractiveSession: the default session of its thread until close()."""

    def __init__(self, target="", graph=None, config=None):
        super().__init__(target, graph, config)
        _session.Session.__enter__(self)

    def close(self):
        if not self._closed:
            _session.Session.__exit__(self)
        super().close()


def get_default_session():
    return _session.default_session()


def _value_of(leaf):
    return leaf.value if isinstance(leaf, Operation) else leaf


def _as_tensorflow(error):
    """The error of a missing feed in TensorFlow's words; any other error unchanged."""
    found = re.match(r'You must feed a value for parameter "(.*)", which is (\w+)\[(.*)\]', error.message)
    if not found:
        return error
    name, dtype, sizes = found.groups()
    dtype = getattr(_keel, dtype if dtype != "bool" else "bool_").numpy_name
    sizes = re.sub(r"[a-z]\w*", "?", sizes).replace(" ", "")
    return errors.of(InvalidError, f"You must feed a value for placeholder tensor '{name}' with dtype "
                                   f"{_SHORT.get(dtype, dtype)} and shape [{sizes}]")


def needed(graph, fetches, targets, fed):
    """All targets, including control_dependencies, and the names of all values that a run computes."""
    nodes = graph._nodes()
    maker = {name: k for k, node in enumerate(nodes) for name in (node[0], *node[3])}
    targets, seen, found = list(targets), set(), set()
    waiting = [*fetches, *targets]
    while waiting:
        name = waiting.pop()
        if name in found or name in fed:
            continue
        found.add(name)
        k = maker.get(name)
        if k is None or k in seen:
            continue
        seen.add(k)
        more = [t for first, end, needs in graph.dependencies if first <= k < end for t in needs if t not in targets]
        targets += more
        waiting += [*nodes[k][2], *more]
    return targets, found
