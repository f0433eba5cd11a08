"""The functions that converted code calls: each does the same as Python's statement or operator, or, if a tensor
decides, adds it to the graph being traced.

How to read it: in the order if, loops, ends of pieces, operators. Pieces are functions that share the variables of the
user's function; names lists the variables that may be read later. Built-in functions are in builtin.py, call in build.py.
"""
import builtins
import operator
import threading

from .. import _keel
from .._keel import ops
from ..control import is_number
from .branches import Ended, branch
from .build import call  # noqa: F401
from .builtin import bool, enumerate, float, int, len, max, min, range, zip  # noqa: F401
from .iteration import graph_iterable
from .loops import repeat, walk
from .state import Places
from .values import symbolic, truth, where

_thread = threading.local()
BREAK, CONTINUE = Ended(True, True, False), Ended(True, False, False)


def Return(value):
    """The end of a piece that returns from the user's function."""
    return Ended(True, True, True, value)


def if_(test, then, otherwise, *names):
    """then() if test, else otherwise(), which may be None: the returned value, or how the piece ended."""
    test = truth(test, then)
    if test is True:
        return then()
    if test is False:
        return otherwise() if otherwise else None
    pieces = [p for p in (then, otherwise) if p]
    return branch(test, then, otherwise or _nothing, Places(pieces, names), where(then))


def _nothing():
    return None


def while_(test, body, *names):
    """A Python loop until a tensor decides it, from then on a loop of the graph. Returns how it ended."""
    while True:
        more = truth(test(), test)
        if more is False:
            return None
        if more is not True:
            return _repeated(more, test, body, names)
        ended = body()
        if ended is not None and symbolic(ended.stop):
            return _ended(_unless_stopped(ended, lambda: _rest(test, body, names), body, names))
        if ended is not None and ended.stop:
            return _ended(ended)


def _repeated(first, test, body, names):
    return repeat(first, lambda: truth(test(), test), body, Places([test, body], names), where(body), body)


def _rest(test, body, names):
    """The rest of a loop as one step."""
    loop = _repeated(truth(test(), test), test, body, names)
    stopped = not_(loop.finished)
    return Ended(stopped, stopped, loop.returned, loop.value)


def for_(over, body, *names):
    """body(entry) for each entry. Returns how the loop ended."""
    found, ended = graph_iterable(over), None
    if found is not None:
        return walk(found, body, Places([body], names), where(body), body)
    for entry in over:
        if ended is not None and symbolic(ended.stop):
            ended = _unless_stopped(ended, lambda: body(entry), body, names)  # noqa: B023  called immediately
        else:
            ended = body(entry)
        if ended is not None and ended.stop is True:
            break
    return ended and _ended(ended)


def _unless_stopped(ended, step, body, names):
    """How step() ends, unless the loop has already stopped, which a tensor decides."""
    stopped = Ended(True, True, ended.returned, ended.value)
    return branch(ended.stop, lambda: stopped, step, Places([body], names), where(body))


def _ended(step):
    """The end of a loop from the end of its last step: break ends only this loop."""
    return Ended(step.returned, step.returned, step.returned, step.value, not_(step.stop))


def finished(ended):
    """Whether the loop ended without break or return."""
    return ended is None or ended.finished


def unless_returned(ended, rest=_nothing, *names):
    """The returned value if the piece has returned, else rest()."""
    return _unless(ended, "returned", lambda: ended.value, rest, names)


def unless_ended(ended, rest=_nothing, *names):
    """How the piece ended if it ended early, else how rest() ends."""
    return _unless(ended, "early", lambda: ended, rest, names)


def _unless(ended, flag, kept, rest, names):
    ended_there = ended is not None and getattr(ended, flag)
    if not symbolic(ended_there):
        return kept() if ended_there else rest()
    return branch(ended_there, kept, rest, Places([rest], names), where(rest))


def returned(ended):
    return ended.value


def ended_by_return(ended):
    return Ended(True, True, True, ended.value)


def choose(test, then, otherwise):
    """then() if test else otherwise()"""
    return if_(test, then, otherwise)


def and_(a, *others):
    for k, other in builtins.enumerate(others):
        test = truth(a, other)
        if symbolic(test):
            return _both(test, a, lambda: and_(other(), *others[k + 1:]), False, where(other))
        if not test:
            return a
        a = other()
    return a


def or_(a, *others):
    for k, other in builtins.enumerate(others):
        test = truth(a, other)
        if symbolic(test):
            return _both(test, a, lambda: or_(other(), *others[k + 1:]), True, where(other))
        if test:
            return a
        a = other()
    return a


def _both(test, a, other, ends, place):
    """a if it decides, else other(): of their common type, or bools."""
    alike = []

    def second():
        b = other()
        alike.append(not is_number(b) and getattr(b, "type", None) == getattr(a, "type", ""))
        return b if alike[0] else truth(b, other)
    test = ops.logical_not(test) if ends else test
    return branch(test, second, lambda: a if alike[0] else ends, Places([], ()), place)


def not_(value):
    test = truth(value)
    return ops.logical_not(test) if symbolic(test) else not test


_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
            "!=": operator.ne, "is": operator.is_, "is not": operator.is_not,
            "in": lambda a, b: a in b, "not in": lambda a, b: a not in b}


def compare(a, how, other, *more):
    """a < b <= c: how, a function for b, and so on."""
    b = other()
    made = _COMPARE[how](a, b)
    return and_(made, lambda: compare(b, *more)) if more else made


def assert_(test, message=None):
    test = truth(test)
    if symbolic(test):
        text, values = _message(message) if message else ("", [])
        _keel.assert_(test, text, *values)
    elif not test:
        raise AssertionError(*([message()] if message else []))


def _message(message):
    """The text of an assertion in a graph, and the tensors shown after it on failure."""
    before, _thread.holes = getattr(_thread, "holes", None), []
    try:
        text = message()
        return ("", [text]) if symbolic(text) else (str(text), _thread.holes)
    finally:
        _thread.holes = before


class _Hole(str):
    """The source text of a value that only the run knows: !r and formats do not apply."""
    __repr__ = str.__str__

    def __format__(self, spec):
        return str(self)


def hole(value, source):
    """The text for a value in an f-string."""
    value = value.value() if isinstance(value, _keel.Variable) else value
    if not symbolic(value) or getattr(_thread, "holes", None) is None:
        return value
    _thread.holes.append(value)
    return _Hole(source)
