"""The Python package's ops, for gen_ops.py: the table ops_table.inc, which op.cc includes, and the stub keel/_keel/ops.pyi.

How to read it: row() is one op: its documentation, results, dtypes of its type variables, number of results, and
its parameters: operands first, then attributes without a default, then the optional ones. op.cc makes functions
with docstrings of it. stub() is the same for type checkers.
"""
import keyword
import re
import textwrap

KINDS = {  # method of the C++ SDK's Attributes: kind of op.cc
    "flag": "kFlag", "f64": "kF64", "text": "kText", "dtype": "kDtype", "i64": "kI64", "dim": "kDim",
    "i64s": "kI64s", "dims": "kDims"}


def default_of(attribute, kind):
    """As a Python literal; None where only Keel knows it, or it is a list."""
    text = attribute["default"]
    if kind == "kFlag":
        return text.capitalize()
    if kind in ("kText", "kDtype"):
        return repr(text.strip('"'))
    return text if re.fullmatch(r"-?\d+(\.\d*)?(e-?\d+)?", text) and kind in ("kF64", "kI64") else "None"


def params(op, kind_of):
    """(name, type as the catalogue says it, kind, default as Python writes it or None) of each"""
    found = [(o["name"], o["pattern"] + (", any number" if o["variadic"] else ""),
              "kMany" if o["variadic"] else "kOperand", "None" if o["optional"] else None) for o in op["operands"]]
    chosen = [(a, KINDS[kind_of(a)[1]]) for a in op["attributes"]]
    found += [(a["name"], a["type"], kind, None) for a, kind in chosen if a["default"] == ""]
    return found + [(a["name"], f"{a['type']} = {a['default']}", kind, default_of(a, kind))
                    for a, kind in chosen if a["default"] != ""]


def text(string):
    return '"' + string.replace("\\", "\\\\").replace('"', '\\"') + '"'


def wrapped(string, indent, width=104):
    pieces = textwrap.wrap(string, width, drop_whitespace=False, break_on_hyphens=False) or [""]
    return f"\n{indent}".join(map(text, pieces))


def each_of(op):
    """The name of the parameter that has an entry for each result, if there is one"""
    each = re.search(r"each\((\w+)\)", op["results"][0]["pattern"])
    return each and each.group(1)


def row(op, kind_of):
    found = params(op, kind_of)
    if wrong := [name for name, *_ in found if keyword.iskeyword(name)]:
        raise SystemExit(f"gen_ops: {op['name']}: {wrong} are keywords of Python")
    each = each_of(op)
    results = -[name for name, *_ in found].index(each) if each else len(op["results"])
    patterns = "; ".join(f"{r['name']}: {r['pattern']}" for r in op["results"])
    types = "; ".join(f"{name}: {' '.join(types)}" for name, types in op["types"].items())
    table = [f"{{{text(name)}, {text(type_)}, Kind::{kind}, {text(default) if default else 'nullptr'}}}"
             for name, type_, kind, default in found]
    head = f"{{keel::OpId::{op['name']}, {wrapped(op['doc'], ' ')}, {text(patterns)}, {text(types)}, {results},"
    return head + "\n {{" + ", ".join(table) + "}}},"


TOP = """// ops_table.inc: made by tools/gen_ops.py of the catalogue (kernel/opset) while Keel is built; do not edit.
//
// How to read it: rows of op.cc.
// clang-format off
"""


STUB_TOP = '''"""Made by tools/gen_ops.py of the catalogue (kernel/opset) while Keel is built; do not edit."""
from collections.abc import Iterable
from typing import Literal

from keel import Dim, Tensor, _DTypeLike, _Sizes, _TensorLike

'''
STUBS_OF_THEIR_OWN = {"random"}  # a module that can be called: keel/__init__.pyi
PYTHON = {  # kind: type of the argument
    "kOperand": "_TensorLike", "kMany": "Iterable[_TensorLike]", "kFlag": "bool", "kF64": "float", "kText": "str",
    "kDtype": "_DTypeLike", "kI64": "int", "kDim": "int | Dim", "kI64s": "_Sizes", "kDims": "_Sizes"}


def stub_type(type_, kind):
    if choices := re.match(r"enum\((.*?)\)", type_):
        return f"Literal[{', '.join(repr(c.strip()) for c in choices.group(1).split(','))}]"
    return PYTHON[kind]


def stub(op, kind_of):
    arguments = []
    for name, type_, kind, default in params(op, kind_of):
        python = stub_type(type_, kind) + (" | None" if default == "None" else "")
        arguments.append(f"{name}: {python}" + (f" = {default}" if default else ""))
    n = len(op["results"])
    result = "tuple[Tensor, ...]" if each_of(op) else "Tensor" if n == 1 else f"tuple[{', '.join(['Tensor'] * n)}]"
    head = f"def {op['name']}({', '.join(arguments)}) -> {result}:"
    head = re.sub(r"(?<!,) ", "\xa0", head)  # broken between arguments only
    lines = textwrap.wrap(head, 116, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False)
    lines = [line.replace("\xa0", " ") for line in lines]
    doc = textwrap.wrap(op["doc"].replace("\\", "\\\\"), 108, break_long_words=False, break_on_hyphens=False)
    if not doc:
        return "\n".join(lines) + " ...\n"
    return "\n".join(lines) + '\n    """' + "\n    ".join(doc) + '"""\n'


def stubs(ops, kind_of):
    return STUB_TOP + "\n".join(stub(op, kind_of) for op in ops if op["name"] not in STUBS_OF_THEIR_OWN)


def table(ops, kind_of):
    return TOP + "\n".join(row(op, kind_of) for op in ops) + "\n"
