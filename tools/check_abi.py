"""Checks the promises of the C ABI on the headers and on a finished build.

Usage: check_abi.py BUILD            check everything against the build folder (build/release)
       check_abi.py BUILD --write    rewrite abi/symbols.txt and abi/layout.txt after an intended change

Headers: each compiles alone as C99 to C++20 with gcc and clang, uses no type whose size or calling convention varies, and has
at most 250 lines. Symbols: libkeel exports the functions that the headers declare, which is abi/symbols.txt, at most 126; a plugin
exports keel_plugin_v0 and needs nothing of ours. Layout: a compiled program prints every member's offset and size; they equal
abi/layout.txt, to which a draft only appends. Names: each KEEL_ or keel_ name in a comment of the headers or in a document exists:
in the headers, or in code of the tree (variables, options, targets).
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from abi_json import Abi, headers

ROOT = Path(__file__).resolve().parent.parent
ABI = Abi()
HEADERS = [path.name for path in headers()]
STANDARDS = {"c": ["c99", "c11"], "c++": ["c++11", "c++14", "c++17", "c++20"]}
COMPILERS = {"c": ["gcc", "clang"], "c++": ["g++", "clang++"]}
MOST_FUNCTIONS, MOST_LINES = 126, 250
STRIDED = {"keel_impl", "keel_importer", "keel_pass"}  # no struct_size, but their arrays carry a stride
FORBIDDEN = [
    (r"\b(bool|_Bool)\b", "bool has no size that C and C++ promise each other"),
    (r"\blong\b", "long differs between platforms"),
    (r"\benum\s+\w+\s+\w+\s*[;,)]", "an enum's size is the compiler's choice"),
    (r"\w+\s*:\s*\d+\s*[;,]", "a bit-field's place is the compiler's choice"),
    (r"\.\.\.", "variable arguments"),
]


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def output(*command):
    done = run(*command)
    if done.returncode:
        sys.exit(f"abi: {' '.join(map(str, command))}: {done.stderr.strip()[:2000]}")
    return done.stdout


def bare(header):
    """The header text without comments and preprocessor lines."""
    text = (ROOT / "abi" / header).read_text()
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)


def header_faults():
    """Compiles each header alone, in each language, with each compiler; then looks for forbidden types."""
    if len(ABI.functions) > MOST_FUNCTIONS:
        yield f"abi: {len(ABI.functions)} functions, at most {MOST_FUNCTIONS} are allowed"
    for header in HEADERS:
        if (lines := len((ROOT / "abi" / header).read_text().splitlines())) > MOST_LINES:
            yield f"abi/{header}: {lines} lines, at most {MOST_LINES} are allowed"
        for language, standards in STANDARDS.items():
            for compiler in COMPILERS[language]:
                for standard in standards:
                    done = run(compiler, "-x", language, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra",
                               "-Wpedantic", "-Werror", "-I", ROOT / "abi", "-include", header, "/dev/null")
                    if done.returncode:
                        yield f"abi/{header}: {compiler} -std={standard}: {done.stderr.strip()[:500]}"
        for pattern, why in FORBIDDEN:
            for match in re.finditer(pattern, bare(header)):
                yield f"abi/{header}: '{match.group(0).strip()}': {why}"


def declared_symbols():
    return sorted(ABI.functions)


def exported(library):
    """Exported symbols of a library, without symbol versions and version entries (A)."""
    rows = [line.split() for line in output("nm", "-D", "--defined-only", library).splitlines()]
    return sorted({row[-1].split("@")[0] for row in rows if len(row) == 3 and row[1] != "A"})


def symbol_faults(build):
    golden = (ROOT / "abi/symbols.txt").read_text().split()
    for title, names in (("abi/keel.h", declared_symbols()), ("libkeel", exported(build / "lib/libkeel.so"))):
        for name in sorted(set(names) - set(golden)):
            yield f"{title} has {name}, abi/symbols.txt has not"
        for name in sorted(set(golden) - set(names)):
            yield f"abi/symbols.txt has {name}, {title} has not"
    plugins = sorted((build / "lib/keel/plugins").glob("keel-*.so"))
    if not plugins:
        yield f"no plugin in {build}/lib/keel/plugins"
    beside = {path for path in (build / "lib/keel/plugins").glob("lib*.so*") if not path.is_symlink()}
    own = {name for library in beside for name in exported(library)}  # libraries installed next to plugins
    for plugin in plugins:
        if exported(plugin) != ["keel_plugin_v0"]:
            yield f"{plugin.name} exports {exported(plugin)}; expected keel_plugin_v0 only"
        needs = sorted(set(re.findall(r"\bU (keel_\w+)", output("nm", "-D", plugin))) - own)
        if needs:
            yield f"{plugin.name} needs {needs}; a plugin gets all from the host table"


def layout():
    """Lines 'struct member offset size' for every member, printed by a compiled program."""
    rows = ['printf("abi %d.%d draft %d\\n", KEEL_ABI_MAJOR, KEEL_ABI_MINOR, KEEL_ABI_DRAFT);']
    for name, struct in ABI.structs.items():
        for member in (field["name"] for field in struct["fields"]):
            rows.append(f'printf("{name} {member} %zu %zu\\n", offsetof({name}, {member}), '
                        f'sizeof((({name}*)0)->{member}));')
    with tempfile.TemporaryDirectory() as folder:
        witness = Path(folder) / "witness.c"
        includes = "".join(f"#include <{header}>\n" for header in ["stdio.h"] + HEADERS)
        witness.write_text(f"{includes}int main(void) {{\n" + "\n".join(rows) + "\nreturn 0; }\n")
        output("gcc", "-std=c11", "-I", ROOT / "abi", witness, "-o", Path(folder) / "witness")
        return output(Path(folder) / "witness")


def by_struct(text):
    table = {}
    for line in text.splitlines()[1:]:
        table.setdefault(line.split()[0], []).append(line)
    return table


def append_faults(old, new, where):
    """Members never move; a struct without struct_size never grows."""
    for name, rows in by_struct(old).items():
        now = by_struct(new).get(name, [])
        extensible = name in STRIDED or f"{name} struct_size 0 4" == rows[0]
        if now[:len(rows)] != rows:
            yield f"{name}: members moved or changed since {where}; only appending is allowed"
        elif len(now) > len(rows) and not extensible:
            yield f"{name}: grew since {where}, but it has no struct_size by which a reader could tell"


def earlier_layouts(header):
    """Layouts of released ABIs of this major version, and of commits with the same draft number."""
    major = header.split(".")[0]
    for path in sorted((ROOT / "abi/frozen").glob("*/layout.txt")):
        if path.read_text().split(".")[0] == major:
            yield str(path.relative_to(ROOT)), path.read_text()
    for commit in run("git", "-C", ROOT, "log", "--format=%H", "--", "abi/layout.txt").stdout.split():
        text = run("git", "-C", ROOT, "show", f"{commit}:abi/layout.txt").stdout
        if text.split("\n")[0] == header:
            yield f"commit {commit[:10]}", text


def layout_faults():
    now = layout()
    golden = (ROOT / "abi/layout.txt").read_text()
    if now != golden:
        rows = sorted(set(now.splitlines()) ^ set(golden.splitlines()))
        yield f"abi/layout.txt differs from the headers in: {'; '.join(rows[:8])}"
    for where, old in earlier_layouts(now.split("\n")[0]):
        yield from append_faults(old, now, where)


def without_comments(path):
    """Code of a file without comments; strings stay."""
    text = path.read_text(errors="replace")
    if path.suffix in (".h", ".hpp", ".c", ".cc", ".inc"):
        return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return text if path.suffix in (".py", ".sh", ".cmake", ".json", ".in", ".map", "") or path.name == "CMakeLists.txt" else ""


def name_faults():
    """Names that comments or documents use and that nothing defines."""
    name = r"\b(?:KEEL_[A-Z0-9_]*[A-Z0-9]|keel_[a-z0-9_]*[a-z0-9])\b(?!\*)"
    files = [ROOT / line for line in run("git", "-C", ROOT, "ls-files").stdout.split()]
    files = [f for f in files if f.is_file() and "tests/data" not in str(f)]
    known = {word for f in files for word in re.findall(name, without_comments(f))}
    for path in [ROOT / "abi" / h for h in HEADERS] + [f for f in files if f.suffix == ".md"]:
        for word in sorted(set(re.findall(name, path.read_text())) - known):
            if word.removesuffix("s") not in known:  # plurals
                yield f"{path.relative_to(ROOT)}: {word}: there is nothing of that name"


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--write"]):
        sys.exit(__doc__)
    if sys.argv[2:]:
        (ROOT / "abi/symbols.txt").write_text("\n".join(declared_symbols()) + "\n")
        (ROOT / "abi/layout.txt").write_text(layout())
        return 0
    faults = [*header_faults()]
    if not faults:  # the rest compiles them
        faults = [*layout_faults(), *name_faults(), *symbol_faults(Path(sys.argv[1]))]
    print("\n".join(faults + [f"abi: {len(HEADERS)} headers, {len(ABI.structs)} structs, "
                              f"{len(declared_symbols())} functions, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
