"""Optimizers: update variables from gradients.

    adam = keel.optim.Adam(0.001)

    @keel.function
    def step(x, y):
        with keel.Tape() as tape:
            loss = loss_of(x, y)
        adam.apply(tape.gradient(loss, weights), weights)
        return loss

Works eagerly and in traced functions, where the update is part of the graph. The state of an optimizer (its slots) is
in variables, created for each variable at its first update: keel.save_checkpoint(path, {"weights": weights, "adam":
adam.state(weights)}) saves it. How to read it: Optimizer manages slots and the step count; a subclass is a formula.
"""
import math

from . import _keel
from ._keel import ops
from .errors import InvalidError
from .shapes import zeros


class Optimizer:
    """The base of SGD and Adam: a subclass lists its slots and implements _update().

    lr: a number; a tensor or a variable (which may change without a new trace); or a function from the number of completed
    steps, a float[], to one of these. Not thread-safe.
    """
    slots = ()      # shaped like the variable, initially zeros
    counts = False  # whether the formula uses the step number

    def __init__(self, lr):
        if not isinstance(lr, (int, float, _keel.Tensor, _keel.Variable)) and not callable(lr) and not hasattr(lr, "__array__"):
            raise TypeError(f"lr is a number, a tensor, a variable or a function of the number of completed steps, not {lr!r}")
        if isinstance(lr, (int, float)) and lr < 0:
            raise InvalidError(f"lr is {lr}, expected a learning rate of at least 0")
        self.lr = lr
        self._slots, self._steps = {}, None  # slots by variable id and slot name

    def apply(self, gradients, variables):
        """One step. gradients: tensors, structured as the variables, as returned by tape.gradient().

        Raises InvalidError if a gradient is None or their number differs from the variables'. A traced function creates
        slots in its first trace; later traces must not add variables.
        """
        pairs = _pairs(gradients, variables)
        steps = self._count(_widest(v for _, v in pairs))
        factors = self._factors(self.lr(steps) if callable(self.lr) else self.lr, steps)
        for gradient, variable in pairs:
            self._update(gradient, variable, *(_scalar(f, variable.dtype) for f in factors))

    def state(self, variables):
        """The state for these variables, created if missing, as a structure for checkpoints: for each slot name a list of
        variables, in the order of `variables`."""
        found = {name: [self._slot(name, v) for v in _variables(variables)] for name in self.slots}
        return {**found, "steps": self._step_count()} if self._is_counting() else found

    def _factors(self, lr, steps):
        """Factors common to all variables, numbers or scalars, for _update()."""
        return (lr,)

    def _update(self, gradient, variable, *factors):
        raise NotImplementedError

    def _slot(self, name, variable):
        key = variable.id, name
        if key not in self._slots:
            own = f"{variable.name}/{name}" if variable.name else ""
            self._slots[key] = _keel.Variable(zeros(variable.shape, variable.dtype), own, trainable=False)
        return self._slots[key]

    def _is_counting(self):
        return self.counts or callable(self.lr)

    def _step_count(self):
        if self._steps is None:
            self._steps = _keel.Variable(0, "steps", trainable=False)
        return self._steps

    def _count(self, dtype):
        """The number of completed steps."""
        if not self._is_counting():
            return None
        before = self._step_count().value()
        self._step_count().assign_add(1)
        return ops.cast(before, dtype)


class SGD(Optimizer):
    """Stochastic gradient descent: w -= lr * g; with momentum, w -= lr * v where v = momentum * v + g.

    nesterov: Nesterov momentum, w -= lr * (g + momentum * v). weight_decay: adds weight_decay * w to g.
    """

    def __init__(self, lr, momentum=0, nesterov=False, weight_decay=0):
        super().__init__(lr)
        if nesterov and not momentum:
            raise InvalidError("SGD: nesterov requires a momentum", hint="SGD(lr, momentum=0.9, nesterov=True)")
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay
        self.slots = ("momentum",) if momentum else ()

    def _update(self, gradient, variable, lr):
        if self.weight_decay:
            gradient = gradient + self.weight_decay * variable
        if self.momentum:
            velocity = self.momentum * self._slot("momentum", variable) + gradient
            self._slot("momentum", variable).assign(velocity)
            gradient = gradient + self.momentum * velocity if self.nesterov else velocity
        variable.assign(variable - lr * gradient)  # a graph fuses it into the product of the gradient


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015): steps by the running mean of the gradient over the root of the mean of its square.

    weight_decay: decoupled decay, w -= lr * weight_decay * w in addition (AdamW; Loshchilov and Hutter, 2019).
    """
    slots, counts = ("mean", "square"), True

    def __init__(self, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0):
        super().__init__(lr)
        for name, value in (("beta1", beta1), ("beta2", beta2)):
            if not 0 <= value < 1:
                raise InvalidError(f"Adam: {name} is {value}, expected 0 or more and below 1")
        self.beta1, self.beta2, self.eps, self.weight_decay = beta1, beta2, eps, weight_decay

    def _factors(self, lr, steps):
        lr = _scalar(lr, steps.dtype)
        return lr, lr / _reached(self.beta1, steps + 1), 1 / ops.sqrt(_reached(self.beta2, steps + 1))

    def _update(self, gradient, variable, lr, step, wider):
        mean = self._mean("mean", self.beta1, gradient, variable)
        square = self._mean("square", self.beta2, gradient * gradient, variable)
        off = step * mean / (ops.sqrt(square) * wider + self.eps)
        variable.assign(variable - (off + lr * self.weight_decay * variable if self.weight_decay else off))

    def _mean(self, name, beta, x, variable):
        mean = beta * self._slot(name, variable) + (1 - beta) * x
        self._slot(name, variable).assign(mean)
        return mean


def _reached(beta, steps):
    """1 - beta ** steps: the factor by which a running mean that started at 0 is too small.

    Through tanh: beta ** steps is close to 1 at first, and the difference would lose most digits.
    """
    if not beta:
        return ops.cast(_keel.array(1), steps.dtype)
    half = ops.tanh(-0.5 * math.log(beta) * steps)
    return 2 * half / (1 + half)


def _widest(variables):
    return _keel.f64 if any(v.dtype is _keel.f64 for v in variables) else _keel.f32


def _scalar(value, dtype):
    """Numbers stay literals."""
    return value if isinstance(value, (int, float)) else ops.cast(_keel.array(value), dtype)


def clip_by_global_norm(gradients, most):
    """Scales the gradients by one factor so that their global norm, the root of the sum of all squares, is at most `most`.
    Returns them in the same structure (None stays None), and the norm before."""
    given = [g for g in _keel.leaves(gradients) if g is not None]
    if not given:
        raise InvalidError("clip_by_global_norm: there are no gradients")
    norm = ops.sqrt(sum((ops.reduce_sum(ops.square(g)) for g in given[1:]), ops.reduce_sum(ops.square(given[0]))))
    scale = most / ops.maximum(norm, most)
    return _keel.map_leaves(gradients, lambda g: None if g is None else g * ops.cast(scale, g.dtype)), norm


def _variables(variables):
    found = _keel.leaves(variables)
    for v in found:
        if not isinstance(v, _keel.Variable):
            raise InvalidError(f"an optimizer changes variables, got {type(v).__name__}")
    return found


def _pairs(gradients, variables):
    gs, vs = _keel.leaves(gradients), _variables(variables)
    if len(gs) != len(vs):
        raise InvalidError(f"{len(gs)} gradients for {len(vs)} variables")
    for (place, _), (other, v) in zip(_keel.places(gradients), _keel.places(variables)):
        if place != other:
            raise InvalidError(f"the gradients do not have the structure of the variables: a gradient is at {place or 'the top'}, "
                               f"variable {v.name} at {other or 'the top'}",
                               hint="use the result of tape.gradient(loss, variables)")
    for k, (g, v) in enumerate(zip(gs, vs)):
        if g is None:
            raise InvalidError(f"variable {v.name or k} has no gradient: the target does not depend on it",
                               hint="omit it, or use tape.gradient(loss, variables, zeros=True)")
    return list(zip(gs, vs))
