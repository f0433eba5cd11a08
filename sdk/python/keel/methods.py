"""Methods of tensors that are written in Python: a new one is a function of TensorMethods, with its types.

The class is no base of keel.Tensor when programs run: its functions become methods of that type. Stubs inherit from it.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _keel


class TensorMethods:
    def eval(self: Any, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Of a tensor of a graph: its value, as keel.evaluate()."""
        from .session import evaluate
        return evaluate(self, feed_dict, session)


for _name, _method in vars(TensorMethods).items():
    if not _name.startswith("__"):
        _keel.add_method(_name, _method)
