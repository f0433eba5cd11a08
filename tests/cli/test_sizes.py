"""--dim, --shape and --length: sizes fixed by the user, in files and in imports."""
import json

import numpy as np
import pytest

BOTH = """keel 1

fn @main(x: f32[b, n], z: f32[n, 2*k]) -> f32[b, 2*k] {
  y = matmul(x, z) : f32[b, 2*k]
  return y
}

entry main = @main (x, z) -> (y)
"""


def types(keel, path):
    entry = json.loads(keel("inspect", path, "--json").out)["entries"][0]
    return [p["dims"] for p in entry["params"] + entry["results"]]


def test_convert_writes_sizes_into_the_file(keel, graph):
    keel("convert", graph(BOTH.replace("2*k", "k")), "m.keel", "--dim", "b=3", "--shape", "z=4,?")
    assert types(keel, "m.keel") == [[3, 4], [4, "k"], [3, "k"]]
    keel("convert", "m.keel", "n.keel", "--dim", "k=2")
    assert types(keel, "n.keel") == [[3, 4], [4, 2], [3, 2]]
    assert "y: f32[3, 2]\n[[4, 4]\n [4, 4]\n [4, 4]]\n" == keel("run", "n.keel", "-i", "x=1", "-i", "z=1").out
    assert "y = matmul(x, z)" in keel("dump", "n.keel").out  # values keep their names


def test_a_symbol_that_stands_in_expressions_only(keel, graph):
    path = graph(BOTH)
    keel("convert", path, "o.keel", "--dim", "b=3")
    assert types(keel, "o.keel") == [[3, "n"], ["n", "2*k"], [3, "2*k"]]
    keel("convert", path, "p.keel", "--dim", "k=2")
    assert types(keel, "p.keel") == [["b", "n"], ["n", 4], ["b", 4]]
    keel("convert", "o.keel", "q.keel", "--shape", "z=5,6")
    assert types(keel, "q.keel") == [[3, 5], [5, 6], [3, 6]]
    assert "y: f32[3, 2]" in keel("run", "o.keel", "-i", "x=f32[3,1]=1", "-i", "z=1,2").out
    assert "no size makes 2*k equal to it" in keel("convert", path, "r.keel", "--shape", "z=5,7", code=2).err
    assert "give --dim k=4" in keel("run", path, "-i", "x=f32[1,1]=1", "-i", "z=0", code=2).err
    for command in (["bench", "-n", "1"], ["plan"], ["profile", "-n", "1"], ["compare", "-d", "reference,cpu"]):
        done = keel(command[0], path, *command[1:])
        assert "z=f32[1,2]" in done.out + done.err
    assert "'z=f32[1,2]=randn(7)'" in keel("run", path, "-i", "x=f32[1,1]=1", code=2).err


def test_a_case_of_other_sizes_stays_behind(keel, graph):
    keel("convert", graph(), "m.keel", "--case", "-i", "x=1,2,3,4")
    assert "omitted" in keel("convert", "m.keel", "one.keel", "--dim", "b=1").err
    assert "omitted" not in keel("convert", "m.keel", "two.keel", "--dim", "b=2").err
    assert "ok" in keel("verify", "two.keel").out and "no test cases" in keel("verify", "one.keel", code=2).err


@pytest.mark.parametrize("command", [["run"], ["bench", "-n", "1"], ["plan"], ["profile", "-n", "1"],
                                     ["compare", "-d", "reference,cpu"], ["convert"]])
def test_unknown_names_and_contradictions_are_refused(keel, graph, command):
    path = graph(BOTH)
    def err(*sizes):
        out = ["m.keel"] if command[0] == "convert" else []
        given = [] if command[0] == "convert" else ["-i", "x=randn(1)", "-i", "z=randn(2)"]
        return keel(command[0], path, *out, *command[1:], *given, *sizes, code=2).err
    more = ["--dim", "b=2", "--dim", "n=3", "--dim", "k=1"]
    assert 'no such dim; it has b, k, n' in err(*more, "--dim", "batch=2")
    assert 'did you mean "n"' in err("--dim", "nn=2")
    assert 'did you mean "x"' in err("--shape", "X=2,3")
    assert "3 sizes, but the input is f32[b, n]" in err("--shape", "x=2,3,4")
    assert "dim 0 cannot be 5: it is 4" in err("--shape", "x=2,4", "--shape", "z=5,2")
    assert "--dim b is given twice: 2 and 3" in err("--dim", "b=2", "--dim", "b=3")
    assert "--shape x is given twice" in err("--shape", "x=2,4", "--shape", "x=2,5")
    assert "expected NAME=SIZES" in err("--shape", "x=2,three") and "expected NAME=SIZES" in err("--shape", "x")
    assert "expected NAME=NUMBER" in err("--dim", "b=two")


def test_an_array_must_have_the_size_that_was_fixed(keel, graph):
    err = keel("run", graph(), "-i", "x=f32[3,2]=1", "--dim", "b=4", code=2).err
    assert 'dim 0 is 3, but "b" was fixed to 4' in err
    assert "f32[4, 2]" in keel("run", graph(), "-i", "x=1", "--shape", "x=4,2").out
    assert 'cannot be 3: it is 2' in keel("run", graph(), "-i", "x=1", "--shape", "x=4,3", code=2).err


onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402


def model(path, dims, nodes=None, more=()):
    """y = relu(x) of these dims; a string is the name of a symbol."""
    value = lambda name, d: helper.make_tensor_value_info(name, TensorProto.FLOAT, d)
    graph = helper.make_graph(nodes or [helper.make_node("Relu", ["x"], ["y"])], "g", [value("x", dims), *more], [value("y", None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize("mark", ["?", "-1", "None", "*"])
def test_two_dims_without_a_name_are_two(keel, tmp_path, mark):
    path = model(tmp_path / "m.onnx", [mark, 3, mark, mark])
    assert types(keel, path)[0] == ["x_0", 3, "x_2", "x_3"]
    assert "y: f32[1, 3, 4, 2]" in keel("run", path, "-i", "x=f32[1,3,4,2]=1").out


def test_imports_take_sizes(keel, tmp_path):
    path = model(tmp_path / "m.onnx", ["batch", 3, "?", "n w"])
    keel("convert", path, "m.keel", "--dim", "batch=2", "--shape", "x=?,?,48,192")
    assert types(keel, "m.keel") == [[2, 3, 48, 192]] * 2
    keel("convert", path, "n.keel", "--dim", "x_2=5", "--dim", "n w=6")
    assert types(keel, "n.keel")[0] == ["batch", 3, 5, 6]
    keel("convert", path, "o.keel", "--shape", "x=1,4,5,6")  # the model was exported for 3
    assert types(keel, "o.keel")[0] == [1, 4, 5, 6]
    assert "generated x=f32[1,3,48,192]" in keel("bench", path, "--shape", "x=1,3,48,192", "-n", "1").err
    assert 'did you mean "batch"' in keel("run", path, "-i", "x=1", "--dim", "bath=2", code=2).err
    assert 'did you mean "x"' in keel("convert", path, "p.keel", "--shape", "X=1,2,3,4", code=2).err
    assert "expected 4" in keel("convert", path, "p.keel", "--shape", "x=1,2", code=3).err
    assert "is fixed to 2" in keel("convert", path, "p.keel", "--dim", "batch=2", "--shape", "x=3,3,4,4", code=3).err


def test_values_for_an_import_take_the_models_dtype(keel, tmp_path):
    more = [helper.make_tensor_value_info("shape", TensorProto.INT64, [2])]
    path = model(tmp_path / "m.onnx", [2, 3], [helper.make_node("Reshape", ["x", "shape"], ["y"])], more)
    assert "y: f32[3, 2]" in keel("run", path, "-i", "x=range", "-i", "shape=3,2").out
    assert "y: f32[3, 2]" in keel("run", path, "-i", "x=range", "-i", "shape=i64[2]=3,2").out
    assert "'shape': i64[2]" in keel("run", path, "-i", "x=range", code=2).err


def test_the_models_own_names_of_nodes(keel, tmp_path):
    nodes = [helper.make_node("Log", ["x"], ["a"], name="/head/Log"),
             helper.make_node("Gemm", ["a", "x"], ["b"], name="/head/Gemm", alpha=0.5),
             helper.make_node("Relu", ["b"], ["y"], name="/tail/Relu")]
    path = model(tmp_path / "m.onnx", [2, 2], nodes)
    keel("convert", path, "m.keel")
    for file in (path, "m.keel"):
        out = keel("run", file, "-i", "x=1", "--break", "/head/Log").out
        assert out.startswith("stopped after") and '"a", in the model "/head/Log"' in out
        assert 'did you mean "/head/Log"' in keel("run", file, "-i", "x=1", "--break", "/head/Lgo", code=2).err
        assert '"/head/Log"' in keel("run", file, "-i", "x=-1", "--watch", "/head/*=nan", code=1).out
        assert keel("run", file, "-i", "x=-1", "--watch", "/tail/*=inf").out.startswith("y: ")
        assert "no node of that name" in keel("run", file, "-i", "x=-1", "--watch", "/foot/*=nan", code=2).err
        rows = json.loads(keel("plan", file, "-d", "cpu", "--place", "/head/Gemm=reference", "--json").out)["placement"]
        assert {r["node"] for r in rows if r["device"].startswith("reference")} >= {"b"}
        assert {r["node"] for r in rows if r["device"].startswith("cpu")} == {"a", "y"}
    np.testing.assert_equal(keel("inspect", path).out.count("/head/Log"), 0)


SELECTION = """keel 1

fn @main(x: f32[n]) -> f32[m], f32[m] {
  yes = greater(x, 0.0) : bool[n]
  count = reduce_sum(cast(yes){to=i64}) : i64[]
  sorted, at = sort(x){descending=true} : f32[n], i64[n]
  y = trim(sorted, count){size=m} : f32[m]
  ones = fill(1.0){dims=[m]} : f32[m]
  return y, ones
}

entry main = @main (x) -> (y, ones)
"""


def test_a_size_that_only_the_run_knows(keel, graph):
    path = graph(SELECTION)
    keel("optimize", path, "-o", "better.keel")
    for file in (path, "better.keel"):
        assert "y: f32[2]\n[3, 1]\nones: f32[2]\n[1, 1]\n" == keel("run", file, "-i", "x=f32[4]=1,-1,3,0").out
        assert "ones: f32[0]\n[]\n" in keel("run", file, "-i", "x=f32[2]=0,-1").out
        assert "y: f32[m]" in keel("inspect", file).out.replace("out y", "y")
    assert "its size is known in a run only" in keel("plan", path, "-i", "x=f32[2]=0,-1").out
    assert "count 9 is not in [0, 3]" in keel("eval", "trim([1, 2, 3], 9)", code=5).err


IN_A_LOOP = """keel 1

fn @main(x: f32[n]) {
  i, y = while(0, f32(0), x){carry=2}
    test(i, s, u) {
      more = less(i, 3)
      yield more
    }
    body(i, s, u) {
      j = add(i, 1)
      t = trim(u, add(i, 2))
      z = add(s, reduce_sum(t))
      yield j, z
    }
  return y
}

entry main = @main (x)
"""


def test_a_loop_finds_sizes(keel, graph):
    path = graph(IN_A_LOOP)
    keel("optimize", path, "-o", "better.keelt")  # the text declares the size in the body only
    keel("convert", path, "whole.keel")
    for file in (path, "better.keelt", "whole.keel"):
        assert keel("run", file, "-i", "x=1,2,3,4,5").out == "y: f32[]\n19\n"
        assert keel("run", file, "-i", "x=1,2,3,4,5", "-d", "reference").out == "y: f32[]\n19\n"
        assert "count 4 is not in [0, 3]" in keel("run", file, "-i", "x=1,2,3", code=5).err
        shown = keel("run", file, "-i", "x=1,nan,3,4", "--watch", "nan", code=1).out
        assert "(reduce_sum" in shown and "1 NaN of 1 elements" in shown
    assert "a run finds sizes in its bodies" in keel("plan", path, "-i", "x=f32[2]=0,-1").out
    assert "main.i.body/t" in keel("plan", path, "-i", "x=f32[2]=0,-1").out


def test_imports_take_lengths_of_sequences(keel, tmp_path):
    """y = s with the concatenation of its elements at the end."""
    kinds = [helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None) for name in ("s", "y")]
    nodes = [helper.make_node("ConcatFromSequence", ["s"], ["c"], axis=0), helper.make_node("SequenceInsert", ["s", "c"], ["y"])]
    graph = helper.make_graph(nodes, "g", kinds[:1], kinds[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    keel("convert", "m.onnx", "m.keel", "--length", "s=2", "--shape", "s=1")
    assert keel("run", "m.keel", "-i", "s_0=4", "-i", "s_1=5").out == "y_0: f32[1]\n[4]\ny_1: f32[1]\n[5]\ny_2: f32[2]\n[4, 5]\n"
    keel("convert", "m.onnx", "n.keel", "--length", "s=1", "--shape", "s_0=?,2")
    assert types(keel, "n.keel") == [["s_0_0", 2], ["s_0_0", 2], ["s_0_0", 2]]
    assert "metadata onnx.sequence_outputs: y 2" in keel("inspect", "n.keel").out
    def err(*arguments, code):
        return keel("convert", *arguments, "o.keel", code=code).err
    assert "with --length s=3" in err("m.onnx", code=2) and "with --length s=3" in keel("run", "m.onnx", "-i", "s=4", code=2).err
    assert 'did you mean "s"' in err("m.onnx", "--length", "S=2", code=2)
    assert "expected NAME=NUMBER or NAME=none" in err("m.onnx", "--length", "s=two", code=2)
    assert "--length s is given twice: 2 and 3" in err("m.onnx", "--length", "s=2", "--length", "s=3", code=2)
    assert "only a file that is imported has sequences" in err("m.keel", "--length", "s=2", code=2)
