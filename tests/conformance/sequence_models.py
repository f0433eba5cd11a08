"""Models with sequences, optionals and loops, for the tests of the ONNX importer; `node("Add", "a b", "y")` writes a node."""
import numpy as np
import onnx
from onnx import TensorProto, helper

F, L = np.float32, np.int64
RANDOM = np.random.default_rng(28)


def tensor(name, dims=None, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def sequence(name, dtype=TensorProto.FLOAT):
    return helper.make_tensor_sequence_value_info(name, dtype, None)


def optional(name, inner=None):
    inner = inner or helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    return helper.make_value_info(name, helper.make_optional_type_proto(inner))


def constant(name, value):
    return helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.asarray(value)))


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model_of(nodes, inputs, outputs, opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def elements(count, *shape):
    """Elements of different sizes."""
    return [RANDOM.standard_normal((k + 1, *shape)).astype(F) for k in range(count)]


def gathering_loop(trips, condition=True, more=(), inner=()):
    """Carries a sequence: each iteration inserts x[:k + 1] * k; stacks k."""
    body = helper.make_graph([constant("one", np.array([1], L)), node("Reshape", "k one", "k1"), node("Add", "k1 one", "end"),
                              constant("zero", np.array([0], L)), node("Slice", "x zero end", "part"), node("Cast", "k", "kf", to=TensorProto.FLOAT),
                              node("Mul", "part kf", "scaled"), *inner, node("SequenceInsert", "s scaled", "s2"),
                              *([] if any("c2" in n.output for n in inner) else [node("Identity", "c", "c2")])],
                             "body", [tensor("k", [], TensorProto.INT64), tensor("c", [], TensorProto.BOOL), sequence("s")],
                             [tensor("c2", [], TensorProto.BOOL), sequence("s2"), tensor("kf", [])])
    return model_of([constant("n", L(trips)), constant("go", np.array(condition)), node("Loop", "n go s0", "s9 ks", body=body), *more],
                    [sequence("s0"), tensor("x", [5])], [sequence("s9"), tensor("ks", ["n"])])
