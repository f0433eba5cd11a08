"""Replaces the weights of ONNX's light models, so that their outputs become a test.

All original weights are equal, so that a softmax over 1000 equal numbers hides any error. Here each ConstantOfShape becomes an
initializer of reproducible numbers, generated from the tensor's name by splitmix64: uniform in +-sqrt(6 / fan_in) for weights;
variance and scale of batch normalisation in [0.5, 1.5) (scaled by 0.4 in residual nets, whose sums would saturate), all other
vectors in +-0.1.
"""
import numpy as np
import onnx
from onnx import numpy_helper

MASK = 0xFFFFFFFFFFFFFFFF


def uniform(name, count):
    """`count` numbers in [0, 1) that depend only on the name."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & MASK
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return ((z >> np.uint64(40)).astype(np.float64) / 2**24).astype(np.float32)


def weight(name, shape, role, residual):
    u = uniform(name, int(np.prod(shape)))
    if role in ("scale", "var"):
        values = (np.float32(0.5) + u) * np.float32(0.4 if role == "scale" and residual else 1)
    elif len(shape) >= 2:
        values = (2 * u - 1) * np.float32(np.sqrt(6 / np.prod(shape[1:])))
    else:
        values = (2 * u - 1) / np.float32(10)
    return numpy_helper.from_array(values.reshape(shape).astype(np.float32), name)


def reseeded(path):
    """The light model at `path` with such weights, as a ModelProto."""
    model = onnx.load(path)
    graph = model.graph
    shapes = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    roles = {}
    for node in graph.node:
        if node.op_type == "BatchNormalization":
            roles.update(zip(node.input[1:5], ("scale", "bias", "mean", "var")))
    residual = any(node.op_type == "Sum" for node in graph.node)
    filled = [n for n in graph.node if n.op_type == "ConstantOfShape" and n.input[0] in shapes]
    made = [weight(n.output[0], [int(d) for d in shapes[n.input[0]]], roles.get(n.output[0]), residual)
            for n in filled]
    keep = [n for n in graph.node if n not in filled]
    used = {name for n in keep for name in n.input}
    weights = [i for i in graph.initializer if i.name in used] + made
    inputs = [i for i in graph.input if i.name in used and i.name not in {w.name for w in weights}]
    for field, items in ((graph.node, keep), (graph.initializer, weights), (graph.input, inputs)):
        del field[:]
        field.extend(items)
    model.ir_version = max(model.ir_version, 4)
    return model


def image(model):
    """The input defined by the suite: numbers rising from 0 to 1."""
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)
