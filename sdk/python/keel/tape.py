"""Gradients: tapes that record computations, and functions for gradients.

    with keel.Tape() as tape:
        tape.watch(x)                    # trainable variables are watched automatically
        loss = keel.reduce_sum(x * x)
    dx = tape.gradient(loss, x)

Eager and traced programs have the same gradients. None if a target does not depend on a source; zeros=True gives
zeros instead.
"""
import contextlib

from . import _keel
from .convert import reached
from .errors import InvalidError


class Tape(_keel.Tape):
    """Records the ops and calls of its thread inside a with block; gradients may be taken inside or after it.

    persistent: more than one gradient() call. watch_accessed_variables: watches trainable variables when they are read.
    Nested tapes give gradients of gradients. Recorded values stay allocated until the gradient, reset() or deletion.
    """

    def __enter__(self):
        self._enter()
        return self

    def __exit__(self, *_):
        self._leave()

    @contextlib.contextmanager
    def stop_recording(self):
        """Pauses this tape in a with block; other tapes keep recording."""
        self._stop()
        try:
            yield
        finally:
            self._go_on()

    def gradient(self, targets, sources, seeds=None, zeros=False):
        """The gradient of the sum of all elements of all targets, structured as the sources (tensors and variables).

        seeds: a tensor per target with the weights of its elements. Raises PreconditionError at a second call on a tape
        that is not persistent.
        """
        ys = [_keel.array(y) for y in _keel.leaves(targets)]
        weights = [] if seeds is None else [_keel.array(s) for s in _keel.leaves(seeds)]
        if weights and len(weights) != len(ys):
            raise ValueError(f"{len(weights)} seeds for {len(ys)} targets")
        found = iter(self._gradient(ys, _keel.leaves(sources), weights, zeros))
        return _keel.map_leaves(sources, lambda _: next(found))

    def jacobian(self, target, sources, zeros=False):
        """The Jacobian of the target for each source, of shape dims of the target + dims of the source, at most 8 dims. Costs
        one gradient per element of the target."""
        found = iter(self._jacobian(_keel.array(target), _keel.leaves(sources), zeros))
        return _keel.map_leaves(sources, lambda _: next(found))


def value_and_grad(f, argnums=0, has_aux=False):
    """A function that returns f's result, and the gradient of its sum with respect to argument argnums (for a tuple of
    numbers a tuple of gradients), structured as the argument; zeros for independent elements.

    f returns one tensor. has_aux: f returns a pair (tensor, any structure); the second part passes no gradient. The result
    is ((loss, aux), gradient)."""
    def both(*args, **keywords):
        several = isinstance(argnums, tuple)
        numbers = argnums if several else (argnums,)
        values = [_keel.map_leaves(a, _tensor) if k in numbers else a for k, a in enumerate(args)]
        with Tape() as tape:
            for k in numbers:
                for leaf in _keel.leaves(values[k]):
                    tape.watch(leaf)
            out = reached(f)(*values, **keywords)
        loss = _loss(out, has_aux, f)
        found = tape.gradient(loss, tuple(values[k] for k in numbers), zeros=True)
        return out, found if several else found[0]
    return both


def _loss(out, has_aux, f):
    """The tensor to differentiate."""
    name = getattr(f, "__name__", "the function")
    if has_aux and not (isinstance(out, tuple) and len(out) == 2):
        raise InvalidError(f"{name} returns {type(out).__name__}; has_aux requires a pair",
                           hint="return loss, aux")
    loss = out[0] if has_aux else out
    if (count := len(_keel.leaves(loss))) != 1:
        raise InvalidError(f"{name} returns {count} tensors; a gradient requires one",
                           hint="use keel.value_and_grad(f, has_aux=True) for a pair (loss, anything else); "
                                "to differentiate a sum, return the sum")
    return loss


def grad(f, argnums=0, has_aux=False):
    """As value_and_grad(), without the value; with has_aux (gradient, aux)."""
    both = value_and_grad(f, argnums, has_aux)

    def gradient(*args, **keywords):
        out, found = both(*args, **keywords)
        return (found, out[1]) if has_aux else found
    return gradient


def jacobian(f, x):
    """The Jacobian at x of f, from one tensor to one tensor; zeros for independent elements."""
    x = _tensor(x)
    with Tape() as tape:
        tape.watch(x)
        y = _loss(reached(f)(x), False, f)
    return tape.jacobian(y, x, zeros=True)


def _tensor(leaf):
    return leaf if isinstance(leaf, _keel.Variable) else _keel.array(leaf)
