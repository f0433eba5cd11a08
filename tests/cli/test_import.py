"""ONNX files run, converted and inspected directly; inputs that an import must know become constants."""
import json

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper


@pytest.fixture
def reshape(tmp_path):
    """y = reshape(x, shape): the import needs the value of `shape`."""
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
                                            helper.make_tensor_value_info("shape", TensorProto.INT64, [2])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "r.onnx")
    return tmp_path / "r.onnx"


@pytest.fixture
def importer(keel):
    if "onnx" not in keel("doctor").out:
        pytest.skip("the onnx plugin is not built")


def test_values_that_the_import_needs_come_from_the_inputs(keel, importer, reshape, tmp_path):
    done = keel("run", reshape, "-i", "x=range", "-i", "shape=i64[2]=3,2", "--json")
    y = json.loads(done.out)["outputs"]["y"]
    assert y["shape"] == [3, 2] and y["data"] == [0, 1, 2, 3, 4, 5]
    keel("convert", reshape, "r.keel", "-i", "shape=i64[2]=6,1", "-i", "x=range", "--case")
    info = json.loads(keel("inspect", "r.keel", "--json").out)
    assert [p["name"] for p in info["entries"][0]["params"]] == ["x"] and len(info["cases"]) == 1
    keel("verify", "r.keel")


def test_an_import_without_its_values_says_how_to_give_them(keel, importer, reshape):
    err = keel("run", reshape, "-i", "x=range", code=2).err
    assert "shape" in err and "hint" in err and "-i" in err


def test_damaged_onnx_files_are_refused(keel, importer, reshape, tmp_path):
    good = reshape.read_bytes()
    for at in range(0, len(good), 7):
        (tmp_path / "bad.onnx").write_bytes(good[:at])
        error = None
        try:
            keel("inspect", "bad.onnx", code=3)
        except AssertionError as wrong:  # a truncated file may be a valid smaller model that lacks a value or an op
            error = str(wrong).split("exit ")[1].split(",")[0]
        assert error in (None, "0", "2", "5")


@pytest.fixture
def chain(tmp_path):
    """y = sqrt(exp(neg(a))), a = relu(x), and two nodes of an unknown operator behind them."""
    info = helper.make_tensor_value_info
    nodes = [helper.make_node(op, [a], [b]) for op, a, b in (("Relu", "x", "a"), ("Neg", "a", "b"), ("Exp", "b", "c"), ("Sqrt", "c", "y"))]
    nodes += [helper.make_node("Frob", ["y"], ["z"], domain="my", name="first"), helper.make_node("Frob", ["z"], ["end"], domain="my")]
    graph = helper.make_graph(nodes, "g", [info("x", TensorProto.FLOAT, ["n"])], [info("end", TensorProto.FLOAT, ["n"])],
                              value_info=[info("a", TensorProto.FLOAT, ["n"])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my", 1)], ir_version=8), tmp_path / "c.onnx")
    return tmp_path / "c.onnx"


def test_unknown_operators_are_named_with_count_and_place(keel, importer, chain):
    assert "my.Frob (2, first at 'first')" in keel("inspect", chain, code=5).err


def test_a_part_of_a_model_is_imported(keel, importer, chain):
    keel("convert", chain, "part.keel", "--cut", "a..b,y")
    assert [sorted(p["name"] for p in json.loads(keel("inspect", "part.keel", "--json").out)["entries"][0][k]) for k in ("params", "results")] == [["a"], ["b", "y"]]
    for cut, feed in (("..y", "x"), ("x..y", "x"), ("a..y", "a")):
        y = json.loads(keel("run", chain, "--cut", cut, "-i", f"{feed}=f32[2]=0,2", "--json").out)["outputs"]["y"]["data"]
        np.testing.assert_allclose(y, np.exp([0, -1]), rtol=1e-6)


@pytest.mark.parametrize("cut, code, message", [("a", 2, "got 'a'; expected FROM..TO"), ("", 2, "got ''; expected FROM..TO"), ("b..y", 2, "no type of 'b'"), ("a..nope", 2, "no node makes 'nope'"),
                                                ("y..b", 2, "no node before the end reads 'y'"), ("a..", 5, "my.Frob"), ("a,,b..y", 2, "a name is empty"),
                                                ("a..,y", 2, "a name is empty"), ("a,a..y", 2, "'a' is named twice"), ("..y,b,y", 2, "'y' is named twice"),
                                                ("..first", 2, "no node makes 'first'; it is a node (Frob), whose results are 'z'"),
                                                ("..\x1b[31m", 2, "no node makes '\\x1b[31m'; expected names of values")])
def test_a_part_that_cannot_be_is_refused(keel, importer, chain, cut, code, message):
    assert message in keel("convert", chain, "out.keel", "--cut", cut, code=code).err


def test_a_report_is_printed_and_nothing_written(keel, importer, chain, tmp_path):
    out = keel("convert", chain, "--report", "--cut", "..y").out
    assert "in  x: f32[n]" in out and "on cpu:0: runs" in out and "nodes: 4" in out, out
    assert "my.Frob (2, first at 'first')" in keel("convert", chain, "--report", code=5).err
    assert list(tmp_path.glob("*.keel")) == []
    both = json.loads(keel("convert", chain, "part.keel", "--report", "--json", "--cut", "..y").out)
    assert both["out"] == "part.keel" and both["report"]["entries"][0]["name"] == "main"


@pytest.mark.parametrize("arguments, message", [([], "out is required"), (["-", "--report"], "--report and the output - both write to stdout")])
def test_a_conversion_needs_a_place_to_write(keel, importer, chain, arguments, message):
    assert message in keel("convert", chain, *arguments, code=2).err


def test_values_are_fixed(keel, importer, reshape):
    keel("convert", reshape, "r.keel", "--fix", "shape=i64[2]=2,3")
    assert json.loads(keel("inspect", "r.keel", "--json").out)["entries"][0]["results"][0]["type"] == "f32[2, 3]"
    for given, message in (("z=i64[]=2", 'input "z" is not needed to convert'), ("x=f32[2,3]=range", "it decides no sizes, so it stays an input"),
                           ("", 'input "": expected NAME=SPEC'), ("x", 'input "x": expected NAME=SPEC')):
        assert message in keel("convert", reshape, "s.keel", "--fix", "shape=i64[2]=2,3", "--fix", given, code=2).err


ODD = ["a,b", "a", "c..d", "..", ",", " two words ", "ñ日本", "=", "quote'\""]


@pytest.fixture
def odd(tmp_path):
    """Values with odd names, each the one before it plus 1; the last one is split and joined the other way around."""
    info = lambda name, n: helper.make_tensor_value_info(name, TensorProto.FLOAT, [n])  # noqa: E731
    nodes = [helper.make_node("Add", [a, "one"], [b]) for a, b in zip(["x", *ODD], ODD)]
    nodes += [helper.make_node("Split", [ODD[-1]], ["s1", "s2"], num_outputs=2), helper.make_node("Concat", ["s2", "s1"], ["y"], axis=0)]
    graph = helper.make_graph(nodes, "g", [info("x", 2)], [info("y", 2)], [onnx.numpy_helper.from_array(np.ones(1, np.float32), "one")],
                              value_info=[info(name, 2) for name in ODD] + [info("s1", 1)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / "odd.onnx")
    return tmp_path / "odd.onnx"


@pytest.mark.parametrize("name", ODD)
def test_a_part_begins_and_ends_at_odd_names(keel, importer, odd, name):
    left = len(ODD) - 1 - ODD.index(name)
    for cut, feed, result, adds in ((f"{name}..y", name, "y", left), (f"x..{name}", "x", name, len(ODD) - left)):
        keel("convert", odd, "part.keel", "--cut", cut)
        entry, = json.loads(keel("inspect", "part.keel", "--json").out)["entries"]
        assert [p["name"] for p in entry["params"]] == [feed] and [p["name"] for p in entry["results"]] == [result]
        np.savez(odd.with_name("feed.npz"), **{feed: np.array([10, 20], np.float32)})  # -i NAME=... has no names with "="
        y = json.loads(keel("run", odd, "--cut", cut, "-i", "@feed.npz", "--json").out)["outputs"][result]["data"]
        assert y == ([20 + adds, 10 + adds] if result == "y" else [10 + adds, 20 + adds])


def test_a_value_that_is_fed_although_its_node_makes_another_one(keel, importer, odd):
    """The node stays for s2 alone."""
    y = json.loads(keel("run", odd, "--cut", "s1..y", "-i", "x=0,5", "-i", "s1=100", "--json").out)["outputs"]["y"]["data"]
    assert y == [5 + len(ODD), 100]


def test_a_part_that_begins_at_a_weight(keel, importer, odd):
    """Its type is that of the weight."""
    y = json.loads(keel("run", odd, "--cut", "one..a", "-i", "x=0,5", "-i", "one=f32[1]=3", "--json").out)["outputs"]["a"]["data"]
    assert y == [6, 11]


def test_a_keel_file_is_not_cut(keel, importer, chain):
    keel("convert", chain, "part.keel", "--cut", "..y")
    assert "--cut is for models that are imported" in keel("run", "part.keel", "--cut", "x..y", "-i", "x=f32[1]=1", code=2).err


ENTRIES = """keel 1

fn @double(x: f32[n]) { return x * 2 }
fn @noise(x: f32[n]) { return x + cast(random(1){dims=[n]}){to=f32} }

entry double = @double (x) -> (y)
entry noise = @noise
"""


def test_a_graph_becomes_an_onnx_model_that_runs_again(keel, importer, tmp_path):
    (tmp_path / "two.keelt").write_text(ENTRIES)
    assert "--entry" in keel("convert", "two.keelt", "m.onnx", code=2).err
    assert "wrote m.onnx (ONNX model, " in keel("convert", "two.keelt", "m.onnx", "--entry", "double").out
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"), full_check=True)
    assert json.loads(keel("run", "m.onnx", "-i", "x=1,2,3", "--json").out)["outputs"]["y"]["data"] == [2, 4, 6]
    assert json.loads(keel("convert", "m.onnx", "n.onnx", "--json").out)["form"] == "onnx"
    before = (tmp_path / "m.onnx").read_bytes()
    assert "random: ONNX has no generator" in keel("convert", "two.keelt", "m.onnx", "--entry", "noise", code=5).err
    assert (tmp_path / "m.onnx").read_bytes() == before


def test_the_report_names_the_file_of_weights(keel, importer, tmp_path, monkeypatch):
    weights = "0000803f" * 700
    (tmp_path / "w.keelt").write_text(f'keel 1\n\nconst c: f32[700] = hex"{weights}"\n\nfn @main(x: f32[700]) {{ return x + c }}\n\nentry main = @main (x) -> (y)\n')
    report = lambda: json.loads(keel("convert", "w.keelt", "m.onnx", "--json").out)["files"]
    sizes = lambda *names: {name: (tmp_path / name).stat().st_size for name in names}
    assert report() == sizes("m.onnx")
    monkeypatch.setenv("KEEL_ONNX_FILE_BYTES", "1000")
    assert report() == sizes("m.onnx", "m.onnx.data")
    assert "(weights, 2.7 KiB)" in keel("convert", "w.keelt", "m.onnx").out
    monkeypatch.delenv("KEEL_ONNX_FILE_BYTES")
    assert report() == sizes("m.onnx")  # the old second file is another model's
