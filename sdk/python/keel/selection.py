"""Functions whose result has a size that depends on the data, by the ops nonzero and unique: NumPy's forms of them.

In a traced function such a size is a symbol of its own. Each result waits for its size, also on a device. Loops and
branches may use these functions, but not return a tensor of such a size: UnimplementedError.
"""
from . import _keel
from ._keel import ops
from .errors import InvalidError


def true_places(x):
    """The places of the elements that are true, or other numbers than zero, in row-major order: i64[m]."""
    return ops.reshape(ops.nonzero(ops.reshape(x, [-1])), [-1])


def nonzero(x):
    """The indices of the elements of x that are not zero, in row-major order: a tuple with one i64[m] for each dim of x,
    as numpy.nonzero(). x: a tensor or numbers with at least one dim. NaN is not zero. Raises InvalidError for a scalar."""
    return _indices("nonzero: x", x)


def where(condition, x=None, y=None):
    """where(condition): the indices of the elements that are true (or a number other than zero), as numpy.where(): the tuple of
    keel.nonzero(), so that with one dim x[keel.where(x > 0)] and otherwise keel.gather_nd(x, keel.stack(keel.where(x > 0), 1))
    are the positive elements of x, whose gradients pass through. where(condition, x, y) is keel.select(condition, x, y).
    Raises InvalidError for a scalar condition without x and y, and for one of x and y without the other."""
    if (x is None) != (y is None):
        raise InvalidError(f"where: {'x' if x is None else 'y'} is missing; expected a condition alone, or a condition, x and y")
    return _indices("where: condition", condition) if x is None else ops.select(condition, x, y)


def _indices(operand, x):
    """The indices of the elements of x that are not zero; operand: how messages call x."""
    x = _keel.array(x)
    if x.ndim == 0:
        raise InvalidError(f"{operand} is {x.dtype.name}[], expected at least one dim; reshape it to [1] first")
    rest, found = true_places(x), []
    for size in reversed(x.shape[1:]):  # a row of ops.nonzero(x) each, without copies of rows
        number = ops.dim(size)
        found.append(rest % number)
        rest = rest // number
    return (rest, *reversed(found))


def compress(condition, x, axis=None):
    """The slices of x along axis (None: the elements of x in row-major order) whose entry of condition is true, as
    numpy.compress(): condition is bool[k], and entries from k on are left out. Raises InvalidError if condition is not
    bool[k], RangeError if k is larger than the axis and such an entry is true."""
    x, condition = _keel.array(x), _keel.array(condition)
    if condition.ndim != 1 or condition.dtype != "bool":
        raise InvalidError(f"compress: condition has dtype {condition.dtype.name} and {condition.ndim} dims, expected bool[k]")
    if axis is None:
        x, axis = ops.reshape(x, [-1]), 0
    return ops.gather(x, true_places(condition), axis=axis)


def unique(x, return_index=False, return_inverse=False, return_counts=False):
    """The different elements of x, sorted, as numpy.unique(): T[m]. With flags a tuple: the elements, then the index of the
    first occurrence of each (i64[m]), for each element of x its place in the result (i64, with the shape of x), and the
    number of occurrences of each (i64[m]). Every NaN is an element of its own."""
    x = _keel.array(x)
    values, first, inverse, counts = ops.unique(ops.reshape(x, [-1]))
    if return_inverse:
        inverse = ops.reshape(inverse, x.shape)
    wanted = [(True, values), (return_index, first), (return_inverse, inverse), (return_counts, counts)]
    results = [result for flag, result in wanted if flag]
    return results[0] if len(results) == 1 else tuple(results)
