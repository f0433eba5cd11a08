"""Functions that bring their gradient themselves.

    @keel.custom_gradient
    def clipped(x):
        return keel.identity(x), lambda dy: keel.clamp(dy, -1, 1)

The same eagerly under tapes, in traced functions and in what is saved of them.
"""
import functools

from . import _keel
from .control import is_number, rebuild
from .errors import InvalidError


def custom_gradient(code=None, backward=None, *, name=None):
    """A function of tensors whose gradient is not that of its ops; a decorator, or custom_gradient(code, backward).

    Alone, code gives (y, grad), and grad(dy) gives the gradient of its argument, or a tuple with one for each. With
    backward, code gives y alone, and backward(x..., y, dy) the gradients. Arguments are tensors, or what becomes
    one; y is a tensor or a structure of tensors, and so is dy, with None for results that are no floats. A gradient
    has the type of its argument; None means zeros. What the two print or write on the way back is left out.

    Gradients of gradients differentiate backward's ops, with respect to its arguments. What grad uses of the code
    around it counts as constant there: give backward apart where that is not enough. Variables and other tensors that
    code uses beside its arguments get the gradient of its ops (keel.stop_gradient(w): none).
    """
    if code is None:
        return functools.partial(custom_gradient, backward=backward, name=name)
    name = name or getattr(code, "__name__", "custom").replace("<lambda>", "custom")

    @functools.wraps(code)
    def call(*args):
        xs = [_keel.array(a) for a in args]
        y, back = _forward(code, backward, xs)
        return _custom(name, xs, y, back)
    return call


def _forward(code, backward, xs):
    """What the code gives, and its way back: back(xs, y, dy). No gradient of its ops reaches the arguments."""
    made = code(*[_keel.ops.stop_gradient(x) if _is_float(x) else x for x in xs])
    if backward is not None:
        return made, lambda xs, y, dy: backward(*xs, y, dy)
    if not (isinstance(made, tuple) and len(made) == 2 and callable(made[1])):
        raise InvalidError("custom_gradient: the function gives no pair of a value and a function",
                           hint="return y, grad where grad(dy) gives the gradient; or give custom_gradient(f, backward)")
    return made[0], lambda xs, y, dy: made[1](dy)


def _custom(name, xs, y, back):
    """The results again. They are arguments too, and what arrives at them goes on: to what the code used beside xs."""
    y = _keel.map_leaves(y, _keel.array)
    ys = _keel.leaves(y)
    floats = [r for r in ys if _is_float(r)]

    def backward(leaves):
        rest = iter(leaves)
        given = [next(rest) for _ in xs]
        for _ in floats:
            next(rest)
        results = [next(rest) for _ in ys]
        arrived = [next(rest) if _is_float(r) else None for r in results]
        made = back(given, rebuild(y, results), rebuild(y, arrived))
        made = _gradients(name, given, list(made) if isinstance(made, (tuple, list)) else [made])
        return made + [dy for dy in arrived if dy is not None]
    return rebuild(y, _keel.custom(name, xs + floats, ys, backward))


def _gradients(name, xs, made):
    """One for each argument that is a float."""
    if len(made) != len(xs):
        raise InvalidError(f"custom_gradient: {name} gives {len(made)} gradients for {len(xs)} arguments",
                           hint="give one for each, None for zeros and for what is no float")
    return [_of_type(x, dx) for x, dx in zip(xs, made) if _is_float(x)]


def _of_type(x, dx):
    if dx is None:
        return _keel.ops.fill(_keel.array(0, x.dtype), x.shape)
    return _keel.array(dx, x.dtype if is_number(dx) else None)


def _is_float(tensor):
    return tensor.dtype.kind == "f"
