"""The source conversion of keel.function: if, while, for, and, or, not and assert that depend on tensors become parts
of the graph; all else runs as Python while the function is traced.

    print(keel.convert.to_code(f))      # what is made of f
    @keel.convert.skip                  # a function that runs as it is
    keel.convert.reached(f)             # for code that calls functions of its user: converted, while it is traced

How to read it: this file is all that an import of keel loads. build.py makes converted functions: source.py finds the
syntax tree, statements.py and expressions.py rewrite it, with jumps.py, names.py, liveness.py and scopes.py. What they
write calls runtime.py: branches.py, loops.py with carry.py, and iteration.py write the graph; state.py has the
variables that pieces share, values.py what they hold.
"""
import threading
import types

__all__ = ["reached", "skip", "to_code"]

_HEADER = "# keel_ calls these functions as Python would, or writes them into a graph where a tensor decides\n"
_thread = threading.local()  # active: a function that wants conversion is being traced


def skip(function):
    """A decorator: the function runs as it is, also while it is traced."""
    function.keel_convert = False
    return function


def reached(f):
    """What a call of f calls while a graph is written: converted, if f is a user's code and conversion is active."""
    if not getattr(_thread, "active", False):
        return f
    from .build import call
    return call(f)


def to_code(f):
    """The converted source of a function, a method, a lambda or what keel.function made of one, as a str.

    Raises keel.InvalidError where there is no source to convert.
    """
    import ast
    from .. import errors
    from . import build, source
    while not isinstance(f, types.FunctionType) and (inner := getattr(f, "__func__", getattr(f, "_code", None))):
        f = inner
    if type(f) is not types.FunctionType:
        raise errors.InvalidError(f"keel.convert.to_code() takes a function of Python, not {type(f).__name__}")
    try:
        text = ast.unparse(build.rewritten(f))
    except source.NoSource as e:
        raise errors.InvalidError(f"{f.__qualname__} cannot be converted: {e}") from None
    return (_HEADER if "keel_." in text else "") + text + "\n"


def traced(code, on, run):
    """run(code) while a graph is written, with the code converted if it is on. Not for programs."""
    before, _thread.active = getattr(_thread, "active", False), on
    try:
        return _explained(code, run) if on else run(code)
    finally:
        _thread.active = before


def _explained(code, run):
    from ..errors import Error
    from . import build
    from .state import explained
    try:
        with explained():
            return run(build.entry(code))
    except Exception as e:
        e.__traceback__ = build.own_frames_dropped(e.__traceback__, isinstance(e, Error))
        raise
