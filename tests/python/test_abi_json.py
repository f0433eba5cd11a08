"""abi.json is enough to bind libkeel: a binding made of it alone runs a graph, and the C compiler agrees with its numbers."""
import ctypes as C
import functools
import json
import re
import subprocess

import numpy as np
import pytest
from keel_abi import BUILD, LIBRARY, ROOT

TABLE = json.loads((BUILD / "abi.json").read_text())
SCALARS = {"int8_t": C.c_int8, "uint8_t": C.c_uint8, "char": C.c_char, "uint16_t": C.c_uint16, "int32_t": C.c_int32,
           "uint32_t": C.c_uint32, "int64_t": C.c_int64, "uint64_t": C.c_uint64, "double": C.c_double}
K = {name: constant["value"] for name, constant in TABLE["constants"].items()}


def ctype(kind, length=None):
    if kind == "void":
        return None
    if kind == "const char*":
        return C.c_char_p
    if "*" in kind or kind in TABLE["callbacks"] or kind in TABLE["opaque"]:
        return C.c_void_p
    kind = TABLE["types"].get(kind.replace("const ", ""), kind)
    found = SCALARS[kind] if kind in SCALARS else struct(kind)
    return found * length if length else found


@functools.cache
def struct(name):
    fields = [(f["name"], ctype(f["type"], f.get("length"))) for f in TABLE["structs"][name]["fields"]]
    return type(name, (C.Structure,), {"_fields_": fields})


class Handle:
    """An object of libkeel, freed by the function that abi.json names."""

    def __init__(self, pointer, free):
        self.pointer, self.free = pointer, free

    def __del__(self):
        if self.free in TABLE["functions"]:
            getattr(LIB, self.free)(self.pointer)


LIB = C.CDLL(LIBRARY)
for _name, _function in TABLE["functions"].items():
    getattr(LIB, _name).restype = ctype(_function["returns"])
    getattr(LIB, _name).argtypes = [ctype(p["type"]) for p in _function["params"]]


def argument(param, given):
    """What ctypes passes for a Python value: lists, structs and handles by their addresses."""
    if isinstance(given, Handle):
        return given.pointer
    if isinstance(given, (list, tuple)):
        item = ctype(re.sub(r"( const)?\*$", "", param["type"]).removeprefix("const ") if param["type"].count("*") == 1
                     else "void*" if "char" not in param["type"] else "const char*")
        return C.cast((item * max(1, len(given)))(*[g.pointer if isinstance(g, Handle) else g for g in given]), C.c_void_p)
    return C.cast(C.byref(given), C.c_void_p) if isinstance(given, C.Structure) else given


def call(name, /, **given):
    """A function by its parameters' names: counts come from the lists, outputs are returned; a failure is an exception."""
    params = TABLE["functions"][name]["params"]
    counts = {p["count"]: len(given[p["name"]]) for p in params if p.get("count") and isinstance(given.get(p["name"]), (list, tuple, bytes))}
    slots, args = {}, []
    for p in params:
        if p["direction"] == "out" and p["name"] not in given:
            n = given.get(p.get("count"), 1)
            kind = p["type"].removesuffix("*").removeprefix("const ") if p["type"].count("*") == 1 else p["type"].removesuffix("*")
            slots[p["name"]] = (ctype(kind) * n)()
            args.append(C.cast(slots[p["name"]], C.c_void_p))
        else:
            args.append(argument(p, given.get(p["name"], counts.get(p["name"], 0 if p["ownership"] == "value" else None))))
    rc = getattr(LIB, name)(*args)
    made = {p["name"]: [Handle(x, p["free"]) if p["ownership"] == "caller" and x else x for x in slots[p["name"]]]
            for p in params if p["name"] in slots}
    error = made.pop("err", [None])[0]
    if error:
        raise RuntimeError(f"{rc}: {LIB.keel_error_text(error.pointer, K['KEEL_ERROR_MESSAGE']).decode()}")
    results = [m if "count" in p else m[0] for p in params if (m := made.get(p["name"])) is not None]
    return results[0] if len(results) == 1 else results or rc


def numpy_of(array):
    tensor = call("keel_array_tensor", array=array)
    shape = C.cast(tensor.shape, C.POINTER(C.c_int64))[:tensor.ndim]
    count = int(np.prod(shape))
    return np.array((C.c_float * count).from_address(tensor.data + tensor.byte_offset)).reshape(shape)


def test_a_binding_made_of_abi_json_runs_a_graph():
    context = call("keel_context_new", options=[])
    call("keel_plugin_load", context=context, path=str(BUILD / "lib/keel/plugins/keel-reference.so").encode())
    module = call("keel_module_new", context=context)
    graph = call("keel_graph_new", module=module, name=b"main")
    n = call("keel_module_dim", module=module, expression=b"n")
    x = call("keel_graph_param", graph=graph, name=b"x", dtype=K["KEEL_F32"], dims=[n])
    y = call("keel_graph_node", graph=graph, name=b"y", op=b"add", version=0, attr_names=[], attrs=[], **{"in": [x, x]}, n_out=1)
    call("keel_graph_result", graph=graph, name=b"y", value=y[0])
    call("keel_module_entry", module=module, name=b"main", graph=graph)
    session = call("keel_session_new", module=module, device=b"reference", options=[])
    array = call("keel_array_new", context=context, dtype=K["KEEL_F32"], shape=[3])
    tensor = call("keel_array_tensor", array=array)
    (C.c_float * 3).from_address(tensor.data)[:] = [1, 2, 3]
    out = call("keel_session_run", session=session, feeds=None, **{"in": [array]}, fetches=None, n_out=1, targets=[])
    assert numpy_of(out[0]).tolist() == [2, 4, 6]


def test_errors_of_such_a_binding_are_exceptions():
    with pytest.raises(RuntimeError, match="3: .*bogus"):
        call("keel_context_new", options=[struct("keel_kv")(b"bogus", b"1")])


def test_the_compiler_agrees_with_constants_and_layouts(tmp_path):
    lines = ["#include <stddef.h>", '#include "keel.h"', '#include "keel_plugin.h"',
             "#define SAME(a, b) _Static_assert((long long)(a) == (long long)(b), #a)"]
    lines += [f"SAME({name}, {value}LL);" for name, value in K.items()]
    for name, row in TABLE["structs"].items():
        lines += [f"SAME(sizeof({name}), {row['size']}); SAME(_Alignof({name}), {row['align']});"]
        lines += [f"SAME(offsetof({name}, {f['name']}), {f['offset']}); SAME(sizeof((({name}*)0)->{f['name']}), {f['size']});"
                  for f in row["fields"]]
    # Each prototype again, from the table: the compiler refuses one that differs.
    for name, f in TABLE["functions"].items():
        kinds = ["void (*)(void*)" if p["type"].endswith(".release") else p["type"] for p in f["params"]]
        lines.append(f"{f['returns']} {name}({', '.join(kinds) or 'void'});")
    (tmp_path / "same.c").write_text("\n".join(lines) + "\n")
    done = subprocess.run(["gcc", "-std=gnu11", "-fsyntax-only", "-I", ROOT / "abi", tmp_path / "same.c"], capture_output=True,
                          text=True)
    assert not done.returncode, done.stderr


def test_the_draft_is_that_of_the_library():
    assert call("keel_abi_draft") == TABLE["abi"]["draft"] == K["KEEL_ABI_DRAFT"]


def test_facts_that_no_type_tells():
    def facts(function, param):
        return next(p for p in TABLE["functions"][function]["params"] if p["name"] == param)
    functions = TABLE["functions"]
    assert functions["keel_array_retain"]["result"] == {"nullable": False, "ownership": "caller", "free": "keel_array_free"}
    assert functions["keel_device_name"]["result"] == {"nullable": True, "ownership": "borrowed"}
    assert [facts("keel_function_new", p)["ownership"] for p in ("name", "program", "arg", "release")] == ["borrowed", *["kept"] * 3]
    assert facts("keel_module_load_bytes", "bytes")["ownership"] == "kept"
    assert (facts("keel_function_call", "out")["count"], facts("keel_function_call", "out")["filled"]) == ("room", "n_out")
    assert (facts("keel_plan_port", "shape")["count"], facts("keel_plan_port", "shape")["filled"]) == (K["KEEL_MAX_RANK"], "ndim")
    assert facts("keel_module_graph", "out")["owner"] == "module"
    assert not facts("keel_plan_run", "in")["holes"] and facts("keel_apply", "in")["holes"] and facts("keel_tape_gradient", "out")["holes"]
    assert functions["keel_graph_param"]["one_at_a_time"] == ["graph"] and not functions["keel_plan_run"]["one_at_a_time"]
    assert facts("keel_trace_while", "test")["arg"] == "test_arg" and facts("keel_trace_switch", "branches")["arg"] == "args"
    assert [facts("keel_function_new", p)["arg"] for p in ("program", "release")] == ["arg", "arg"]
    event = {f["name"]: f for f in TABLE["structs"]["keel_event"]["fields"]}
    assert (event["in"]["count"], event["in"]["holes"], event["node"]["nullable"]) == ("n_in", True, False)
    assert functions["keel_trace_apply"]["doc"].startswith("keel_apply. within: ")


def test_names_and_orders_of_functions_and_parameters():
    verbs = {"open", "close", "make", "bind", "prepare", "release", "create", "destroy"}
    for name, f in TABLE["functions"].items():
        assert not verbs & set(name.split("_")), name
        names = [p["name"] for p in f["params"]]
        assert "err" not in names or names[-1] == "err" and f["returns"] == "keel_rc", name
        for first, then in (("within", "tape"), ("in", "out"), ("out", "err")):
            assert not {first, then} <= {*names} or names.index(first) < names.index(then), name
        if {"within", "tape"} & {*names}:
            assert min(names.index(n) for n in ("within", "tape") if n in names) <= 1, name


def test_every_function_is_there_and_every_parameter_has_its_facts():
    symbols = (ROOT / "abi/symbols.txt").read_text().split()
    assert sorted(TABLE["functions"]) == symbols
    for name, f in {**TABLE["functions"], **TABLE["callbacks"]}.items():
        for p in f["params"]:
            assert re.fullmatch("[a-z]\\w*", p["name"]), name
            assert p["direction"] in ("in", "out") and p["ownership"] in ("value", "borrowed", "kept", "taken", "caller"), (name, p)
            assert isinstance(p["nullable"], bool) and (p["ownership"] != "caller" or p["free"]), (name, p)
    for name, f in TABLE["functions"].items():
        assert ("result" in f) == (f["returns"] != "void"), name
        assert f["doc"] or name.endswith("_free"), f"{name} has no comment"
    for name, row in TABLE["structs"].items():
        assert all("nullable" in f for f in row["fields"] if "*" in f["type"]), name
    freed = {h["free"] for n, h in TABLE["handles"].items() if n not in ("keel_graph", "keel_node", "keel_edit")}
    assert freed - set(symbols) == {"keel_host.memory_free"} <= set(TABLE["callbacks"])
