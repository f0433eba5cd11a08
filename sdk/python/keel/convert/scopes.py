"""Which function of the converted code has a variable of the user's function as its own, and who says `nonlocal`.

A variable stays in the user's function, and pieces that bind it say nonlocal; where it matters inside a piece alone
(statements.py marks such as own_), it is the piece's.
"""
import ast

from . import names
from .expressions import located


def settle(function, found):
    """Adds declarations to a function and the pieces in it; found: the Names of its body before the conversion."""
    declared = found.nonlocals | found.globals
    variables = (found.binds | set(names.parameters(function.args))) - declared
    needed = _settle_pieces(function, variables, found)
    bound = names.fresh(function.body).binds | set(names.parameters(function.args))
    _declare(function, found.nonlocals, found.globals, sorted((needed & variables) - bound))


def _settle_pieces(outer, variables, found):
    """Declares in all pieces right inside outer. Returns the variables that these take from outside."""
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
    """unset: own variables that are bound in pieces only; an annotation makes them the function's."""
    lines = [ast.Nonlocal(sorted(nonlocals))] if nonlocals else []
    lines += [ast.Global(sorted(globals_))] if globals_ else []
    lines += [ast.AnnAssign(ast.Name(n, ast.Store()), ast.Name("object", ast.Load()), None, 1) for n in unset]
    first = 1 if ast.get_docstring(function, clean=False) is not None and not hasattr(function, "kind_") else 0
    function.body[first:first] = [located(line, function.body[0]) for line in lines]


def _pieces(nodes):
    """The functions of the conversion right inside a block, however deep in with, try and loops of Python."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            if hasattr(node, "kind_"):
                yield node
        elif isinstance(node, ast.stmt) and not isinstance(node, (ast.ClassDef, ast.AsyncFunctionDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from _pieces(getattr(node, field, []))
            for part in getattr(node, "handlers", []) + getattr(node, "cases", []):
                yield from _pieces(part.body)
