"""An importer in C (script.c) writes bodies, loops, variables, rules and several entries; misuse is reported."""
import json
import os
from pathlib import Path

import pytest

PLUGINS = Path(os.environ.get("KEEL_BUILD", "build/release")).resolve() / "tests/cli"

MODEL = """script
var w f32 2 3,-1
graph double
param x f32 2
const two f32 - 2
node y mul x,two
result y y
graph same
param x f32 2
result x x
graph less
param i i32 -
param a f32 2
param n i32 -
node t less i,n
result t t
graph square
param i i32 -
param a f32 2
param n i32 -
const one i32 - 1
node j add i,one
node b mul a,a
result j j
result b b
graph sum
param c f32 -
param e f32 -
node s add c,e
result s s
result each s
in main
param x f32 2
param n i32 -
const zero i32 - 0
const start f32 - 0
node v read - var:v:w
node m mul x,v
node p greater n,zero
node r cond p,m then:g:double else:g:same
node i,a while zero,r,n test:g:less body:g:square carry:i:2
node total,parts scan start,a body:g:sum carry:i:1
result total total
result parts parts
entry predict
meta origin by-hand
graph set
param to f32 2
node - assign to var:v:w
node now read - var:v:w
result now now
entry set
"""


@pytest.fixture
def script(keel, tmp_path):
    """script(text) writes a file; script.run("inspect", ...) runs the command with the importer."""
    if not (PLUGINS / "keel-script.so").is_file():
        pytest.skip("the importer of the tests is not built")

    def write(text=MODEL):
        (tmp_path / "m.script").write_text(text)
        return "m.script"
    folder = tmp_path / "plugins"
    folder.mkdir()
    for plugin in (PLUGINS / "keel-script.so", PLUGINS.parents[1] / "lib/keel/plugins/keel-reference.so"):
        (folder / plugin.name).symlink_to(plugin)
    write.run = lambda command, *rest, **given: keel(command, *rest, "--plugins", folder, **given)
    return write


def outputs(done):
    return {name: v["data"] for name, v in json.loads(done.out)["outputs"].items()}


def test_an_imported_module_runs_a_branch_a_loop_and_a_scan(script):
    x = ["-i", "x=1,2", "--entry", "predict", "-d", "reference", "--json"]
    run = lambda n: outputs(script.run("run", script(), *x, "-i", f"n={n}"))
    assert run(0) == {"total": [1], "parts": [3, 1]}  # [1, 2] * [3, -1]
    assert run(1) == {"total": [52], "parts": [36, 52]}  # ([6, -4])^2
    assert run(2) == {"total": [1552], "parts": [1296, 1552]}


def test_an_imported_module_saves_and_loads(script, keel):
    script.run("convert", script(), "g.keel")
    info = json.loads(keel("inspect", "g.keel", "--json").out)
    assert [e["name"] for e in info["entries"]] == ["predict", "set"]
    assert [v["name"] for v in info["variables"]] == ["w"] and info["metadata"]["origin"] == "by-hand"
    run = lambda *rest: outputs(keel("run", "g.keel", *rest, "-d", "reference", "--json"))
    assert run("--entry", "predict", "-i", "x=1,2", "-i", "n=1")["total"] == [52]
    assert run("--entry", "set", "-i", "to=5,6")["now"] == [5, 6]


def test_an_imported_module_has_gradients(script, keel):
    script.run("convert", script(), "g.keel")
    keel("grad", "g.keel", "--entry", "predict", "--of", "total", "--wrt", "x", "-o", "d.keel")
    done = keel("run", "d.keel", "--entry", "grad", "-i", "x=1,2", "-i", "n=1", "-d", "reference", "--json")
    assert outputs(done)["d_x"] == [72, 16]  # 8 * x * w^2


def test_an_importer_appends_gradients(script):
    text = "script\nparam x f32 b\nparam z f32 b\nnode y mul x,x\ngradient d,e y x,z\ngradient f,g d x,x\nresult d d\nresult e e\nresult g g\n"
    got = outputs(script.run("run", script(text), "-i", "x=3,4", "-i", "z=1,1", "-d", "reference", "--json"))
    assert got == {"d": [6, 8], "e": [0, 0], "g": [2, 2]}


def test_without_entries_the_first_graph_is_main(script):
    text = "script\nparam x f32 b\nrule b in 2..3\nrule b >= 1\nnode y neg x\nresult y y\n"
    assert outputs(script.run("run", script(text), "-i", "x=1,2", "-d", "reference", "--json"))["y"] == [-1, -2]
    err = script.run("run", script(text), "-i", "x=1,2,3,4", "-d", "reference", code=5).err
    assert "b in 2..3" in err
    assert json.loads(script.run("inspect", script(text), "--json").out)["entries"][0]["name"] == "main"


INVALID, WRONG = 2, 3  # exit codes: a thing that does not exist, or another order of calls; a wrong file


@pytest.mark.parametrize("old, new, code, words", [
    ("graph same\nparam x f32 2", "graph same\nparam x f32 3", WRONG, ["'r'", "@same", "f32[3]"]),  # a wrong operand
    ("result t t", "result t i", WRONG, ["'i'", "less", "bool"]),  # a test that is no bool
    ("result each s", "result each s\nresult more s", WRONG, ["'total'", "scan"]),  # more results than the node
    ("else:g:same", "else:g:none", INVALID, ["'r'", "graph 999", "before the nodes"]),
    ("mul x,v", "muls x,v", INVALID, ["'m'", "muls", "mul"]),
    ("node v read - var:v:w", "node v read - var:v:u", INVALID, ["'v'", "variable 999", "before nodes"]),
    ("mul x,v", "mul x,u", WRONG, ["'m'", "value 999"]),
    ("result total total", "result total u", INVALID, ["value 999", '"main"']),
    ("carry:i:2", "carries:i:2", WRONG, ["'i'", "carries"]),
    ("graph set\n", "in double\nparam z f32 2\n", INVALID, ["'double'", "cannot be changed", "finish a graph"]),
    ("graph set\n", "in double\nconst z f32 - 7\n", INVALID, ["'double'", "cannot be changed", "finish a graph"]),
    ("graph set\n", "in double\nnode z neg x\n", INVALID, ["'double'", "cannot be changed", "finish a graph"]),
    ("graph set\n", "in double\nresult z x\n", INVALID, ["'double'", "cannot be changed", "finish a graph"]),
    ("graph set\n", "in double\nrule 1 <= 2\n", INVALID, ["'double'", "cannot be changed", "finish a graph"]),
    ("graph set\n", "in double\ngradient d y x\n", INVALID, ["'double'", "cannot be changed", "finish a graph"]),
    ("entry predict", "gradient d,e r x,u", INVALID, ["an x", "value 999"]), ("entry predict", "gradient d j x", INVALID, ["a y", "value 999"]),
    ("entry predict", "gradient d i x", WRONG, ["'i'", "i32", "only floats have gradients"]),
    ("graph set\n", "graph double\n", WRONG, ["a graph", "'double'", "already"]),
    ("graph set\n", "graph main\n", WRONG, ["a graph", "'main'", "already"]),
    ("graph set\n", "var w f32 - 1\ngraph set\n", WRONG, ["a variable", "'w'", "already"]),
    ("entry set", "entry predict", WRONG, ["an entry", "'predict'", "already"]),
    ("param x f32 2\nparam n", "param x f32 2\nparam x f32 2\nparam n", WRONG, ["'x'", "already"]),
    ("var w f32 2 3,-1", "var w bits 2 3,-1", WRONG, ["dtype"]),
    ("meta origin by-hand", "rule b in", WRONG, ["b in"]),
])
def test_misuse_names_the_thing(script, old, new, code, words):
    assert old in MODEL
    err = script.run("inspect", script(MODEL.replace(old, new, 1)), code=code).err
    assert "m.script" in err and "-i NAME" not in err
    for word in words:
        assert word in err, err
