"""The models that are measured, written as ONNX files so that both sides read the same bytes.

Weights are random with a fixed seed, of a size that keeps the values of each layer near one.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "conformance"), str(ROOT / "tests" / "python")]


class Builder:
    """Nodes of one ONNX graph; each call returns the name of its result."""

    def __init__(self, seed):
        self.nodes, self.weights, self.random = [], [], np.random.default_rng(seed)

    def node(self, op, *inputs, **attrs):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attrs))
        return name

    def weight(self, array):
        name = f"w_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def normal(self, *shape, scale=0.02):
        return self.weight((scale * self.random.standard_normal(shape)).astype(np.float32))

    def dense(self, x, inside, outside, scale=0.02):
        product = self.node("MatMul", x, self.normal(inside, outside, scale=scale))
        return self.node("Add", product, self.normal(outside))

    def save(self, path, result, shape, opset=17):
        self.nodes[-1].output[0] = "y"
        assert self.nodes[-1].name == "" and result != "y"
        graph = helper.make_graph(
            self.nodes, "bench", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
        return path


def heads(b, x, perm, count=12, size=64):
    shape = b.weight(np.array([0, 0, count, size]))
    return b.node("Transpose", b.node("Reshape", x, shape), perm=perm)


def encoder_layer(b, x, width=768, inner=3072):
    """Attention, sum, norm, two dense layers with gelu by erf between, sum, norm."""
    query, key, value = (b.dense(x, width, width) for _ in range(3))
    score = b.node("MatMul", heads(b, query, [0, 2, 1, 3]), heads(b, key, [0, 2, 3, 1]))
    score = b.node("Softmax", b.node("Div", score, b.weight(np.float32(8))), axis=-1)
    mixed = b.node("Transpose", b.node("MatMul", score, heads(b, value, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
    mixed = b.node("Reshape", mixed, b.weight(np.array([0, 0, width])))
    x = norm(b, b.node("Add", b.dense(mixed, width, width), x), width)
    h = b.dense(x, width, inner)
    bell = b.node("Erf", b.node("Div", h, b.weight(np.float32(np.sqrt(2)))))
    h = b.node("Mul", b.node("Mul", h, b.node("Add", bell, b.weight(np.float32(1)))), b.weight(np.float32(0.5)))
    return norm(b, b.node("Add", b.dense(h, inner, width), x), width)


def norm(b, x, width):
    scale, bias = b.weight(np.ones(width, np.float32)), b.weight(np.zeros(width, np.float32))
    return b.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)


def bert(path, layers=12):
    b, x = Builder(1), "x"
    for _ in range(layers):
        x = encoder_layer(b, x)
    return b.save(path, x, [1, 128, 768])


def mlp(path):
    b, x, sizes = Builder(2), "x", (784, 128, 128, 128, 10)
    for k, (inside, outside) in enumerate(zip(sizes, sizes[1:])):
        x = b.node("Gemm", x, b.normal(inside, outside, scale=inside ** -0.5), b.normal(outside))
        x = b.node("Relu", x) if k < 3 else x
    return b.save(path, x, ["n", 784])


def resnet50(path):
    from light_weights import reseeded
    from onnx_cases import light_models
    onnx.save(reseeded(light_models()["resnet50"]), path)
    return path


def normal_input(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


# name: (what makes the file, its input, what it is)
WORKLOADS = {
    "resnet50": (resnet50, lambda: np.abs(normal_input(1, 3, 224, 224)), "ResNet-50, 1x3x224x224"),
    "bert": (bert, lambda: normal_input(1, 128, 768), "BERT-base encoder, 12 layers, 1x128x768"),
    "mlp60000": (mlp, lambda: normal_input(60000, 784), "MLP 784-128-128-128-10, 60,000 rows"),
    "mlp1": (mlp, lambda: normal_input(1, 784), "MLP 784-128-128-128-10, 1 row"),
}
