"""Models that take strings: .npy files of NumPy's dtypes S and U are inputs, results are printed as strings."""
import json

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper


@pytest.fixture
def model(tmp_path):
    """y: each string with "!"."""
    graph = helper.make_graph([helper.make_node("StringConcat", ["x", "mark"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.STRING, ["n", None])],
                              [helper.make_tensor_value_info("y", TensorProto.STRING, None)],
                              initializer=[helper.make_tensor("mark", TensorProto.STRING, [1], ["!"])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


WORDS = [["cat", "", 'a "b"'], ["的🐈", "é", "x"]]
FORMS = {"U": lambda x: x, "big": lambda x: x.astype(">U9"), "fortran": np.asfortranarray, "S": lambda x: np.char.encode(x, "utf-8")}


@pytest.mark.parametrize("form", FORMS)
def test_strings_of_npy_files(keel, model, tmp_path, form):
    np.save(tmp_path / "x.npy", FORMS[form](np.array(WORDS)))
    y = json.loads(keel("run", model, "-i", "x=@x.npy", "--json").out)["outputs"]["y"]
    assert y == {"dtype": "string", "shape": [2, 3], "data": [word + "!" for row in WORDS for word in row]}
    keel("convert", model, "m.keel")
    assert json.loads(keel("run", "m.keel", "-i", "x=@x.npy", "--json").out)["outputs"]["y"] == y


def test_printed_strings(keel, model, tmp_path):
    np.save(tmp_path / "x.npy", np.array(WORDS))
    assert '[["cat!", "!", "a \\"b\\"!"]\n ["的🐈!", "é!", "x!"]]\n' in keel("run", model, "-i", "x=@x.npy").out
    np.save(tmp_path / "x.npy", np.array([["w"] * 2000]))
    assert '[["w!", "w!", "w!", ..., "w!", "w!", "w!"]]\n' in keel("run", model, "-i", "x=@x.npy").out
    np.save(tmp_path / "x.npy", np.zeros((2, 0), "U3"))
    assert "[[]\n []]\n" in keel("run", model, "-i", "x=@x.npy").out or "[]\n" in keel("run", model, "-i", "x=@x.npy").out


@pytest.mark.parametrize("x, words", [(np.array([[b"a", b"\xff"]]), ["string 1", "not UTF-8"]), (np.array([[b"a\0b"]]), ["string 0", "zero byte"])])
def test_bad_strings(keel, model, tmp_path, x, words):
    np.save(tmp_path / "x.npy", x)
    err = keel("run", model, "-i", "x=@x.npy", code=3).err
    assert "x.npy" in err and all(word in err for word in words)


def test_damaged_strings(keel, model, tmp_path):
    np.save(tmp_path / "x.npy", np.array([["z", "y"]]))
    whole = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole.replace(b"y\0\0\0", b"\0\0\x11\0"))
    assert "string 1 has a code point that is none" in keel("run", model, "-i", "x=@x.npy", code=3).err
    (tmp_path / "x.npy").write_bytes(whole[:-1])
    assert "truncated" in keel("run", model, "-i", "x=@x.npy", code=3).err
