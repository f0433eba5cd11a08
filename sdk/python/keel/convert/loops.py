"""Loops in a graph. A loop's body is traced once; again if the first trace finds another dtype for a carried number, or
the type of a `return` in the loop.

How to read it: repeat() writes a `while` that carries: a continue flag, how the body ended, and variables (carry.py);
walk() iterates over a graph's iterable, with a `scan` if the body has no jumps.
"""
from .. import _keel, errors
from .._keel import ops
from .branches import Ended, branch
from .carry import Carry, TraceAgain
from .values import ANY


def mentions(code, name):
    return name in code.co_names or any(mentions(c, name) for c in code.co_consts if isinstance(c, type(code)))


def repeat(first, proceeds, step, places, where, body, counter=None):
    """A loop of step(). first: whether to run the first step. proceeds(): whether to continue after a step that did not stop.

    counter: an optional carried number, passed to proceeds and step. Returns how the loop ended, as branches.Ended, or None if
    the body has no jumps.
    """
    returns = mentions(body.__code__, "Return")
    jumps = returns or mentions(body.__code__, "BREAK")
    carry = Carry(places, where)
    return _until_typed(carry, lambda: _written(first, proceeds, step, carry, places, where, counter, jumps, returns))


def _until_typed(carry, write):
    while True:
        try:
            return write()
        except TraceAgain:
            pass
        except errors.DTypeError:
            if not carry.probe():
                raise


def _written(first, proceeds, step, carry, places, where, counter, jumps, returns):
    flags = [_keel.array(False)] * (jumps + returns)
    head = [_keel.array(first)] + flags + ([] if counter is None else [counter])
    like, n = head + carry.first(), len(head)
    tested, looped = _keel.Body("test", like, len(like), False), _keel.Body("body", like, len(like), False)
    with tested as params:
        pass
    tested.results([params[0]])
    try:
        with looped as params:
            carry.enter(params[n:])
            number = [] if counter is None else [params[n - 1]]
            ended = step(*number) or Ended(False, False, False)
            more = _continues(ended.stop, lambda: proceeds(*number), places, where)
            unset = carry.unset_found(None)
            results = [more] + [ended.stop, ended.returned][:jumps + returns] + [k + 1 for k in number]
            results += carry.made(params[n:], like[n:], ended.value)
            results = [_keel.array(r) for r in results]
    finally:
        places.restore(carry.before)
    looped.results(results)
    out = _keel.run_bodies("while", like, [], [tested, looped], len(like), -1, False)
    value = carry.leave(out[n:], unset)
    returned = out[2] if returns else False
    return Ended(returned, returned, returned, value, ops.logical_not(out[1])) if jumps else None


def _continues(stop, proceeds, places, where):
    if stop is False:
        return proceeds()
    return False if stop is True else branch(stop, lambda: False, proceeds, places, where)


def walk(over, step, places, where, body):
    """step(entry) for each entry of a graph's iterable."""
    jumps = mentions(body.__code__, "Return") or mentions(body.__code__, "BREAK")
    if jumps or isinstance(over.count, _keel.Tensor) or not over.even:
        count = ops.dim(over.count) if isinstance(over.count, _keel.Dim) else over.count
        zero = _keel.array(0, count.dtype if isinstance(count, _keel.Tensor) else _keel.i32)
        return repeat(zero < count, lambda k: k + 1 < count, lambda k: step(over.at(k)), places, where, body, zero)
    carry = Carry(places, where)
    return _until_typed(carry, lambda: _scanned(over, step, carry, places))


def _scanned(over, step, carry, places):
    head = [_keel.array(0, _keel.i32)] if over.counts else []
    like, n = head + carry.first(), len(head)
    looped = _keel.Body("body", like + over.tensors, len(like), False)
    try:
        with looped as params:
            carry.enter(params[n:len(like)])
            step(over.entry(params[0] if n else None, iter(params[len(like):])))
            unset = carry.unset_found(over.count)
            results = [params[0] + 1] * n + carry.made(params[n:len(like)], like[n:], ANY)
    finally:
        places.restore(carry.before)
    looped.results(results)
    length = -1 if over.tensors else over.count
    out = _keel.run_bodies("scan", like, over.tensors, [looped], len(like), length, False)
    carry.leave(out[n:], unset)
