"""Converted functions: made at the first trace, once for each code object, and with the cells, defaults and globals of
the function itself."""
import ast
import builtins
import functools
import threading
import types

from . import expressions, names, source

_FLAGS = 0x1FF0000  # of `from __future__ import ...`
_made = {}          # (code, file) -> (converted code or None, why not)
_ours = set()       # ids of converted code objects, which live in _made
_thread = threading.local()


def skip(function):
    """A decorator: the function runs as it is, also while it is traced."""
    function.keel_convert = False
    return function


def active():
    """Is a function that wants conversion being traced on this thread?"""
    return getattr(_thread, "active", False)


def switched(on):
    """Sets active(); returns what it was."""
    before, _thread.active = active(), on
    return before


def reached(f):
    """What a call of f calls while a graph is written: converted, if f is a user's code and conversion is active."""
    return call(f) if active() else f


def call(f):
    kind = type(f)
    if kind is types.FunctionType:
        return f if source.is_library(f.__code__.co_filename) else convert(f)
    if kind is types.MethodType:
        inner = call(f.__func__)
        return f if inner is f.__func__ else types.MethodType(inner, f.__self__)
    if kind is functools.partial:
        return functools.partial(call(f.func), *f.args, **f.keywords)
    if isinstance(f, (type, types.BuiltinFunctionType)):
        return f
    inner = getattr(kind, "__call__", None)
    return types.MethodType(call(inner), f) if type(inner) is types.FunctionType else f


def entry(f):
    """As call(), of a function that asked for it: libraries may have such, too."""
    is_function = type(f) is types.FunctionType and not source.is_own(f.__code__.co_filename)
    return convert(f) if is_function else call(f)


def convert(f):
    """The function converted; the function itself where nothing in it needs that, or its source is not to be had."""
    code = f.__code__
    if id(code) in _ours or f.__dict__.get("keel_convert") is False:
        return f
    made = _converted(f)[0]
    if made is None:
        return f
    cells = dict(zip(code.co_freevars, f.__closure__ or ()))
    cells[expressions.RUNTIME] = _runtime()
    out = types.FunctionType(made, f.__globals__, f.__name__, f.__defaults__, tuple(cells[n] for n in made.co_freevars))
    out.__kwdefaults__, out.__qualname__, out.__module__, out.__doc__ = f.__kwdefaults__, f.__qualname__, f.__module__, f.__doc__
    out.__annotations__ = f.__annotations__
    out.__dict__.update(f.__dict__)
    return out


def why_not(f):
    """Why the code of f runs unconverted, or "" """
    return _made.get((f.__code__, f.__code__.co_filename), (None, ""))[1]


@functools.lru_cache(maxsize=1)
def _runtime():
    from . import runtime
    return types.CellType(runtime)


def _converted(f):
    key = (f.__code__, f.__code__.co_filename)
    if key not in _made:
        try:
            made, why = _compiled(f, rewritten(f)), ""
            _register(made)
        except source.NoSource as e:
            made, why = None, str(e)
        _made[key] = made, why
    return _made[key]


def _register(code):
    _ours.add(id(code))
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            _register(const)


def rewritten(f):
    """The FunctionDef or Lambda of f, converted. Raises NoSource."""
    from . import statements
    node, code = source.tree_of(f.__code__), f.__code__
    if code.co_flags & 0x2A0:  # a generator, or asynchronous
        raise source.NoSource("it is a generator or asynchronous: such code runs as it is")
    local = set(code.co_freevars) | {n for inner in ast.walk(node) for n in _bound_by(inner)}

    def known(name):
        return None if name in local else f.__globals__.get(name, getattr(builtins, name, None))
    if isinstance(node, ast.Lambda):
        return expressions.Expressions(known).visit(node)
    node.decorator_list = []
    statements.convert(node, known)
    return node


def _bound_by(node):
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name] + (names.parameters(node.args) if isinstance(node, ast.FunctionDef) else [])
    return names.parameters(node.args) if isinstance(node, ast.Lambda) else [node.asname or node.name] if isinstance(node, ast.alias) else []


def _compiled(f, node):
    """The code of the rewritten node, compiled amid functions and classes that give it its free and mangled names."""
    outer, code = f.__qualname__.split(".")[:-1], f.__code__
    inner = ast.Expr(node) if isinstance(node, ast.Lambda) else node
    if outer and outer[-1] != "<locals>":
        inner = ast.ClassDef(outer[-1], [], [], [inner], [])
    free = [ast.arg(n) for n in code.co_freevars + (expressions.RUNTIME,) if n != "__class__" or inner is node]
    around = ast.FunctionDef("around", ast.arguments([], free, None, [], [], None, []), [inner], [], None)
    tree = ast.Module([expressions.located(around, node)], [])
    found = compile(tree, code.co_filename, "exec", flags=code.co_flags & _FLAGS, dont_inherit=True)
    while found.co_name != code.co_name or found.co_firstlineno != node.lineno or "around" == found.co_name:
        found = next(c for c in found.co_consts if isinstance(c, types.CodeType))
    first = min(code.co_firstlineno, found.co_firstlineno)
    more = {"co_qualname": code.co_qualname} if hasattr(code, "co_qualname") else {}
    return found.replace(co_firstlineno=first, **more)
