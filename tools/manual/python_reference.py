"""The Python reference, from the package's stubs (signatures) and the package itself (docstrings)."""
import ast
import importlib
import inspect
import re
import sys

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~^$])")
_LIST = re.compile(r"^(\s*)([-+]|\d+\.) ")
MODULES = ("keel", "keel.optim", "keel.data", "keel.convert")


def sections(text):
    """Line number -> the title of a "# ---- title" comment of a stub."""
    return {number: m[1] for number, line in enumerate(text.splitlines(), 1) if (m := re.match(r"# ---- (.*)", line))}


def stub_of(root, module):
    base = root / "sdk/python" / module.replace(".", "/")
    return base / "__init__.pyi" if base.is_dir() else base.with_suffix(".pyi")


def signature(node):
    """A def of a stub, on one line where it fits."""
    text = re.sub(r"\s*\.\.\.$", "", ast.unparse(ast.FunctionDef(node.name, node.args, [ast.Expr(ast.Constant(...))], [], node.returns,
                                                                 lineno=0, type_params=[]))).rstrip(": \n")
    return re.sub(r"\b(typing|builtins|collections\.abc|numpy\.typing)\.", "", text).removeprefix("def ")


def text_of(thing):
    return inspect.cleandoc(getattr(thing, "__doc__", None) or "")


def literal(text):
    """A docstring as Markdown: paragraphs stay, indented lines are code, nothing else is markup."""
    out, code = [], False
    for line in text.splitlines():
        indented = line.startswith("    ")
        if indented != code and (line.strip() or not code):
            out += ["```" + ("python" if indented else "")] + ([""] if not indented else [])
            code = indented
        out.append(line[4:] if indented else line if code else _LIST.sub(r"\1\\\2 ", _MARKUP.sub(r"\\\1", line)))
    return "\n".join(out + (["```"] if code else []))


def public(node):
    names = [t.id for t in ([node.target] if isinstance(node, ast.AnnAssign) else []) if isinstance(t, ast.Name)]
    names += [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
    return [n for n in names if not n.startswith("_") or n == "__version__"]


def class_body(node, thing):
    """Methods and attributes of a class; operators are Python's and need no line."""
    out = []
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and (not member.name.startswith("_") or member.name in ("__init__", "__call__")):
            is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in member.decorator_list)
            line = member.name + (f": {ast.unparse(member.returns)}" if member.returns else "") if is_property else signature(member)
            doc = text_of(inspect.getattr_static(thing, member.name, None)) if not member.name.startswith("__") else ""
            out += [f"`{line}`", f": {literal(doc.split(chr(10) * 2)[0]).replace(chr(10), ' ') or '&nbsp;'}", ""]
        elif isinstance(member, ast.AnnAssign) and not member.target.id.startswith("_"):
            out += [f"`{member.target.id}: {ast.unparse(member.annotation)}`", ": &nbsp;", ""]
    return out


def anchor(module, name, node):
    """Anchors are compared without case, and both keel.Function and keel.function exist."""
    return f"{'py-class' if isinstance(node, ast.ClassDef) else 'py'}-{module}.{name}"


def page(module, stub, package):
    text = stub.read_text()
    titles = sorted(sections(text).items())
    level = "###" if titles else "##"
    out, seen, groups = [f"(py-{module})=", f"# {module}", "", literal(text_of(package)), ""], set(), []
    for node in ast.parse(text).body:
        while titles and titles[0][0] < node.lineno:
            groups.append(titles.pop(0)[1])
        for name in public(node):
            if groups and not groups[-1].startswith("what arguments"):
                out += [f"## {groups[-1][0].upper() + groups[-1][1:]}", ""]
                groups.clear()
            thing = getattr(package, name, None)
            if name in seen:  # one more overload
                continue
            seen.add(name)
            out += [f"({anchor(module, name, node)})=", f"{level} {module}.{name}", "", "```{index} single: " + f"{module}.{name}" + "\n```", ""]
            if isinstance(node, ast.FunctionDef):
                same = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == name]
                out += ["```python", *(signature(n) for n in same), "```", ""]
            elif isinstance(node, ast.AnnAssign):
                out += [f"`{ast.unparse(node.annotation)}`", ""]
            out += [literal(text_of(thing) if not isinstance(node, ast.AnnAssign) else ""), ""]
            if isinstance(node, ast.ClassDef):
                out += class_body(node, thing)
    return "\n".join(out) + "\n"


def names(root, module):
    """All public names that a stub declares; ops are declared elsewhere."""
    return [n for node in ast.parse(stub_of(root, module).read_text()).body for n in public(node)]


def pages(root, build):
    sys.path.insert(0, str(build / "python"))
    out = {f"reference/python/{m.replace('.', '_')}.md": page(m, stub_of(root, m), importlib.import_module(m)) for m in MODULES}
    index = ["# Python", "", "The package `keel`. Each op of the [catalogue](../ops/index.md) is a function of the package too: operands first, then "
             "attributes, as in `keel.reduce_sum(x, axes=[1])`; `help(keel.reduce_sum)` prints the same text.", "",
             "```{toctree}", "", *(m.replace(".", "_") for m in MODULES), "```", ""]
    return out | {"reference/python/index.md": "\n".join(index)}
