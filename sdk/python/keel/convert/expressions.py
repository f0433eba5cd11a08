"""Expressions whose meaning depends on tensors, as calls of the runtime: and, or, not, chained comparisons,
conditional expressions, function calls.

Conditionally evaluated operands become lambdas. Expressions that only Python can decide (x is None, isinstance(...)) stay.
"""
import ast

RUNTIME = "keel_"  # the runtime module in converted code
_REPLACED = ("range", "len", "enumerate", "zip", "min", "max", "int", "float", "bool")
_ASKS = ("isinstance", "issubclass", "callable", "hasattr")
_SYMBOLS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
            ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}


def runtime(name, *args, at):
    """The call keel_.name(*args) with the source position of another node; strings are constants."""
    function = ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())
    made = located(ast.Call(function, [ast.Constant(a) if isinstance(a, str) else a for a in args], []), at)
    function.end_lineno, function.end_col_offset = made.lineno, made.col_offset  # tracebacks mark its end
    return made


def located(made, at):
    """made, with the source position of another node for all parts that have none."""
    _place(made, (at.lineno, at.col_offset, at.end_lineno, at.end_col_offset))
    return made


def _place(node, place):
    if "lineno" in node._attributes:
        if hasattr(node, "lineno"):  # its parts have positions, too
            return
        node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = place
    for field in node._fields:
        value = getattr(node, field, None)
        for part in value if isinstance(value, list) else (value,):
            if isinstance(part, ast.AST):
                _place(part, place)


def lazy(expression):
    made = ast.Lambda(ast.arguments([], [], None, [], [], None, []), expression)
    made.kind_ = "lazy"
    return located(made, expression)


class Expressions(ast.NodeTransformer):
    """names: the function's names (build.py); first: its first parameter."""

    def __init__(self, names, first=None):
        self._names, self._first = names, first

    def is_builtin(self, node, names):
        known = self._names.known(node.id) if isinstance(node, ast.Name) else None
        return known is not None and getattr(known, "__module__", None) == "builtins" and node.id in names

    def decided(self, node):
        """Whether the expression is a Python bool for all values."""
        if isinstance(node, ast.BoolOp):
            return all(map(self.decided, node.values))
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.Not) and self.decided(node.operand)
        if isinstance(node, ast.Compare):
            return all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        return isinstance(node, ast.Constant) or isinstance(node, ast.Call) and self.is_builtin(node.func, _ASKS)

    def unrolled(self, node):
        """Whether the expression is a Python iterable for all values."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.attr in ("items", "keys", "values") and not node.args
        if isinstance(node, ast.Call):
            every = all(map(self.unrolled, node.args))
            numbers = all(isinstance(a, ast.Constant) for a in node.args)
            return (self.is_builtin(node.func, ("enumerate", "zip", "reversed")) and every
                    or self.is_builtin(node.func, ("range",)) and numbers)
        return isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Constant))

    def visit_BoolOp(self, node):
        if self.decided(node) or _binds(node):
            return node
        first, *others = [self.visit(v) for v in node.values]
        return runtime("and_" if isinstance(node.op, ast.And) else "or_", first, *map(lazy, others), at=node)

    def visit_UnaryOp(self, node):
        if not isinstance(node.op, ast.Not) or self.decided(node):
            return self.generic_visit(node)
        return runtime("not_", self.visit(node.operand), at=node)

    def visit_Compare(self, node):
        if len(node.ops) == 1 or self.decided(node) or _binds(node):
            return self.generic_visit(node)
        pairs = [(ast.Constant(_SYMBOLS[type(op)]), lazy(self.visit(b))) for op, b in zip(node.ops, node.comparators)]
        return runtime("compare", self.visit(node.left), *(part for pair in pairs for part in pair), at=node)

    def visit_IfExp(self, node):
        if self.decided(node.test) or _binds(node.body) or _binds(node.orelse):
            return self.generic_visit(node)
        test, then, otherwise = map(self.visit, (node.test, node.body, node.orelse))
        return runtime("choose", test, lazy(then), lazy(otherwise), at=node)

    def visit_Call(self, node):
        function = node.func
        if isinstance(function, ast.Attribute) and getattr(function.value, "id", None) == RUNTIME:
            return node
        self.generic_visit(node)
        if self.is_builtin(function, ("super",)) and not node.args and self._first:
            node.args = [located(ast.Name(n, ast.Load()), node) for n in ("__class__", self._first)]
        elif self.is_builtin(function, _REPLACED):
            node.func = located(ast.Attribute(ast.Name(RUNTIME, ast.Load()), function.id, ast.Load()), function)
        elif not self._of_library(function):
            node.func = runtime("call", node.func, at=function)
        return node

    def _of_library(self, node):
        while isinstance(node, ast.Attribute):
            node = node.value
        known = self._names.known(node.id) if isinstance(node, ast.Name) else None
        home = getattr(known, "__module__", None)
        return isinstance(home, str) and home.split(".")[0] in ("builtins", "keel") or is_library_module(known)

    def visit_ClassDef(self, node):
        return node

    def visit_AnnAssign(self, node):  # Python does not allow annotations on nonlocal names
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        return located(ast.Assign([node.target], self.visit(node.value)), node) if node.value else None

    def visit_Assert(self, node):
        if self.decided(node.test) or _binds(node):
            return self.generic_visit(node)
        holes = [(part, ast.unparse(part.value)) for part in getattr(node.msg, "values", ())
                 if isinstance(part, ast.FormattedValue)]  # in an f-string
        message = [lazy(self.visit(node.msg))] if node.msg else []
        for part, source in holes:
            part.value = runtime("hole", part.value, source, at=part.value)
        return located(ast.Expr(runtime("assert_", self.visit(node.test), *message, at=node)), node)


def is_library_module(value):
    from .source import is_library
    return type(value) is type(ast) and is_library(getattr(value, "__file__", None) or "<built-in>")


def _binds(node):
    return any(isinstance(n, ast.NamedExpr) for n in ast.walk(node))
