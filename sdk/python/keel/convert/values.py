"""Python values and their counterparts in a graph.

How to read it: tensor() and truth() convert a value for a graph. Template is a value with numbered slots for its
tensors. describe() formats a value for messages, where() the position of a piece.
"""
from .. import _keel, errors
from .._keel import ops
from ..control import is_number
from ..shapes import zeros

MISSING = object()  # the value of an unset variable
ANY = object()      # a value that is never read


def symbolic(value):
    return isinstance(value, _keel.Tensor) and value.symbolic


def truth(value, place=None):
    """bool(value), or a bool[] of the trace. place: a piece at the position of the test, for messages."""
    if isinstance(value, _keel.Variable):
        value = value.value()
    if isinstance(value, _keel.Dim):
        value = ops.dim(value)
    if not symbolic(value):
        return bool(value)
    if value.ndim and value.size != 1:
        at = f"{where(place)}: " if place else ""
        hint = "reduce it first: keel.reduce_min(t) is true if all are, keel.reduce_max(t) if any is"
        raise errors.ShapeError(f"{at}a condition is one value, but this tensor is {value.type}", errors.Code.INVALID,
                                hint=hint)
    value = ops.reshape(value, ()) if value.ndim else value
    return value if value.dtype == _keel.bool_ else ops.not_equal(value, 0)


def tensor(value):
    """The tensor of a leaf that converts to one and is not a number, else None."""
    if isinstance(value, _keel.Tensor):
        return value
    if isinstance(value, (_keel.Dim, Zeros)):
        return ops.dim(value) if isinstance(value, _keel.Dim) else value.make()
    return _keel.array(value) if hasattr(value, "__array__") and not isinstance(value, _keel.Variable) else None


class Zeros:
    """Zeros of a tensor's type, to be created later in another trace."""

    def __init__(self, like):
        self._shape, self._dtype = like.shape, like.dtype

    def make(self):
        return zeros(self._shape, self._dtype)


def as_zeros(value):
    """The value with tensors replaced by Zeros."""
    def one(leaf):
        found = tensor(leaf)
        return leaf if found is None else Zeros(found)
    return _keel.map_leaves(value, one)


class _Slot:
    def __init__(self, index):
        self.index = index


class Template:
    """A value with slots for the leaves for which take(leaf, path) returns a number."""

    def __init__(self, value, take):
        places = iter([place for place, _ in _keel.places(value)])

        def one(leaf):
            index = take(leaf, next(places))
            return leaf if index is None else _Slot(index)
        self._value = value if value is ANY else _keel.map_leaves(value, one)

    def filled(self, tensors):
        """The value with tensors in its slots."""
        if self._value is ANY:
            return ANY
        return _keel.map_leaves(self._value, lambda x: tensors[x.index] if type(x) is _Slot else x)

    def numbers(self):
        """The slot number of each leaf, or None."""
        return [x.index if type(x) is _Slot else None for x in _keel.leaves(self._value)]


def describe(value):
    if value is None or value is MISSING:
        return "nothing"
    if isinstance(value, _keel.Tensor):
        return value.type
    if is_number(value):
        return repr(value)
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(describe, value))
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {describe(v)}" for k, v in value.items()) + "}"
    return repr(value)[:60]


def where(piece):
    return f"{piece.__code__.co_filename}:{piece.__code__.co_firstlineno}"
