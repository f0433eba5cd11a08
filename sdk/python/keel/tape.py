"""Gradients: tapes that record what a program computes, and functions made of them.

    with keel.Tape() as tape:
        tape.watch(x)                    # variables are watched by themselves
        loss = keel.reduce_sum(x * x)
    dx = tape.gradient(loss, x)

The same program gives the same gradients eagerly and in a traced function. None where a target does not depend on a
source; zeros=True gives zeros there.
"""
import contextlib

from . import _keel
from .convert import reached
from .errors import InvalidError


class Tape(_keel.Tape):
    """Records the ops and calls of its thread between the ends of a with block; asks are answered at any time.

    persistent: gradients may be asked for more than once. watch_accessed_variables: trainable ones, when they are
    read. Nested tapes give gradients of gradients.
    """

    def __enter__(self):
        self._enter()
        return self

    def __exit__(self, *_):
        self._leave()

    @contextlib.contextmanager
    def stop_recording(self):
        """Within it this tape records nothing; others do."""
        self._stop()
        try:
            yield
        finally:
            self._go_on()

    def gradient(self, targets, sources, seeds=None, zeros=False):
        """Of the sum of all elements of all targets, with the structure of the sources (tensors and variables).

        seeds: a tensor for each target that says what its elements count. Raises PreconditionError for the second
        time on a tape that is not persistent.
        """
        ys = [_keel.array(y) for y in _keel.leaves(targets)]
        weights = [] if seeds is None else [_keel.array(s) for s in _keel.leaves(seeds)]
        if weights and len(weights) != len(ys):
            raise ValueError(f"{len(weights)} seeds for {len(ys)} targets")
        found = iter(self._gradient(ys, _keel.leaves(sources), weights, zeros))
        return _keel.map_leaves(sources, lambda _: next(found))

    def jacobian(self, target, sources, zeros=False):
        """The derivatives of each element of the target with respect to each element of each source: the dims of
        the target, then those of the source, at most 8. Costs a gradient for each element of the target."""
        found = iter(self._jacobian(_keel.array(target), _keel.leaves(sources), zeros))
        return _keel.map_leaves(sources, lambda _: next(found))


def value_and_grad(f, argnums=0, has_aux=False):
    """A function that gives what f returns, and the gradient of its sum with respect to the argument of that number
    (or, with a tuple of numbers, a tuple of gradients), with the structure of the argument; zeros where there is none.

    f returns one tensor. has_aux: it returns a pair, of which the first is that tensor; the second is any structure,
    which passes no gradient: ((loss, aux), gradient)."""
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
    """The one tensor that gradients are of."""
    name = getattr(f, "__name__", "the function")
    if has_aux and not (isinstance(out, tuple) and len(out) == 2):
        raise InvalidError(f"{name} returns {type(out).__name__}, and has_aux wants a pair",
                           hint="return loss, aux")
    loss = out[0] if has_aux else out
    if (count := len(_keel.leaves(loss))) != 1:
        raise InvalidError(f"{name} returns {count} tensors, and a gradient is that of one",
                           hint="keel.value_and_grad(f, has_aux=True) is for a pair (loss, anything else); "
                                "to differentiate a sum, return the sum")
    return loss


def grad(f, argnums=0, has_aux=False):
    """As value_and_grad(), the gradient alone; with has_aux (gradient, aux)."""
    both = value_and_grad(f, argnums, has_aux)

    def gradient(*args, **keywords):
        out, found = both(*args, **keywords)
        return (found, out[1]) if has_aux else found
    return gradient


def jacobian(f, x):
    """Of code that makes one tensor of a tensor, at x; zeros where nothing depends on it."""
    x = _tensor(x)
    with Tape() as tape:
        tape.watch(x)
        y = _loss(reached(f)(x), False, f)
    return tape.jacobian(y, x, zeros=True)


def _tensor(leaf):
    return leaf if isinstance(leaf, _keel.Variable) else _keel.array(leaf)
