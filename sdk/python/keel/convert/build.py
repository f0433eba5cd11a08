"""Converted functions: made at the first trace, once per code object, with the cells, defaults and globals of the
original function.

How to read it: call() finds the function to call; convert() makes a converted function; rewritten() its syntax tree, and
_compiled() its code. At the end: notes for errors in converted and unconverted code.
"""
import __future__

import ast
import builtins
import functools
import inspect
import types
from traceback import walk_tb

from . import expressions, source

_FUTURE = functools.reduce(int.__or__, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_made = {}  # (code, file) -> (converted code or None, why not)
_ours = {}  # converted code objects and their nested ones, by id


def call(f):
    """f with its user code converted: a function, a method, a partial or a callable object."""
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
    """As call(), for an explicitly converted function, which may be in a library."""
    is_function = type(f) is types.FunctionType and not source.is_own(f.__code__.co_filename)
    return convert(f) if is_function else call(f)


def convert(f):
    """The converted function; f itself if it needs no conversion or has no source."""
    code = f.__code__
    if id(code) in _ours or f.__dict__.get("keel_convert") is False:
        return f
    made = _converted(f)[0]
    if made is None:
        return f
    cells = dict(zip(code.co_freevars, f.__closure__ or ()))
    cells[expressions.RUNTIME] = _runtime()
    out = types.FunctionType(made, f.__globals__, f.__name__, f.__defaults__, tuple(cells[n] for n in made.co_freevars))
    for name in ("__kwdefaults__", "__qualname__", "__module__", "__doc__", "__annotations__"):
        setattr(out, name, getattr(f, name))
    out.__dict__.update(f.__dict__)
    return out


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
    _ours[id(code)] = code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            _register(const)


def rewritten(f):
    """The FunctionDef or Lambda of f, converted. Raises NoSource."""
    from . import statements
    node, code = source.tree_of(f.__code__, f.__globals__), f.__code__
    if code.co_flags & _SUSPENDS:
        raise source.NoSource("it is a generator or asynchronous; such code is not converted")
    names = _Names(f, node)
    if isinstance(node, ast.Lambda):
        return expressions.Expressions(names).visit(node)
    node.decorator_list = []
    statements.convert(node, names)
    return node


def _class_of(f):
    """The name of the class that defines the function, or None."""
    around = getattr(f.__code__, "co_qualname", f.__qualname__).split(".")[:-1]
    return around[-1] if around and around[-1] != "<locals>" else None


class _Names:
    """taken: all names in the code of f; sets_attributes: whether the code assigns to attributes."""

    def __init__(self, f, node):
        self._class = _class_of(f)
        self._globals, self._local = f.__globals__, set(f.__code__.co_freevars)
        self.taken, self.sets_attributes = set(self._local), False
        for inner in ast.walk(node):
            kind = type(inner)
            if kind is ast.Name:
                (self.taken if isinstance(inner.ctx, ast.Load) else self._local).add(inner.id)
            elif kind is ast.arg:
                self._local.add(inner.arg)
            elif kind in (ast.FunctionDef, ast.ClassDef):
                self._local.add(inner.name)
            elif kind is ast.alias:
                self._local.add((inner.asname or inner.name).split(".")[0])
            elif kind is ast.Attribute and isinstance(inner.ctx, ast.Store):
                self.sets_attributes = True
        if isinstance(node, ast.FunctionDef) and node.name not in f.__code__.co_freevars:
            self._local.discard(node.name)
        self.taken |= self._local

    def mangled(self, attribute):
        private = self._class and attribute.startswith("__") and not attribute.endswith("__")
        return f"_{self._class.lstrip('_')}{attribute}" if private else attribute

    def known(self, name):
        """The value of a global or built-in name at conversion time, or None."""
        return None if name in self._local else self._globals.get(name, getattr(builtins, name, None))


def _compiled(f, node):
    """Compiles the rewritten node inside functions and classes that supply its free and mangled names."""
    owner, code = _class_of(f), f.__code__
    _without_defaults(node)
    if isinstance(node, ast.FunctionDef):  # co_firstlineno is the line of the first decorator
        node.decorator_list = [ast.Constant(None, lineno=code.co_firstlineno, col_offset=0,
                                            end_lineno=code.co_firstlineno, end_col_offset=0)]
    inner = ast.Expr(node) if isinstance(node, ast.Lambda) else node
    if owner:
        inner = ast.ClassDef(owner, [], [], [inner], [])
    free = [ast.arg(n) for n in code.co_freevars + (expressions.RUNTIME,) if n != "__class__" or inner is node]
    known = {a.arg for a in free}
    body = [ast.Global([inner.name]), inner] if getattr(inner, "name", None) not in known | {None} else [inner]
    around = ast.FunctionDef("names_", ast.arguments([], free, None, [], [], None, []), body, [], None)
    found = compile(ast.Module([expressions.located(around, node)], []), code.co_filename, "exec",
                    flags=code.co_flags & _FUTURE, dont_inherit=True)
    for _ in range(2 + isinstance(inner, ast.ClassDef)):
        found = next(c for c in found.co_consts if isinstance(c, types.CodeType))
    more = {"co_qualname": code.co_qualname} if hasattr(code, "co_qualname") else {}
    return found.replace(**more)


def _without_defaults(node):
    """Removes defaults and annotations: the compiled function gets the original's."""
    args = node.args
    args.defaults = [expressions.located(ast.Constant(None), node) for _ in args.defaults]
    args.kw_defaults = [d and expressions.located(ast.Constant(None), node) for d in args.kw_defaults]
    for each in args.posonlyargs + args.args + args.kwonlyargs + [a for a in (args.vararg, args.kwarg) if a]:
        each.annotation = None
    node.returns = None


def unconverted(traceback):
    """For a hint: why the last user code of a traceback runs unconverted; "" if it is converted."""
    codes = [frame.f_code for frame, _ in walk_tb(traceback) if not source.is_own(frame.f_code.co_filename)]
    if not codes or id(codes[-1]) in _ours:
        return ""
    why = _made.get((codes[-1], codes[-1].co_filename), (None, ""))[1]
    return f"; {codes[-1].co_name} was not converted" + (f": {why}" if why else "")


def own_frames_dropped(traceback, trailing):
    """The traceback without the conversion's own frames; trailing: also at its end."""
    every = []
    while traceback:
        every.append(traceback)
        traceback = traceback.tb_next
    kept = [t for t in every if not source.is_own(t.tb_frame.f_code.co_filename)]
    if kept and not trailing:
        kept += every[every.index(kept[-1]) + 1:]
    for one, following in zip(kept, kept[1:] + [None]):
        one.tb_next = following
    return kept[0] if kept else None
