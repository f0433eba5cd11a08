"""The types of decorators with TensorFlow's names: decorated functions keep their types."""
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from .. import Function

_P = ParamSpec("_P")
_R = TypeVar("_R")

class _Function(Function[_P, _R]):
    def __getattr__(self, name: str) -> Any: ...  # TensorFlow's attributes, such as get_concrete_function

@overload
def function(func: Callable[_P, _R], input_signature: Sequence[Any] | None = None, autograph: bool = True,
             jit_compile: bool | None = None, reduce_retracing: bool = False, **_: Any) -> _Function[_P, _R]: ...
@overload
def function(func: None = None, input_signature: Sequence[Any] | None = None, autograph: bool = True,
             jit_compile: bool | None = None, reduce_retracing: bool = False,
             **_: Any) -> Callable[[Callable[_P, _R]], _Function[_P, _R]]: ...
