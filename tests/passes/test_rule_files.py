"""Loading rule files: invalid files are refused with position and fix; the command, the C ABI and the pass driver use valid ones.
"""
import json
import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

BUILD = Path(os.environ.get("KEEL_BUILD", "build/release")).resolve()
HEAD = "keel rules 1\npass mine \"about it\" level 1 exact\n"
RELU6 = HEAD + "rule relu6\n  match minimum(relu(x), 6)\n  build clamp(x, 0, 6)\n"
GRAPH = """keel 1
fn @main(x: f32[2, 2]) {
  a = minimum(relu(x), 6)
  b = minimum(6, relu(a + x))
  return b
}
entry main = @main (x) -> (b)
"""
# (fault, the file, line:column, words of the message)
BAD = [
    ("nothing", " ", "1:2", "expected 'keel'"),
    ("another language", "keel rules 2\n", "1:12", "version 1"),
    ("no pass", "keel rules 1\nrule a match x build x\n", "2:1", "expected 'pass'"),
    ("a clause", "keel rules 1\npass a loud\n", "2:8", "expected rule, pass or extend"),
    ("a level", "keel rules 1\npass a level 7\n", "2:6", "level 7, expected 1 to 3"),
    ("no level", "keel rules 1\npass a level 0\n", "2:6", "expected 1 to 3"),
    ("an extension of another level", "keel rules 1\nextend simplify level 2\n", "2:8", "the extended pass defines level"),
    ("the pass's name", "keel rules 1\npass Loud\n", "2:6", "lower case"),
    ("a pass twice", HEAD + "pass mine\n", "3:6", "already has this pass"),
    ("no match", HEAD + "rule a build x\n", "3:8", "expected 'match'"),
    ("no build", HEAD + "rule a match neg(x)\n", "4:1", "expected 'build'"),
    ("an op", HEAD + "rule a match negg(x) build x\n", "3:14", "did you mean neg?"),
    ("an op that is built", HEAD + "rule a match neg(x) build absent(x)\n", "3:27", "no op is named 'absent'"),
    ("an op of several results", HEAD + "rule a match neg(split(x)) build x\n", "3:18", "several results"),
    ("an effect", HEAD + "rule a match neg(x) build print(x)\n", "3:27", "has an effect"),
    ("bodies", HEAD + "rule a match cond(p, x) build x\n", "3:14", "bodies"),
    ("operands", HEAD + "rule a match neg(x, y) build x\n", "3:14", "takes 1 operands, not 2"),
    ("an attribute", HEAD + "rule a match transpose(x){prem=p} build x\n", "3:14", "its attributes: perm"),
    ("a word without quotes", HEAD + "rule a match scatter_nd(x, i, u){mode=add} build x\n", "3:14", "\"add\" in quotes"),
    ("what build does not know", HEAD + "rule a match neg(x) build y\n", "3:27", "'y' is not defined"),
    ("what when does not know", HEAD + "rule a match neg(x) when y == 1 build x\n", "3:26", "'y' is not defined"),
    ("a predicate", HEAD + "rule a match neg(x) when pretty(x) build x\n", "3:26", "'pretty' is not a shape function"),
    ("a predicate of what is no value", HEAD + "rule a match neg(x) when uses(y) == 1 build x\n", "3:26", "requires the name of an operand"),
    ("no op to match", HEAD + "rule a match x build x\n", "3:14", "must be an op"),
    ("a pattern", HEAD + "rule a match neg([x]) build x\n", "3:18", "ops, names and numbers"),
    ("where without use", HEAD + "rule a match neg(x) where y = abs(x) build x\n", "3:31", "'y' is not in the pattern"),
    ("where twice", HEAD + "rule a match neg(x) where x = abs(y), x = abs(z) build y\n", "3:43", "one name at a time"),
    ("the name of the whole", HEAD + "rule a match neg(result) build result\n", "3:18", "use another name"),
    ("a value and an attribute", HEAD + "rule a match transpose(p){perm=p} build p\n", "3:14", "a value and an attribute"),
    ("a huge number", HEAD + "rule a match neg(99999999999999999999) build x\n", "3:18", "does not fit"),
    ("a string without its end", HEAD + "rule a match neg(\"x) build x\n", "3:18", "unterminated string"),
    ("a byte", HEAD + "rule a match neg(\x01) build x\n", "3:18", "invalid character"),
    ("deep nesting", HEAD + "rule a match " + "neg(" * 5000 + "x" + ")" * 5000 + " build x\n", "3:", "nested too deeply"),
    ("many names", HEAD + "rule a match concat(" + ", ".join(f"x{i}" for i in range(90)) + ") build x0\n", "3:", "too many names"),
    ("an extension with a level of its own", "keel rules 1\nextend simplify\nnonsense\n", "3:1", "expected rule, pass or extend"),
]


def refusal(context, path):
    import keel_abi
    with pytest.raises(keel_abi.KeelError) as raised:
        context.load_plugin(str(path))
    return raised.value


@pytest.fixture
def fresh():
    import keel_abi
    return keel_abi.Context()


@pytest.mark.parametrize("text, place, words", [pytest.param(*b[1:], id=b[0]) for b in BAD])
def test_refused_with_place_and_words(tmp_path, fresh, text, place, words):
    path = tmp_path / "keel-bad.rules"
    path.write_text(text)
    failure = refusal(fresh, path)
    assert failure.code == "INVALID" and f"{path}:{place}" in failure.message and words in failure.message, failure.message
    assert "bad.rules" not in [p["plugin"] for p in fresh.report("passes")]


def test_refused_as_files(tmp_path, fresh):
    empty, large = tmp_path / "keel-empty.rules", tmp_path / "keel-large.rules"
    empty.write_text("")
    large.write_text("#" * ((1 << 20) + 1))
    assert "is empty" in refusal(fresh, empty).message
    assert "more than 1 MiB" in refusal(fresh, large).message
    assert refusal(fresh, tmp_path / "keel-absent.rules").code == "NOT_FOUND"


def test_no_byte_brings_it_down(tmp_path, fresh):
    """Random single-byte damage: the file is accepted or refused."""
    import keel_abi
    good = (BUILD / "lib/keel/plugins/keel-passes.rules").read_text().replace("extend ", "pass p_")
    rand, path = random.Random(7), tmp_path / "keel-any.rules"
    for i in range(400):
        at = rand.randrange(len(good))
        path.write_bytes(good[:at].encode() + bytes([rand.randrange(128)]) + good[at + 1:].encode())
        context = keel_abi.Context(plugins=False) if i % 50 == 0 else context
        try:
            context.load_plugin(str(path))
            context = keel_abi.Context(plugins=False)
        except keel_abi.KeelError as e:
            assert e.message


def keel(*arguments, folder, code=0):
    done = subprocess.run([BUILD / "bin" / "keel", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "KEEL_PLUGIN_PATH": f"{BUILD / 'lib/keel/plugins'}:{folder}"}, timeout=100)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_a_third_party_ships_a_file(tmp_path):
    (tmp_path / "keel-mine.rules").write_text(RELU6)
    graph = tmp_path / "g.keelt"
    graph.write_text(GRAPH)
    passes = json.loads(keel("passes", "--json", folder=tmp_path))["passes"]
    mine = next(p for p in passes if p["name"] == "mine")
    assert (mine["plugin"], mine["about"], mine["phase"], mine["level"], mine["exactness"]) == ("mine.rules", "about it", "canon", 1, 0)
    text = keel("optimize", graph, "-d", "reference", "--passes", "mine", folder=tmp_path)
    assert text.count("clamp(") == 2 and "minimum" not in text
    one = keel("optimize", graph, "-d", "reference", "--passes", "mine", "--fuel", 1, folder=tmp_path)
    assert one.count("clamp(") == 1
    assert "clamp(" not in keel("optimize", graph, "-d", "reference", "--passes=-mine", folder=tmp_path)
    assert "mine.rules" in keel("doctor", folder=tmp_path)
    dumped = keel("optimize", graph, "-d", "reference", "--passes", "mine", "--dump-after", "mine", folder=tmp_path)
    assert "clamp(" in dumped


def test_doctor_says_why_a_file_is_refused(tmp_path):
    (tmp_path / "keel-bad.rules").write_text(HEAD + "rule a match negg(x) build x\n")
    told = keel("doctor", folder=tmp_path)
    assert "keel-bad.rules:3:14" in told and "did you mean neg?" in told


def test_bisect_finds_a_wrong_rule(tmp_path):
    (tmp_path / "keel-wrong.rules").write_text(HEAD + "rule right match a + neg(b) build a - b\nrule wrong match neg(x) build abs(x)\n")
    graph = tmp_path / "g.keelt"
    graph.write_text(GRAPH.replace("minimum(6, relu(a + x))", "neg(a + neg(x))"))
    told = keel("bisect", graph, "-d", "reference", "--passes", "mine", "-i", "x=f32[2,2]=1,2,3,9", folder=tmp_path, code=1)
    assert "mine" in told


def load(fresh, tmp_path, text, name="mine"):
    path = tmp_path / f"keel-{name}.rules"
    path.write_text(text)
    fresh.load_plugin(str(path))


def edits(context, text, passes, device="reference"):
    plan = context.parse(text).session(device, passes=passes).prepare()
    return {p["name"]: p for p in plan.report()["passes"]}


def test_rules_without_end_are_rolled_back(tmp_path, fresh):
    load(fresh, tmp_path, HEAD + "rule turn match a + b build b + a\n")
    graph = "keel 1\nfn @main(x: f32[2], y: f32[2]) {\n  z = x + y\n  return z\n}\nentry main = @main (x, y) -> (z)\n"
    plan = fresh.parse(graph).session("reference", passes="mine").prepare()
    run = plan.report()["passes"][0]
    assert run["edits"] == 0 and "do not terminate" in run["error"] and "turn" in run["error"]
    assert np.array(plan.run(np.float32([1, 2]), np.float32([3, 4]))[0]).tolist() == [4, 6]


def test_rules_that_grow_without_end_are_rolled_back(tmp_path, fresh):
    load(fresh, tmp_path, HEAD + "rule grow match abs(x) build abs(abs(x))\n")
    graph = "keel 1\nfn @main(x: f32[2]) {\n  z = abs(x)\n  return z\n}\nentry main = @main (x) -> (z)\n"
    assert "do not terminate" in edits(fresh, graph, "mine")["mine"]["error"]


def test_for_a_device(tmp_path, fresh):
    load(fresh, tmp_path, RELU6.replace("exact", "exact for cpu"))
    assert edits(fresh, GRAPH, "mine", "reference")["mine"]["edits"] == 0
    assert edits(fresh, GRAPH, "mine", "cpu")["mine"]["edits"] == 2


def test_an_extension_waits_for_its_pass(tmp_path):
    import keel_abi
    context = keel_abi.Context(plugins=False)
    load(context, tmp_path, RELU6.replace("pass mine \"about it\" level 1 exact", "extend simplify"))
    assert context.report("passes") == []
    context.load_plugin(str(BUILD / "lib/keel/plugins/keel-passes.so"))
    listed = [(p["name"], p["plugin"], p["level"]) for p in context.report("passes") if p["name"] == "simplify"]
    assert listed == [("simplify", "passes", 1), ("simplify", "mine.rules", 1)]
    context.load_plugin(str(BUILD / "lib/keel/plugins/keel-reference.so"))
    assert edits(context, GRAPH, "simplify")["simplify"]["edits"] == 2


def test_other_users_and_fetched_values_stay(tmp_path, fresh):
    load(fresh, tmp_path, HEAD + "rule root match y / r where r = sqrt(x) when uses(r) == 1 build y * rsqrt(x)\n")
    text = "keel 1\nfn @main(x: f32[2], y: f32[2]) {{\n  r = sqrt(x)\n  z = y / r\n  return {}\n}}\nentry main = @main (x, y)\n"
    for results, wanted in (("z", 1), ("z, r", 0), ("z, neg(r)", 0)):
        assert edits(fresh, text.format(results), "mine")["mine"]["edits"] == wanted


def test_operands_that_commute_are_tried_both_ways(tmp_path, fresh):
    load(fresh, tmp_path, HEAD + "rule both match (x * c) + (y * c) when constant(c) build (x + y) * c\n")
    for a, b in (("x * 2", "y * 2"), ("2 * x", "y * 2"), ("x * 2", "2 * y"), ("2 * x", "2 * y")):
        text = f"keel 1\nfn @main(x: f32[2], y: f32[2]) {{\n  z = {a} + {b}\n  return z\n}}\nentry main = @main (x, y)\n"
        assert edits(fresh, text, "mine")["mine"]["edits"] == 1, (a, b)
    text = "keel 1\nfn @main(x: f32[2], y: f32[2]) {\n  z = x * 2 + y * 3\n  return z\n}\nentry main = @main (x, y)\n"
    assert edits(fresh, text, "mine")["mine"]["edits"] == 0


def test_what_is_supported(tmp_path, fresh):
    """The reference device has no impl for attention and similar ops, whose bodies it would run."""
    load(fresh, tmp_path, HEAD + "rule a match neg(neg(x)) when supported build square(x)\n")
    graph = "keel 1\nfn @main(x: f32[2]) {\n  z = -(-x)\n  return z\n}\nentry main = @main (x) -> (z)\n"
    takes = {d: edits(fresh, graph, "mine", d)["mine"]["edits"] for d in ("reference", "cpu")}
    ops = {op["op"]: op for op in fresh.report("ops:reference")} if takes["reference"] else {}
    assert takes["cpu"] == 1 and (takes["reference"] == 0 or ops)


def test_level_two_leaves_what_only_fast_may_do(tmp_path, fresh):
    """The eager column: below level 3, neither constants nor powers are reordered."""
    body = "keel 1\nfn @main(x: f32[2]) {\n  a = (x + 1.5) + 2.5\n  b = (a * 3.0) * 5.0\n  c = b / 3.0\n  d = pow(c, 0.5)\n" \
           "  e = d * 0.0\n  f = e - e\n  return f\n}\nentry main = @main (x) -> (f)\n"
    for level, wanted in ((2, False), (3, True)):
        found = {p["name"]: p["edits"] for p in fresh.parse(body).session("reference", level=level).prepare().report()["passes"]}
        assert (found.get("fastmath", 0) > 0) is wanted
    assert found["fastmath"] >= 4
