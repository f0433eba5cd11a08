"""Branches and loops that depend on tensors.

    y = keel.cond(x > 0, lambda: x, lambda: 0)
    i, p = keel.while_loop((0, x), lambda i, p: i < n, lambda i, p: (i + 1, p * x))
    total, all = keel.scan(keel.zeros(3), rows, lambda s, row: (s + row, s))

Eagerly the code runs on numbers, as if and while of Python do. In a traced function each piece becomes a body of one
node and runs once, while the body is written. Tensors that it captures become operands. The result types must agree
between branches, and with the carried operands of a loop.
"""
from . import _keel
from .convert import reached
from .errors import InvalidError, RangeError, ShapeError
from .shapes import stack


def is_number(leaf):
    return isinstance(leaf, (bool, int, float))


def _tensor(leaf):
    return leaf if leaf is None else _keel.array(leaf)


def _operands(value):
    """The structure with tensors for numbers and for lists of numbers."""
    if isinstance(value, list) and all(map(is_number, _keel.leaves(value))):
        return _keel.array(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_make"):
        return type(value)(map(_operands, value))
    return {k: _operands(v) for k, v in value.items()} if isinstance(value, dict) else _keel.map_leaves(value, _tensor)


def _tensors(value):
    return [leaf for leaf in _keel.leaves(value) if leaf is not None]


def rebuild(like, tensors):
    found = iter(tensors)
    return _keel.map_leaves(like, lambda leaf: None if leaf is None else next(found))


def _decide(what, value, dtypes):
    if value.ndim or value.dtype not in dtypes:
        wanted = " or ".join(f"{d}[]" for d in dtypes)
        raise InvalidError(f"{what} is {value.type}, expected {wanted}")
    return value.item()


def number_dtype(numbers):
    return _keel.array([float(n) if isinstance(n, float) else n for n in numbers]).dtype


def _literals_settled(results):
    """Numbers among the results of branches take the dtype of the corresponding tensors of other branches."""
    columns = list(zip(*[_keel.leaves(r) for r in results]))
    dtypes = []
    for column in columns:
        typed = [leaf.dtype for leaf in column if isinstance(leaf, (_keel.Tensor, _keel.Variable))]
        dtypes.append(typed[0] if typed else number_dtype([n for n in column if is_number(n)] or [0]))
    settled = []
    for result in results:
        place = iter(dtypes)
        settled.append(_keel.map_leaves(
            result, lambda leaf: _keel.array(leaf, next(place)) if is_number(leaf) else (next(place), _tensor(leaf))[1]))
    return settled


def _branches(op, labels, selector, branches):
    bodies, results = [], []
    for label, code in zip(labels, map(reached, branches)):
        body = _keel.Body(label, [], 0, True)
        with body:
            results.append(_keel.map_leaves(code(), lambda x: x.value() if isinstance(x, _keel.Variable) else x))
        bodies.append(body)
    if len({_keel.structure(r) for r in results}) > 1:
        raise InvalidError(f"{op}: branches return different structures")
    results = _literals_settled(results)
    for body, result in zip(bodies, results):
        body.results(_tensors(result))
    return rebuild(results[0], _keel.run_bodies(op, [selector], [], bodies, len(_tensors(results[0])), -1, False))


def cond(p, then, otherwise):
    """then() if p, a bool[], is true, else otherwise(). Both return a tensor, a structure of tensors or None, with equal types.

    A number is a literal: in a trace it takes the dtype of the other branch's result.
    """
    p = _keel.array(p)
    if p.symbolic:
        return _branches("cond", ("then", "else"), p, (then, otherwise))
    taken = then if _decide("cond: the predicate", p, (_keel.bool_,)) else otherwise
    return _keel.map_leaves(taken(), _tensor)


def switch(i, branches):
    """The result of branches[i](), i an i32[] or i64[]; all have equal types. Raises RangeError for an i out of range."""
    i = _keel.array(i)
    if not branches:
        raise InvalidError("switch: there are no branches")
    if i.symbolic:
        return _branches("switch", [f"branches{k}" for k in range(len(branches))], i, branches)
    at = _decide("switch: the index", i, (_keel.i32, _keel.i64))
    if not 0 <= at < len(branches):
        raise RangeError(f"switch: index {at} is not in [0, {len(branches)})")
    return _keel.map_leaves(branches[at](), _tensor)


def _call(code, carry):
    return code(*carry) if type(carry) is tuple else code(carry)


def _carried(carry, made, what):
    """The results of a body, with literals converted to the carried dtypes. Raises ShapeError if a type differs."""
    if _keel.structure(carry) != _keel.structure(made):
        raise InvalidError(f"{what}: the body must return the structure of its carried values")
    before = iter(_keel.leaves(carry))

    def settled(leaf):
        like = next(before)
        return _keel.array(leaf, like.dtype if is_number(leaf) else None)
    made = _keel.map_leaves(made, settled)
    for k, (a, b) in enumerate(zip(_keel.leaves(carry), _keel.leaves(made))):
        if a.type != b.type:
            raise ShapeError(f"{what}: result {k} of the body is {b.type} but the carried operand is {a.type}")
    return made


def while_loop(init, test, body):
    """carry = body(carry) while test(carry), a bool[], is true; a tuple is passed as separate arguments.

    init: a tensor or a structure of tensors and numbers; body must return the same dtypes and shapes.
    """
    carry = _operands(init)
    like = _keel.leaves(carry)
    if any(t is None for t in like):
        raise InvalidError("while: the carried values include None; they must be tensors and numbers")
    if not _keel.writes() and not any(t.symbolic for t in like):
        while _decide("while: the test", _keel.array(_call(test, carry)), (_keel.bool_,)):
            carry = _carried(carry, _call(body, carry), "while")
        return carry
    test, body = reached(test), reached(body)
    tested, looped = _keel.Body("test", like, len(like), False), _keel.Body("body", like, len(like), False)
    with tested as params:
        more = _keel.array(_call(test, rebuild(carry, params)))
    tested.results([more])
    with looped as params:
        made = _carried_symbolic(carry, _call(body, rebuild(carry, params)))
    looped.results(_keel.leaves(made))
    return rebuild(carry, _keel.run_bodies("while", like, [], [tested, looped], len(like), -1, False))


def _carried_symbolic(carry, made):
    if _keel.structure(carry) != _keel.structure(made):
        raise InvalidError("the body must return the structure of its carried values")
    before = iter(_keel.leaves(carry))
    return _keel.map_leaves(made, lambda leaf: _keel.array(leaf, (next(before).dtype, None)[not is_number(leaf)]))


def _pair(made):
    if not isinstance(made, tuple) or len(made) != 2:
        raise InvalidError(f"scan: the body must return (carry, y), not {type(made).__name__}")
    return made


def scan(init, xs, body, length=-1, reverse=False):
    """(carry, y) = body(carry, entry) for each entry along the first dim of the tensors of xs.

    Returns the last carry, and all y stacked along a new first dim in the order of the entries. xs may be None, with a
    length. reverse: starts with the last entry. Raises ShapeError if tensors of xs have different numbers of entries.
    """
    carry, over = _operands(init), _operands(xs)
    like, entries = _keel.leaves(carry), _tensors(over)
    if _keel.writes() or any(t.symbolic for t in like + entries):
        return _scan_written(carry, over, body, length, reverse)
    for x in entries:
        if not x.ndim:
            raise ShapeError("scan: an operand is a scalar and has no dim to scan over")
        length = len(x) if length == -1 else length
        if len(x) != length:
            raise ShapeError(f"scan: an operand has {len(x)} entries, not {length}")
    if length < 0:
        raise InvalidError("scan: there is no operand to scan over; set length")
    if not length:  # only a trace infers the stacked types
        from .function import Function
        return Function(lambda c, x: scan(c, x, body, length, reverse), "scan", {})(carry, over)
    stacks, order = [None] * length, range(length)
    for k in reversed(order) if reverse else order:
        made, stacks[k] = _pair(body(carry, _keel.map_leaves(over, lambda x: None if x is None else x[k])))
        carry = _carried(carry, made, "scan")
    columns = [stack(column) for column in zip(*[_tensors(y) for y in stacks])]
    return carry, rebuild(stacks[0], columns)


def _scan_written(carry, over, body, length, reverse):
    like, entries = _keel.leaves(carry), _tensors(over)
    looped = _keel.Body("body", like + entries, len(like), False)
    with looped as params:
        made, ys = _pair(reached(body)(rebuild(carry, params[:len(like)]), rebuild(over, params[len(like):])))
        made, ys = _carried_symbolic(carry, made), _keel.map_leaves(ys, _tensor)
    results = _keel.leaves(made) + _tensors(ys)
    looped.results(results)
    out = _keel.run_bodies("scan", like, entries, [looped], len(results), length, reverse)
    return rebuild(carry, out[:len(like)]), rebuild(ys, out[len(like):])
