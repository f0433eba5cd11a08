"""`keel bisect`, and single edits shown by `keel optimize`, with a pass that is right for additions and wrong for subtractions
(tests/passes/wrong.c)."""
import difflib
import json
import os
from pathlib import Path

import pytest

TEXT = """keel 1

fn @main(x: f32[2], y: f32[2]) -> f32[2] {
  a = add(x, y) : f32[2]
  b = add(a, x) : f32[2]
  c = sub(b, y) : f32[2]
  d = add(c, a) : f32[2]
  return d
}

entry main = @main (x, y) -> (d)
"""


@pytest.fixture
def wrong(monkeypatch, tmp_path):
    """A graph of three additions and a subtraction, with the wrong pass on the plugin path."""
    build = Path(os.environ.get("KEEL_BUILD", "build/release")).resolve()
    folder = build / "tests" / "passes" / "wrong"
    assert (folder / "keel-wrong.so").is_file()
    monkeypatch.setenv("KEEL_PLUGIN_PATH", f"{build / 'lib' / 'plugins'}:{folder}")
    path = tmp_path / "graph.keelt"
    path.write_text(TEXT)
    return str(path)


INPUTS = ("-i", "x=f32[2]=1,2", "-i", "y=f32[2]=10,30")


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_the_edit_that_changes_the_answer_is_found(keel, wrong, device):
    got = keel("bisect", wrong, "-d", device, "--passes", "turn", *INPUTS, code=1)
    assert got.out.startswith('edit 3 of 4, by pass "turn", changes the results\n  output "d": 2 elements outside')
    lines = got.out.splitlines()
    assert any(l.startswith("-  c = sub(") for l in lines) and any(l.startswith("+") and "= sub(y, " in l for l in lines)
    said = json.loads(keel("bisect", wrong, "-d", device, "--passes", "turn", *INPUTS, "--json", code=1).out)
    assert (said["edit"], said["edits"], said["pass"], said["ok"]) == (3, 4, "turn", False)


def test_other_passes_after_it_do_not_hide_it(keel, wrong):
    said = json.loads(keel("bisect", wrong, "-d", "cpu", *INPUTS, "--json", code=1).out)
    assert said["pass"] == "turn" and said["edits"] > 4


def test_passes_without_fault_are_said_to_be_so(keel, wrong):
    assert keel("bisect", wrong, "--passes=-turn", *INPUTS).out.endswith("edits changes the results\n")
    assert keel("bisect", wrong, "--passes", "turn", "-i", "x=f32[2]=0,0", "-i", "y=f32[2]=1,2").out == (
        "none of 4 edits changes the results\n")  # 0 - 0 is 0 - 0


def test_fuel_ends_after_so_many_edits(keel, wrong):
    for fuel in range(6):
        options = ("-d", "reference", "--passes", "turn", "--fuel", str(fuel), "--diff", "--json")
        said = json.loads(keel("optimize", wrong, *options).out)
        assert [p["edits"] for p in said["passes"]] == [min(fuel, 4)]
        gone = [line for line in said.get("text", "").splitlines() if line.startswith("-")]
        assert len(gone) == min(fuel, 4)  # the edited nodes; the other nodes' operands keep their names
    assert "not run: the edit limit (fuel) is reached" in keel("optimize", wrong, "--fuel", "0").err
    assert "--fuel" in keel("optimize", wrong, "--fuel", "many", code=5).err


def test_what_ran_before_the_fuel_ended_is_said_to_have(keel, tmp_path):
    path = tmp_path / "twice.keelt"
    path.write_text("keel 1\nfn @main(x: f32[2]) { return neg(neg(neg(neg(x)))) }\nentry main = @main (x)\n")
    lines = {line.split()[0]: line for line in keel("optimize", path, "--fuel", "1").err.splitlines() if line}
    assert "not run again: the edit limit (fuel) is reached" in lines["simplify"] and "not run: the edit limit (fuel) is reached" in lines["map"]


def test_the_text_after_a_pass_is_shown(keel, wrong):
    got = keel("optimize", wrong, "-d", "reference", "--passes", "turn", "--dump-after", "turn").out
    dump, final = got.split("\n\nkeel 1\n")
    assert dump.startswith("# after turn\nkeel 1\n") and "sub(y, " in dump and "sub(y, " in final
    assert "# after" not in keel("optimize", wrong, "-d", "reference", "--passes", "turn", "--dump-after", "fold").out
    assert 'no pass is named "trun"' in keel("optimize", wrong, "--dump-after", "trun", code=2).err


def test_what_changed_is_shown_in_order(keel, tmp_path):
    path = tmp_path / "chain.keelt"
    path.write_text(TEXT.replace("add(c, a)", "tanh(c)"))
    before, after = keel("dump", path).out, keel("optimize", path, "-d", "cpu").out
    fewest = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]
    got = [line for line in keel("optimize", path, "-d", "cpu", "--diff").out.splitlines() if line[0] in "+-"]
    assert 0 < len(got) <= len(fewest)
    for sign, text in (("-", before), ("+", after)):
        kept = [line[1:] for line in got if line[0] == sign]
        rest = iter(text.splitlines())
        assert all(line in rest for line in kept)  # in text order
    seen = {line.strip() for line in before.splitlines()} | {line[1:].strip() for line in got}
    assert {line.strip() for line in after.splitlines()} <= seen  # nodes moved into a region are unchanged
