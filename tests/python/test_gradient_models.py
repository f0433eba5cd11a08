"""Gradients of whole graphs, against NumPy by hand and finite differences along random directions; how gradients of
one graph are put together; what is refused.

How to read it: small graphs are written as text; `gradients` adds an entry with gradients to the graph of such a text.
"""
import numpy as np
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper

import keel_abi
from keel_abi import KeelError

RNG = np.random.default_rng(3)


def graph_of(context, params, body, results="y"):
    return context.parse(f"keel 1\n\nfn @main({params}) {{\n{body}\n  return {results}\n}}\n\nentry main = @main\n")


def gradients(module, of, wrt, seeds=None, zeros=False, order=1):
    """Adds the entry "grad" to the module: the values `of`, then their gradients; -> those, by number."""
    source = module.graph_of("main")
    graph = source.copy("grad")
    ys, xs = [source.find(n) for n in of], [source.find(n) for n in wrt]
    found = graph.gradient(ys, xs, seeds, zeros)
    for _ in range(order - 1):
        found = graph.gradient(found, xs)
    for name, value in zip(of + [f"d_{n}" for n in wrt], ys + found):
        if value is not None:
            graph.result(name, value)
    module.entry("grad", graph)
    return found


def run(module, device, inputs, entry="grad"):
    plan = module.session(device, entry=entry).prepare(list(inputs))
    return [np.array(a) for a in plan.run(*inputs.values())]


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
    """The derivative of the entry's first result (a number) along a direction."""
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
    """A random graph of smooth ops in which values are used often; it knows the shape of each value."""

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


# ---- how gradients are put together
def test_several_ys_are_summed_with_their_seeds(context):
    module = graph_of(context, "x: f64[], s: f64[]", "  a = x * x\n  c = sin(x)", "a, c")
    graph = module.graph_of()
    a, c, x, s = (graph.find(n) for n in "acxs")
    both, first, seeded = (graph.gradient([a, c], [x], seeds)[0] for seeds in (None, [None, s], [s, None]))
    for name, value in zip(("both", "first", "seeded"), (both, first, seeded)):
        graph.result(name, value)
    got = run(module, "reference", {"x": np.array(0.5), "s": np.array(3.0)}, "main")[2:]
    np.testing.assert_allclose(got, [1 + np.cos(0.5), 1 + 3 * np.cos(0.5), 3 + np.cos(0.5)], rtol=1e-12)


def test_higher_orders_of_a_power(context):
    """x^5: 5 x^4, 20 x^3, 60 x^2, 120 x, 120."""
    x = np.array([0.5, 2.0, -1.0])
    for order, wanted in enumerate([5 * x**4, 20 * x**3, 60 * x**2, 120 * x, 0 * x + 120], 1):
        module = graph_of(context, "x: f64[3]", "  y = x * x * x * x * x")
        gradients(module, ["y"], ["x"], order=order)
        np.testing.assert_allclose(run(module, "reference", {"x": x})[1], wanted, rtol=1e-12)


def test_a_value_in_the_middle_is_an_x_too(context):
    module = graph_of(context, "x: f64[]", "  m = exp(x)\n  y = m * m + x")
    gradients(module, ["y"], ["m", "x", "y"])
    _, dm, dx, dy = run(module, "reference", {"x": np.array(0.3)})
    np.testing.assert_allclose([dm, dx, dy], [2 * np.exp(0.3), 2 * np.exp(0.6) + 1, 1], rtol=1e-12)


def test_what_is_unconnected_is_none_or_zeros(context):
    params = "x: f64[2], z: f32[3], i: i64[2], n: f64[2]"
    body = "  s = stop_gradient(x)\n  k = cast(i){to=f64}\n  j = cast(cast(n){to=i64}){to=f64}\n  y = s * k + j"
    module = graph_of(context, params, body)
    assert gradients(module, ["y"], ["x", "z", "i", "n"]) == [None] * 4
    module = graph_of(context, params, body)
    gradients(module, ["y"], ["x", "z", "i", "n"], zeros=True)
    inputs = {"x": np.ones(2), "z": np.ones(3, "f4"), "i": np.ones(2, "i8"), "n": np.ones(2)}
    got = run(module, "reference", inputs)[1:]
    assert [(g.dtype.str[1:], g.shape, g.any()) for g in got] == [("f8", (2,), 0), ("f4", (3,), 0), ("i8", (2,), 0), ("f8", (2,), 0)]


def test_one_part_of_a_split_leaves_zeros_in_the_others(context):
    module = graph_of(context, "x: f64[5]", "  a, b, c = split(x){sizes=[1, 2, 2]}\n  y = b * 3")
    gradients(module, ["y"], ["x"])
    np.testing.assert_array_equal(run(module, "reference", {"x": np.ones(5)})[1], [0, 3, 3, 0, 0])


def test_equals_share_what_a_maximum_gets(context):
    for op in ("reduce_max", "reduce_min"):
        module = graph_of(context, "x: f64[4]", f"  y = {op}(x)")
        gradients(module, ["y"], ["x"])
        np.testing.assert_array_equal(run(module, "reference", {"x": np.full(4, 2.0)})[1], [0.25] * 4)


def test_equals_share_what_a_place_gets(context):
    """Place 0: x and two updates are the greatest; place 1: x alone; place 2: nothing is written."""
    for mode, sign in [("max", 1), ("min", -1)]:
        module = graph_of(context, "x: f64[3], i: i64[4, 1], u: f64[4]", f"  y = scatter_nd(x, i, u){{mode={mode}}}")
        gradients(module, ["y"], ["x", "u"])
        inputs = {"x": sign * np.array([2.0, 3, 1]), "i": np.array([[0], [0], [0], [1]]), "u": sign * np.array([2.0, 1, 2, 2])}
        _, dx, du = run(module, "reference", inputs)
        np.testing.assert_allclose(dx, [1 / 3, 1, 1], rtol=1e-15)
        np.testing.assert_allclose(du, [1 / 3, 0, 1 / 3, 0], rtol=1e-15)


def test_powers_with_zeros(context):
    module = graph_of(context, "a: f64[5], b: f64[5]", "  y = pow(a, b)")
    gradients(module, ["y"], ["a", "b"])
    _, da, db = run(module, "reference", {"a": np.array([0, 0, -2, 2, 0.0]), "b": np.array([0, 2, 3, 0, 1.0])})
    np.testing.assert_array_equal(da, [0, 0, 12, 0, 1])
    np.testing.assert_array_equal(db[[0, 1, 3, 4]], [0, 0, np.log(2), 0])


def test_last_writer_of_a_place_gets_its_gradient(context):
    module = graph_of(context, "x: f64[3], i: i64[3, 1], u: f64[3]", "  y = scatter_nd(x, i, u)")
    gradients(module, ["y"], ["x", "u"])
    _, dx, du = run(module, "reference", {"x": np.zeros(3), "i": np.array([[1], [1], [0]]), "u": np.ones(3)})
    assert dx.tolist() == [0, 0, 1] and du.tolist() == [0, 1, 1]


def test_a_long_chain_takes_nodes_in_proportion(context):
    def nodes(length):
        module = graph_of(context, "x: f64[], w: f64[]", "  h0 = x * w\n" + "\n".join(
            f"  h{i + 1} = tanh(h{i} * w) + x" for i in range(length)), f"h{length}")
        gradients(module, [f"h{length}"], ["w", "x"])
        return sum(g["nodes"] for g in module.info()["graphs"] if g["name"] == "grad"), module
    short, _ = nodes(500)
    long, module = nodes(5000)
    assert long < 10.1 * short
    x, w = 0.1, 0.2
    h, dw = x * w, x
    for _ in range(5000):
        t = np.tanh(h * w)
        h, dw = t + x, (1 - t * t) * (dw * w + h)
    got = run(module, "reference", {"x": np.array(x), "w": np.array(w)})
    np.testing.assert_allclose([got[0], got[1]], [h, dw], rtol=1e-9)


def test_what_no_x_reaches_is_not_differentiated(context):
    module = graph_of(context, "x: f64[], z: f64[]", "  a = exp(exp(exp(z)))\n  y = a * x")
    before = module.info()
    gradients(module, ["y"], ["x"])
    counts = {g["name"]: g["nodes"] for g in module.info()["graphs"]}
    assert counts["grad"] <= counts["main"] + 1, before


CALL = """keel 1

fn @inner(x: f64[3], w: f64[3]) -> f64[3] {
  h = sin(x * w) : f64[3]
  return h
}

fn @main(x: f64[3], w: f64[3]) -> f64[3] {
  c = call(x, w){body=@inner} : f64[3]
  y = mul(c, x) : f64[3]
  return y
}

entry main = @main
"""


def test_gradients_go_through_calls(context, device):
    module = context.parse(CALL)
    gradients(module, ["y"], ["x", "w"])
    x, w = RNG.uniform(-1, 1, (2, 3))
    y, dx, dw = run(module, device, {"x": x, "w": w})
    np.testing.assert_allclose(y, np.sin(x * w) * x, rtol=1e-12)
    np.testing.assert_allclose(dx, np.sin(x * w) + np.cos(x * w) * w * x, rtol=1e-12)
    np.testing.assert_allclose(dw, np.cos(x * w) * x * x, rtol=1e-12)


def test_gradients_run_where_their_nodes_want_to(context):
    text = 'keel 1\n\nfn @main(x: f64[]) {\n  y = sin(x)@"cpu:0"\n  return y\n}\n\nentry main = @main\n'
    module = context.parse(text)
    gradients(module, ["y"], ["x"])
    grad = module.to_text().split("fn @grad")[1]
    assert grad.count('@"cpu:0"') >= 2, grad


# ---- what is refused
def refused(call, code, *words):
    with pytest.raises(KeelError) as caught:
        call()
    assert caught.value.code == code
    for word in words:
        assert word in str(caught.value), caught.value
    return caught.value


def test_only_floats_are_differentiated(context):
    module = graph_of(context, "x: f64[2], i: i64[2]", "  y = i + 1\n  z = x > 0.0", "y, z")
    g = module.graph_of()
    x, y, z = (g.find(n) for n in "xyz")
    refused(lambda: g.gradient([y], [x]), "INVALID", "'y' is i64[2]", "only floats")
    refused(lambda: g.gradient([z], [x]), "INVALID", "'z' is bool[2]")


def test_unknown_values_are_refused(context):
    g = graph_of(context, "x: f64[2]", "  y = exp(x)").graph_of()
    x, y = g.find("x"), g.find("y")
    refused(lambda: g.gradient([99], [x]), "NOT_FOUND", "value 99", "'main'")
    refused(lambda: g.gradient([y], [99]), "NOT_FOUND", "value 99")
    refused(lambda: g.gradient([y], [x], [99]), "NOT_FOUND", "seed", "value 99")
    refused(lambda: g.find("Y"), "NOT_FOUND", "Y")


def test_seeds_of_another_type_are_refused(context):
    g = graph_of(context, "x: f64[2], s: f64[3], f: f32[2]", "  y = exp(x)").graph_of()
    for name, kind in [("s", "f64[3]"), ("f", "f32[2]")]:
        refused(lambda: g.gradient([g.find("y")], [g.find("x")], [g.find(name)]), "INVALID", f"'{name}' is {kind}", "'y' is f64[2]")


def test_unknown_flags_are_refused(context):
    g = graph_of(context, "x: f64[2]", "  y = exp(x)").graph_of()
    refused(lambda: g.gradient([g.find("y")], [g.find("x")], zeros=6), "INVALID", "flags 6")


FOREIGN = """opset foreign 1

op foreign.twice since 1  in x: T[P..]   out y: T[P..]   type T: float
op foreign.soft since 1  in x: T[P..]   out y: T[P..]   type T: float   body { return log(1 + exp(x)) }
op foreign.wrong since 1  in x: T[P..]   out y: T[P..]   type T: float   vjp (dy) { return reshape(dy){to=[-1]} }
op foreign.both since 1  in x: T[P..]   out a: T[P..], b: T[P..]   type T: float   body { return sin(x), x * 3 }
  vjp (da, db) {
    whole = cos(x) * da + 3 * db
    return given(da) ? (given(db) ? whole : cos(x) * da) : fill(cast(3){to=T}){dims=dims(db)} * db }
op foreign.loop since 1  in x: T[P..]   out y: T[P..]   type T: float   body { return foreign.loop(x) }
"""


@pytest.fixture(scope="module")
def foreign():
    context = keel_abi.Context()
    context.add_ops("foreign", FOREIGN)
    return context


def foreign_graph(context, op):
    module = graph_of(context, "x: f64[2, 3]", f"  a = sin(x)\n  b = foreign.{op}(a)\n  y = b * 2.0")
    return module, module.graph_of()


def test_an_op_without_a_rule_is_named_and_the_graph_stays(foreign):
    module, g = foreign_graph(foreign, "twice")
    before = module.to_text()
    error = refused(lambda: g.gradient([g.find("y")], [g.find("x")]), "NOT_FOUND", "foreign.twice", "no gradient rule")
    assert (error.op, error.node) == ("foreign.twice", "b") and "stop_gradient" in error.hint
    assert module.to_text() == before
    assert g.gradient([g.find("y")], [g.find("b")]) != [None]  # it does not lie between


def test_a_body_serves_where_there_is_no_rule(foreign):
    module, g = foreign_graph(foreign, "soft")
    gradients(module, ["y"], ["x"])
    x = RNG.uniform(-1, 1, (2, 3))
    got = run(module, "reference", {"x": x})[1]
    np.testing.assert_allclose(got, 2 * np.cos(x) / (1 + np.exp(-np.sin(x))), rtol=1e-12)


@pytest.mark.parametrize("y, wanted", [("a * 2.0", lambda x: 2 * np.cos(x)), ("b * 2.0", lambda x: 6 + 0 * x),
                                       ("a + b * 2.0", lambda x: np.cos(x) + 6)])
def test_a_rule_may_ask_which_results_were_used(foreign, y, wanted):
    module = graph_of(foreign, "x: f64[2, 3]", f"  a, b = foreign.both(x)\n  y = {y}")
    gradients(module, ["y"], ["x"])
    assert "f64(0.0)" not in module.to_text()  # nobody made zeros for the other
    x = RNG.uniform(-1, 1, (2, 3))
    np.testing.assert_allclose(run(module, "reference", {"x": x})[1], wanted(x), rtol=1e-12)


@pytest.mark.parametrize("op, code", [("wrong", "INTERNAL"), ("loop", "OOM")])
def test_wrong_rules_end_in_an_error(foreign, op, code):
    module, g = foreign_graph(foreign, op)
    before = module.to_text()
    refused(lambda: g.gradient([g.find("y")], [g.find("x")]), code, f"foreign.{op}")
    assert module.to_text() == before


def test_the_catalogue_says_what_rules_read(context):
    ops = {op["name"]: op for op in context.report("ops")}
    reads = {name: ops[name]["vjp_reads"] for name in
             ("add", "mul", "div", "exp", "relu", "softmax", "gather", "conv", "slice", "matmul", "select", "concat", "top_k", "max_pool", "pad")}
    assert reads == {
        "add": {"a": [], "b": []}, "mul": {"a": ["b"], "b": ["a"]}, "div": {"a": ["b"], "b": ["b", "c"]}, "exp": {"x": ["y"]},
        "relu": {"x": ["y"]}, "softmax": {"x": ["y"]}, "gather": {"x": ["i"], "i": []}, "conv": {"x": ["w"], "w": ["x"]},
        "slice": {"x": []}, "matmul": {"a": ["b"], "b": ["a"]}, "select": {"p": [], "a": ["p"], "b": ["p"]}, "concat": {"x": []},
        "top_k": {"x": ["i"]}, "max_pool": {"x": ["x"]}, "pad": {"x": [], "v": []}}
