"""Types of keel/optim.py."""
from collections.abc import Callable
from typing import Any, TypeAlias

from . import Tensor, Variable

_Rate: TypeAlias = float | Tensor | Variable | Callable[[Tensor], Tensor | float]

class Optimizer:
    """The base of SGD and Adam: a subclass lists its slots and implements the update."""
    slots: tuple[str, ...]
    counts: bool
    lr: _Rate
    def __init__(self, lr: _Rate) -> None: ...
    def apply(self, gradients: Any, variables: Any) -> None: ...
    def state(self, variables: Any) -> dict[str, Any]: ...

class SGD(Optimizer):
    """w -= lr * g; with momentum, w -= lr * v where v = momentum * v + g."""
    momentum: float
    nesterov: bool
    weight_decay: float
    def __init__(self, lr: _Rate, momentum: float = 0, nesterov: bool = False, weight_decay: float = 0) -> None: ...

class Adam(Optimizer):
    """Adam; with weight_decay AdamW."""
    beta1: float
    beta2: float
    eps: float
    weight_decay: float
    def __init__(self, lr: _Rate = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
                 weight_decay: float = 0) -> None: ...

def clip_by_global_norm(gradients: Any, most: float) -> tuple[Any, Tensor]: ...
