"""Gradients of models, against NumPy by hand and finite differences along random directions; see gradient_graphs.py."""
import numpy as np
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper

from gradient_graphs import gradients, graph_of, run

RNG = np.random.default_rng(3)


MLP = "x: f64[b, 5], w: f64[5, 4], c: f64[4], u: f64[4, 3], e: f64[3], t: i64[b]"
MLP_BODY = "  h = relu(matmul(x, w) + c)\n  z = matmul(h, u) + e\n  l = cross_entropy(z, t)\n  loss = reduce_mean(l)"


def mlp_inputs(rows):
    shapes = {"x": (rows, 5), "w": (5, 4), "c": (4,), "u": (4, 3), "e": (3,)}
    return {n: RNG.uniform(-1, 1, s) for n, s in shapes.items()} | {"t": RNG.integers(0, 3, rows)}


def mlp_by_hand(x, w, c, u, e, t):
    h = np.maximum(x @ w + c, 0)
    z = h @ u + e
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    rows = np.arange(len(x))
    loss = -np.log(p[rows, t]).mean()
    dz = p.copy()
    dz[rows, t] -= 1
    dz /= len(x)
    dh = (dz @ u.T) * (h > 0)
    return [loss, dh @ w.T, x.T @ dh, dh.sum(0), h.T @ dz, dz.sum(0)]


@pytest.mark.parametrize("rows", [1, 7])
def test_a_perceptron_has_the_gradients_of_the_textbook(context, device, rows):
    module, inputs = graph_of(context, MLP, MLP_BODY, "loss"), mlp_inputs(rows)
    gradients(module, ["loss"], ["x", "w", "c", "u", "e"])
    for got, wanted in zip(run(module, device, inputs), mlp_by_hand(**inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)


def test_training_by_gradients_brings_the_loss_down(context, device):
    module, inputs = graph_of(context, MLP.replace("f64", "f32"), MLP_BODY, "loss"), mlp_inputs(32)
    inputs = {n: a.astype(np.float32) if a.dtype == np.float64 else a for n, a in inputs.items()}
    inputs["t"] = inputs["x"][:, :3].argmax(1)  # something to learn
    weights = ["w", "c", "u", "e"]
    gradients(module, ["loss"], weights)
    losses = []
    for _ in range(300):
        loss, *steps = run(module, device, inputs)
        losses.append(float(loss))
        for name, step in zip(weights, steps, strict=True):
            inputs[name] = inputs[name] - np.float32(0.5) * step
    assert losses[-1] < 0.5 * losses[0], losses[::50]


CONVNET = "x: f64[2, 1, 8, 8], k: f64[3, 1, 3, 3], g: f64[3], b: f64[3], w: f64[27, 4], t: i32[2]"
CONVNET_BODY = """  a = conv(x, k){lo=[1, 1], hi=[1, 1]}
  n = batch_norm(a, g, b, reduce_mean(a){axes=[0, 2, 3]}, reduce_mean(square(a)){axes=[0, 2, 3]})
  r = gelu(n)
  m = max_pool(r){window=[2, 2], stride=[2, 2]}
  p = avg_pool(m){window=[2, 2], stride=[1, 1]}
  q = layer_norm(reshape(p){to=[2, 27]}, s, o)
  l = cross_entropy(matmul(q, w), t)
  loss = reduce_sum(l)"""


def along(module, device, inputs, direction, entry="main", step=1e-6):
    """The directional derivative of the entry's first result (a number)."""
    values = []
    for sign in (1, -1):
        moved = {n: a + sign * step * direction[n] if n in direction else a for n, a in inputs.items()}
        values.append(float(run(module, device, moved, entry)[0]))
    return (values[0] - values[1]) / (2 * step)


def test_a_convolution_net_agrees_with_differences_along_directions(context, device):
    module = graph_of(context, CONVNET + ", s: f64[27], o: f64[27]", CONVNET_BODY, "loss")
    shapes = {"x": (2, 1, 8, 8), "k": (3, 1, 3, 3), "g": (3,), "b": (3,), "w": (27, 4), "s": (27,), "o": (27,)}
    inputs = {n: RNG.uniform(-1, 1, s) for n, s in shapes.items()} | {"t": np.array([1, 3], np.int32)}
    inputs = {n: inputs[n] for n in [*"xkgbwt", "s", "o"]}
    gradients(module, ["loss"], list(shapes))
    found = dict(zip(shapes, run(module, device, inputs)[1:], strict=True))
    for _ in range(8):
        direction = {n: RNG.normal(size=s) for n, s in shapes.items()}
        wanted = along(module, device, inputs, direction)
        got = sum(float((found[n] * direction[n]).sum()) for n in shapes)
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Convolution, pooling, dense layer as ONNX; the weights are constants."""
    weights = {"k": RNG.uniform(-1, 1, (2, 1, 3, 3)), "c": RNG.uniform(-1, 1, 2), "w": RNG.uniform(-1, 1, (3, 18)), "d": RNG.uniform(-1, 1, 3)}
    nodes = [helper.make_node("Conv", ["x", "k", "c"], ["a"]), helper.make_node("Sigmoid", ["a"], ["r"]),
             helper.make_node("AveragePool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Flatten", ["p"], ["f"]), helper.make_node("Gemm", ["f", "w", "d"], ["y"], transB=1)]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["n", 1, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["n", 3])],
                              [numpy_helper.from_array(a, n) for n, a in weights.items()])
    path = tmp_path_factory.mktemp("onnx") / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), path)
    return path, weights


def test_an_imported_model_has_gradients_of_its_weights(context, device, imported, tmp_path):
    path, weights = imported
    module = context.import_file(path)
    entry = module.info()["entries"][0]["name"]
    source = module.graph_of(entry)
    graph = source.copy("grad")
    names = ["x", *weights]
    found = graph.gradient([source.find("y")], [source.find(n) for n in names])
    for name, value in zip(names, found):
        graph.result(f"d_{name}", value)
    module.entry("grad", graph)
    file = tmp_path / "grad.keel"
    module.save(file)  # and from the file
    x = RNG.uniform(-1, 1, (3, 1, 8, 8))
    got = dict(zip(names, run(context.load(file), device, {"x": x}), strict=True))

    def loss(values):
        model = onnx.load(path)
        for tensor in model.graph.initializer:
            tensor.CopyFrom(numpy_helper.from_array(values[tensor.name], tensor.name))
        return float(onnx.reference.ReferenceEvaluator(model).run(None, {"x": values["x"]})[0].sum())

    values = {"x": x, **weights}
    for name in names:
        direction, step = RNG.normal(size=values[name].shape), 1e-5
        ends = [loss({**values, name: values[name] + sign * step * direction}) for sign in (1, -1)]
        np.testing.assert_allclose((got[name] * direction).sum(), (ends[0] - ends[1]) / (2 * step), rtol=1e-6, err_msg=name)


class Writer:
    """A random graph of smooth ops that reuses values; it tracks the shape of each value."""

    def __init__(self, seed):
        self.random, self.lines = np.random.default_rng(seed), []
        self.values = [("a", (3, 4)), ("b", (4,)), ("c", (4, 3)), ("d", ())]

    def pick(self, fits=lambda shape: True):
        among = [v for v in self.values if fits(v[1])]
        return among[self.random.integers(len(among))]

    def add(self, expression, shape):
        self.values.append((f"n{len(self.lines)}", tuple(shape)))
        self.lines.append(f"  {self.values[-1][0]} = {expression}")

    def one(self):
        name, shape = self.pick()
        kind = self.random.integers(8)
        if kind == 0:
            self.add(f"{self.random.choice(['sin', 'tanh', 'sigmoid', 'gelu', 'cos', 'softplus', 'silu', 'square'])}({name} * 0.7)", shape)
        elif kind in (1, 2):
            other, second = self.pick(lambda s: not s or not shape or s[-1:] == shape[-1:] and (len(s) < 2 or len(shape) < 2 or s == shape))
            self.add(f"{self.random.choice(['add', 'sub', 'mul', 'mul'])}({name}, {other})", np.broadcast_shapes(shape, second))
        elif kind == 3 and shape:
            self.add(f"{self.random.choice(['softmax', 'log_softmax', 'cumsum'])}({name} * 0.5)", shape)
        elif kind == 4 and shape:
            axis = int(self.random.integers(len(shape)))
            op = self.random.choice(["reduce_sum({}){{axes=[{}]}}", "reduce_mean({}){{axes=[{}]}}", "log_sum_exp({}){{axis={}}}"])
            self.add(op.format(name, axis), shape[:axis] + shape[axis + 1:])
        elif kind == 5 and len(shape) == 2:
            other, second = self.pick(lambda s: len(s) == 2)
            turn = second[0] != shape[1]
            if (second[1] if turn else second[0]) == shape[1]:
                self.add(f"matmul({name}, {other}){{tb={str(turn).lower()}}} * 0.5", (shape[0], second[0] if turn else second[1]))
        elif kind == 6 and len(shape) == 2:
            self.add(f"transpose({name})", shape[::-1])
        elif kind == 7 and shape and shape[0] > 1:
            self.add(f"concat(reverse({name}), slice({name}){{start={[0] * len(shape)}, stop={[1, *shape[1:]]}}}){{axis=0}}"
                     if shape[0] < 6 else f"slice({name}){{stop={[3, *shape[1:]]}}}", (shape[0] + 1 if shape[0] < 6 else 3, *shape[1:]))

    def text(self, count):
        while len(self.lines) < count:
            self.one()
        self.lines.append("  loss = " + " + ".join(f"reduce_mean({n})" for n, _ in self.values[-6:]))
        return "\n".join(self.lines)


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_agree_with_differences_along_directions(context, device, seed):
    module = graph_of(context, "a: f64[3, 4], b: f64[4], c: f64[4, 3], d: f64[]", Writer(seed).text(25), "loss")
    rng = np.random.default_rng(seed)
    inputs = {n: rng.uniform(-1, 1, s) for n, s in {"a": (3, 4), "b": (4,), "c": (4, 3), "d": ()}.items()}
    gradients(module, ["loss"], list("abcd"), zeros=True)
    found = dict(zip("abcd", run(module, device, inputs)[1:], strict=True))
    for _ in range(3):
        direction = {n: rng.normal(size=a.shape) for n, a in inputs.items()}
        got = sum(float((found[n] * direction[n]).sum()) for n in "abcd")
        wanted = along(module, device, inputs, direction, step=1e-5)
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)
