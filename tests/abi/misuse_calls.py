"""Writes misuse_calls.inc: calls of every function of abi/*.h in which one parameter at a time is wrong.

Usage: misuse_calls.py ABI_FOLDER OUT
Read from the headers alone: a pointer is NULL while its count is 2, or the second of two entries is; a list's count is 2^32 - 1,
a size 2^64 - 1; a number is all ones. What must come of it is for misuse_test.cc to say: Named(...) an error that names function and parameter, Survives(...)
any answer. A parameter that may be NULL by the header's text is in MAY_BE_NULL; a test that needs a new entry found a text to write.
"""
import re
import sys
from pathlib import Path

HEADERS = ["keel.h", "keel_graph.h", "keel_control.h"]
EVERYWHERE = {"err", "arg", "release", "within", "tape", "outer", "seeds", "then_arg", "else_arg", "test_arg", "body_arg", "args",
              "structure"}
MAY_BE_NULL = {
    "keel_fail": {"message"},
    "keel_array_to": {"device"}, "keel_module_link": {"entry", "as"}, "keel_module_add_case": {"entry"},
    "keel_module_optimize": {"entry", "report"}, "keel_session_prepare": {"feeds", "fetches"},
    "keel_session_run": {"feeds", "fetches"}, "keel_plan_report": {"in"}, "keel_trace_param": {"name"},
    "keel_trace_result": {"name"}, "keel_trace_constant": {"name"}, "keel_trace_entry": {"entry"},
    "keel_tape_gradient_of": {"xs", "variables"}, "keel_tape_jacobian": {"xs", "variables"},
    "keel_module_variable": {"add", "number", "out"}, "keel_module_graph": {"entry"}, "keel_graph_new": {"name"},
    "keel_graph_param": {"name"}, "keel_graph_constant": {"name"}, "keel_graph_node": {"name"}, "keel_graph_device": {"device"},
    "keel_graph_result": {"name"}, "keel_graph_type": {"dtype", "shape", "ndim"}, "keel_graph_copy": {"name"},
    "keel_graph_counts": {"nodes", "values", "params", "results"}, "keel_graph_port": {"out", "name"},
    "keel_graph_node_at": {"name", "op", "in", "n_in", "out", "n_out"}, "keel_graph_value_at": {"name", "node"},
}
NEEDED = {("keel_trace_entry", "within")} | {(f"keel_tape_{f}", "tape") for f in (
    "watch", "watch_variable", "apply", "call", "call_within", "gradient", "gradient_of", "jacobian")}
# Lists whose count does not stand right behind them, or has another name.
COUNTS = {"attr_names": "n_attrs", "attrs": "n_attrs", "fixed_names": "n_fixed", "names": "n", "branches": "n", "dxs": "n_xs",
          ("keel_tape_gradient", "out"): "n_xs", ("keel_tape_gradient_of", "out"): "n_xs", ("keel_tape_jacobian", "out"): "n_xs",
          ("keel_tape_gradient", "seeds"): "n_ys", ("keel_tape_gradient_of", "seeds"): "n_ys",
          ("keel_tape_gradient_of", "xs"): "n_xs", ("keel_tape_gradient_of", "variables"): "n_xs",
          ("keel_tape_jacobian", "xs"): "n_xs", ("keel_tape_jacobian", "variables"): "n_xs",
          ("keel_session_run", "feeds"): "n_in", ("keel_session_run", "fetches"): "n_out",
          ("keel_trace_custom", "out"): "n_ys", ("keel_trace_while", "out"): "n", ("keel_body_begin", "params"): "n"}
# Entries that may be NULL, or are told of by their own names.
HOLES = {("keel_apply", "in"), ("keel_trace_apply", "in"), ("keel_tape_apply", "in"), ("keel_graph_node", "in"),
         ("keel_plan_run", "in"), ("keel_plan_run_observed", "in"), ("keel_plan_report", "in"), ("keel_trace_switch", "args"),
         ("keel_tape_gradient", "seeds"), ("keel_tape_gradient_of", "seeds"), ("keel_tape_gradient_of", "xs"),
         ("keel_tape_gradient_of", "variables"), ("keel_tape_jacobian", "xs"), ("keel_tape_jacobian", "variables")}
CALLBACKS = {"keel_program", "keel_block", "keel_observer"}
FREES = re.compile(r"_(free|release|close)$")  # called with NULL only
FLAGS = {"on", "runs", "unique", "result", "reverse", "version", "rtol", "atol", "begin_ns", "end_ns", "length", "sign", "room",
         "entries_from", "index", "axis"}  # any value means something, or is checked by hand


def bare(text):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)


def split(text):
    """At commas that are in no parentheses."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        parts = parts + [""] if c == "," and not depth else parts[:-1] + [parts[-1] + c]
    return [" ".join(p.split()) for p in parts]


def functions(folder):
    """(name, [(type, name)...]) of each."""
    for header in HEADERS:
        for _, name, parameters in re.findall(r"KEEL_API\s+([\w\s*]+?)\b(keel_\w+)\s*\((.*?)\)\s*;", bare((folder / header).read_text()), re.S):
            rows = []
            for p in split(parameters):
                pointer = re.fullmatch(r"(.*)\(\*(\w+)\)\((.*)\)", p)
                plain = re.fullmatch(r"(.*?)(\w+)", p)
                if p != "void":
                    rows.append(("void (*)(void*)", pointer[2]) if pointer else (plain[1].strip(), plain[2]))
            yield name, rows


def count_of(function, rows, i):
    name = rows[i][1]
    if (function, name) in COUNTS or name in COUNTS:
        found = COUNTS.get((function, name), COUNTS.get(name))
        return found if found in [x for _, x in rows] else None
    after = rows[i + 1] if i + 1 < len(rows) else ("", "")
    counted = after[1] in ("n", "room", "ndim", "size", "n_" + name, "n_options") and "*" not in after[0]
    if name == "variables" and "checkpoint" in function:
        return "n"
    return after[1] if counted else None


def is_pointer(kind):
    return kind.endswith("*") or "(*)" in kind or kind in CALLBACKS


def calls(function, rows):
    names = [name for _, name in rows]
    counts = {i: count_of(function, rows, i) for i, (kind, _) in enumerate(rows) if is_pointer(kind)}
    optional = {n for n in names if (n in EVERYWHERE or n in MAY_BE_NULL.get(function, ())) and (function, n) not in NEEDED}

    def call(check, at, value, **numbers):
        args = []
        for i, (kind, name) in enumerate(rows):
            if i == at:
                args.append(value)
            elif name in numbers:
                args.append(str(numbers[name]))
            elif name == "err":
                args.append("&error_")
            elif is_pointer(kind):
                args.append(f'good<{kind.replace("const struct", "const").replace("struct ", "")}>("{name}")')
            else:
                args.append("number<%s>(\"%s\")" % (kind, name))
        return f'{check}("{function}", "{names[at] if at >= 0 else ""}", [&] {{ return {function}({", ".join(args)}); }});'

    if FREES.search(function):
        yield f"{function}(nullptr);"
        return
    fails = "err" in names
    for i, (kind, name) in enumerate(rows):
        if name == "err":
            continue
        if is_pointer(kind):
            named = fails and name not in optional
            yield call("Named" if named else "Survives" if fails else "Silent", i, "nullptr", **({counts[i]: 2} if counts[i] and named else {}))
            if fails and kind.endswith("* const*") and counts[i]:
                check = "Survives" if (function, name) in HOLES else "Named"
                yield call(check, i, f"holed<{kind}>()", **{counts[i]: 2}).replace(f'"{name}", [&]', f'"{name}[1]", [&]', 1)
        elif name in counts.values() and fails:
            most = "UINT64_MAX" if kind == "uint64_t" else "-1" if kind == "int32_t" else "0xffffffffu"
            yield call("Named" if name != "ndim" else "Named", i, most)
        elif fails and name not in FLAGS:
            yield call("Fails", i, f"static_cast<{kind}>(-1)")
    if fails and rows[0][1] != "err" and function != "keel_fail":  # which fails with the code that it is given
        nothing = ", ".join("nullptr" if is_pointer(k) else "{}" for k, _ in rows)
        yield f'Fails("{function}", "everything", [&] {{ return {function}({nothing}); }});'


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    lines = [line for row in functions(Path(sys.argv[1])) for line in calls(*row)]
    Path(sys.argv[2]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
