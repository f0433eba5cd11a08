"""The extension. Its public names are typed in keel/__init__.pyi."""
from typing import Any

def __getattr__(name: str) -> Any: ...
