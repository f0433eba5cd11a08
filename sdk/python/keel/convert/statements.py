"""Statements that depend on tensors, as functions for the runtime, which calls them once, repeatedly, or for a graph.

    if p: y = a          def then():
    else: y = b              nonlocal y
                             y = a
                         ...
                         keel_.if_(p, then, otherwise, "y")

The functions share the variables of the user's function (see scopes.py), so with Python values the code behaves as
before. Strings name the live variables, which a graph carries.

How to read it: Statements._lowered converts a block. Early exits from the block decide its form:
- No exit: as above.
- One branch of an `if` always exits: the rest of the block moves into the other, and `return keel_.if_(...)` ends it.
- Otherwise the pieces return how they ended, and a function `rest` has the following statements.
In pieces of loops and in such pieces, jumps are return keel_.Return(v), keel_.BREAK, keel_.CONTINUE; None continues.
"""
import ast
import collections

from . import names, scopes
from .expressions import RUNTIME, Expressions, located, runtime
from .jumps import JUMPS, LOOPS, SCOPES, Jumps, blocks, fields
from .liveness import Liveness

# signal: jumps are return values. tail: live names after the current function. followed: more code of the loop's step
# follows. plain: the enclosing loop is a Python loop, with Python jumps.
_Place = collections.namedtuple("_Place", "signal tail followed plain", defaults=(False, False))


def convert(function, program):
    """Rewrites a FunctionDef in place, including nested functions."""
    Statements(function, program).run()


class Statements:
    def __init__(self, function, program):
        self._function, self._program = function, program
        self._jumps = Jumps(function.body)
        found, parameters = names.of(function.body), names.parameters(function.args)
        self._expressions = _Inner(program, parameters[0] if parameters else None)
        self._declared = found.nonlocals | found.globals
        self._shared = self._declared | found.captured
        self._live = Liveness(function.body, self._declared)
        self._inherited = set()

    def run(self):
        function, found = self._function, names.of(self._function.body)
        function.body = self._lowered(function.body, _Place(False, frozenset(self._declared))) or function.body
        scopes.settle(function, found)

    # Statements that become functions.

    def _becomes_calls(self, s):
        """Whether it is an `if` or a loop that may depend on tensors, or a Python one with a converted jump inside."""
        if isinstance(s, (ast.If, ast.While)):
            return not self._expressions.decided(s.test) or self._jumps_inside(s)
        return isinstance(s, ast.For) and (not self._expressions.unrolled(s.iter) or self._jumps_inside(s))

    def _jumps_inside(self, s):
        """Whether a converted statement inside it jumps out of itself."""
        return any(self._jumps.leaving(c) and (self._becomes_calls(c) or self._jumps_inside(c))
                   for block in blocks(s) for c in block)

    # Blocks.

    def _lowered(self, block, place):
        out = []
        for k, s in enumerate(block):
            rest = block[k + 1:]
            if type(s) in JUMPS:
                return out + [self._jump(s, place)]
            if isinstance(s, ast.Raise):
                return out + [self._expressions.visit(s)]
            done = False
            if self._becomes_calls(s):
                done = (self._if if isinstance(s, ast.If) else self._loop)(s, rest, place, out)
            elif blocks(s) and not isinstance(s, SCOPES):
                done = (self._ended_blocks if self._jumps_inside(s) else self._in_place)(s, rest, place, out)
            elif not isinstance(s, (ast.Nonlocal, ast.Global)):
                out += _listed(self._expressions.visit(s))
            if done:
                return out
        return out

    def _jump(self, s, place):
        if isinstance(s, ast.Return):
            s = self._expressions.visit(s)
            if place.signal:
                s.value = runtime("Return", s.value or ast.Constant(None), at=s)
            return s
        if place.plain or not place.signal:
            return s
        name = "BREAK" if isinstance(s, ast.Break) else "CONTINUE" if place.followed else None
        return located(ast.Return(name and ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())), s)

    def _define(self, name, kind, block, place, at, parameter=None):
        """def name(): block, a piece. Marks the variables that it can own."""
        found = names.of(block)
        made = ast.FunctionDef(name, _arguments(parameter), self._lowered(block, place) or [ast.Pass()], [], None)
        made.kind_ = kind
        before = self._live.before[block[0]] if block else ()
        made.own_ = found.binds - before - place.tail - self._shared - self._inherited
        return located(made, at)

    def _named(self, name):
        while name in self._program.taken:
            name += "_"
        return name

    def _unique(self, name):
        number, made = 1, name
        while made in self._program.taken:
            number, made = number + 1, f"{name}{number + 1}"
        self._program.taken.add(made)
        return made

    def _carried(self, nodes, live):
        bound = names.of(nodes).binds
        return sorted(bound & live) + (sorted(self._attributes(nodes, bound)) if self._program.sets_attributes else [])

    def _attributes(self, nodes, bound):
        """Assigned attributes of names: "self.total"."""
        every = (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Attribute))
        return {f"{n.value.id}.{self._program.mangled(n.attr)}" for n in every
                if isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name) and n.value.id not in bound}

    # if.

    def _if(self, s, rest, place, out):
        if not self._jumps.leaving(s):
            live = self._live.behind(s)
            inside = _Place(place.signal, live)
            out.append(located(ast.Expr(self._branches(s, s.body, s.orelse, inside, live, out)), s))
            return False
        left, right = self._jumps.always(s.body), self._jumps.always(s.orelse)
        if left or right or not rest:
            then, otherwise = s.body + ([] if left else rest), s.orelse + ([] if right else rest)
            out.append(located(ast.Return(self._branches(s, then, otherwise, place, place.tail, out)), s))
        else:
            live = self._live.behind(s) | place.tail  # the target of jumps
            call = self._branches(s, s.body, s.orelse, _Place(True, live, True), live, out)
            self._continue_with(self._keep(call, s, out), s, rest, place, out)
        return True

    def _branches(self, s, then, otherwise, place, live, out):
        """keel_.if_(test, then, otherwise, names); the functions are defined before it."""
        test = self._expressions.visit(s.test)
        made = [self._define(self._named("then"), "branch", then, place, s)]
        if otherwise:
            made.append(self._define(self._named("otherwise"), "branch", otherwise, place, otherwise[0]))
        out += made
        pieces = [located(ast.Name(m.name, ast.Load()), s) for m in made]
        if not otherwise:
            pieces.append(ast.Constant(None))
        return runtime("if_", test, *pieces, *self._carried(then + otherwise, live), at=s.test)

    def _keep(self, call, at, out):
        """Assigns the call to a new variable `ended`; returns its name."""
        name = self._unique("ended")
        out.append(located(ast.Assign([ast.Name(name, ast.Store())], call), at))
        return name

    def _continue_with(self, ended, s, rest, place, out):
        """Returns `ended` if it is an end, else runs the rest of the block."""
        function = "unless_ended" if place.signal else "unless_returned"
        pieces = [located(ast.Name(ended, ast.Load()), s)]
        if rest:
            made = self._define(self._named("rest"), "branch", rest, place, rest[0])
            out.append(made)
            pieces.append(located(ast.Name(made.name, ast.Load()), s))
        pieces += self._carried(rest, place.tail)
        out.append(located(ast.Return(runtime(function, *pieces, at=s)), s))

    # Loops.

    def _loop(self, s, rest, place, out):
        always, call = self._jumps.always_leaves(s), self._loop_call(s, out)
        if not self._jumps.returns(s) and not (s.orelse and self._jumps.breaks(s)):
            out.append(located(ast.Expr(call), s))
            out += self._lowered(s.orelse + rest, place)
            return True
        ended = self._keep(call, s, out)
        follow = s.orelse + rest
        if s.orelse and self._jumps.breaks(s):
            follow = [self._unless_broken(s, ended)] + rest
        if not self._jumps.returns(s):
            out += self._lowered(follow, place)
        elif always:
            name = "ended_by_return" if place.signal else "returned"
            out.append(located(ast.Return(runtime(name, ast.Name(ended, ast.Load()), at=s)), s))
        else:
            self._continue_with(ended, s, follow, place, out)
        return True

    def _loop_call(self, s, out):
        live = self._live.around(s)
        self._inherited |= live - self._live.before[s]  # initial values of a loop in the graph
        place = _Place(True, frozenset(live))
        if isinstance(s, ast.While):
            test = ast.FunctionDef(self._named("test"), _arguments(None), [
                located(ast.Return(self._expressions.visit(s.test)), s.test)], [], None)
            test.kind_, test.own_ = "test", set()
            out += [located(test, s), self._define(self._named("body"), "body", s.body, place, s)]
            pieces = [ast.Name(self._named(n), ast.Load()) for n in ("test", "body")]
            return runtime("while_", *pieces, *self._carried([s.test] + s.body, live), at=s.test)
        body, over = self._for_body(s, place), self._expressions.visit(s.iter)
        out.append(body)
        pieces = [over, ast.Name(body.name, ast.Load()), *self._carried([s.target] + s.body, live)]
        return runtime("for_", *pieces, at=s.iter)

    def _for_body(self, s, place):
        targets = names.of(s.target).binds
        own = targets - place.tail - self._shared
        alone = isinstance(s.target, ast.Name) and bool(own)
        parameter = s.target.id if alone else self._named("item")
        body = self._define(self._named("body"), "body", s.body, place, s, parameter)
        body.own_ = (body.own_ | own) - ({parameter} if alone else set())
        if not alone:
            item = ast.Name(parameter, ast.Load())
            body.body.insert(0, located(ast.Assign([s.target], item), s.target))
        return body

    def _unless_broken(self, s, ended):
        """The else block of a loop, as an `if`."""
        test = runtime("finished", ast.Name(ended, ast.Load()), at=s)
        made = located(ast.If(test, s.orelse, []), s)
        self._live.after[made] = self._live.after[s]
        self._live.before[made] = self._live.before[s.orelse[0]] | self._live.after[s]
        return made

    # with, try, match, and statements that stay Python's.

    def _in_place(self, s, rest, place, out):
        inner = place._replace(plain=True) if isinstance(s, LOOPS) else place
        for field in fields(s):
            block = self._lowered(getattr(s, field), inner if field == "body" else place)
            setattr(s, field, block or ([ast.copy_location(ast.Pass(), s)] if field == "body" else []))
        self._parts(s, lambda block: self._lowered(block, place) or [ast.copy_location(ast.Pass(), s)])
        out.append(self._headers(s))
        return False

    def _ended_blocks(self, s, rest, place, out):
        """Blocks with converted jumps become functions that return how they ended."""
        live = place.tail.union(self._live.behind(s), *(self._live.before[b[0]] for b in blocks(s)))
        ended = self._unique("ended")
        out.append(located(ast.Assign([ast.Name(ended, ast.Store())], ast.Constant(None)), s))
        if getattr(s, "finalbody", None):
            s.finalbody = self._lowered(s.finalbody, place)

        def made(block, follows=False):
            piece = self._define(self._unique("block"), "branch", block, _Place(True, live, True), block[0])
            out.append(piece)
            code = ast.Name(piece.name, ast.Load())
            call = runtime("unless_ended", ast.Name(ended, ast.Load()), code, *self._carried(block, live), at=block[0])
            value = call if follows else ast.Call(code, [], [])
            return [located(ast.Assign([ast.Name(ended, ast.Store())], value), block[0])]
        if hasattr(s, "body"):
            s.body = made(s.body)
        if getattr(s, "orelse", None):
            s.orelse = made(s.orelse, follows=True)
        self._parts(s, made)
        out.append(self._headers(s))
        self._continue_with(ended, s, rest, place, out)
        return True

    @staticmethod
    def _parts(s, change):
        for part in getattr(s, "handlers", []) + getattr(s, "cases", []):
            part.body = change(part.body)

    def _headers(self, s):
        """Converts the expressions of a statement that stays."""
        for field in ("test", "iter", "subject"):
            if hasattr(s, field):
                setattr(s, field, self._expressions.visit(getattr(s, field)))
        for item in getattr(s, "items", []):
            item.context_expr = self._expressions.visit(item.context_expr)
        return s


class _Inner(Expressions):
    """Converts nested functions, except generators."""

    def visit_FunctionDef(self, node):
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        if not names.suspends(node):
            convert(node, self._names)
        return node

    def visit_AsyncFunctionDef(self, node):
        return node


def _listed(node):
    return [] if node is None else node if isinstance(node, list) else [node]


def _arguments(parameter):
    return ast.arguments([], [ast.arg(parameter)] if parameter else [], None, [], [], None, [])
