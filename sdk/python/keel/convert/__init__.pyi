"""The types of keel.convert's public names."""
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = ["reached", "skip", "to_code"]

def reached(f: _F) -> _F: ...
def skip(function: _F) -> _F: ...
def to_code(f: Callable[..., Any]) -> str: ...
