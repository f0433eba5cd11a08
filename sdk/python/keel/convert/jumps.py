"""Jumps out of statements: return, break and continue.

How to read it: Jumps analyses a function's body before the conversion changes it.
"""
import ast

JUMPS = {ast.Return: "return", ast.Break: "break", ast.Continue: "continue"}
LOOPS = (ast.For, ast.While)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def fields(s):
    """Names of the direct statement lists of a statement."""
    return [f for f in ("body", "orelse", "finalbody") if getattr(s, f, None)]


def blocks(s):
    """The statement lists of a statement, except those of nested functions and classes."""
    if isinstance(s, SCOPES) or not isinstance(s, ast.stmt):
        return []
    return [getattr(s, f) for f in fields(s)] + [p.body for p in getattr(s, "handlers", []) + getattr(s, "cases", [])]


class Jumps:
    def __init__(self, body):
        self._found = {}
        _drop_dead(body)
        for s in body:
            self.leaving(s)

    def leaving(self, s):
        """The kinds of jumps out of a statement."""
        if s not in self._found:
            out = {JUMPS[type(s)]} if type(s) in JUMPS else set()
            for block in blocks(s):
                own = {"break", "continue"} if isinstance(s, LOOPS) and block is s.body else set()
                out |= set().union(*map(self.leaving, block)) - own
            self._found[s] = out
        return self._found[s]

    def breaks(self, loop):
        return any("break" in self.leaving(s) for s in loop.body)

    def returns(self, loop):
        return any("return" in self.leaving(s) for s in loop.body)

    def always(self, block):
        """Whether the end of the block is unreachable."""
        return any(map(self.always_leaves, block))

    def always_leaves(self, s):
        if isinstance(s, ast.If):
            return self.always(s.body) and self.always(s.orelse)
        if isinstance(s, ast.While):
            return isinstance(s.test, ast.Constant) and bool(s.test.value) and not self.breaks(s)
        return isinstance(s, (ast.Raise, *JUMPS))


def _drop_dead(block):
    """Removes statements after a jump: they never run, and set no variable."""
    for k, s in enumerate(block):
        for inner in blocks(s):
            _drop_dead(inner)
        if isinstance(s, (ast.Raise, *JUMPS)):
            del block[k + 1:]
