#!/usr/bin/env python3
"""Writes a mutated copy of C++ sources: `mutants.py OUT FILE...`. Each mutation point calls `km(number)`, which is true
if the variable keel_mutant of the built library equals that number, so all mutants share one build.
keel_mutant_hit[number] is set when the point is reached. OUT/mutants.json describes each number.

How to read it: `Source` is a tokenised file with its mutable ranges; SITES are the kinds of mutation,
each a generator of edits; an edit is a list of insertions (place, text), and edits nest by their extents. Sources must
be formatted by clang-format: binary operators have spaces around them.
"""
import json
import re
import sys
from pathlib import Path

TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|\#[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[A-Za-z_]\w*|0x[0-9a-fA-F]+u?|\d+\.?\d*(?:e-?\d+)?[uf]?
                       |\#|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%|&^]=|.""", re.S | re.X)
LEVEL = {"||": 1, "&&": 2, "|": 3, "^": 3, "&": 3, "==": 5, "!=": 5, "<": 6, "<=": 6, ">": 6, ">=": 6, "<<": 7, ">>": 7,
         "+": 8, "-": 8, "*": 9, "/": 9, "%": 9}
CLOSES = {"(": ")", "[": "]", "{": "}"}
STOPS = {",", ";", "?", ":", "=", "return", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "else", "do"}
OPPOSITE = {"==": "ne", "!=": "eq", "<": "le", "<=": "lt", ">": "ge", ">=": "gt"}
NAMED = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "+": "add", "-": "sub", "/": "div", "*": "mul"}
SWAPPED = {"add": "sub", "sub": "add", "mul": "div", "div": "mul", "reduce_max": "reduce_min", "reduce_sum": "reduce_mean",
           "reduce_mean": "reduce_sum", "sqrt": "rsqrt", "rsqrt": "sqrt", "equal": "not_equal", "not_equal": "equal", "exp": "log",
           "log": "exp", "ta": "tb", "tb": "ta", "softmax": "log_softmax", "layer_norm": "rms_norm", "neg": "abs", "reverse": "flip"}
HEADER = """#pragma once
extern "C" __attribute__((visibility("default"))) int keel_mutant;
extern "C" __attribute__((visibility("default"))) unsigned char keel_mutant_hit[];
inline bool km(int number) { keel_mutant_hit[number] = 1; return keel_mutant == number; }
template <class A, class B> bool km_eq(int n, const A& a, const B& b) { return km(n) ? a != b : a == b; }
template <class A, class B> bool km_ne(int n, const A& a, const B& b) { return km(n) ? a == b : a != b; }
template <class A, class B> bool km_lt(int n, const A& a, const B& b) { return km(n) ? a <= b : a < b; }
template <class A, class B> bool km_le(int n, const A& a, const B& b) { return km(n) ? a < b : a <= b; }
template <class A, class B> bool km_gt(int n, const A& a, const B& b) { return km(n) ? a >= b : a > b; }
template <class A, class B> bool km_ge(int n, const A& a, const B& b) { return km(n) ? a > b : a >= b; }
template <class A, class B> auto km_add(int n, const A& a, const B& b) {
  if constexpr (requires(decltype(a + b) r) { r = a - b; })
    if (km(n)) return static_cast<decltype(a + b)>(a - b);
  return a + b;
}
template <class A, class B> auto km_sub(int n, const A& a, const B& b) {
  if constexpr (requires(decltype(a - b) r) { r = a + b; })
    if (km(n)) return static_cast<decltype(a - b)>(a + b);
  return a - b;
}
template <class A, class B> auto km_div(int n, const A& a, const B& b) {
  if constexpr (requires(decltype(a / b) r) { r = a * b; })
    if (km(n)) return static_cast<decltype(a / b)>(a * b);
  return a / b;
}
"""


class Source:
    def __init__(self, text):
        self.text, self.tokens = text, []
        for found in TOKEN.finditer(text):
            if not found[0].isspace() and not found[0].startswith(("//", "/*", "#")):
                self.tokens.append((found[0], found.start(), found.end()))
        self.code = [False] * len(self.tokens)
        self.in_rule = set()  # tokens of rules; a rule returns whether it rewrote the graph
        self.partner = {}
        self.mark()

    def word(self, i):
        return self.tokens[i][0] if 0 <= i < len(self.tokens) else ""

    def mark(self):
        """Finds the tokens inside functions, and pairs of brackets."""
        stack, begin, skipped, first = [], 0, False, None
        for i, (word, *_) in enumerate(self.tokens):
            inside = bool(stack) and stack[-1][1]
            if word in CLOSES:
                opens = word == "{" and not inside and self.word(i - 1) in (")", "const", "&&", "noexcept", "override")
                stack.append((i, inside or opens))
                rule = opens and re.search(r"bool \w+\(Edit& e, NodeId n\) $", self.text[:self.start(i)])
                first = i if rule else None if opens else first
            elif word in CLOSES.values() and stack:
                start, _ = stack.pop()
                self.partner[start], self.partner[i] = i, start
            self.code[i] = inside and not skipped
            if inside and first is not None:
                self.in_rule.add(i)
            if word == ";" or (word in "{}" and not (skipped and self.word(begin) in ("static", "constexpr"))):
                begin = i + 1  # static values are computed once, before a mutant is chosen: not mutated
            skipped = self.word(begin) in ("constexpr", "static", "using", "template", "case")

    def spaced(self, i):
        _, start, end = self.tokens[i]
        return self.text[start - 1].isspace() and self.text[end].isspace()

    def binary(self, i, words):
        return self.code[i] and self.word(i) in words and self.spaced(i)

    def left(self, i):
        """The first token of the operand left of operator i."""
        level, at = LEVEL[self.word(i)], i - 1
        while at >= 0:
            word = self.word(at)
            if word in CLOSES.values():
                at = self.partner[at] - 1
                continue
            if word in CLOSES or word in STOPS or (word in LEVEL and self.spaced(at) and LEVEL[word] < level):
                break
            at -= 1
        return at + 1

    def right(self, i):
        """The last token of the operand right of operator i."""
        level, at = LEVEL[self.word(i)], i + 1
        while at < len(self.tokens):
            word = self.word(at)
            if word in CLOSES:
                at = self.partner[at] + 1
                continue
            if word in CLOSES.values() or word in STOPS or (word in LEVEL and self.spaced(at) and LEVEL[word] <= level):
                break
            at += 1
        return at - 1

    def start(self, i):
        return self.tokens[i][1]

    def end(self, i):
        return self.tokens[i][2]

    def part(self, first, last):
        return self.text[self.start(first):self.end(last)]


def around(s, first, last, before, after):
    return s.start(first), s.end(last), [(s.start(first), "", before), (s.end(last), "", after)]


def comparisons(s):
    for i in range(len(s.tokens)):
        if s.binary(i, OPPOSITE) or (s.binary(i, "+-/") and '"' not in s.part(s.left(i), s.right(i))):
            first, last, name = s.left(i), s.right(i), NAMED[s.word(i)]
            kind = "operator" if s.word(i) in "+-/" else "comparison"
            yield kind, s.part(first, last), (s.start(first), s.end(last), [
                (s.start(first), "", f"km_{name}(%d, "), (s.start(i), s.word(i), ","), (s.end(last), "", ")")])


def conditions(s):
    """Replaces an operand of && or || by the neutral value."""
    for i in range(len(s.tokens)):
        if not s.binary(i, ("&&", "||")):
            continue
        both = "(km(%d) || (" if s.word(i) == "&&" else "(!km(%d) && ("
        sides = [(i + 1, s.right(i))] + ([(s.left(i), i - 1)] if s.word(s.left(i) - 1) != s.word(i) else [])
        for first, last in sides:
            inner = [t for t in range(first, last + 1) if s.word(t) == s.word(i) and s.spaced(t)]
            if not inner:
                yield "dropped", f"{s.part(first, last)} of {s.word(i)}", around(s, first, last, both, "))")


def literals(s):
    for i, (word, *_) in enumerate(s.tokens):
        if not s.code[i]:
            continue
        if s.word(i - 1) == "return" and word == "false" and i in s.in_rule:
            continue  # a rule that falsely reports a rewrite is only applied again
        if word in ("true", "false"):
            yield "literal", nearby(s, i), around(s, i, i, "(km(%d) != ", ")")
        elif re.fullmatch(r"\d+", word) and not declared(s, i) and s.word(i - 1) != "<":
            yield "literal", nearby(s, i), around(s, i, i, "(km(%d) ? " + word + " + 1 : ", ")")
        elif re.fullmatch(r"\d+\.\d*(e-?\d+)?", word):
            yield "literal", nearby(s, i), around(s, i, i, "(km(%d) ? 2 * " + word + " : ", ")")
        elif word[0] == '"' and word[1:-1] in SWAPPED:
            yield "name", nearby(s, i), around(s, i, i, f'(km(%d) ? "{SWAPPED[word[1:-1]]}" : ', ")")


def declared(s, i):
    """The length in `bool flags[2]`."""
    return s.word(i - 1) == "[" and s.word(i + 1) == "]" and (re.match(r"\w+$|>$", s.word(i - 3)) and s.word(i - 3) not in ("return", "else"))


def nearby(s, i):
    return s.part(max(i - 4, 0), min(i + 2, len(s.tokens) - 1)) + f" @{s.word(i)}"


def negations(s):
    for i in range(len(s.tokens)):
        if s.code[i] and s.word(i) == "!":
            last = i + 1
            while s.word(last) in ("(", "[") or re.match(r"[\w.*]|->|::", s.word(last)):
                last = s.partner[last] + 1 if s.word(last) in CLOSES else last + 1
            yield "negation", s.part(i, last - 1), around(s, i, last - 1, "(km(%d) != ", ")")


def single_uses(s):
    for i in range(len(s.tokens)):
        if s.code[i] and s.word(i) == "single_use" and s.word(i - 1) in (".", "->"):
            last = s.partner[i + 1]
            yield "single_use", s.part(i - 2, last), around(s, i - 2, last, "(km(%d) || ", ")")


def operands(s):
    """Swaps the operands {a, b} of a new node."""
    for i in range(len(s.tokens)):
        if not (s.code[i] and s.word(i) == "{" and s.word(i - 1) == "," and re.match('".*"$', s.word(i - 2)) and s.word(i - 3) == "("):
            continue
        end, depth, commas = s.partner[i], i + 1, []
        while depth < end:
            if s.word(depth) in CLOSES:
                depth = s.partner[depth]
            elif s.word(depth) == ",":
                commas.append(depth)
            depth += 1
        if len(commas) == 1:
            a, b = s.part(i + 1, commas[0] - 1), s.part(commas[0] + 1, end - 1)
            yield "swapped", s.part(i, end), around(s, i, end, f"(km(%d) ? Ids{{{b}, {a}}} : Ids", ")")


def statements(s):
    """Drops a call that is a statement."""
    for i in range(1, len(s.tokens)):
        if not (s.code[i] and s.word(i - 1) in (";", "{", "}", ")") and re.match(r"[a-z_]\w*$", s.word(i)) and s.word(i + 1) in ("(", ".", "->")):
            continue
        last = i
        while s.word(last) not in (";", "=", "{", "}", "") and (s.word(last) not in LEVEL or not s.spaced(last)):
            last = s.partner[last] + 1 if s.word(last) in CLOSES else last + 1
        if s.word(last) == ";" and s.word(i) not in ("return", "if", "for", "while", "switch", "throw", "break", "continue"):
            yield "left out", s.part(i, last), around(s, i, last, "{ if (!km(%d)) ", " }")


SITES = [comparisons, conditions, literals, negations, single_uses, operands, statements]


def mutate(path, first, listed):
    """The mutated text, with mutation points numbered from `first`."""
    s = Source(path.read_text())
    found = sorted((site for sites in SITES for site in sites(s)), key=lambda site: (site[2][0], -site[2][1], len(site[2][2])))
    inserts, number, seen = [], first, {}
    for kind, what, (begin, end, edits) in found:
        what = re.sub(r"\s+", " ", what)
        again = seen[kind, what] = seen.get((kind, what), 0) + 1
        listed[number] = f"{path.name}: {kind}: {what}" + (f" #{again}" if again > 1 else "")
        for n, (place, old, new) in enumerate(edits):
            opens = n == 0
            rank = (place, 1, -end, number) if opens else (place, 0 if n == len(edits) - 1 else 2, -begin, -number)
            inserts.append((rank, place, old, new % number if "%" in new else new))
        number += 1
    text, at = [], 0
    for _, place, old, new in sorted(inserts):
        text += [s.text[at:place], new]
        at = place + len(old)
    return '#include "km.h"\n' + "".join(text) + s.text[at:], number


def main():
    out, number, listed = Path(sys.argv[1]), 1, {}
    out.mkdir(parents=True, exist_ok=True)
    for name in sorted(sys.argv[2:]):
        text, number = mutate(Path(name), number, listed)
        (out / Path(name).name).write_text(text)
    (out / "km.h").write_text(HEADER)
    (out / "km.cc").write_text(f'#include "km.h"\nint keel_mutant = 0;\nunsigned char keel_mutant_hit[{number}] = {{}};\n')
    (out / "mutants.json").write_text(json.dumps(listed, indent=0) + "\n")


if __name__ == "__main__":
    main()
