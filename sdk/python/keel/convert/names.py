"""Names that a piece of a function reads and binds, by Python's scoping rules.

How to read it: of(nodes) is the entry point. Nested functions, lambdas and comprehensions are scopes: their free names
count as read at the definition, and as captured if they may run later.
"""
import ast

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Names:
    """reads, binds: of this scope; walrus: binds of :=, which may not run. captured: free in nested functions; closures:
    these functions with their free names. nonlocals, globals: declared so."""

    __slots__ = ("reads", "binds", "walrus", "captured", "nonlocals", "globals", "closures")

    def __init__(self):
        self.reads, self.binds, self.walrus, self.captured = set(), set(), set(), set()
        self.nonlocals, self.globals, self.closures = set(), set(), []

    def include(self, other):
        for each in self.__slots__[:-1]:
            getattr(self, each).update(getattr(other, each))
        self.closures += other.closures


def of(nodes):
    """The Names of a node or of a list of nodes of one scope, at the time of the first call for it."""
    if isinstance(nodes, list):
        out = Names()
        for node in nodes:
            out.include(of(node))
        return out
    if not hasattr(nodes, "names_"):
        nodes.names_ = fresh([nodes])
    return nodes.names_


def fresh(nodes):
    """The present Names, without functions made by the conversion."""
    out = Names()
    for node in nodes:
        _visit(node, out)
    return out


def parameters(arguments):
    """Parameter names in the order of a code object's variables."""
    every = arguments.posonlyargs + arguments.args + arguments.kwonlyargs + [arguments.vararg, arguments.kwarg]
    return [a.arg for a in every if a is not None]


def free(function):
    """Names that a nested function, as a node, takes from enclosing scopes."""
    inner, bound = Names(), set(parameters(function.args))
    for node in function.body if isinstance(function.body, list) else [function.body]:
        _visit(node, inner, generated=True)
    bound |= inner.binds - inner.nonlocals - inner.globals
    return (inner.reads | inner.nonlocals) - bound - inner.globals


def suspends(function):
    """Whether a FunctionDef is a generator."""
    todo = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)
    return False


def _visit(node, out, generated=False):
    handler = _HANDLERS.get(type(node))
    if handler:
        handler(node, out, generated)
    else:
        _children(node, out, generated)


def _children(node, out, generated, skip=()):
    for field in node._fields:
        value = None if field in skip else getattr(node, field, None)
        if isinstance(value, list):
            for each in value:
                if isinstance(each, ast.AST):
                    _visit(each, out, generated)
        elif isinstance(value, ast.AST):
            _visit(value, out, generated)


def _name(node, out, _):
    (out.binds if isinstance(node.ctx, ast.Store) else out.reads).add(node.id)
    if isinstance(node.ctx, ast.Del):
        out.binds.add(node.id)


def _augmented(node, out, generated):
    if isinstance(node.target, ast.Name):
        out.reads.add(node.target.id)
    _children(node, out, generated)


def _named(node, out, generated):
    out.walrus.add(node.target.id)
    _children(node, out, generated)


def _capture(node, names, out):
    out.reads |= names
    out.captured |= names
    out.closures.append((node, names))


def _function(node, out, generated):
    if getattr(node, "kind_", None) and not generated:
        return
    out.binds.add(node.name)
    for outside in node.decorator_list + node.args.defaults + [d for d in node.args.kw_defaults if d is not None]:
        _visit(outside, out, generated)
    _capture(node, free(node), out)


def _lambda(node, out, generated):
    for outside in node.args.defaults + [d for d in node.args.kw_defaults if d is not None]:
        _visit(outside, out, generated)
    if getattr(node, "kind_", None):
        out.reads |= free(node)
    else:
        _capture(node, free(node), out)


def _class(node, out, generated):
    out.binds.add(node.name)
    inner = Names()
    _children(node, inner, True)
    _capture(node, inner.reads | inner.captured, out)


def _comprehension(node, out, generated):
    inner, targets = Names(), Names()
    for part in node.generators:
        _visit(part.target, targets, generated)
    _children(node, inner, generated)
    walrus = {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
    out.binds |= walrus
    out.walrus |= walrus
    found = (inner.reads | targets.reads) - (targets.binds - walrus)
    out.reads |= found
    out.captured |= inner.captured - targets.binds
    out.closures += [(n, names - targets.binds) for n, names in inner.closures]
    if isinstance(node, ast.GeneratorExp):
        _capture(node, found, out)


def _alias(node, out, _):
    out.binds.add((node.asname or node.name).split(".")[0])


def _handler(node, out, generated):
    if node.name:
        out.binds.add(node.name)
    _children(node, out, generated)


def _match(node, out, generated):
    name = getattr(node, "name", None) or getattr(node, "rest", None)
    if name:
        out.binds.add(name)
    _children(node, out, generated)


def _global(node, out, _):
    out.globals.update(node.names)


def _nonlocal(node, out, _):
    out.nonlocals.update(node.names)


_HANDLERS = {
    ast.Name: _name, ast.AugAssign: _augmented, ast.NamedExpr: _named, ast.Lambda: _lambda, ast.ClassDef: _class,
    ast.alias: _alias, ast.ExceptHandler: _handler, ast.Global: _global, ast.Nonlocal: _nonlocal}
_HANDLERS.update(dict.fromkeys(_FUNCTIONS, _function))
_HANDLERS.update(dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), _comprehension))
_HANDLERS.update({getattr(ast, n): _match for n in ("MatchAs", "MatchStar", "MatchMapping") if hasattr(ast, n)})
