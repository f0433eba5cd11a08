"""The extension. What programs use of it is typed in keel/__init__.pyi."""
from typing import Any

def __getattr__(name: str) -> Any: ...
