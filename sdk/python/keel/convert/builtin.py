"""Python's built-in functions, also for tensors of a trace."""
import builtins
import functools

from .. import _keel
from .._keel import ops
from .iteration import enumerate, range, zip  # noqa: F401
from .values import symbolic, truth


def _extreme(python, pairwise, reduced, of_sizes):
    def extreme(*values, **options):
        if builtins.len(values) == 1 and isinstance(values[0], (tuple, list)) and any(map(_is_dim, values[0])):
            values = tuple(values[0])
        if not options and any(map(_is_dim, values)) and all(isinstance(v, (_keel.Dim, builtins.int)) for v in values):
            return functools.reduce(of_sizes, values)
        if not options and any(isinstance(v, _keel.Dim) or symbolic(v) for v in values):
            values = [ops.dim(v) if isinstance(v, _keel.Dim) else v for v in values]
            if builtins.len(values) == 1 and values[0].ndim == 1:
                return reduced(values[0])
            out = values[0]
            for value in values[1:]:
                out = pairwise(out, value)
            return out
        return python(*values, **options)
    return extreme


def _is_dim(value):
    return isinstance(value, _keel.Dim)


max = _extreme(builtins.max, ops.maximum, ops.reduce_max, _keel.dim_max)
min = _extreme(builtins.min, ops.minimum, ops.reduce_min, _keel.dim_min)


def len(value):
    return value.shape[0] if symbolic(value) and value.ndim else builtins.len(value)


def int(value=0, *more):
    if _is_dim(value) and not more:
        return value
    if not symbolic(value):
        return builtins.int(value, *more)
    return value.astype(_keel.i32) if value.dtype.name[0] in "fb" else value


def float(value=0.):
    if _is_dim(value):
        return value * 1.
    if not symbolic(value):
        return builtins.float(value)
    return value if value.dtype.name[0] in "fb" and value.dtype != _keel.bool_ else value.astype(_keel.f32)


def bool(value=False):
    return truth(value)
