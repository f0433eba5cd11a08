"""Writes misuse_calls.inc: calls of every function of libkeel in which one parameter at a time is wrong.

Usage: misuse_calls.py ABI_JSON OUT
A pointer is NULL while its count is 2, or the second of two entries is; a list's count is 2^32 - 1, a size 2^64 - 1; a number is all
ones. misuse_test.cc says what must follow: Named(...) an error that names function and parameter, where abi.json says that the
pointer is needed; Survives(...) any answer, where it may be NULL. So a mark that is missing in a header, or wrong, fails there.
"""
import json
import sys
from pathlib import Path

FLAGS = {"on", "runs", "unique", "result", "output", "known_only", "reverse", "version", "rtol", "atol", "begin_ns", "end_ns", "length",
         "room", "entries_from", "index", "axis"}  # any value means something, or is checked by hand
FREES = "_free"  # called with NULL only


def pointer(param):
    return param["ownership"] != "value" or "*" in param["type"] or "." in param["type"]


def spelled(kind):
    return "void (*)(void*)" if kind.endswith(".release") else kind.replace("struct ", "")


class Calls:
    def __init__(self, name, function):
        self.name, self.params = name, function["params"]
        self.fails = bool(self.params) and self.params[-1]["type"] == "keel_error**"
        self.counts = {p["count"] for p in self.params if "count" in p}

    def call(self, check, at, value, **numbers):
        args = []
        for i, p in enumerate(self.params):
            if i == at:
                args.append(value)
            elif p["name"] in numbers:
                args.append(str(numbers[p["name"]]))
            elif p["name"] == "err":
                args.append("&error_")
            else:
                args.append(f'{"good" if pointer(p) else "number"}<{spelled(p["type"])}>("{p["name"]}")')
        label = self.params[at]["name"] + ("[1]" if value.startswith("holed") else "")
        return f'{check}("{self.name}", "{label}", [&] {{ return {self.name}({", ".join(args)}); }});'

    def of_pointer(self, at, p):
        named = self.fails and not p["nullable"]
        two = {p["count"]: 2} if isinstance(p.get("count"), str) else {}
        yield self.call("Named" if named else "Survives" if self.fails else "Silent", at, "nullptr", **(two if named else {}))
        if self.fails and two and p["type"].endswith("* const*"):
            yield self.call("Survives" if p["holes"] else "Named", at, f'holed<{p["type"]}>()', **two)

    def of_number(self, at, p):
        if p["name"] in self.counts:
            most = {"uint64_t": "UINT64_MAX", "int32_t": "-1"}.get(p["type"], "0xffffffffu")
            yield self.call("Named", at, most)
        elif p["name"] not in FLAGS:
            yield self.call("Fails", at, f'static_cast<{p["type"]}>(-1)')

    def all(self):
        if self.name.endswith(FREES):
            yield f"{self.name}(nullptr);"
            return
        if self.name == "keel_error_new":  # always fails, and makes an error in its output; see misuse_callback_test.cc
            return
        for at, p in enumerate(self.params):
            if pointer(p) and p["name"] != "err":
                yield from self.of_pointer(at, p)
            elif self.fails and not pointer(p):
                yield from self.of_number(at, p)
        if self.fails and len(self.params) > 1:
            nothing = ", ".join("nullptr" if pointer(p) else "{}" for p in self.params)
            yield f'Fails("{self.name}", "everything", [&] {{ return {self.name}({nothing}); }});'


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    functions = json.loads(Path(sys.argv[1]).read_text())["functions"]
    lines = [line for name, function in functions.items() for line in Calls(name, function).all()]
    Path(sys.argv[2]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
