"""The source conversion of keel.function: if, while, for, and, or, not and assert that depend on tensors become parts
of the graph; all other code runs as Python during the trace.

    print(keel.convert.to_code(f))      # the converted source
    @keel.convert.skip                  # excludes a function from conversion
    keel.convert.reached(f)             # for libraries that call user functions: f, converted during a trace

How to read it: `import keel` loads this file only. build.py makes converted functions: source.py finds the syntax tree,
statements.py and expressions.py rewrite it, with jumps.py, names.py, liveness.py and scopes.py. The rewritten code
calls runtime.py: branches.py, loops.py with carry.py, and iteration.py write the graph; state.py has the variables
that pieces share, values.py their values.
"""
import threading
import types

__all__ = ["reached", "skip", "to_code"]

_HEADER = "# keel_ calls these functions as Python does, or adds them to a graph if a tensor decides\n"
_thread = threading.local()  # active: a function with conversion is being traced


def skip(function):
    """A decorator: excludes the function from conversion."""
    function.keel_convert = False
    return function


def reached(f):
    """The function to call for f: converted if f is user code and a conversion is active, else f."""
    if not getattr(_thread, "active", False):
        return f
    from .build import call
    return call(f)


def to_code(f):
    """The converted source of a function, a method, a lambda or a keel.function, as a str.

    Raises keel.InvalidError if it has no source.
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
    """run(code) during a trace, with the code converted if `on`. Internal."""
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
