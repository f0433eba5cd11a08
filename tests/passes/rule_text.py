"""Rule files for tests: each rule alone, its pattern as a tree, and a random graph that the pattern matches.

Start with `rules`, which splits a file into rules, one for each op of `for f in ...`; `Rule.alone` is a file with only that rule;
`Drawer.graph` draws dtypes, dims, attributes and constants and writes the pattern as graph text. A drawn graph may be invalid:
libkeel refuses it, and the caller draws again.
"""
import re
from dataclasses import dataclass

import numpy as np

WORD = re.compile(r"[A-Za-z_]\w*")
TOKEN = re.compile(r'\s*("[^"]*"|\d+(?:\.\d+)?(?:e[-+]?\d+)?|[A-Za-z_][\w.]*|==|!=|<=|>=|.)', re.S)
INFIX = [{"==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"},
         {"+": "add", "-": "sub"}, {"*": "mul", "/": "div"}]
NUMBERS = {"inf", "nan", "true", "false", "none"}
DTYPES = ["f32"] * 6 + ["f64", "f16", "bf16", "i8", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "bool"]
SHAPES = [[], ["1"], ["3"], ["2", "3"], ["1", "3"], ["2", "1"], ["b"], ["b", "3"], ["0", "3"], ["2", "1", "3"], ["4", "2", "3"],
          ["6"], ["3", "2"], ["1", "1"], ["3", "3"], ["3", "3"], ["2", "2", "2"], ["2", "2", "2"], ["1", "3", "3"]]


@dataclass
class Rule:
    where: str  # "pass: rule (op)"
    level: str  # exact, close, fast
    bound: float
    text: str  # of the rule, with f replaced by the op
    match: str
    parts: dict  # what `where` says
    when: list

    def alone(self):
        return f"keel rules 1\npass only {self.level}\n{self.text}\n"


def parts_at(text, mark):
    """Splits outside brackets."""
    found, depth, begin = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == mark and not depth:
            found.append(text[begin:at].strip())
            begin = at + 1
    return [p for p in found + [text[begin:].strip()] if p]


def rules(text, levels):
    """levels: class of each pass that extends another, by name."""
    for block in re.split(r"(?m)^(?=pass |extend )", text)[1:]:
        kind, name = block.split()[:2]
        head = block.split("\nrule ")[0]
        level = levels[name] if kind == "extend" else next((c for c in ("close", "fast") if re.search(rf"\b{c}\b", re.sub('".*?"', "", head))), "exact")
        for body in re.split(r"(?m)^(?=rule )", block)[1:]:
            bound = re.search(r"# bound (\S+)", body)
            yield from instances(f"{name}", level, float(bound[1]) if bound else None, re.sub(r"#.*", "", body).rstrip())


def instances(name, level, bound, body):
    head, rest = re.match(r"rule (\w+)(.*?)(?=\bmatch\b)", body, re.S).groups(), body[re.search(r"\bmatch\b", body).start():]
    found = re.match(r"\s*for (\w+) in (.*)", head[1], re.S)
    for op in parts_at(found[2], ",") if found else [""]:
        own = re.sub(rf"\b{found[1]}\b(?=\()", op, rest) if found else rest
        cut = {k: v.strip() for k, v in re.findall(r"\b(match|where|when|build)\b(.*?)(?=\bwhere\b|\bwhen\b|\bbuild\b|\Z)", own, re.S)}
        where = dict([x.strip() for x in part.split("=", 1)] for part in parts_at(cut.get("where", ""), ","))
        yield Rule(f"{name}: {head[0]}" + (f" ({op})" if op else ""), level, bound, f"rule {head[0]}\n  {own.rstrip()}", cut["match"], where,
                   parts_at(cut.get("when", ""), ","))


class Tree:
    """An expression: a name or number (a string), or (op, operands, attributes)."""

    def __init__(self, text):
        self.tokens = [t for t in TOKEN.findall(text) if t.strip()] + [""]
        self.root = self.binary(0)
        assert self.tokens == [""], f"cannot read {text!r}: left {self.tokens}"

    def next(self, wanted=None):
        assert wanted in (None, self.tokens[0]), (wanted, self.tokens)
        return self.tokens.pop(0)

    def binary(self, level):
        if level == len(INFIX):
            return self.unary()
        left = self.binary(level + 1)
        while self.tokens[0] in INFIX[level]:
            left = (INFIX[level][self.next()], [left, self.binary(level + 1)], {})
        return left

    def unary(self):
        if self.tokens[0] == "-":
            self.next()
            inner = self.unary()
            return "-" + inner if isinstance(inner, str) and (inner in NUMBERS or inner[0].isdigit()) else ("neg", [inner], {})
        if self.tokens[0] == "(":
            self.next()
            inner = self.binary(0)
            self.next(")")
            return inner
        name = self.next()
        if self.tokens[0] != "(":
            return name
        self.next()
        operands, attrs = [], {}
        while self.tokens[0] != ")":
            operands.append(self.binary(0))
            self.tokens[0] == "," and self.next()
        self.next()
        if self.tokens[0] == "{":
            self.next()
            while self.tokens[0] != "}":
                attr = self.next()
                self.next("=")
                attrs[attr] = self.next()
                self.tokens[0] == "," and self.next()
            self.next()
        return name, operands, attrs


class Drawer:
    def __init__(self, rule, required, seed):
        self.rule, self.required = rule, required  # required: op -> attributes without a default
        self.random = np.random.default_rng(seed)
        self.main = Tree(rule.match).root
        self.parts = {name: Tree(text).root for name, text in rule.parts.items()}
        when = " ".join(rule.when)
        self.fixed = set(re.findall(r"\b(?:constant|number|invertible)\((\w+)\)", when)) - set(re.findall(r"!constant\((\w+)\)", when))
        self.wanted = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", when) if "number(" in when else []

    def pick(self, among):
        return among[self.random.integers(len(among))]

    def attribute(self, op, name, rank):
        axes = range(rank)
        if name == "perm":
            return str([int(i) for i in self.random.permutation(rank)])
        if name == "axes":
            return str([i for i in axes if self.random.random() < 0.6])
        if name == "to" and op == "cast":
            return self.pick(DTYPES)
        if name in ("to", "dims"):
            return "[" + ", ".join(self.pick(self.pool)) + "]"
        if name == "times":
            return str([1] * rank)
        if name in ("start", "stop", "lo", "hi", "axis"):
            return "0"
        if name == "round":
            return self.pick(["nearest", "up", "down"])
        return self.pick(["true", "false"])

    def write(self, tree, values):
        if isinstance(tree, str):
            return tree
        op, operands, attrs = tree
        texts = [self.write(o, values) for o in operands]
        given = {}
        for name in [*attrs, *(a for a in self.required[op] if a not in attrs)]:
            word = attrs.get(name)
            if word is None or (WORD.fullmatch(word) and word not in NUMBERS and word not in DTYPES):
                drawn = self.attribute(op, name, self.rank)
                given[name] = values.setdefault(word, drawn) if word else drawn
            else:
                given[name] = word.strip('"')
        return f"{op}({', '.join(texts)})" + ("{" + ", ".join(f"{k}={v}" for k, v in given.items()) + "}" if given else "")

    def names(self, tree):
        if isinstance(tree, str):
            return {tree} if WORD.fullmatch(tree) and tree not in NUMBERS else set()
        return set().union(*map(self.names, tree[1]))

    def constant(self, dtype, dims):
        number = self.pick([*self.wanted, "1", "2", "0.5", "-4", "3", "0.3", "8", "1e30"])
        if dtype == "bool":
            number = self.pick(["true", "false"])
        count = int(np.prod([int(d) for d in dims]))
        mixed = [number] * count if self.random.random() < 0.7 else [self.pick(["1", "2", "3"]) for _ in range(count)]
        return number if not dims else self.nest(mixed, dims)

    def nest(self, flat, dims):
        if len(dims) == 1:
            return "[" + ", ".join(flat) + "]"
        step = len(flat) // max(1, int(dims[0]))
        return "[" + ", ".join(self.nest(flat[i * step:(i + 1) * step], dims[1:]) for i in range(int(dims[0]))) + "]"

    def graph(self):
        """Returns the text of a graph whose result the rule matches."""
        common, self.shape = self.pick(DTYPES), self.pick(SHAPES)
        self.rank, self.pool = len(self.shape), [self.shape, self.pick(SHAPES), self.pick(SHAPES)]
        leaves = sorted(set().union(self.names(self.main), *map(self.names, self.parts.values())) - set(self.parts))
        params, constants, values = [], [], {}
        for name in leaves:
            dtype = common if self.random.random() < 0.85 else self.pick(DTYPES)
            dims = self.shape if self.random.random() < 0.6 else self.pick(self.pool)
            if name in self.fixed or (self.random.random() < 0.05 and "b" not in dims):
                dims = [d for d in dims if d != "b"]
                constants.append(f"const {name}: {dtype}[{', '.join(dims)}] = {self.constant(dtype, dims)}")
            else:
                params.append(f"{name}: {dtype}[{', '.join(dims)}]")
        lines, left = [], dict(self.parts)
        while left:
            name = next(n for n in left if not self.names(left[n]) & set(left))
            lines.append(f"  {name} = {self.write(left.pop(name), values)}")
        lines.append(f"  whole = {self.write(self.main, values)}\n  return whole")
        names = ", ".join(p.split(":")[0] for p in params)
        return "\n".join(["keel 1", *constants, f"fn @main({', '.join(params)}) {{", *lines, "}", f"entry main = @main ({names})"]) + "\n"
