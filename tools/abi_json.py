"""Writes abi.json: the declarations of the headers of abi/, for generators of language bindings.

Usage: abi_json.py OUT

functions   header, doc, returns (a type), result, params, and `one_at_a_time`: the parameters that no other thread may use
            during the call (everything else may be used by any number of threads)
result      nullable and ownership of what a function returns, as for an output; absent: it returns nothing
params      name, type and
              direction  in or out
              nullable   may it be NULL; a list may be, too, if its count is 0
              count      what counts its entries: a parameter, a number, or `returned`, the function's result; holes: entries may be NULL
              arg        of a callback: the parameter (for a list, its entries) that Keel passes to it as `arg`
              filled     of an output list: the output that says how many entries were written; absent: all
              ownership  value; borrowed (by the callee for the call; of an output: by the caller, as long as the object of
                         the parameter `owner` lives); kept (by the callee after the call, as long as `doc` says); taken (on
                         success); caller (who frees it with the function `free`)
callbacks   functions that a caller or a plugin writes, in the same form; those of a table are called TABLE.MEMBER
handles     opaque types, with the function that frees them and whether threads may share them
structs     size, and for each field type, offset, size; of a pointer: nullable, and the field that counts its entries, holes
constants   value, and the enum that it belongs to

The rules of keel_handle.h give the facts of a parameter; marks such as KEEL_NULLABLE name the exceptions. A declaration that
they do not cover is an error here. Offsets are those of the System V ABI of x86-64 and AArch64; tests/python/test_abi_json.py
compares them with the compiler.
"""
import itertools
import json
import re
import sys
from pathlib import Path

ABI = Path(__file__).resolve().parent.parent / "abi"
PARAM_MARKS = {"KEEL_NULLABLE", "KEEL_HOLES", "KEEL_BORROWED", "KEEL_TAKEN", "KEEL_KEPT"}
LIST_MARKS = {"KEEL_COUNT": "count", "KEEL_FILLED": "filled"}
HANDLE_MARKS = {"KEEL_SHARED", "KEEL_CONFINED"}
SCALARS = {"int8_t": 1, "uint8_t": 1, "char": 1, "uint16_t": 2, "int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8,
           "double": 8, "float": 4, "uintptr_t": 8}
CONSTANTS = re.compile(r"#define (KEEL_(?:ABI_\w+|MAX_\w+|NO_\w+|DIM_HANDLES|[BFIU]\w*\d|BOOL))[ \t]+(.+)")


def headers():
    """The ABI headers, each after the headers that it includes."""
    order = []

    def add(path):
        for name in re.findall(r'#include "(keel_\w+\.h)"', path.read_text()):
            add(ABI / name)
        if path not in order:
            order.append(path)
    for path in sorted(ABI.glob("*.h")):
        add(path)
    return order


def tokens(text):
    """(kind, text) of comments, words and punctuation; without preprocessor lines and code that they exclude from C."""
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"#ifdef __cplusplus\n(?:(?!#else|#endif).*\n)*", "", text)
    text = re.sub(r"^[ \t]*#[^\n]*?(/\*.*?\*/)?[ \t]*$", "", text, flags=re.M)
    kinds = (("comment", r"/\*.*?\*/"), ("word", r"\w+"), ("string", r'"(?:\\.|[^"])*"'), ("mark", r"\.\.\.|[^\s\w]"))
    pattern = "|".join(f"(?P<{kind}>{p})" for kind, p in kinds)
    return [(m.lastgroup, m[0], m.start(), text.count("\n", 0, m.start())) for m in re.finditer(pattern, text, re.S)]


BEHIND = "/*<"  # starts a comment that belongs to the entry on its left


def plain(comment):
    comment = comment.removeprefix(BEHIND)
    lines = [re.sub(r"^\s*\* ?", "", line) for line in comment[2:-2].split("\n")]
    return "\n".join(line.rstrip() for line in lines).strip()


def declarations(text):
    """(words, doc) of each top-level declaration; doc: the comment before it, or after it on the same line."""
    out, words, depth, doc, end, last = [], [], 0, "", -1, -1
    for kind, word, _, line in tokens(text):
        behind, last = line == last, line + word.count("\n")
        if kind == "comment":
            if not words and depth == 0:
                if out and line == end:
                    out[-1] = (out[-1][0], out[-1][1] + ("\n" if out[-1][1] else "") + plain(word))
                else:
                    doc = "" if re.match(r"/\* (----|keel\w*\.h:)", word) else plain(word)
            elif behind and words[-1] == "{":
                doc += ("\n" if doc else "") + plain(word)
            elif words:
                words.append(BEHIND + word if behind and words[-1] in ",;" else word)
            continue
        words.append(word)
        depth += (word in "({[") - (word in ")}]")
        inline = words[:2] == ["static", "inline"]
        if depth == 0 and (word == ";" and not inline or word == "}" and inline):
            out.append((words, doc))
            words, doc, end = [], "", line
        if words[:1] == ["KEEL_SEALED"] and word == ")" and depth == 0:
            words = []
    return out


def comments_apart(words):
    return [w for w in words if not w.startswith("/*")], [plain(w) for w in words if w.startswith("/*")]


def split(words, at=","):
    """At commas that are in no parentheses."""
    parts, depth = [[]], 0
    for word in words:
        depth += (word in "({[") - (word in ")}]")
        if word == at and not depth:
            parts.append([])
        else:
            parts[-1].append(word)
    for i in range(1, len(parts)):
        if parts[i] and parts[i][0].startswith(BEHIND):
            parts[i - 1].append(parts[i].pop(0))
    return [p for p in parts if comments_apart(p)[0]]


def marks_apart(words):
    """A declaration without its marks, the marks before it, and the arguments of those behind it."""
    marks = list(itertools.takewhile(PARAM_MARKS.__contains__, words))
    words, lists = words[len(marks):], {}
    for i in reversed([i for i, word in enumerate(words) if word in LIST_MARKS]):
        lists[LIST_MARKS[words[i]]], words = words[i + 2], words[:i]
    return words, marks, lists


def spell(words):
    text = " ".join(words)
    return re.sub(r" ?\*", "*", re.sub(r"\* ?const", "* const", text)).strip()


class Abi:
    def __init__(self):
        self.headers = {}  # name: its first comment
        self.types, self.handles, self.structs, self.constants = {}, {}, {}, {}
        self.enums, self.callbacks, self.functions, self.opaque = {}, {}, {}, []
        for path in headers():
            self.read(path)
        for name, function in {**self.callbacks, **self.functions}.items():
            for param in function["params"]:
                self.explain(name, param)
            function["one_at_a_time"] = [p["name"] for p in function["params"] if self.confined(p)]

    def read(self, path):
        self.header = path.name
        self.text = path.read_text()
        self.headers[path.name] = plain(re.match(r"/\*.*?\*/", path.read_text(), re.S)[0])
        for name, value in CONSTANTS.findall(path.read_text()):
            self.constant(name, value.split("/*")[0], None, "")
        for words, doc in declarations(path.read_text()):
            words, comments = comments_apart(words) if "{" not in words else (words, [])
            doc = "\n".join(filter(None, [doc, *comments]))
            if words[0] == "KEEL_API":
                self.function(words[1:-1], doc)
            elif words[0] == "enum":
                self.enum(words, doc)
            elif "typedef" in words[:2]:
                self.typedef(words, doc)

    # ---- declarations
    def typedef(self, words, doc):
        marks = [w for w in words if w in HANDLE_MARKS]
        words = [w for w in words[:-1] if w not in HANDLE_MARKS][1:]
        if "{" in words:
            self.struct(words, doc)
        elif "(" in words and words[words.index("(") + 1] == "*":
            at = words.index("(")
            self.callback(words[at + 2], words[:at], words[at + 5:-1], doc)
        elif marks:
            member = f"{words[-1].removeprefix('keel_')}_free"  # of the host table; a function replaces it
            self.handles[words[-1]] = {"header": self.header, "doc": doc, "shared": marks == ["KEEL_SHARED"],
                                       "free": f"keel_host.{member}" if f"(*{member})(" in self.text else None}
        elif words[0] == "struct":
            self.opaque.append(words[-1])
        else:
            self.types[words[-1]] = spell(words[:-1])

    def enum(self, words, doc):
        name = words[1] if words[1] != "{" else None
        for part in split(words[words.index("{") + 1:words.index("}")]):
            code, notes = comments_apart(part)
            if code[1:2] != ["="]:
                raise SystemExit(f"{self.header}: {code[0]}: an enum constant needs a value")
            self.constant(code[0], " ".join(code[2:]), name, " ".join(notes))
        if name:
            self.enums[name] = {"header": self.header, "doc": doc,
                                "constants": [n for n, c in self.constants.items() if c["enum"] == name]}

    def constant(self, name, text, enum, doc):
        code = re.sub(r"\((?:u?int\d+_t)\)", "", text)
        code = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b", r"\1", code)
        code = re.sub(r"KEEL_DT\((\w+), (\w+)\)", r"(\1 | \2 << 8 | 1 << 16)", code)
        value = eval(code, {"__builtins__": {}}, {n: c["value"] for n, c in self.constants.items()})
        self.constants[name] = {"header": self.header, "value": value, "enum": enum, "doc": doc}

    def struct(self, words, doc):
        name, rows = words[-1], words[words.index("{") + 1:len(words) - 2]
        fields, at, align = [], 0, 1
        for part in split(rows, ";"):
            code, notes = comments_apart(part)
            for kind, field, length, facts in self.members(name, code, " ".join(notes)):
                size, step = self.size(kind)
                at = -(-at // step) * step
                align = max(align, step)
                fields.append({"name": field, "type": kind, "offset": at, "size": size * (length or 1), "doc": " ".join(notes),
                               **facts})
                if length:
                    fields[-1]["length"] = length
                at += size * (length or 1)
        for field in fields:
            if field.get("count") not in (None, *(other["name"] for other in fields)):
                raise SystemExit(f"{name}.{field['name']}: there is no field {field['count']}")
        self.structs[name] = {"header": self.header, "doc": doc, "size": -(-at // align) * align, "align": align,
                              "fields": fields}

    def members(self, struct, code, doc):
        """(type, name, length of an array, facts of a pointer) of each."""
        if "(" in code and code[code.index("(") + 1] == "*":
            nullable, code = code[0] == "KEEL_NULLABLE", code[code[0] == "KEEL_NULLABLE":]
            at = code.index("(")
            name = f"{struct}.{code[at + 2]}"
            self.callback(name, code[:at], code[at + 5:-1], doc)
            self.callbacks[name]["nullable"] = nullable
            return [(name, code[at + 2], None, {"nullable": nullable})]
        code, marks, lists = marks_apart(code)
        first, *more = split(code)
        length = None
        if first[-1] == "]":
            length = first[-2]
            length = int(length) if length.isdigit() else self.constants[length]["value"]
            first = first[:-3]
        kind, facts = spell(first[:-1]), {}
        if "*" in kind or kind in self.callbacks or kind in self.opaque:
            facts = {"nullable": "KEEL_NULLABLE" in marks}
            if lists:
                facts |= {"count": lists["count"], "holes": "KEEL_HOLES" in marks}
        elif marks or lists:
            raise SystemExit(f"{struct}.{first[-1]}: marks are for pointers")
        return [(kind, first[-1], length, facts)] + [(kind, m[-1], None, facts) for m in more]

    def size(self, kind):
        if kind.endswith("*") or kind in self.callbacks or "*" in kind or kind.startswith("keel_") and kind in self.opaque:
            return 8, 8
        kind = re.sub(r"\b(const|volatile|struct) ", "", kind)
        kind = self.types.get(kind, kind)
        if kind in SCALARS:
            return SCALARS[kind], SCALARS[kind]
        if kind in self.structs:
            return self.structs[kind]["size"], self.structs[kind]["align"]
        raise SystemExit(f"{self.header}: the size of {kind} is not known")

    def callback(self, name, returns, params, doc):
        self.callbacks[name] = {"header": self.header, "doc": doc, "returns": spell(returns),
                                "params": self.params(name, params)}

    def function(self, words, doc):
        at = words.index("(")
        name = words[at - 1]
        if name in self.functions:
            raise SystemExit(f"{self.header}: {name} is declared twice")
        returns, marks, _ = marks_apart(words[:at - 1])
        self.functions[name] = {"header": self.header, "doc": doc, "returns": spell(returns),
                                **self.result(spell(returns), marks),
                                "params": self.params(name, words[at + 1:-1])}
        if name.endswith("_free"):
            self.handles[re.sub(r" ?\*$", "", self.functions[name]["params"][0]["type"])]["free"] = name

    # ---- parameters
    def result(self, kind, marks):
        """Facts of a function's result: a handle belongs to the caller, another pointer is borrowed."""
        if kind == "void":
            return {}
        facts = {"nullable": "KEEL_NULLABLE" in marks, "ownership": "borrowed" if "*" in kind else "value"}
        base = kind.removesuffix("*")
        if "*" in kind and base in self.handles:
            facts |= {"ownership": "caller", "free": f"{base}_free"}
        return {"result": facts}

    def params(self, function, words):
        out = []
        for part in split(words):
            code, notes = comments_apart(part)
            if code == ["void"]:
                continue
            code, marks, lists = marks_apart(code)
            if "(" in code:  # a function pointer that has no name of its own
                at = code.index("(")
                kind = f"{function}.{code[at + 2]}"
                self.callback(kind, code[:at], code[at + 5:-1], " ".join(notes))
                code = [kind, code[at + 2]]
            if len(code) < 2 or not re.fullmatch(r"\w+", code[-1]) or code[-1] in SCALARS or code[-1].endswith("_t"):
                raise SystemExit(f"{self.header}: {function}: parameter {len(out)} has no name: {' '.join(code)}")
            param = {"name": code[-1], "type": spell(code[:-1]), "marks": marks, "lists": lists}
            if notes:
                param["doc"] = " ".join(notes)
            out.append(param)
        return out

    def base(self, param):
        return re.sub(r"\b(const|struct|volatile)\b|\*", "", param["type"]).strip()

    def confined(self, param):
        return not self.handles.get(self.base(param), {"shared": True})["shared"] and param["direction"] == "in"

    def explain(self, function, param):
        """Direction, nullability, count and ownership, by the rules and the marks."""
        def need(right, why):
            if not right:
                raise SystemExit(f"{function}: parameter {param['name']} ({param['type']}): {why}")
        kind, marks, lists = param["type"], param.pop("marks"), param.pop("lists")
        count, filled = lists.get("count"), lists.get("filled")
        stars, base, handle = kind.count("*"), self.base(param), self.handles.get(self.base(param))
        pointer = stars > 0 or kind in self.callbacks or kind in self.opaque
        opaque = base == "void" and kind == "void*" and not count or kind in self.callbacks
        held = handle is not None or base.startswith("DLManaged") or kind in self.opaque
        last_const = kind.endswith("* const*") or kind.startswith("const ") and stars == 1
        output = stars == 2 and not last_const or stars == 1 and not last_const and not held and not opaque
        names = [p["name"] for p in self.callbacks.get(function, self.functions.get(function))["params"]]
        need(pointer or not marks and not count, "marks are for pointers")
        need(not count or count in [*names, "returned", *self.constants], f"there is no parameter {count}")
        param["direction"] = "out" if output else "in"
        param["nullable"] = pointer and ("KEEL_NULLABLE" in marks or kind == "keel_error**" or kind == "void*")
        if count:
            param["count"] = self.constants[count]["value"] if count in self.constants else count
            param["holes"] = "KEEL_HOLES" in marks
        if filled:
            need(count and output and filled in names, "KEEL_FILLED is for an output list, and names an output")
            param["filled"] = filled
        if kind in self.callbacks or self.base(param) in self.callbacks:
            arg = next((n for n in (f"{param['name']}_arg", "arg", "args") if n in names), None)
            need(arg, "a callback needs a parameter `arg` for what it is called with")
            param["arg"] = arg
        need(count or "KEEL_HOLES" not in marks, "KEEL_HOLES is for lists")
        need(not (output and {"KEEL_KEPT", "KEEL_TAKEN"} & {*marks}), "KEEL_KEPT and KEEL_TAKEN are for inputs")
        need(count or not (stars == 2 and last_const), "a list needs KEEL_COUNT")
        if not pointer:
            param["ownership"] = "value"
        elif not output:
            param["ownership"] = "taken" if "KEEL_TAKEN" in marks else "kept" if "KEEL_KEPT" in marks else "borrowed"
        elif "KEEL_BORROWED" in marks or not (stars == 2 or handle):
            param["ownership"] = "borrowed" if "KEEL_BORROWED" in marks else "value"
            if "KEEL_BORROWED" in marks:
                param["owner"] = names[0]
        else:
            need(handle or base.startswith("DLManaged"), "whose is it? KEEL_BORROWED, or a handle")
            need(not handle or handle["free"], f"nothing frees a {base}: KEEL_BORROWED")
            param["ownership"] = "caller"
            param["free"] = handle["free"] if handle else "its member deleter"

    def table(self):
        return {"abi": {k: self.constants[f"KEEL_ABI_{k.upper()}"]["value"] for k in ("major", "minor", "draft")},
                "headers": self.headers, "types": self.types, "opaque": self.opaque, "constants": self.constants, "enums": self.enums,
                "handles": self.handles, "structs": self.structs, "callbacks": self.callbacks,
                "functions": self.functions}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    Path(sys.argv[1]).write_text(json.dumps(Abi().table(), indent=1) + "\n")


if __name__ == "__main__":
    main()
