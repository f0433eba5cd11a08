"""Every rule of every rule file, without a case by hand: operands are drawn until the pattern and the conditions hold, only that
rule runs, and both graphs run on the reference device. By class: exact gives the same bits except those inside a NaN; the error
of close is at most twice the original's plus 4 units in the last place; a rule of class fast states in the file how many
roundings of the greatest number it may be off. Both in the coarsest dtype of the graph.

The same check must detect mutated rules: `MISTAKES` by hand, and a sample of those of rule_mutants.py.
"""
import os
import re
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import rule_mutants
from operands import operand, same_bits
from rule_text import Drawer, rules

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("KEEL_BUILD", "build/release")).resolve()
FILES = sorted((BUILD / "lib/keel/plugins").glob("*.rules"))
LEVELS = {"simplify": "exact", "nearby": "close"}
WANTED, MOST = 60, 20000  # graphs that a rule edits, and the number of draws for them
ENOUGH = 8
MUTANTS = 60  # of the generated mutants
SIZES = (3, 1, 0, 17)
KINDS = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}  # the coarsest first
CLOSE = 8  # roundings; two of them are a unit in the last place

ALL = {rule.where: rule for path in FILES for rule in rules(path.read_text(), LEVELS)}


@pytest.fixture(scope="module")
def required(context):
    return {op["name"]: [a["name"] for a in op["attributes"] if a["default"] == ""] for op in context.report("ops")}


def alone(tmp_path, text):
    """A context with this rule as pass `only`."""
    import keel_abi
    path = tmp_path / "keel-only.rules"
    path.write_text(text)
    context = keel_abi.Context()
    context.load_plugin(str(path))
    return context


def inputs(text, random, special, size):
    head = re.search(r"fn @main\((.*?)\) \{", text)[1]
    for kind, dims in re.findall(r": (\w+)\[(.*?)\]", head):
        array = operand(kind, [int(d) if d.isdigit() else size for d in dims.replace(" ", "").split(",") if d], random, special)
        yield array.view(ml_dtypes.bfloat16) if kind == "bf16" else array


def run(plan, arrays):
    import keel_abi
    try:
        return np.array(plan.run(*arrays)[0])
    except keel_abi.KeelError as e:
        return str(e).splitlines()[0]


def wide(array):
    return array.astype(np.float64) if array.dtype.kind in "fV" else array


def coarsest(text):
    """Returns (a rounding, the least normal number) of the coarsest float in a graph."""
    kind = next(k for k in KINDS if re.search(rf"\b{k}\b", text))
    info = ml_dtypes.finfo(KINDS[kind])
    return float(info.eps) / 2, float(info.tiny)


def greatest(text, arrays):
    """Largest magnitude of the graph's inputs, constants and results; at least 1."""
    literals = re.findall(r"(?<![\w.@])\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.sub(r"\w+\[.*?\]|^keel 1", "", text))
    finite = [np.abs(x[np.isfinite(x)]).max(initial=0) for x in map(wide, arrays)]
    return float(max([1, *finite, *(v for v in map(float, literals) if v)]))


def close_enough(rule, text, before, after, arrays, context):
    """The error against float64 where the original graph gave a number (an intermediate overflow may be gone now)."""
    exact = re.sub(r"\b(f32|f16|bf16)\b", "f64", text)
    truth = run(context.parse(exact).session("reference", level=0).prepare(), [wide(x) for x in arrays])
    if before.dtype.kind in "iub" or isinstance(truth, str):
        return same_bits(before, after)
    rounding, tiny = coarsest(text)
    known = np.isfinite(wide(before)) & np.isfinite(truth)
    scale = np.maximum(np.abs(truth), tiny) if rule.level == "close" else greatest(text, [*arrays, truth])
    with np.errstate(all="ignore"):
        errors = [np.where(known, np.abs(wide(x) - truth) / scale / rounding, 0).max(initial=0) for x in (before, after)]
    return bool(errors[1] <= (2 * errors[0] + CLOSE if rule.level == "close" else rule.bound))


def check(rule, text, tmp_path, required):
    """Returns the edited graphs. Fails if one computes a different result."""
    import keel_abi
    context = alone(tmp_path, text)
    draw, edited = Drawer(rule, required, zlib.crc32(rule.where.encode())), []
    for _ in range(MOST):
        graph = draw.graph()
        try:
            module = context.parse(graph)
            before, after = (module.session("reference", **o).prepare() for o in ({"level": 0}, {"passes": "only"}))
        except keel_abi.KeelError:
            continue
        if not sum(p["edits"] for p in after.report()["passes"]):
            continue
        edited.append(graph)
        for size in SIZES if "b" in graph.split("{")[0] else SIZES[:1]:
            for special in ((False, True, True, True) if rule.level == "exact" else (False,)):
                compare(rule, graph, before, after, list(inputs(graph, draw.random, special, size)), context)
        if len(edited) == WANTED:
            break
    return edited


def compare(rule, graph, before, after, arrays, context):
    expected, got = run(before, arrays), run(after, arrays)
    if isinstance(expected, str):  # a size check may disappear with its node; all other failures stay
        assert isinstance(got, str) or "with these sizes" in expected, (graph, expected, got)
        return
    assert not isinstance(got, str), (graph, got)
    same = same_bits(as_bits(expected), as_bits(got)) if rule.level == "exact" else close_enough(rule, graph, expected, got, arrays, context)
    assert same, (graph, arrays, expected, got)


def as_bits(array):
    """bfloat16 as float32, which preserves NaNs."""
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


@pytest.mark.parametrize("name", ALL)
def test_rule(tmp_path, required, name):
    edited = check(ALL[name], ALL[name].alone(), tmp_path, required)
    assert len(edited) >= ENOUGH, f"only {len(edited)} of {MOST} graphs met the rule"


# (rule, text to replace, the mistake)
MISTAKES = [
    ("simplify: plus_zero", "when  !floating(dtype(x))", ""),
    ("simplify: plus_minus_zero", "x + -0.0", "x + 0.0"),
    ("simplify: nothing_right (sub)", "(x, 0)", "(x, -0.0)"),
    ("simplify: times_one", "x * 1", "x * -1"),
    ("simplify: transpose_twice", "pick(p, q)", "pick(q, p)"),
    ("simplify: reverse_twice", "match reverse(reverse(x){axes=a}){axes=a}", "match reverse(reverse(x){axes=a}){axes=b}"),
    ("simplify: cast_twice", "lossless(dtype(x), by),", ""),
    ("simplify: sum_of_one (reduce_sum)", ", !floating(dtype(x))", ""),
    ("simplify: reduce_one (reduce_max)", "reshape(x)", "reshape(neg(x))"),
    ("simplify: quotient", "invertible(c)", "number(c) > 0"),
    ("simplify: minus_negative", "x + y", "y - x"),
    ("simplify: select_first", "broadcast_to(a)", "broadcast_to(b)"),
    ("simplify: or_false (logical_xor)", "(x, false)", "(x, true)"),
    ("simplify: at_least_least", "-inf", "-1e30"),
    ("simplify: and_all_bits", "65535", "32767"),
    ("simplify: rows", "{tb=t}", "{tb=false}"),
    ("nearby: cube", "x * x * x", "x * x"),
    ("nearby: by_root", "y * rsqrt(x)", "y * sqrt(x)"),
    ("nearby: sigmoid", "n = neg(x)", "n = abs(x)"),
    ("nearby: silu", "silu(x)", "sigmoid(x)"),
    ("fastmath: add_to_sub_constants", "d - c", "c - d"),
    ("fastmath: factor_out", "(x + y) * c", "x + y * c"),
    ("fastmath: root_of_square", "abs(x)", "x"),
]


@pytest.mark.parametrize("name, right, wrong", [pytest.param(*m, id=f"{m[0]}: {m[2] or 'without ' + m[1]}") for m in MISTAKES])
def test_a_mistake_is_caught(tmp_path, required, name, right, wrong):
    rule = ALL[name]
    assert right in rule.text
    text = re.sub(r"\bwhen\s+(?=build)", "", rule.text.replace(right, wrong))
    changed = next(rules(f"pass only {rule.level}\n{text}", LEVELS))
    changed.where, changed.bound = rule.where, rule.bound
    with pytest.raises(AssertionError):
        assert check(changed, changed.alone(), tmp_path, required)


@pytest.mark.parametrize("level", ["close", "fast"])
@pytest.mark.parametrize("kind, factor", [("f16", 1.01), ("bf16", 1.1), ("f32", 1.00001), ("f64", 1.000000000001)])
def test_a_mistake_in_one_dtype_is_caught(tmp_path, required, kind, factor, level):
    """Adds more roundings than allowed, many in half precision."""
    text = f"pass only {level}\nrule wrong  # bound 4\n  match square(x)\n  when dtype(x) == {kind}\n  build x * x * {factor}\n"
    rule = next(rules(text, LEVELS))
    with pytest.raises(AssertionError, match="array"):
        check(rule, rule.alone(), tmp_path, required)


def is_seen(rule, tmp_path, required):
    """Detection as in test_rule: by results, or by too few edited graphs. An invalid rule is an error here."""
    try:
        return len(check(rule, rule.alone(), tmp_path, required)) < ENOUGH
    except AssertionError:
        return True


def all_mutants():
    return {name: rule for right in ALL.values() for name, rule in rule_mutants.mutants(right, LEVELS)}


def test_mistakes_made_mechanically_are_caught(tmp_path, required):
    """The sample does not depend on other rules; rule_mutants.py lists undetectable mutants."""
    named = all_mutants()
    sample = sorted(named.keys() - rule_mutants.EXPLAINED.keys(), key=lambda n: zlib.crc32(n.encode()))[:MUTANTS]
    left = [name for name in sample if not is_seen(named[name], tmp_path, required)]
    assert len(left) <= MUTANTS * 5 // 100, left


def test_explained_mutants_exist():
    assert rule_mutants.EXPLAINED.keys() <= all_mutants().keys()


def test_there_are_rules():
    assert {"simplify", "nearby", "fastmath"} <= {name.split(":")[0] for name in ALL}
