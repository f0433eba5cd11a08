"""Gradient of ai.onnx.preview.training: part of a model is differentiated. Oracle: central differences of that part in onnx.reference, in
f64, and formulas. Then refusals.
"""
from pathlib import Path

import numpy as np
import onnx.backend.test
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_cases import DEVICES, assert_refused, run_model

RNG = np.random.default_rng(3)
F64 = TensorProto.DOUBLE
SHAPES = {"x": [3, 4], "w": [4, 2], "b": [2], "e": [0, 2]}
FEEDS = {name: RNG.standard_normal(dims) for name, dims in SHAPES.items()}


def gradient(operands, results, xs, y, zs=None):
    names = {name: values for name, values in (("xs", xs), ("zs", zs)) if values}
    return helper.make_node("Gradient", operands, results, domain="ai.onnx.preview.training", y=y, **names)


def model_of(nodes, results, inputs=tuple(SHAPES), initializers=(), dtype=F64):
    def value(name, dims):
        return helper.make_tensor_value_info(name, dtype, dims)
    graph = helper.make_graph(nodes, "g", [value(name, SHAPES[name]) for name in inputs], [value(r, None) for r in results],
                              [numpy_helper.from_array(a, name) for name, a in initializers])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17),
                                                                 helper.make_opsetid("ai.onnx.preview.training", 1)])


def differences(nodes, y, name, feeds, step=1e-6):
    """d(sum of y) / d(name), by the reference's runs of the nodes; feeds may be values within the model."""
    made = {out for node in nodes for out in node.output}
    graph = helper.make_graph([n for n in nodes if not set(n.output) & set(feeds)], "g",
                              [helper.make_tensor_value_info(k, F64, v.shape) for k, v in feeds.items()],
                              [helper.make_tensor_value_info(y, F64, None)])
    assert y in made
    run = ReferenceEvaluator(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]))
    out = np.zeros_like(feeds[name])
    for at in np.ndindex(out.shape):
        moved = [{**feeds, name: feeds[name].copy()} for _ in range(2)]
        moved[0][name][at] += step
        moved[1][name][at] -= step
        out[at] = np.subtract(*[run.run(None, feed)[0].sum() for feed in moved]) / (2 * step)
    return out


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["test_gradient_of_add", "test_gradient_of_add_and_mul"])
def test_vectors_of_onnx(context, device, name):
    folder = Path(onnx.backend.test.__file__).parent / "data/simple" / name
    model, vectors = onnx.load(folder / "model.onnx"), folder / "test_data_set_0"
    inputs, expected = ([numpy_helper.to_array(onnx.load_tensor(vectors / f"{kind}_{k}.pb")) for k in range(len(values))]
                        for kind, values in (("input", model.graph.input), ("output", model.graph.output)))
    for got, want in zip(run_model(context, device, model, inputs), expected, strict=True):
        np.testing.assert_array_equal(got, want)


LAYER = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["a"]),
         helper.make_node("Tanh", ["a"], ["t"]), helper.make_node("Mul", ["t", "m"], ["y"]),
         helper.make_node("Exp", ["b"], ["other"])]


def run(context, device, nodes, results, feeds=FEEDS, **given):
    model = model_of(nodes, results, **given)
    return run_model(context, device, model, [feeds[i.name] for i in model.graph.input])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("y", ["y", "t", "m", "other"])
def test_of_a_layer(context, device, y):
    nodes = [*LAYER, gradient(["x", "w", "b"], ["dx", "dw", "db"], ["x", "w", "b"], y)]
    got = run(context, device, nodes, ["dx", "dw", "db", "y"])
    for name, dx in zip("xwb", got):  # zeros, where y does not depend on it
        np.testing.assert_allclose(dx, differences(LAYER, y, name, {k: FEEDS[k] for k in "xwb"}), rtol=1e-6, atol=1e-8)
    x, w, b = (FEEDS[k] for k in "xwb")
    np.testing.assert_allclose(got[3], np.tanh(x @ w + b) * (x @ w), rtol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_values_of_zs_are_held_and_operands_take_the_places_of_the_names(context, device):
    nodes = [*LAYER, helper.make_node("Neg", ["x"], ["n"]), gradient(["n", "t"], ["dx"], ["x"], "y", zs=["a"])]
    feeds = {"x": -FEEDS["x"], "a": np.tanh(FEEDS["x"] @ FEEDS["w"] + FEEDS["b"]), "w": FEEDS["w"], "b": FEEDS["b"]}
    expected = differences(LAYER, "y", "x", feeds)
    np.testing.assert_allclose(run(context, device, nodes, ["dx"])[0], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("device", DEVICES)
def test_a_gradient_of_a_gradient(context, device):
    nodes = [helper.make_node("Mul", ["b", "b"], ["s"]), helper.make_node("Mul", ["s", "b"], ["y"]),
             gradient(["b"], ["d1"], ["b"], "y"), gradient(["b"], ["d2"], ["b"], "d1")]
    first, second = run(context, device, nodes, ["d1", "d2"], inputs=["b"])
    np.testing.assert_allclose(first, 3 * FEEDS["b"] ** 2, rtol=1e-12)
    np.testing.assert_allclose(second, 6 * FEEDS["b"], rtol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_with_respect_to_weights_and_of_nothing(context, device):
    nodes = [*LAYER[:4], gradient(["x", "w"], ["dx", "dw"], ["x", "w"], "y"), helper.make_node("Sin", ["e"], ["s"]),
             gradient(["e"], ["de"], ["e"], "s")]
    weights = [(name, FEEDS[name]) for name in "wb"]
    _, dw, de = run(context, device, nodes, ["dx", "dw", "de"], inputs=["x", "e"], initializers=weights)
    np.testing.assert_allclose(dw, differences(LAYER, "y", "w", {k: FEEDS[k] for k in "xwb"}), rtol=1e-6, atol=1e-8)
    assert de.shape == (0, 2)


@pytest.mark.parametrize("device", DEVICES)
def test_infinities_and_nan_of_the_formula(context, device):
    b = np.array([np.inf, np.nan])
    nodes = [helper.make_node("Mul", ["b", "b"], ["y"]), gradient(["b"], ["d"], ["b"], "y")]
    np.testing.assert_array_equal(run(context, device, nodes, ["d"], {**FEEDS, "b": b}, inputs=["b"])[0], b + b)


@pytest.mark.parametrize("device", DEVICES)
def test_through_branches_and_within_them(context, device):
    def branch(node, *more):
        last = more[-1] if more else node
        return helper.make_graph([node, *more], "g", [], [helper.make_tensor_value_info(last.output[0], F64, [2])])
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branch(helper.make_node("Sin", ["b"], ["then"])),
                              else_branch=branch(helper.make_node("Exp", ["b"], ["else"])))
    inner = helper.make_node("If", ["c"], ["i"], then_branch=branch(helper.make_node("Sin", ["b"], ["s"]), gradient(["b"], ["cos"], ["b"], "s")),
                             else_branch=branch(helper.make_node("Exp", ["b"], ["exp"])))
    nodes = [helper.make_node("ReduceSum", ["b"], ["sum"], keepdims=0), helper.make_node("Greater", ["sum", "zero"], ["c"]),
             choice, gradient(["b"], ["d"], ["b"], "y"), inner]
    for sign in (1, -1):
        b = sign * np.abs(FEEDS["b"])
        got = run(context, device, nodes, ["d", "i"], {"b": b}, inputs=["b"], initializers=[("zero", np.array(0.0))])
        for each in got:
            np.testing.assert_allclose(each, np.cos(b) if sign > 0 else np.exp(b), rtol=1e-9)


def of(y="y", xs=("x",), operands=("x",), nodes=LAYER, **more):
    return [*nodes, gradient(list(operands), [f"d{k}" for k in range(len(xs))], list(xs), y, **more)]


@pytest.mark.parametrize("nodes, code, words", [
    (of(operands=["x", "w"]), "INVALID", ["Gradient", "2 operands; expected 1"]), (of(zs=["w"]), "INVALID", ["1 operands; expected 2"]),
    (of(xs=["x", "x"], operands=["x", "x"]), "INVALID", ["Gradient", "name a value twice"]),
    ([*LAYER, gradient(["x"], ["d0"], [], "y")], "INVALID", ["xs names no value"]), (of(y=""), "INVALID", ["attribute y is missing"]),
    (of(y="none"), "INVALID", ["y is 'none'", "no earlier node"]),
    ([gradient(["x"], ["d0"], ["x"], "y"), *LAYER], "INVALID", ["y is 'y'", "no earlier node"]),
    (of("i", nodes=[helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64)]), "INVALID", ["'d0/i' is i64", "only floats have gradients"]),
    (of("r", nodes=[helper.make_node("RandomNormalLike", ["x"], ["n"]), helper.make_node("Mul", ["n", "x"], ["r"])]), "UNIMPLEMENTED",
     ["'r' depends on random numbers"]),
])
def test_refusals(context, nodes, code, words):
    feeds = ["x", "w", "b"]
    assert_refused(context, model_of(nodes, ["d0"], inputs=feeds), [FEEDS[k] for k in feeds], code, words)
