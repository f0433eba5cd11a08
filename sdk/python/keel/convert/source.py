"""The source of functions: user functions and their syntax trees, at their original lines and columns."""
import ast
import copy
import functools
import linecache
import os
import re
import site
import sysconfig

from . import names

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # the package keel


class NoSource(Exception):
    """The text is the reason why a function cannot be converted."""


@functools.lru_cache(maxsize=1)
def _libraries():
    paths = sysconfig.get_paths()
    found = [paths[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")] + site.getsitepackages()
    return tuple(os.path.join(p, "") for p in dict.fromkeys(found + [site.getusersitepackages(), _HERE]))


@functools.lru_cache(maxsize=4096)
def is_library(filename):
    """Whether the file is part of a library, Python or Keel, not of the user's program."""
    return filename == "<built-in>" or filename.startswith(("<frozen", *_libraries())) or is_own(filename)


def is_own(filename):
    return filename.startswith(os.path.join(_HERE, ""))


def tree_of(code, module):
    """A new FunctionDef or Lambda for a code object; `module`: globals, for their loader. Raises NoSource."""
    linecache.checkcache(code.co_filename)  # for edited and reloaded modules
    lines = linecache.getlines(code.co_filename, module)
    if not lines:
        raise NoSource(f"its source was not found: it is defined in {code.co_filename}")
    found = None if code.co_name == "<lambda>" else _quick(code, lines)
    found = found or _thorough(code, "".join(lines))
    if found is None:
        raise NoSource(f"the source in {code.co_filename} does not match the code: it changed, or the code was generated")
    return found


def _quick(code, lines):
    """The function alone, if it ends at a line with no deeper indentation; else None."""
    start = code.co_firstlineno - 1
    indent = re.match(r"\s*", lines[start]).end() if start < len(lines) else 0
    end = next((k for k in range(start, len(lines)) if _is_def(lines[k], indent)), start) + 1
    while end < len(lines) and (not lines[end].strip() or re.match(r"\s*", lines[end]).end() > indent):
        end += 1
    block = "".join(lines[start:end])
    try:
        tree = ast.parse("if 1:\n" + block if indent else block)  # keeps the columns
    except (SyntaxError, ValueError):
        return None
    ast.increment_lineno(tree, start - bool(indent))
    return next((f for f in (tree.body[0].body if indent else tree.body) if _fits(f, code)), None)


def _is_def(line, indent):
    return re.match(r"\s{%d}(async\s+)?def\b" % indent, line)


def _thorough(code, text):
    fits = [n for n in ast.walk(_parsed(text)) if _fits(n, code)]
    if len(fits) > 1:  # several lambdas on one line: compare the columns of their expressions
        fits = [n for n in fits if _same_columns(n, code)]
    return copy.deepcopy(fits[0]) if len(fits) == 1 else None


@functools.lru_cache(maxsize=4)
def _parsed(text):
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as e:
        raise NoSource(f"its source is not valid Python: {e}") from None


def _fits(node, code):
    """Whether the code was compiled from this node, by names and lines."""
    if isinstance(node, ast.Lambda):
        name, first = "<lambda>", node.lineno
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        name, first = node.name, min([node.lineno] + [d.lineno for d in node.decorator_list])
    else:
        return False
    every = names.parameters(node.args)
    mangled = [_mangled(n, code) for n in every]
    return (name, first) == (code.co_name, code.co_firstlineno) and code.co_varnames[:len(every)] == tuple(mangled)


def _mangled(name, code):
    """A parameter's name after mangling: __x is _Class__x in a class."""
    if not name.startswith("__") or name.endswith("__"):
        return name
    return next((n for n in code.co_varnames if n.startswith("_") and n.endswith(name)), name)


def _same_columns(node, code):
    if not hasattr(code, "co_positions"):
        return False
    spans = [p for p in code.co_positions() if None not in p and p[3] > p[2]]
    inner = [n for n in ast.walk(node) if isinstance(n, ast.Lambda) and n is not node]
    return _encloses(node, spans) and not any(_encloses(n, spans) for n in inner)


def _encloses(node, spans):
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return bool(spans) and all(start <= (p[0], p[2]) and (p[1], p[3]) <= end for p in spans)
