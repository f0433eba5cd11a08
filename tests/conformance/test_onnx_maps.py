"""Inputs that are maps, read by DictVectorizer and CastMap: Keel takes their values as a vector. Oracle: ONNX Runtime on the maps."""
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_cases import DEVICES, assert_refused, run_model

FLOAT = TensorProto.FLOAT
KINDS = {str: TensorProto.STRING, int: TensorProto.INT64}


def model_of(op, key, value, nodes=None, dims=None, **attributes):
    info = helper.make_value_info("x", helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, [] if dims is None else dims)))
    nodes = nodes or [helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)]
    graph = helper.make_graph(nodes, "g", [info], [helper.make_tensor_value_info("y", attributes.pop("result", value), None)])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)])


def runtime(model, given):
    import onnxruntime as ort
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": given})[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("vocabulary, given", [
    (["a", "c", "b", "z"], {"a": 4.0, "c": 8.0}), (["a"], {}), (["ä", "b"], {"b": np.inf, "ä": np.nan}), ([7, -3, 10**12], {10**12: 1.5, 7: -2.0})])
@pytest.mark.parametrize("value, dtype", [(TensorProto.FLOAT, np.float32), (TensorProto.INT64, np.int64), (TensorProto.DOUBLE, np.float64)])
def test_dict_vectorizer(context, device, vocabulary, given, value, dtype):
    if dtype == np.int64:
        given = {word: int(np.nan_to_num(x, posinf=9)) for word, x in given.items()}
    key = type(vocabulary[0])
    words = {"string_vocabulary" if key is str else "int64_vocabulary": vocabulary}
    model = model_of("DictVectorizer", KINDS[key], value, **words)
    got = run_model(context, device, model, [np.array([given.get(word, 0) for word in vocabulary], dtype)])[0]
    assert got.dtype == dtype and got.shape == (1, len(vocabulary))
    of_floats = model_of("DictVectorizer", KINDS[key], FLOAT, **words)  # its Python interface takes maps to f32
    np.testing.assert_array_equal(got, runtime(of_floats, {word: float(x) for word, x in given.items()}) if given else np.zeros(got.shape))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form, most", [("SPARSE", 5), ("DENSE", 1)])
@pytest.mark.parametrize("given", [{0: 1.5, 3: -2.75, 1: 4.0}, {2: 7.0}])
@pytest.mark.parametrize("to, dtype", [("TO_FLOAT", np.float32), ("TO_INT64", np.int64)])
def test_cast_map(context, device, form, most, given, to, dtype):
    model = model_of("CastMap", KINDS[int], TensorProto.FLOAT, cast_to=to, map_form=form, max_map=most)
    model.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    values = [given.get(k, 0) for k in range(most)] if form == "SPARSE" else [given[k] for k in sorted(given)]
    got = run_model(context, device, model, [np.array(values, np.float32)])[0]
    expected = runtime(model, given)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)



@pytest.mark.parametrize("model, words", [
    (model_of("", KINDS[str], FLOAT, [helper.make_node("Identity", ["x"], ["y"])]), ["input 'x', a map,", "read by Identity", "DictVectorizer or CastMap"]),
    (model_of("", KINDS[str], FLOAT, [helper.make_node("Constant", [], ["y"], value_float=1.0)]), ["read by no node"]),
    (model_of("DictVectorizer", KINDS[str], TensorProto.STRING, string_vocabulary=["a"]), ["strings as values", "numbers"]),
    (model_of("CastMap", KINDS[int], FLOAT, cast_to="TO_STRING"), ["cast_to 'TO_STRING'", "TO_FLOAT or TO_INT64"]),
    (model_of("", KINDS[str], FLOAT, [helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a"]),
                                      helper.make_node("DictVectorizer", ["x"], ["z"], domain="ai.onnx.ml", string_vocabulary=["a", "b"])]),
     ["vocabularies of different sizes"]),
])
def test_other_uses_of_maps(context, model, words):
    assert_refused(context, model, [], "UNIMPLEMENTED", words)


def test_wrong_attributes(context):
    one = [np.ones(1, np.float32)]
    both = model_of("DictVectorizer", KINDS[str], FLOAT, string_vocabulary=["a"], int64_vocabulary=[1])
    assert_refused(context, both, one, "INVALID", ["expected string_vocabulary or int64_vocabulary"])
    assert_refused(context, model_of("CastMap", KINDS[int], FLOAT, map_form="THIN"), one, "INVALID", ["map_form 'THIN'", "DENSE or SPARSE"])
    assert_refused(context, model_of("CastMap", KINDS[int], FLOAT, map_form="SPARSE", max_map=-1), one, "INVALID", ["max_map is -1; expected 1 or more"])
