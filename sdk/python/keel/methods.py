"""Methods of tensors written in Python: the functions of TensorMethods, with their types.

The functions become methods of keel.Tensor; the class is its base in the stubs only.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _keel


class TensorMethods:
    def eval(self: Any, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """The value of a tensor of a graph, as keel.evaluate()."""
        from .session import evaluate
        return evaluate(self, feed_dict, session)


for _name, _method in vars(TensorMethods).items():
    if not _name.startswith("__"):
        _keel.add_method(_name, _method)
