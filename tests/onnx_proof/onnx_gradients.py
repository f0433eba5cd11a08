"""Gradients of imported graphs in f64 against central finite differences of the graph itself.

The loss is the sum of all float results times random numbers. An element is compared where the loss is smooth: the one-sided
differences agree with each other, and with differences of a larger step.
"""
import numpy as np
from keel_abi import KeelError
from onnx_checks import imported
from onnx_draw import DOUBLE, Draw, Skip, all_rows, node_of, swept
from onnx_oracles import Oracles

STEP = 1e-5
# Differentiable, with an f64 row.
OPS = ("Add Sub Mul Div Neg Abs Sqrt Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Erf Sigmoid Tanh Softplus Softsign HardSwish "
       "Mish Reciprocal Relu LeakyRelu Elu ThresholdedRelu Selu HardSigmoid Shrink Gelu Swish Softmax LogSoftmax Pow PRelu Max Min Sum Mean Where "
       "Clip Reshape Flatten Squeeze Unsqueeze Transpose Concat Split Expand Tile DepthToSpace SpaceToDepth Slice Pad CenterCropPad Trilu Gather "
       "GatherElements GatherND ScatterElements ScatterND ReduceSum ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceMean ReduceMax ReduceMin "
       "ReduceLogSum ReduceLogSumExp TopK CumSum MatMul Gemm Einsum Det Conv MaxPool BatchNormalization LayerNormalization RMSNormalization "
       "InstanceNormalization GroupNormalization LpNormalization Resize GridSample DFT Attention RotaryEmbedding If Loop Scan").split()


def at_an_end(node, values, made):
    """Where the derivative is infinite, or a norm is 0."""
    x = values[node.input[0]]
    one = node.op_type in ("Asin", "Acos", "Acosh", "Atanh") and (np.abs(np.abs(x) - 1) < 1e-3).any()
    zero = node.op_type in ("Sqrt", "ReduceL2", "LpNormalization") and (np.abs(made[0]) < 1e-3).any()
    return bool(one or zero)


def drawn(seed):
    """Like onnx_draw.graph, of differentiable nodes of f64 and without special numbers."""
    draw, oracles = Draw(seed, 22), Oracles()
    draw.specials = False
    rows = [row for row in all_rows() if row.op in OPS and DOUBLE in row.dtypes and not row.domain and row.since <= draw.opset]
    wanted = draw.int(1, 4)
    for _ in range(4 * wanted):
        before = dict(draw.values), dict(draw.graph.inputs), dict(draw.graph.constants)
        made = None
        try:
            row = draw.pick(rows)
            node = node_of(draw, type(row)(row.op, [DOUBLE], row.make, row.since, row.results))
            made = oracles.settle(draw.graph, node, draw.values)
        except Skip:
            pass
        if made is None or at_an_end(node, draw.values, made) or not all(np.isfinite(y).all() and np.abs(y).max(initial=0) < 1e3 for y in made if y.dtype == DOUBLE):
            draw.values, draw.graph.inputs, draw.graph.constants = before
            oracles.others.clear()
            continue
        draw.graph.nodes.append(node)
        draw.values.update({name: y for name, y in zip(node.output, made) if name})
        if len(draw.graph.nodes) == wanted or oracles.others:
            break
    swept(draw.graph)
    return draw


class Differentiated:
    """The graph on reference, with its loss and the gradients of the loss by the inputs of f64."""

    def __init__(self, context, graph, random):
        self.module = imported(context, graph)
        entry = self.module.info()["entries"][0]
        g = self.module.graph_of()
        self.inputs = {p["name"]: graph.inputs[p["name"]] for p in entry["params"]}
        ys = [g.find(r["name"]) for r in entry["results"]]
        ys = [y for y in dict.fromkeys(ys) if g.type(y)[0] == DOUBLE]
        self.shapes = [g.type(y)[1] for y in ys]
        self.xs = [name for name, x in self.inputs.items() if x.dtype == DOUBLE and x.size]
        self.feeds, self.seeds = {}, []
        for k, shape in enumerate(self.shapes):
            self.feeds[f"seed {k}"] = random.uniform(-1, 1, shape)
            self.seeds.append(g.param(f"seed {k}", DOUBLE, shape))
        found = g.gradient(ys, [g.find(x) for x in self.xs], self.seeds, zeros=True)
        terms = [g.node("reduce_sum", g.node("mul", y, s)) for y, s in zip(ys, self.seeds)]
        loss = terms[0]
        for term in terms[1:]:
            loss = g.node("add", loss, term)
        g.result("the loss", loss)
        for name, d in zip(self.xs, found):
            g.result(f"gradient of {name}", d)
        self.session = self.module.session("reference")

    def run(self, inputs, fetches):
        return self.session.run(self.feeds | inputs, fetches)

    def loss(self, name, array):
        return float(self.run(self.inputs | {name: array}, ["the loss"])[0])


def moved(array, at, by):
    array = array.copy()
    array[at] += by
    return array


def derivative(graph, name, at):
    """None where the loss has a corner."""
    x = graph.inputs[name]
    value = {k: graph.loss(name, moved(x, at, k * STEP)) for k in (-2, -1, 0, 1, 2)}
    up, down = (value[1] - value[0]) / STEP, (value[0] - value[-1]) / STEP
    near, far = (value[1] - value[-1]) / (2 * STEP), (value[2] - value[-2]) / (4 * STEP)
    size = max(1, abs(near))
    return near if np.isfinite(near) and abs(up - down) < 1e-2 * size and abs(near - far) < 1e-5 * size else None


def failure(context, seed, most=6):
    """The fault or "", and how many derivatives were compared: at most `most` of each input."""
    draw = drawn(seed)
    if not any(x.dtype == DOUBLE and x.size for x in draw.graph.inputs.values()):
        return "", 0
    random, count = np.random.default_rng(seed), 0
    try:
        graph = Differentiated(context, draw.graph, random)
        if not graph.shapes or not graph.xs:
            return "", 0
        gradients = dict(zip(graph.xs, graph.run(graph.inputs, [f"gradient of {x}" for x in graph.xs])))
    except KeelError as error:
        return f"{[n.op_type for n in draw.graph.nodes]}: {error}", 0
    for name, gradient in gradients.items():
        for at in random.permutation([*np.ndindex(gradient.shape)])[:most]:
            want = derivative(graph, name, tuple(at))
            if want is None:
                continue
            count += 1
            if not abs(gradient[tuple(at)] - want) <= 1e-4 * max(1, abs(want)):
                return f"{[n.op_type for n in draw.graph.nodes]}: d/d{name}{at.tolist()} is {gradient[tuple(at)]}, differences give {want}", count
    return "", count
