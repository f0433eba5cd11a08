"""Checks the style rules that a script can check: length of files and functions, cycles between units, a comment on top
of each file, no unfinished work, no path of one machine and no package registry in the text, no loop that GCC refuses without optimisation.

Usage: check_style.py    exit 1 and one line for each fault; the last lines are the figures and their limits
"""
import ast
import re
import statistics
import subprocess
import sys
from pathlib import Path

import unit_cycles

ROOT = Path(__file__).resolve().parent.parent
MAX_FILE, MAX_FUNCTION = 450, 70  # lines
MEDIAN_FILE, P90_FUNCTION = 120, 20
C_LIKE = (".h", ".hpp", ".c", ".cc", ".inc", ".cu")
CODE = C_LIKE + (".py", ".ops", ".cmake", ".fbs")
COMMENT = ("//", "/*", "#", '"""', "'''", '"', "--")
# Written so that they do not match themselves.
FORBIDDEN = [
    (re.compile(r"(?<![\w.$}])/(w[o]rk|r[o]ot|f[a]rm|h[o]me)/"), "a path of one machine"),
    (re.compile(r"py[p]i\.org|pythonh[o]sted|d[e]b\.debian\.org|regi[s]try\.npmjs|crat[e]s\.io|ind[e]x-url"),
     "the host of a package registry"),
    (re.compile(r"\b(TO[D]O|FIX[M]E|X[X]X)\b"), "something left undone"),
]
TWO_CONDITIONS = re.compile(r"(?:#pragma GCC unroll[^\n]*|KEEL_IVDEP)\n\s*for \([^;]*;[^;]*(?:&&|\|\|)")
BINARY = (".keel", ".npz", ".npy", ".onnx", ".png", ".gz", ".xz", ".bin", ".pb")


def tracked():
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\n")
    return sorted({n for n in names if n and (ROOT / n).is_file() and not n.endswith(BINARY)})


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def without_text(code):
    """C or C++ with comments, strings and preprocessor lines blanked, lines kept."""
    code = re.sub(r'R"(\w*)\(.*?\)\1"', blank, code, flags=re.S)
    code = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", blank, code, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, code, flags=re.M)


NO_FUNCTION = re.compile(r"^\s*(if|for|while|switch|catch|do|else|namespace|extern|enum)\b")
TAIL = re.compile(r"\)\s*(const|noexcept|override|final|mutable|&|->\s*[\w:<>*& ,]+|\s)*$")


def c_functions(code):
    """(first line, number of lines) of each function; lambdas count for the function around them."""
    code, stack, start, line, depth = without_text(code), [], 0, 1, 0
    for at, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "{":
            head = code[start:at]
            is_function = depth == 0 and bool(TAIL.search(head)) and not NO_FUNCTION.match(head)
            first = line - head.lstrip().count("\n")
            stack.append((is_function, first))
            depth += is_function
        elif char == "}" and stack:
            is_function, first = stack.pop()
            depth -= is_function
            if is_function:
                yield first, line - first + 1
        if char in "{};":
            start = at + 1


def python_functions(code):
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


def is_data(name):
    return name.startswith(("tests/data/", "tools/fuzz/corpus/"))


def functions_of(name, text):
    """(first line, number of lines) of each function of a file"""
    find = c_functions if name.endswith(C_LIKE) else python_functions if name.endswith(".py") else None
    return list(find(text)) if find else []


def faults_of(name, text):
    lines, data = text.splitlines(), is_data(name)
    for pattern, what in [] if data else FORBIDDEN:
        for number, line in enumerate(lines, 1):
            if pattern.search(line):
                yield f"{name}:{number}: {what}: {line.strip()[:80]}"
    if data or not name.endswith(CODE):
        return
    if name.startswith(("kernel/", "plugins/")):  # loadable by setuid programs
        for match in re.finditer(r"(?<!secure_)\bgetenv\s*\(", without_text(text) if name.endswith(C_LIKE) else ""):
            yield f"{name}:{text.count(chr(10), 0, match.start()) + 1}: getenv where secure_getenv is meant"
    if name.endswith(C_LIKE):
        for match in TWO_CONDITIONS.finditer(text):
            yield (f"{name}:{text.count(chr(10), 0, match.end()) + 1}: a loop with a pragma and two conditions: GCC refuses it "
                   "without optimisation (preset asan); return or break in its body")
    if len(lines) > MAX_FILE:
        yield f"{name}: {len(lines)} lines; at most {MAX_FILE}: split it"
    head = [line.strip() for line in lines[:3] if not line.startswith("#!")]
    if lines and not any(line.startswith(COMMENT) for line in head):
        yield f"{name}:1: state the purpose of the file in its first lines"
    for number, length in functions_of(name, text):
        if length > MAX_FUNCTION:
            yield f"{name}:{number}: a function of {length} lines; at most {MAX_FUNCTION}: split it"


def lengths(texts):
    """-> (faults, lines with the figures)"""
    code = {name: text for name, text in texts.items() if name.endswith(CODE) and not is_data(name)}
    files = [len(text.splitlines()) for text in code.values()]
    functions = sorted(length for name, text in code.items() for _, length in functions_of(name, text))
    median, p90 = statistics.median(files), functions[len(functions) * 9 // 10]
    figures = [f"{len(files)} files: median {median:g} lines (at most {MEDIAN_FILE}), longest {max(files)} ({MAX_FILE})",
               f"{len(functions)} functions: median {statistics.median(functions):g} lines, 90 % below {p90 + 1} "
               f"({P90_FUNCTION + 1}), longest {functions[-1]} ({MAX_FUNCTION})"]
    faults = [f"the median file has {median:g} lines"] if median > MEDIAN_FILE else []
    return faults + ([f"a tenth of functions has {p90} lines or more"] if p90 > P90_FUNCTION else []), figures


def cycles():
    """-> (faults, lines with the figures)"""
    needs = unit_cycles.graph()
    found = unit_cycles.cycles(needs)
    return ([f"units include each other: {', '.join(units)}" for units in found],
            [f"{len(needs)} units, {len(found)} cycles"])


def main():
    texts = {name: (ROOT / name).read_text(errors="replace") for name in tracked()}
    faults = [fault for name, text in texts.items() for fault in faults_of(name, text)]
    figures = []
    for measure in (lambda: lengths(texts), cycles):
        more, lines = measure()
        faults += more
        figures += lines
    print("\n".join(faults + figures + [f"style: {len(texts)} files, {len(faults)} faults"]))
    return 1 if faults or not texts else 0


if __name__ == "__main__":
    sys.exit(main())
