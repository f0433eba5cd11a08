"""The source conversion of keel.function: if, while, for, and, or, not and assert that depend on tensors become parts
of the graph; all else runs as Python while the function is traced.

    print(keel.convert.to_code(f))      # what is made of f
    @keel.convert.skip                  # a function that runs as it is
    keel.convert.reached(f)             # for code that calls functions of its user: converted, while it is traced

How to read it: build.py makes converted functions: source.py finds the syntax tree, statements.py and expressions.py
rewrite it, with jumps.py, names.py, liveness.py and scopes.py. What they write calls runtime.py: branches.py, loops.py
with carry.py, and iteration.py write the graph; state.py has the variables that pieces share, values.py what they hold.
"""
import types

from . import build
from .build import reached, skip

__all__ = ["reached", "skip", "to_code"]

_HEADER = "# keel_ calls these functions as Python would, or writes them into a graph where a tensor decides\n"


def to_code(f):
    """The converted source of a function, a method, a lambda or what keel.function made of one, as a str.

    Raises keel.InvalidError where there is no source to convert.
    """
    import ast
    from .. import errors
    from . import source
    f = getattr(f, "__func__", f)
    f = getattr(f, "_code", f)
    if type(f) is not types.FunctionType:
        raise errors.InvalidError(f"keel.convert.to_code() takes a function of Python, not {type(f).__name__}")
    try:
        text = ast.unparse(build.rewritten(f))
    except source.NoSource as e:
        raise errors.InvalidError(f"{f.__qualname__} cannot be converted: {e}") from None
    return (_HEADER if "keel_." in text else "") + text + "\n"


def traced(code, on, run):
    """run(code) while a graph is written, with the code converted if it is on. Not for programs."""
    before = build.switched(on)
    try:
        if not on:
            return run(code)
        from .state import explained
        with explained():
            return run(build.entry(code))
    except Exception as e:
        from ..errors import Error
        e.__traceback__ = build.own_frames_dropped(e.__traceback__, isinstance(e, Error))
        raise
    finally:
        build.switched(before)
