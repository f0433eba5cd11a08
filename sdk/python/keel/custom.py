"""Functions with a user-defined gradient.

    @keel.custom_gradient
    def clipped(x):
        return keel.identity(x), lambda dy: keel.clamp(dy, -1, 1)

Works eagerly under tapes, in traced and in saved functions.
"""
import functools

from . import _keel
from .control import is_number, rebuild
from .errors import InvalidError


def custom_gradient(code=None, backward=None, *, name=None):
    """A function of tensors with a user-defined gradient; a decorator, or custom_gradient(code, backward).

    Without backward, code returns (y, grad), and grad(dy) the gradient of its argument, or a tuple with one per argument.
    With backward, code returns y alone, and backward(x..., y, dy) the gradients. Arguments are tensors or convert to
    tensors; y is a tensor or a structure of tensors; dy has its structure, with None for results that are not
    floating-point. A gradient has the dtype and shape of its argument; None means zeros. Prints and writes of the backward
    code are dropped.

    Second-order gradients differentiate the ops of backward, with respect to its arguments. Captures of grad are constants
    there; pass backward separately if that is not enough. Captured variables and tensors of code get the gradient of its
    ops (keel.stop_gradient(w): none). Raises InvalidError for a wrong number of gradients.
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
    """The value of code, and back(xs, y, dy) for its gradient. Ops of code pass no gradient to the arguments."""
    made = code(*[_keel.ops.stop_gradient(x) if _is_float(x) else x for x in xs])
    if backward is not None:
        return made, lambda xs, y, dy: backward(*xs, y, dy)
    if not (isinstance(made, tuple) and len(made) == 2 and callable(made[1])):
        raise InvalidError("custom_gradient: the function must return a value and a gradient function",
                           hint="return y, grad with grad(dy) the gradient; or use custom_gradient(f, backward)")
    return made[0], lambda xs, y, dy: made[1](dy)


def _custom(name, xs, y, back):
    """The results as operands of the node, too, so that their gradients flow on to the captures of code."""
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
    """One gradient for each floating-point argument."""
    if len(made) != len(xs):
        raise InvalidError(f"custom_gradient: {name} returns {len(made)} gradients for {len(xs)} arguments",
                           hint="return one for each argument, None for zeros and for arguments that are not floating-point")
    return [_of_type(x, dx) for x, dx in zip(xs, made) if _is_float(x)]


def _of_type(x, dx):
    if dx is None:
        return _keel.ops.fill(_keel.array(0, x.dtype), x.shape)
    return _keel.array(dx, x.dtype if is_number(dx) else None)


def _is_float(tensor):
    return tensor.dtype.kind == "f"
