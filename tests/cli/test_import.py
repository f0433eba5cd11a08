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


@pytest.mark.parametrize("cut, code, message", [("a", 3, "expected FROM..TO"), ("b..y", 2, "no type of 'b'"), ("a..nope", 2, "no node makes 'nope'"),
                                                ("y..b", 2, "no node before the end reads 'y'"), ("a..", 5, "my.Frob")])
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
    assert "not needed to convert" in keel("convert", reshape, "s.keel", "--fix", "shape=i64[2]=2,3", "--fix", "z=i64[]=2", code=2).err


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
