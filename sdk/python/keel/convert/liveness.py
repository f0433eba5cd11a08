"""Live variables after a statement: the ones that branches and loops must carry.

How to read it: Liveness walks the statements of a function backwards, with the set of live names. before[s] and after[s]
are this set at both ends of a statement, head[s] at the start of a loop's iteration.
"""
import ast

from . import names

_TRY = tuple(getattr(ast, n) for n in ("Try", "TryStar") if hasattr(ast, n))
_DEFINITE = (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


class Liveness:
    """Liveness of a function's body; always: names that other code may read at any time."""

    def __init__(self, body, always):
        self.before, self.after, self.head, self._always = {}, {}, {}, frozenset(always)
        self._closures = names.of(body).closures
        self._block(body, self._always, _Jumps(self._always, self._always, self._always))

    def behind(self, statement):
        """Names that may be read after the statement, also by functions defined elsewhere."""
        return self.after[statement] | self._captured_outside(statement)

    def around(self, loop):
        """Names that may be read after a step of the loop: in the next step, or after the loop."""
        return self.head[loop] | self.behind(loop)

    def _captured_outside(self, statement):
        return {n for closure, found in self._closures if not _within(closure, statement) for n in found}

    def _block(self, statements, out, jumps):
        for s in reversed(statements):
            out = self.after[s] = out | jumps.thrown
            names.of(s)  # before the conversion changes it
            out = self.before[s] = self._one(s, out, jumps)
        return out

    def _one(self, s, out, jumps):
        if isinstance(s, (ast.Return, ast.Raise)):
            return jumps.returned | names.of(s).reads
        if isinstance(s, (ast.Break, ast.Continue)):
            return jumps.broken if isinstance(s, ast.Break) else jumps.continued
        if isinstance(s, ast.If):
            return names.of(s.test).reads | self._block(s.body, out, jumps) | self._block(s.orelse, out, jumps)
        if isinstance(s, (ast.For, ast.While)):
            return self._loop(s, out, jumps)
        if isinstance(s, _TRY):
            return self._try(s, out, jumps)
        bodies = [c.body for c in s.cases] if hasattr(s, "cases") else [s.body] if isinstance(s, ast.With) else None
        if bodies is not None:  # an exception in the body continues after it
            inside = [self._block(b, out, jumps.thrown_to(out)) for b in bodies]
            return frozenset().union(out, *inside, names.of(s).reads)
        found = names.of(s)
        return (out - (found.binds - found.walrus) if isinstance(s, _DEFINITE) else out) | found.reads

    def _loop(self, s, out, jumps):
        header = names.of(s.test if isinstance(s, ast.While) else s.target)
        targets = header.binds if isinstance(s, ast.For) else ()
        head = self._block(s.orelse, out, jumps) | header.reads
        while True:
            again = head | (self._block(s.body, head, jumps.in_loop(out, head)) - frozenset(targets))
            if again == head:
                break
            head = again
        self.head[s] = head
        return head | (names.of(s.iter).reads if isinstance(s, ast.For) else frozenset())

    def _try(self, s, out, jumps):
        last = self._block(s.finalbody, out, jumps)
        jumps = jumps.thrown_to(last if s.finalbody else frozenset())
        handled = frozenset().union(*(self._block(h.body, last, jumps) | names.of(h.type).reads if h.type else
                                      self._block(h.body, last, jumps) for h in s.handlers))
        return self._block(s.body, self._block(s.orelse, last, jumps), jumps.thrown_to(handled)) | handled


class _Jumps:
    """The live names at the targets of return, break, continue and exceptions."""

    def __init__(self, returned, broken, continued, thrown=frozenset()):
        self.returned, self.broken, self.continued, self.thrown = returned, broken, continued, thrown

    def in_loop(self, broken, continued):
        return _Jumps(self.returned, broken | self.thrown, continued | self.thrown, self.thrown)

    def thrown_to(self, more):
        more = self.thrown | more
        return _Jumps(self.returned | more, self.broken | more, self.continued | more, more)


def _within(inner, outer):
    return ((outer.lineno, outer.col_offset) <= (inner.lineno, inner.col_offset)
            and (inner.end_lineno, inner.end_col_offset) <= (outer.end_lineno, outer.end_col_offset))
