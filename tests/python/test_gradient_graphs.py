"""Composition of gradients in one graph, and errors; see gradient_graphs.py."""
import numpy as np
import pytest

import keel_abi
from gradient_graphs import gradients, graph_of, run
from keel_abi import KeelError

RNG = np.random.default_rng(3)


# ---- composition
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
    """Index 0: x and two updates tie for the maximum; index 1: x alone; index 2: no update."""
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


# ---- errors
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
    refused(lambda: g.gradient([g.find("y")], [g.find("x")], zeros=6), "INVALID", "'flags' is 6")


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
    assert g.gradient([g.find("y")], [g.find("b")]) != [None]  # it is not on the path


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
    assert "f64(0.0)" not in module.to_text()  # no zeros are created for the other
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
