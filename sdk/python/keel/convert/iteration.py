"""Iterables of loops in a graph: the rows of tensors, and ranges with tensors or sizes as ends.

Each has a count (an int, a keel.Dim or a tensor; negative for none; None: that of the others), the tensors whose rows
are operands of a scan, and entries by number. Python iteration over one (a comprehension, list(), *) is unrolled.
"""
import builtins
import itertools
import sys

from .. import _keel, errors
from .._keel import ops
from .source import is_own

_TENSORS = (_keel.Tensor, _keel.Variable)
_SIZES = _TENSORS + (_keel.Dim,)


def graph_iterable(value):
    """The iterable for a loop in the graph, or None for iterables that Python unrolls."""
    if isinstance(value, (Range, Zip)):
        return value
    return Rows(value) if isinstance(value, _TENSORS) and _keel.writes() else None


class Rows:
    even = True  # all parts have the same number of entries

    def __init__(self, x):
        self._x = x.value() if isinstance(x, _keel.Variable) else x
        if not self._x.ndim:
            raise errors.ShapeError("a loop over a tensor iterates over its first dim, but this tensor is a scalar, "
                                    f"{self._x.type}", errors.Code.INVALID, hint="use for i in range(n) to count")
        self.count, self.tensors, self.counts = self._x.shape[0], [self._x], False

    def at(self, k):
        return ops.gather(self._x, k, axis=0)

    def entry(self, k, rows):
        return next(rows)

    def __iter__(self):
        return iter(self._x)


class Range:
    """Numbers of a dtype: start, start + step, ..."""

    even = True

    def __init__(self, *ends, count=None):
        start, stop, step = self._ends = (0, ends[0], 1) if len(ends) == 1 else (*ends, 1)[:3]
        if isinstance(step, int) and not step:
            raise ValueError("range() arg 3 must not be zero")
        self.tensors, self.counts, self._start, self._step = [], True, _scalar(start), _scalar(step)
        self.dtype = next((t.dtype for t in (start, stop, step) if isinstance(t, _TENSORS)), _keel.i32)
        self.count = count if stop is None else self._number(start, stop, step)

    @staticmethod
    def _number(start, stop, step):
        sizes = all(isinstance(v, (int, _keel.Dim)) for v in (start, stop, step))
        if isinstance(step, int) and step == 1 and isinstance(start, int) and start == 0:
            return stop if sizes else _scalar(stop)
        start, stop, step = map(_scalar, (start, stop, step))
        if isinstance(step, int):
            start, stop, step = (start, stop, step) if step > 0 else (stop, start, -step)
            return (stop - start + (step - 1)) // step if step > 1 else stop - start
        return ((stop - start) * ops.sign(step) + ops.abs(step) - 1) // ops.abs(step)

    def at(self, k):
        k = k.astype(self.dtype)
        k = k if isinstance(self._step, int) and self._step == 1 else k * self._step
        return k if isinstance(self._start, int) and self._start == 0 else k + self._start

    def entry(self, k, rows):
        return self.at(k)

    def __iter__(self):
        if any(isinstance(end, _TENSORS) for end in self._ends):
            raise errors.PreconditionError(
                f"{_line()}: Python cannot iterate over range() of a traced tensor: only the run knows its length",
                hint="use the statement `for i in range(n):`, which becomes a loop of the graph, not a comprehension or list(range(n)); "
                     "keel.scan stacks results")
        start, stop, step = self._ends
        return itertools.count(start, step) if stop is None else iter(builtins.range(start, stop, step))


class Zip:
    def __init__(self, *parts):
        self._parts = parts
        counts = [p.count for p in parts if p.count is not None]
        self.count = counts[0]
        for count in counts[1:]:
            self.count = _shorter(self.count, count)
        self.tensors = [t for p in parts for t in p.tensors]
        self.counts = any(p.counts for p in parts)
        self.even = all(_same(p.count, self.count) for p in parts if p.tensors)

    def at(self, k):
        return tuple(p.at(k) for p in self._parts)

    def entry(self, k, rows):
        return tuple(p.entry(k, rows) for p in self._parts)

    def __iter__(self):
        return builtins.zip(*self._parts)


def _line():
    """The current line of user code."""
    frame = sys._getframe(1)
    while is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _scalar(value):
    if isinstance(value, _keel.Dim):
        return ops.dim(value)
    return value.value() if isinstance(value, _keel.Variable) else value


def _same(a, b):
    return not isinstance(a, _TENSORS) and not isinstance(b, _TENSORS) and repr(a) == repr(b)


def _shorter(a, b):
    if isinstance(a, int) and isinstance(b, int):
        return builtins.min(a, b)
    if _same(a, b):
        return a
    a, b = _scalar(a), _scalar(b)
    typed = next(t.dtype for t in (a, b) if isinstance(t, _keel.Tensor))
    return ops.minimum(_keel.array(a, typed), _keel.array(b, typed))


def range(*ends):
    graph = _keel.writes() and any(isinstance(e, _SIZES) for e in ends)
    return Range(*ends) if graph else builtins.range(*ends)


def enumerate(over, start=0):
    found = graph_iterable(over)
    return Zip(Range(start, None, 1), found) if found else builtins.enumerate(over, start)


def zip(*all, **options):
    found = [graph_iterable(x) for x in all]
    if not all or None in found:
        return builtins.zip(*all, **options)
    return Zip(*found)
