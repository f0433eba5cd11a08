"""TensorFlow 1's names for type checkers: tensors are keel's, decorated functions keep their types, the rest is Any."""
from typing import Any

from .. import DType as DType, Tensor as Tensor
from .eager import function as function

def __getattr__(name: str) -> Any: ...
