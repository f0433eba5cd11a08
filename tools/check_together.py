"""Checks names in files that are compiled together (keel_compile_together): a function of an anonymous namespace must not
have the name of a function that a header of the tree declares in the namespace around it. In one translation unit it would
be one more overload, which a neighbouring file may call by mistake.

Usage: check_together.py    exit 1 and one line for each such function; the last line is a count
"""
import re
import sys
from pathlib import Path

import check_style

ROOT = Path(__file__).resolve().parent.parent
TOGETHER = ("kernel/", "cli/", "sdk/python/src/")
FUNCTION = re.compile(r"^(?!(?:__attribute__|return|using|typedef|throw|else|if|for|while|switch|case|delete|new|co_return)\b)"
                      r"[\w:][\w:<>,*&\s\[\]]*?[\s*&>](?!__attribute__)(\w+)\((?!\s*\*)", re.M)


def scopes(code):
    """(namespace, text at its level): anonymous namespaces as "", with blocks inside functions and classes left out"""
    stack, texts, start = [("", "namespace")], {}, 0
    for at, char in enumerate(code):
        if char not in "{}":
            continue
        if all(kind == "namespace" for _, kind in stack):
            texts.setdefault("::".join(name for name, _ in stack[1:]), []).append(code[start:at])
        start = at + 1
        if char == "}":
            if len(stack) > 1:
                stack.pop()
            continue
        head = re.search(r'(?:(?:inline\s+)?namespace(?:\s+([\w:]+))?|extern\s+"?\s*C?\s*"?)\s*$', code[:at][-200:])
        stack.append((head.group(1) or "?", "namespace") if head else ("", "block"))
    return {name: "\n".join(parts) for name, parts in texts.items()}


def functions(path):
    """namespace -> names of the functions at its level"""
    code = check_style.without_text((ROOT / path).read_text(errors="replace"))
    return {name: set(FUNCTION.findall(text)) for name, text in scopes(code).items()}


def main():
    names = [n for n in check_style.tracked() if n.startswith(TOGETHER)]
    declared = {}  # (area, namespace): {function: header}
    for path in (n for n in names if n.endswith((".h", ".hpp"))):
        for scope, found in functions(path).items():
            declared.setdefault((path.split("/")[0], scope), {}).update(dict.fromkeys(found, path))
    faults, files = [], [n for n in names if n.endswith(".cc")]
    for path in files:
        for scope, found in functions(path).items():
            if "?" not in scope.split("::"):
                continue
            around = "::".join(part for part in scope.split("::") if part != "?")
            taken = declared.get((path.split("/")[0], around), {})
            faults += [f"{path}: {name}: {taken[name]} declares a function of that name: choose another"
                       for name in sorted(found & taken.keys())]
    print("\n".join(faults + [f"together: {len(files)} files, {len(faults)} faults"]))
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
