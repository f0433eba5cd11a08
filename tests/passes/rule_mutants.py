"""Mutants of rules, generated one at a time for each mutation site in the text of a rule.

A site is (kind, begin, end, replacement); `SITES` are the kinds, each a generator over one part of a rule. Start there.
`EXPLAINED` lists mutants that no result can detect, with the reason.
"""
import re
from dataclasses import replace

from rule_text import parts_at, rules

# Excludes ops with the same neutral element, or that keep the same numbers.
OTHER = {"==": "!=", "!=": "==", "<": ">=", ">": "<=", "<=": ">", ">=": "<", "+": "*", "-": "+", "*": "-", "/": "-", "&&": "||", "||": "&&",
         "true": "false", "false": "true", "inf": "0", "reduce_max": "reduce_sum", "reduce_min": "reduce_sum", "reduce_sum": "reduce_max",
         "reduce_mean": "reduce_sum", "reduce_prod": "reduce_sum", "sqrt": "rsqrt", "rsqrt": "sqrt", "exp": "log", "log": "exp", "neg": "abs", "abs": "neg",
         "silu": "sigmoid", "sigmoid": "silu", "reciprocal": "neg", "logical_and": "logical_or", "logical_or": "logical_and",
         "logical_xor": "logical_and", "bit_and": "bit_or", "bit_or": "bit_and", "bit_xor": "bit_and", "floor": "neg", "ceil": "neg", "round": "neg",
         "sign": "neg", "relu": "neg", "maximum": "minimum", "minimum": "maximum", "shift_left": "mul", "shift_right": "mul",
         "sub": "mul", "div": "sub", "pow": "sub", "before": "after", "after": "before", "ta": "tb", "tb": "ta"}
TOKEN = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[-+]?\d+)?|[A-Za-z_]\w*|&&|\|\||[=!<>]=|[-+*/<>](?= )|(?<=\()[-](?=\w)")
# Conditions of cost: without them a rule applies more often with the same results, or builds nothing because the type differs.
COST = re.compile(r"uses\(\w+\) == 1|!?constant\(\w+\)|dims\(x\) == dims\(result\)")


def parts(rule):
    """Returns (name, begin, end) of match, where, when and build."""
    found = [(m[1], m.end()) for m in re.finditer(r"\b(match|where|when|build)\b", rule.text)]
    ends = [begin - len(name) for name, begin in found[1:]] + [len(rule.text)]
    return [(name, begin, end) for (name, begin), end in zip(found, ends)]


def words(text, name, begin, end):
    """Operators, names of ops and words, each replaced by its opposite."""
    for t in TOKEN.finditer(text, begin, end):
        if t[0] in OTHER and not text[t.end():].startswith("=") and not in_cost(text, t):
            yield t[0], t.start(), t.end(), OTHER[t[0]]


def in_cost(text, token):
    return any(m.start() <= token.start() < m.end() for m in COST.finditer(text))


def numbers(text, name, begin, end):
    for t in TOKEN.finditer(text, begin, end):
        if t[0][0].isdigit() and not in_cost(text, t):
            yield t[0], t.start(), t.end(), str(float(t[0]) * 2 + 1) if "." in t[0] else str(int(t[0]) + 1)


def dropped(text, name, begin, end):
    """Omits a condition, except cost conditions."""
    at = begin
    for condition in parts_at(text[begin:end], ",") if name == "when" else []:
        at = text.index(condition, at)
        if not COST.fullmatch(condition):
            yield condition, at, at + len(condition), "0 == 0"
        at += len(condition)


def turned(text, name, begin, end):
    """Swaps operands, if that changes the value."""
    for m in re.finditer(r"(?<![\w.])(\w+) ([-/]) (\w+)(?![\w(])" if name in ("match", "build") else r"(?!)", text[begin:end]):
        yield m[0], begin + m.start(), begin + m.end(), f"{m[3]} {m[2]} {m[1]}"
    for m in re.finditer(r"\b(?:pick|lossless|pow|fits)\((\w+), (\w+)\)", text[begin:end]):
        yield m[0], begin + m.start(1), begin + m.end(2), f"{m[2]}, {m[1]}"


def unlinked(text, name, begin, end):
    """A repeated name of the pattern, replaced by a new name at its second use."""
    seen = set()
    for t in re.finditer(r"\b[a-z]\w*\b(?![(=])", text[begin:end]) if name == "match" else []:
        if t[0] in seen and t[0] not in OTHER:
            yield f"second {t[0]}", begin + t.start(), begin + t.end(), "other"
        seen.add(t[0])


SITES = [words, numbers, dropped, turned, unlinked]

WRAPS = "integers wrap, so it is right for them as well"
REFUSED = "what would be built has another type or sizes that do not fit, and is not"
FEWER = "right, for fewer graphs or for others"
CHECK = "a check of sizes may go with its node, so none is missed"
UNDRAWN = "only a size that is open, and weights without columns, would tell"
EXPLAINED = {
    **{f"fastmath: {rule}: when: floating(dtype(x)) -> 0 == 0": WRAPS
       for rule in ("add_constants", "sub_constants", "add_to_sub_constants", "mul_constants", "factor_out", "collect")},
    "nearby: inverse: when: floating(dtype(x)) -> 0 == 0": REFUSED,
    **{f"simplify: and_all_bits: when: {n} -> {n + 1}": FEWER for n in (255, 65535, 4294967295)},
    **{f"simplify: cast_twice: when: || -> &&{again}": FEWER for again in ("", " #2", " #3", " #4")},
    **{f"simplify: {rule}: when: 1 -> 2": FEWER for rule in ("reduce_one (reduce_max)", "reduce_one (reduce_min)", "reduce_one (reduce_prod)",
                                                             "sum_of_one (reduce_sum)", "sum_of_one (reduce_mean)", "rows")},
    "simplify: sum_of_one (reduce_sum): match: reduce_sum -> reduce_max": FEWER,
    "simplify: sum_of_one (reduce_mean): match: reduce_mean -> reduce_sum": FEWER,
    **{f"simplify: {rule}: when: fits(dims({x}), dims(result)) -> 0 == 0": CHECK
       for rule, x in (("select_first", "b"), ("select_second", "a"), ("select_same", "p"), ("spread_twice", "x"))},
    **{f"simplify: {rule}: {mutant}": FEWER for rule in ("rows", "rows_and_bias")
       for mutant in ("build: before -> after", "when: 0 -> 1", "when: after -> before", "when: after -> before #2")},
    **{f"simplify: {rule}: when: {condition} -> 0 == 0": REFUSED for rule in ("rows", "rows_and_bias")
       for condition in ("after(dims(m), 1) == after(dims(result), rank(dims(result)) - 1)", "rank(dims(a)) == 2", "rank(dims(w)) == 2",
                         "rank(dims(result)) > 1")},
    "simplify: rows_and_bias: when: rank(dims(b)) < 2 -> 0 == 0": REFUSED,
    **{f"simplify: {rule}: when: dims(w) > 0 -> 0 == 0": UNDRAWN for rule in ("rows", "rows_and_bias")},
    **{f"simplify: rows_and_bias: {mutant}": FEWER for mutant in ("build: after -> before", "when: 2 -> 3 #3", "when: < -> >=")},
}


def mutants(rule, levels):
    """Returns (name, mutated rule)."""
    seen = {}
    for part in parts(rule):
        for site in SITES:
            for what, begin, end, wrong in site(rule.text, *part):
                again = seen[part[0], what] = seen.get((part[0], what), 0) + 1
                name = f"{rule.where}: {part[0]}: {what} -> {wrong}" + (f" #{again}" if again > 1 else "")
                text = rule.text[:begin] + wrong + rule.text[end:]
                changed = next(rules(f"pass only {rule.level}\n{text}", levels))
                yield name, replace(changed, where=rule.where, bound=rule.bound)
