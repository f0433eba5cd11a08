"""Branches in a graph: both branches are traced, and values that differ become results of one node.

How to read it: branch() is the entry point; _Join finds the values that differ. Ended: how a piece of a loop body ended.
"""
import collections
import contextlib
import threading

from .. import _keel, errors
from ..shapes import zeros
from ..control import is_number, number_dtype
from .values import ANY, MISSING, Template, describe, tensor

_DEPTH = 32  # nesting limit of branches, as in plans
_TRACED = ("raised while a branch was traced: a tensor decides it, so both branches are traced; "
           "an assert is checked when the graph runs")
_thread = threading.local()


class Ended:
    """How a piece ended: early (by continue, break or return), stop (by break or return) and returned (with a value)
    are bool or bool[]; finished, of a loop: ended without break or return."""

    __slots__ = ("early", "stop", "returned", "value", "finished")

    def __init__(self, early, stop, returned, value=ANY, finished=False):
        self.early, self.stop, self.returned, self.value, self.finished = early, stop, returned, value, finished


@contextlib.contextmanager
def _one_deeper(where):
    _thread.depth = getattr(_thread, "depth", 0) + 1
    try:
        if _thread.depth > _DEPTH:
            raise errors.InvalidError(
                f"{where}: this `if` or `elif` is nested in {_DEPTH} others that depend on tensors; a graph has at most {_DEPTH} "
                "levels, and an elif counts as nested in the else before it", errors.Code.INVALID,
                hint="replace a chain of elif by a keel.switch(number, [functions]), or by two chains: the else of the first sets "
                     "found = False, the second is under `if not found`; replace recursion that ends by a tensor "
                     "by a keel.while_loop")
        yield
    finally:
        _thread.depth -= 1


@contextlib.contextmanager
def _annotated(where):
    """Adds a note to exceptions of the program: both branches are traced, since no value decides yet."""
    try:
        yield
    except Exception as e:
        known = any(_TRACED in note for note in getattr(e, "__notes__", ()))
        if hasattr(e, "add_note") and not isinstance(e, errors.Error) and not known:  # Python 3.11 has notes
            e.add_note(f"{where}: {_TRACED}")
        raise


def branch(test, then, otherwise, places, where):
    """then() if test, a bool[] of a trace, is true, else otherwise(); the same for the variables of places."""
    ways = _traced(then, otherwise, places, where)
    join = _Join(where)
    result = join.ends(*(way.end for way in ways))
    for way, other in (ways, reversed(ways)):
        _give_up(way, other.state)
    a, b = (way.state for way in ways)
    joined = {n: join.variable(n, a[n], b[n]) for n in places.names if a[n] is not b[n]}
    out = join.run(test, [way.body for way in ways])
    places.restore({n: a[n] for n in a if a[n] is b[n]})
    for name, template in joined.items():
        if isinstance(template, str):
            places.unset(name, f"{where}: `{name}` is set in one branch of an `if` only, {template}, and read later",
                         f"set it in both branches or before the `if`: a graph takes {name} from either branch")
        else:
            value = template.filled(out)
            places.set(name, MISSING if value is ANY else value)
    return result(out)


# A traced branch: its body, how it ended, and its variables at the end.
_Way = collections.namedtuple("_Way", "body end state")


def _traced(then, otherwise, places, where):
    before, containers, ways = places.values(), places.containers(), []
    with _one_deeper(where):
        for label, piece in (("then", then), ("else", otherwise)):
            body = _keel.Body(label, [], 0, True)
            try:
                with body, _annotated(where):
                    end = piece()
                    end = end if isinstance(end, Ended) else _keel.map_leaves(end, _read)
                ways.append(_Way(body, end, places.values()))
            finally:
                places.restore(before)
            places.check(containers, where)
    return ways


def _give_up(way, other):
    """Variables after an early end are not needed: drops the missing ones, or all of them after a return."""
    if isinstance(way.end, Ended) and way.end.early is True:
        for name, value in way.state.items():
            known = all(other[name] is not v for v in (MISSING, ANY, value))
            if known and (way.end.returned is True or value is MISSING):
                way.state[name] = ANY


def _read(leaf):
    return leaf.value() if isinstance(leaf, _keel.Variable) else leaf


class _Join:
    """Pairs the values of both branches: different values become results of the node."""

    def __init__(self, where):
        self._where, self._pairs = where, []

    def run(self, test, bodies):
        for k, body in enumerate(bodies):
            body.results([pair[k] for pair in self._pairs])
        return _keel.run_bodies("cond", [test], [], bodies, len(self._pairs), -1, False)

    def variable(self, name, a, b):
        """A Template, or a text that describes the branch that sets it."""
        if a is MISSING or b is MISSING:
            return "where the test is true" if b is MISSING else "where the test is false"
        return self.values(a, b, f"`{name}`")

    def ends(self, a, b):
        """A function from the node's results to the end of the branch that runs."""
        if not isinstance(a, Ended) and not isinstance(b, Ended):
            return self.values(a, b, "the returned value").filled
        a, b = (Ended(False, False, False) if e is None else e for e in (a, b))
        parts = [self.values(getattr(a, n), getattr(b, n), "the returned value") for n in Ended.__slots__[:4]]
        return lambda out: Ended(*(p.filled(out) for p in parts))

    def values(self, a, b, what):
        if a is b or a is ANY or b is ANY:
            return self._one_sided(a, b)
        if _keel.structure(a) != _keel.structure(b):
            self._fail(what, a, b, errors.InvalidError)
        others = iter(_keel.leaves(b))
        return Template(a, lambda leaf, place: self._leaf(leaf, next(others), what + place))

    def _one_sided(self, a, b):
        """A value of both branches, or of one branch and read only if that one was taken: the other supplies zeros."""
        def one(leaf, _):
            t = None if a is b else tensor(leaf)
            if t is None:
                return None
            other = zeros(t.shape, t.dtype)
            return self._pair(other, t) if a is ANY else self._pair(t, other)
        return Template(b if a is ANY else a, one)

    def _leaf(self, a, b, what):
        """The number of a result, or None if both branches have the same leaf."""
        if a is b or type(a) is type(b) and not isinstance(a, _keel.Tensor) and repr(a) == repr(b):
            return None
        found = [x if is_number(x) else tensor(x) for x in (a, b)]
        if any(f is None for f in found):
            self._fail(what, a, b, errors.InvalidError)
        typed = [x.dtype for x in found if not is_number(x)]
        dtype = typed[0] if typed else number_dtype([a, b])
        try:
            x, y = (_keel.array(v, dtype) if is_number(v) else v for v in found)
        except errors.Error:
            self._fail(what, a, b, errors.DTypeError)
        if x.type != y.type:
            self._fail(what, a, b, errors.DTypeError if x.dtype != y.dtype else errors.ShapeError)
        return self._pair(x, y)

    def _pair(self, a, b):
        self._pairs.append((a, b))
        return len(self._pairs) - 1

    def _fail(self, what, a, b, kind):
        hint = "make the types equal: t.astype(dtype) and keel.reshape(t, shape) change a tensor's"
        if a is None or b is None:
            hint = "where one branch returns or sets a value, the other must do so as well"
        raise kind(f"{self._where}: {what} differs between the branches of an `if` that a tensor decides: "
                   f"{describe(a)} where the test is true, {describe(b)} where it is false",
                   errors.Code.INVALID, hint=hint)
