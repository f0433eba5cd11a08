"""The functions of the converted code that own each variable, and the `nonlocal` declarations of the others.

A variable stays in the user's function, and pieces that bind it declare it nonlocal; a variable used in one piece only
(marked as own_ by statements.py) belongs to the piece.
"""
import ast

from . import names
from .expressions import located


def settle(function, found):
    """Adds declarations to a function and its pieces; found: the Names of its body before the conversion."""
    declared = found.nonlocals | found.globals
    variables = (found.binds | set(names.parameters(function.args))) - declared
    needed = _settle_pieces(function, variables, found)
    bound = names.fresh(function.body).binds | set(names.parameters(function.args))
    _declare(function, found.nonlocals, found.globals, sorted((needed & variables) - bound))


def _settle_pieces(outer, variables, found):
    """Adds declarations to the direct pieces of outer. Returns the variables that they take from outside."""
    needed = set()
    for piece in _pieces(outer.body):
        parameters = set(names.parameters(piece.args))
        own = getattr(piece, "own_", set())
        inner = _settle_pieces(piece, variables, found) - parameters
        bound = names.fresh(piece.body).binds
        outside = (bound & variables) - own - parameters
        needed |= outside | (inner - own)
        _declare(piece, outside | (bound & found.nonlocals), bound & found.globals, sorted((inner & own) - bound))
    return needed


def _declare(function, nonlocals, globals_, unset):
    """unset: own variables bound in pieces only; an annotation makes them local to this function."""
    lines = [ast.Nonlocal(sorted(nonlocals))] if nonlocals else []
    lines += [ast.Global(sorted(globals_))] if globals_ else []
    lines += [ast.AnnAssign(ast.Name(n, ast.Store()), ast.Name("object", ast.Load()), None, 1) for n in unset]
    first = 1 if ast.get_docstring(function, clean=False) is not None and not hasattr(function, "kind_") else 0
    function.body[first:first] = [located(line, function.body[0]) for line in lines]


def _pieces(nodes):
    """The direct pieces of a block, also inside with, try and Python loops."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            if hasattr(node, "kind_"):
                yield node
        elif isinstance(node, ast.stmt) and not isinstance(node, (ast.ClassDef, ast.AsyncFunctionDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from _pieces(getattr(node, field, []))
            for part in getattr(node, "handlers", []) + getattr(node, "cases", []):
                yield from _pieces(part.body)
