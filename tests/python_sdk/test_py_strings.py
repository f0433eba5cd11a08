"""Strings for models that take them: feeds, fixed values, results, and errors that name the string."""
import keel
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

STRING, INT64 = TensorProto.STRING, TensorProto.INT64


def model(shape=("n",)):
    """y: each string with "!"; code: 1 for "cat", 2 for "的", else -1."""
    nodes = [helper.make_node("StringConcat", ["x", "mark"], ["y"]),
             helper.make_node("LabelEncoder", ["x"], ["code"], domain="ai.onnx.ml", keys_strings=["cat", "的"], values_int64s=[1, 2])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", STRING, list(shape))],
                              [helper.make_tensor_value_info("y", STRING, None), helper.make_tensor_value_info("code", INT64, None)],
                              initializer=[helper.make_tensor("mark", STRING, [1], ["!"])])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 2)])


WANT = ["cat!", "的!", "!"]
FED = [["cat", "的", ""], ("cat", "的", ""), np.array(["cat", "的", ""]), np.array(["cat", "的", ""], object), np.array([x.encode() for x in ("cat", "的", "")]),
       np.array(["cat", "的", ""], np.dtypes.StringDType()), np.array(["cat", "的", "", "x"], object)[:3], keel.strings.encode(["cat", "的", ""], 9)]


@pytest.mark.parametrize("x", FED, ids=range(len(FED)))
def test_what_is_fed(x):
    module = keel.from_onnx(model())
    for got in (module(x), module(x=x), keel.Session(module).run(x=x), module["main"](x) if "main" in str(module.info()["entries"][0]["name"]) else module(x)):
        y, code = (got["y"], got["code"]) if isinstance(got, dict) else got
        assert keel.strings.decode(y).tolist() == WANT
        assert code.numpy().tolist() == [1, 2, -1]


@pytest.mark.parametrize("dtype", [object, "U3", "S3", np.dtypes.StringDType()], ids=str)
def test_backend_runs_a_node(dtype):
    from keel.onnx import backend
    node = helper.make_node("StringConcat", ["a", "b"], ["y"])
    assert backend.run_node(node, [np.array(["a", "xyz"], dtype), np.array(["é"], object)]).y.tolist() == ["aé", "xyzé"]


def test_metadata_names_strings():
    metadata = keel.from_onnx(model()).info()["metadata"]
    assert (metadata["onnx.string_inputs"], metadata["onnx.string_outputs"]) == ("x\n", "y\n")


def test_parameter_has_a_dim_of_bytes():
    module = keel.from_onnx(model())
    assert module.info()["entries"][0]["params"][0]["type"] == "u8[n, x_bytes]"
    assert keel.from_onnx(model(), **{"shape.x": "2,7"}).info()["entries"][0]["params"][0]["type"] == "u8[2, 7]"
    with pytest.raises(keel.InvalidError, match="got 1 sizes; expected 2"):
        keel.from_onnx(model(), **{"shape.x": "2"})


def test_fixed_strings():
    module = keel.from_onnx(model((2,)), fixed={"x": ["的", "cat"]})
    assert keel.strings.decode(module()["y"]).tolist() == ["的!", "cat!"]


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 0), (2, 3), ()])
def test_encode_and_decode(shape):
    x = np.array(np.random.default_rng(1).choice(["", "a", "né", "的的"], shape), object)
    assert keel.strings.decode(keel.strings.encode(x)).tolist() == x.tolist()
    assert keel.strings.encode(x, 12).shape == (*shape, 12)
    assert keel.strings.decode(keel.strings.encode(np.zeros(shape, "S1"), 0)).shape == shape


@pytest.mark.parametrize("x, words", [
    (["a", 3], ["expected strings", "3", "an int"]), ([["a"], ["b", "c"]], ["ragged"]), (["a\0b"], ["'a\\\\x00b'|zero byte"]),
    (np.array([b"\xff"]), ["not UTF-8", "byte 0"]), (np.array(["a", None], object), ["None", "NoneType"]), (["\ud800"], ["Unicode"]),
    (np.array([1.5]), ["float64"]), ("abc", ["3 bytes", "at most 2"])])
def test_bad_strings(x, words):
    with pytest.raises(keel.InvalidError) as caught:
        keel.strings.encode(x, 2 if isinstance(x, str) else None)
    for word in words:
        assert any(each in str(caught.value) for each in word.split("|")), caught.value


def test_bad_bytes():
    with pytest.raises(keel.InvalidError, match="not UTF-8"):
        keel.strings.decode(np.array([[0x61, 0xff]], np.uint8))
    with pytest.raises(keel.InvalidError, match="got int64 with 1 dims"):
        keel.strings.decode(np.array([1]))


def test_wrong_shape_of_strings():
    with pytest.raises(keel.Error, match="x"):
        keel.from_onnx(model())([["a", "b"]])


def test_tensors_are_no_strings():
    """Arrays of numbers are fed as before."""
    assert not any(map(keel.strings.holds_strings, [1, 2.0, [1], [], [[2.0]], np.arange(3), keel.array([1, 2]), None, keel.u8]))


@pytest.mark.parametrize("node, words", [
    (helper.make_node("Neg", ["x"], ["y"]), ["Neg", "operand 0 ('x')", "strings"]),
    (helper.make_node("Add", ["one", "x"], ["y"]), ["Add", "operand 1 ('x')"]),
    (helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BOOL), ["Cast", "strings to bool"]),
    (helper.make_node("Gather", ["one", "x"], ["y"]), ["Gather", "operand 1 ('x')"]),
    (helper.make_node("Concat", ["x", "one"], ["y"], axis=0), ["'one' is no tensor of strings"]),
    (helper.make_node("StringSplit", ["x"], ["y", "n"], delimiter="ab" * 200), ["delimiter of 400 bytes", "at most 256"]),
    (helper.make_node("StringNormalizer", ["x"], ["y"], locale="tr_TR"), ["locale 'tr_TR'"]),
    (helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="TITLE"), ["TITLE", "LOWER, UPPER or NONE"]),
    (helper.make_node("StringSplit", ["one"], ["y", "n"]), ["operand 0 is i64; expected a tensor of strings"])])
def test_operators_that_take_no_strings(node, words):
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", STRING, [1])], [helper.make_tensor_value_info("y", INT64, None)],
                              initializer=[helper.make_tensor("one", INT64, [1], [1])])
    with pytest.raises(keel.Error) as caught:
        keel.from_onnx(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]))
    for word in words:
        assert word in str(caught.value)


def test_message_about_a_name_that_is_no_text():
    broken = model().SerializeToString().replace(b"LabelEncoder", b"LabelEncode\xff")
    with pytest.raises(keel.UnimplementedError, match=r"LabelEncode\?"):
        keel.from_onnx(broken)
    made = model()
    made.graph.node[0].name = "joined"
    with pytest.raises(keel.InvalidError, match="node 'jo\ufffdned'|not UTF-8"):
        keel.from_onnx(made.SerializeToString().replace(b"joined", b"jo\xffned").replace(b"\x01y", b"\x01\xfe"))


def stored(values, dims, **more):
    tensor = TensorProto(name="k", data_type=STRING, dims=dims, string_data=values, **more)
    graph = helper.make_graph([helper.make_node("Identity", ["k"], ["y"])], "g", [], [helper.make_tensor_value_info("y", STRING, None)],
                              initializer=[tensor])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize("values, dims, words", [
    ([b"a\xff"], [1], "'k' has a string that is not UTF-8"), ([b"a\0"], [1], "zero byte"), ([b"a"], [2], "1 strings; expected 2"),
    ([b"a"] * 3, [2], "3 strings; expected 2"), ([b"\xed\xa0\x80"], [1], "not UTF-8"), ([b"\xc0\x80"], [1], "not UTF-8"),
    ([b"x%d" % k for k in range(3000)] + [b"y" * 100000], [3001], "3001 strings of up to 100000 bytes")])
def test_bad_constants(values, dims, words):
    with pytest.raises(keel.Error, match=words):
        keel.from_onnx(stored(values, dims))


@pytest.mark.parametrize("values, dims", [([], [0]), ([b""], [1]), ([b"\xf0\x9f\x90\x88", b"a"], [2, 1]), ([b"s"], [])])
def test_constants(values, dims):
    got = keel.strings.decode(keel.from_onnx(stored(values, dims))())
    assert (got.shape, got.reshape(-1).tolist()) == (tuple(dims), [x.decode() for x in values])
