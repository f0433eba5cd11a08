"""Models of one or few operators on strings, and how Keel and ONNX Runtime run them on the same words."""
import numpy as np
import onnx
from keel.onnx import backend
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx_cases import DEVICES, onnxruntime_run

STRING, INT64, FLOAT, BOOL = TensorProto.STRING, TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL
WORDS = ["", "a", "cat", "Cat", "snake", "zebra fish", "naïve", "ÉCOLE", "的", "🐈", "ab" * 40, "e\u0301t\u00e9", " x "]


def model_of(nodes, inputs, outputs, opset=21, ml=4, initializer=()):
    """inputs and outputs: (name, element type, shape or None)."""
    def infos(values):
        return [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in values]
    graph = helper.make_graph(nodes, "strings", infos(inputs), infos(outputs), initializer=list(initializer))
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ml)])


def node_model(op, inputs, outputs, domain="", opset=21, ml=4, **attributes):
    node = helper.make_node(op, [name for name, *_ in inputs], [name for name, *_ in outputs], domain=domain, **attributes)
    return model_of([node], inputs, outputs, opset, ml)


def words(rng, *shape, of=WORDS):
    return np.array(rng.choice(np.array(of, object), shape), object)


def assert_as_runtime(model, feeds, devices=DEVICES, atol=1e-5):
    """Each device gives the results of ONNX Runtime; returns them."""
    return assert_gives(model, feeds, onnxruntime_run(model, feeds), devices, atol)


def assert_as_evaluator(model, feeds, devices=DEVICES):
    """Each device gives the results of ONNX's own evaluator."""
    expected = ReferenceEvaluator(model).run(None, dict(zip([i.name for i in model.graph.input], feeds)))
    return assert_gives(model, feeds, [x.astype(object) if x.dtype.kind == "U" else x for x in map(np.asarray, expected)], devices)


def assert_gives(model, feeds, expected, devices=DEVICES, atol=1e-5):
    for device in devices:
        for want, got in zip(expected, backend.prepare(model, device).run(list(feeds)), strict=True):
            want = np.asarray(want)
            assert (got.shape, got.dtype) == (want.shape, want.dtype), (got, want)
            if want.dtype == object:
                np.testing.assert_array_equal(got, want)
            else:
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=atol)
    return expected


def tensor(name, kind, values):
    return onnx.helper.make_tensor(name, kind, [len(values)], values)
