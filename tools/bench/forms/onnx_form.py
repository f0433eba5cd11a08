"""The models as ONNX files, in the primitive ops that exporters write; other forms take the weights from there."""
import numpy as np
import onnx
from onnx import helper, numpy_helper


class Weights:
    """Random weights of a model, drawn in the order of the requests."""

    def __init__(self, form, seed=1):
        self.form, self.random = form, np.random.default_rng(seed)

    def normal(self, *shape, scale, kind="w"):
        return self.form.constant((scale * self.random.standard_normal(shape)).astype(np.float32), kind)

    def dense(self, *shape, scale):
        return self.normal(*shape, scale=scale, kind="dense")  # some runtimes need these transposed

    def full(self, size, value):
        return self.form.constant(np.full(size, value, np.float32), "w")


class OnnxForm:
    """Nodes of one ONNX graph; each op returns the name of its result."""
    opset, domain = 17, ""  # domain: for ops outside the ONNX standard

    def __init__(self):
        self.nodes, self.constants = [], []

    def node(self, op, *inputs, **attrs):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attrs))
        return name

    def constant(self, array, kind="c"):
        name = f"{kind}_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def number(self, value):
        return self.constant(np.float32(value))

    def add(self, x, y):
        return self.node("Add", x, y)

    def mul(self, x, y):
        return self.node("Mul", x, y)

    def matmul(self, x, y):
        return self.node("MatMul", x, y)

    def dense(self, x, w, b):
        return self.add(self.matmul(x, w), b)

    def conv(self, x, w, stride, groups):
        kernel = list(self.constants[int(w.split("_")[1])].dims)[2:]
        return self.node("Conv", x, w, kernel_shape=kernel, strides=[stride] * 2, pads=[k // 2 for k in kernel] * 2,
                         group=groups)

    def batch_norm(self, x, *parts):
        return self.node("BatchNormalization", x, *parts, epsilon=1e-5)

    def relu(self, x):
        return self.node("Relu", x)

    def relu6(self, x):
        return self.node("Clip", x, self.number(0), self.number(6))

    def max_pool(self, x):
        return self.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)

    def global_pool(self, x):
        return self.node("Flatten", self.node("GlobalAveragePool", x))

    def softmax(self, x):
        return self.node("Softmax", x, axis=-1)

    def layer_norm(self, x, scale, bias, epsilon):
        return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)

    def gelu(self, x):
        bell = self.node("Erf", self.node("Div", x, self.number(np.sqrt(2))))
        return self.mul(self.mul(x, self.add(bell, self.number(1))), self.number(0.5))

    def gelu_tanh(self, x):
        cube = self.mul(self.node("Pow", x, self.number(3)), self.number(0.044715))
        bend = self.node("Tanh", self.mul(self.add(x, cube), self.number(np.sqrt(2 / np.pi))))
        return self.mul(self.mul(x, self.number(0.5)), self.add(bend, self.number(1)))

    def attention(self, q, k, v, heads, causal):
        split = self.constant(np.array([0, 0, heads, 64]))
        q, k, v = (self.node("Transpose", self.node("Reshape", x, split), perm=perm)
                   for x, perm in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3])))
        score = self.node("Div", self.matmul(q, k), self.number(8))
        if causal:
            score = self.add(score, self.constant(np.triu(np.full((128, 128), -1e9, np.float32), 1)))
        mixed = self.node("Transpose", self.matmul(self.softmax(score), v), perm=[0, 2, 1, 3])
        return self.node("Reshape", mixed, self.constant(np.array([0, 0, heads * 64])))

    def embed(self, table, ids):
        return self.node("Gather", table, ids, axis=0)

    def scores(self, x, table):
        return self.matmul(x, self.node("Transpose", table, perm=[1, 0]))


def write(model, inputs, path, free_rows=False, kind=OnnxForm):
    """The file of a model; free_rows: the first dim is a symbol."""
    form, names = kind(), [f"x{i}" for i in range(len(inputs))]
    result = model(form, Weights(form), *names)
    form.nodes[-1].output[0] = "y"
    assert all(result not in n.input for n in form.nodes)
    kinds = [helper.np_dtype_to_tensor_dtype(x.dtype) for x in inputs]
    shapes = [["n", *x.shape[1:]] if free_rows else x.shape for x in inputs]
    graph = helper.make_graph(
        form.nodes, "bench", [helper.make_tensor_value_info(*row) for row in zip(names, kinds, shapes)],
        [helper.make_tensor_value_info("y", kinds[0] if kinds[0] == onnx.TensorProto.INT32 else 1, None)],
        form.constants)
    domains = [helper.make_opsetid("", kind.opset)] + [helper.make_opsetid(kind.domain, 1)] * bool(kind.domain)
    onnx.save(helper.make_model(graph, opset_imports=domains, ir_version=8), path)
    return path


def weights_of(path, turn=False):
    """The weights in the order of the requests; turn: dense layers as [out, in]."""
    found = [(c.name, numpy_helper.to_array(c)) for c in onnx.load(path).graph.initializer]
    return [a.T.copy() if turn and name.startswith("dense_") else a for name, a in found if not name.startswith("c_")]


class Given:
    """Returns existing weights in order."""

    def __init__(self, weights):
        self.next = iter(weights)

    def normal(self, *shape, scale):
        return next(self.next)

    dense = normal

    def full(self, size, value):
        return next(self.next)
