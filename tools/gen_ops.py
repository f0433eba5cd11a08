"""Writes the SDKs' function for each op of the catalogue, while Keel is built.

Usage: gen_ops.py cpp FOLDER COMMAND...       write catalogue.hpp, ops_plain.hpp, ops.hpp into a folder;
                                              COMMAND prints libkeel's report "ops"
       gen_ops.py python FOLDER COMMAND...    write ops_table.inc and ops.pyi (gen_ops_python.py)
       gen_ops.py BUILD --check               exit 1 if the files of a finished build differ, or git tracks any

catalogue.hpp numbers the ops; ops.hpp has one function for each: operands first, then attributes without a
default, then a struct of the optional ones: matmul(a, b, {.ta = true}). A new type of attribute is a row of
KINDS.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

import gen_ops_python

ROOT = Path(__file__).resolve().parent.parent
PLACES = {"cpp": "include/keel", "python": "sdk/python"}  # in a build
KEYWORDS = {"switch", "while"}  # of C++, among the names of ops
NO_FUNCTION = {"graph", "graph[]", "var"}  # attributes that name a part of a module
DTYPES = {"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"}
# attribute type: (C++ type, how it is added)
KINDS = [
    (r"bool", "bool", "flag"),
    (r"f64", "double", "f64"),
    (r"str", "const char*", "text"),
    (r"dtype( or storage)?", "keel_dt", "dtype"),
    (r"dim", "Dim", "dim"),
    (r"i64|axis(\[\w+\])?|rank\[\w+\]", "int64_t", "i64"),
    (r"enum\(.*\)", "const char*", "text"),
    (r"i64\[\w*\]|axes\[\w+\]|perm\[\w+\]", "Ints", "i64s"),
    (r"dim\[\w*\]|shape\[.*\]", "Ints", "dims"),
]


def kind_of(attribute):
    for pattern, cpp, method in KINDS:
        if re.fullmatch(pattern, attribute["type"]):
            return cpp, method
    sys.exit(f"gen_ops: attribute type {attribute['type']!r}: add a row to KINDS")


def default_of(attribute):
    """The default as C++, None if there is none (a parameter), "" if libkeel computes it."""
    text, (cpp, _) = attribute["default"], kind_of(attribute)
    if text == "":
        return None
    if cpp == "bool" or cpp == "double":
        return text
    if cpp == "keel_dt":
        return f"KEEL_{text.upper()}" if text in DTYPES else ""
    if cpp == "const char*":
        return f'"{text}"'
    return text if cpp == "int64_t" and re.fullmatch(r"-?\d+", text) else ""


def group_of(operand):
    """The type variable that an operand's dtype is bound to; b, u: always bool, u64."""
    head = re.match(r"(?:\w+ \? )?(\w+)", operand["pattern"]).group(1)
    fixed = {"bool": "b", "u64": "u"}
    if head in DTYPES and head not in fixed:
        sys.exit(f"gen_ops: operand of fixed dtype {head}: literal_dtype() of operators.hpp must learn it")
    return fixed.get(head, head[0])


def camel(name):
    return "".join(part.capitalize() for part in name.split("_")) + "Options"


def wrap(text, width=106):
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def comment(op):
    operands = ", ".join(f"{o['name']}: {o['pattern']}" for o in op["operands"])
    results = ", ".join(r["pattern"] for r in op["results"])
    types = ", ".join(f"{k} one of {' '.join(v)}" for k, v in op["types"].items() if len(v) < len(DTYPES) - 1)
    choices = ", ".join(f"{a['name']}: {a['type']}" + (f" = {a['default']}" if a["default"] else "")
                        for a in op["attributes"])
    facts = f"({operands}){'{' + choices + '}' if choices else ''} -> {results}" + (f"; {types}" if types else "")
    body = (op["doc"].rstrip(".") + ". " if op["doc"] else "") + facts + "."
    return ["/// " + line for line in wrap(body)]


def options(op, optional):
    """The struct of optional attributes."""
    if not optional:
        return []
    members = []
    for a in optional:
        cpp, default = kind_of(a)[0], default_of(a)
        left_out = f"{cpp} {a['name']} = {{}};" if cpp == "Ints" else f"std::optional<{cpp}> {a['name']} = {{}};"
        members.append(left_out if default == "" else f"{cpp} {a['name']} = {default};")
    lines = [f"struct {camel(op['name'])} {{"]
    for member in members + ["};"]:
        if len(lines[-1]) + len(member) > 106:
            lines.append(" ")
        lines[-1] += " " + member
    return lines


def add_attribute(a, optional):
    cpp, method = kind_of(a)
    name = f"o.{a['name']}" if optional else a["name"]
    call = {"dim": 'dim("{0}", {1}.handle())', "i64s": 'ints("{0}", KEEL_ATTR_I64S, {1})', "dims": 'ints("{0}", KEEL_ATTR_DIMS, {1})'}.get(
        method, method + '("{0}", {1})')
    if method in ("i64s", "dims"):
        line = "detail::" + call.format(a["name"], name)
        line = line.replace("ints(", "ints(at, ")
    else:
        line = "at." + call.format(a["name"], f"(*{name})" if optional and default_of(a) == "" else name)
    if not optional:
        return f"  {line};"
    if default_of(a) == "":
        return f"  if ({name}) {line};"
    if cpp == "const char*":
        return f"  if (std::string_view({name}) != {default_of(a)}) {line};"
    return f"  if ({name} != {default_of(a)}) {line};"


def results_of(op):
    """(C++ type, the expression that makes it, with places for operands and the caller's place)"""
    name, pattern, n = op["name"], op["results"][0]["pattern"], len(op["results"])
    each = re.search(r"each\((\w+)\)", pattern)
    if each:
        return "std::vector<Tensor>", f"detail::many(OpId::{name}, {{}}, {each.group(1)}.size(), at, {{}})"
    if n == 1:
        return "Tensor", f"detail::one(OpId::{name}, {{}}, at, {{}})"
    return f"std::array<Tensor, {n}>", f"detail::several<{n}>(OpId::{name}, {{}}, at, {{}})"


def function(op):
    required = [a for a in op["attributes"] if default_of(a) is None]
    optional = [a for a in op["attributes"] if default_of(a) is not None]
    params, names, variadic = [], [], False
    for o in op["operands"]:
        variadic = variadic or o["variadic"]
        params.append(f"const {'Operands' if o['variadic'] else 'Operand'}& {o['name']}")
        names.append(o["name"])
    for a in required:
        cpp = kind_of(a)[0]
        params.append(f"const {cpp}& {a['name']}" if cpp in ("Ints", "Dim") else f"{cpp} {a['name']}")
    for k, o in enumerate(op["operands"]):
        if o["optional"]:
            params[k] += " = none"
    result, expression = results_of(op)
    if optional:
        params.append(f"const {camel(op['name'])}& o = {{}}")
    where = f"{names[0]}.where()" if names else "where"
    if variadic or not names:
        params.append("const Place& where = Place::current()")
        where = "where"
    lines = comment(op) + [f"inline {result} {op['name']}({', '.join(params)}) {{"]
    if is_plain(op):
        return lines + [f"  return detail::quick(OpId::{op['name']}, {where}, {', '.join(names)});", "}"]
    lines.append("  detail::Attributes at;")
    lines += [add_attribute(a, False) for a in required] + [add_attribute(a, True) for a in optional]
    operands = f"{names[0]}.all()" if variadic else "{" + ", ".join("&" + n for n in names) + "}"
    return lines + [f"  return {expression.format(operands, where)};", "}"]


def is_plain(op):
    """Whether the op maps tensors to one tensor and has no attributes: the fast path."""
    return bool(op["operands"]) and not op["attributes"] and len(op["results"]) == 1 and not any(
        o["variadic"] for o in op["operands"])


def attribute_types(op):
    return {a["type"].split()[0] for a in op["attributes"]}


def names_part(op):
    return bool(NO_FUNCTION & attribute_types(op))


def check(op):
    """Exits if an op violates an assumption of the functions above."""
    if any(o["variadic"] for o in op["operands"]) and len(op["operands"]) > 1:
        sys.exit(f"gen_ops: {op['name']}: operands next to a variadic operand")
    if len(op["attributes"]) > 8:
        sys.exit(f"gen_ops: {op['name']}: more than the 8 attributes of detail::Attributes")


TOP = "// {}: generated by tools/gen_ops.py from the catalogue (kernel/language/opset) during the build; do not edit.\n"


def catalogue(ops):
    rows = []
    for op in ops:
        groups = "".join(group_of(o) for o in op["operands"]) or "-"
        types = op["types"].get("T", [])
        floats = bool(types) and "i32" not in types and "f32" in types
        effect = not op["results"] or "var" in attribute_types(op)  # an op without results has an effect
        rows.append(f'    {{"{op["name"]}", "{groups}", {str(floats).lower()}, {str(effect).lower()}}},')
    return TOP.format("catalogue.hpp") + f"""//
// How to read it: an op is its place in kOps.
#ifndef KEEL_CATALOGUE_HPP
#define KEEL_CATALOGUE_HPP
#include <cstddef>
#include <cstdint>

namespace keel {{

// clang-format off
enum class OpId : uint16_t {{
{chr(10).join('  ' + line for line in wrap(', '.join(cpp_name(op['name']) for op in ops)))}
}};

namespace detail {{
struct OpInfo {{
  const char* name;
  const char* groups;  // the type variable of each operand; b, u: bool, u64; the last one counts for all after
  bool floats;         // takes no i32: literals alone are f32
  bool effect;         // belongs to a trace even without symbolic operands
}};
inline constexpr OpInfo kOps[] = {{
{chr(10).join(rows)}
}};
// clang-format on
inline constexpr size_t kOpCount = sizeof kOps / sizeof kOps[0];
constexpr const OpInfo& info(OpId id) {{ return kOps[static_cast<size_t>(id)]; }}
}}  // namespace detail

}}  // namespace keel
#endif
"""


def cpp_name(name):
    return name + "_" if name in KEYWORDS else name


def functions(ops, name, about, includes):
    guard = "KEEL_" + name.upper().replace(".", "_")
    out = [TOP.format(name) + f"""//
{about}#ifndef {guard}
#define {guard}
{includes}
namespace keel {{

// clang-format off"""]
    for op in ops:
        check(op)
        optional = [a for a in op["attributes"] if default_of(a) is not None]
        out += options(op, optional) + function(op)
    return "\n".join(out) + "\n// clang-format on\n\n}  // namespace keel\n#endif\n"


PLAIN = """// How to read it: ops without attributes; see ops.hpp.
"""
CHOSEN = """// How to read it: in alphabetical order; ops without attributes are in ops_plain.hpp. The comment of a function
// is the catalogue's: operands with their dims, results, dtypes. Operands are tensors or weak
// literals; optional attributes are named: keel::reduce_mean(x, {.axes = {0}, .keep = true}).
"""


def files_of(kind, report):
    """name: text of each file"""
    ops = report if isinstance(report, list) else report["ops"]  # of `keel ops --json`
    ops = sorted((op for op in ops if "." not in op["name"]), key=lambda op: op["name"])
    own = [op for op in ops if op["results"] and not names_part(op)]  # the others have functions of their own
    if kind == "python":
        return {"ops_table.inc": gen_ops_python.table(own, kind_of), "ops.pyi": gen_ops_python.stubs(own, kind_of)}
    plain, chosen = [op for op in own if is_plain(op)], [op for op in own if not is_plain(op)]
    return {
        "catalogue.hpp": catalogue(ops),
        "ops_plain.hpp": functions(plain, "ops_plain.hpp", PLAIN, '#include "keel/operators.hpp"\n'),
        "ops.hpp": functions(chosen, "ops.hpp", CHOSEN,
                             '#include <optional>\n\n#include "keel/ints.hpp"\n#include "keel/ops_plain.hpp"\n'),
    }


def generate(kind, folder, command):
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files_of(kind, report).items():
        if not (folder / name).exists() or (folder / name).read_text() != text:
            (folder / name).write_text(text)


def check_build(build):
    report = json.loads(subprocess.run([build / "bin/keel", "ops", "--json"], check=True, stdout=subprocess.PIPE).stdout)
    names, stale = [], []
    for kind, place in PLACES.items():
        for name, text in files_of(kind, report).items():
            path = build / place / name
            names.append(name)
            stale += [] if path.exists() and path.read_text() == text else [f"{path}: differs from the catalogue"]
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    stale += [f"{name}: is generated by the build and must not be committed" for name in tracked if Path(name).name in names]
    print("\n".join(stale + [f"ops: {len(report['ops'])} ops, {len(names)} generated files, {len(stale)} faults"]))
    return 1 if stale else 0


def main():
    if sys.argv[2:] == ["--check"]:
        return check_build(Path(sys.argv[1]))
    if len(sys.argv) < 4 or sys.argv[1] not in PLACES:
        sys.exit(__doc__)
    generate(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
