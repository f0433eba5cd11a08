"""The gradient of each op, at first and second order, against central finite differences in float64; and the same in float32, and
with symbolic sizes.

Start with `differentiate`, which builds the graph of one op, its gradients and theirs; the loss is the sum of the results times
random seeds. The list of ops comes from the catalogue: an op without a case fails.
"""
import numpy as np
import pytest
from gradient_cases import CASES, Case
from host_ops import OF_MATRICES

import keel_abi

STEP = 1e-5
PICKED = [(op, case) for op, cases in CASES.items() for case in cases]


def is_float(array):
    return array is not None and np.asarray(array).dtype.kind == "f"


class Gradients:
    """Graph "main": operands x*, results y*, seeds r* and s*, gradients d* of <r, y> and h* of <s, d>."""

    def __init__(self, context, op, case, dims=lambda module, shape: shape, dtype=None):
        self.module, self.op = context.module(), op
        self.graph = g = self.module.graph("main")
        self.inputs, xs = {}, []
        rng = np.random.default_rng(5)

        def param(name, array):
            array = np.asarray(array)
            self.inputs[name] = array
            return g.param(name, array.dtype, dims(self.module, array.shape))

        def seeds(letter, values):
            made = []
            for v in values:
                kind, shape = g.type(v)
                name = f"{letter}{len(made)}"
                if -1 in shape:  # symbolic: the seed is filled to the value's own dims
                    zeros = g.node("mul", g.node("stop_gradient", v), g.constant(np.zeros((), kind)))
                    made.append(g.node("add", zeros, g.constant(np.ones((), kind))))
                else:
                    made.append(param(name, rng.uniform(-1, 1, shape).astype(kind)))
            return made

        operands = [o.astype(dtype) if dtype and is_float(o) else o for o in map(np.asarray, case.operands)]
        xs = [param(f"x{i}", o) for i, o in enumerate(operands)]
        results = g.node(op, *xs, n_out=case.results, **case.attrs)
        results = results if isinstance(results, list) else [results]
        if op in ("top_k",):
            results = results[:1]
        self.ys = [y for y in results if g.type(y)[0].kind == "f"]
        self.xs = [x for x, o in zip(xs, operands) if is_float(o)]
        self.names = [f"x{i}" for i, o in enumerate(operands) if is_float(o)]
        self.outputs = {}
        self.add("y", self.ys)
        if not self.ys:
            return
        self.r = seeds("r", self.ys)
        self.d = g.gradient(self.ys, self.xs, self.r)
        self.add("d", self.d)
        known = [d for d in self.d if d is not None]
        self.h = g.gradient(known, self.xs, seeds("s", known)) if known else []
        self.add("h", self.h)

    def add(self, letter, values):
        self.outputs[letter] = [None if v is None else f"{letter}{i}" for i, v in enumerate(values)]
        for name, value in zip(self.outputs[letter], values):
            if value is not None:
                self.graph.result(name, value)

    def prepare(self, device):
        if not self.module.info()["entries"]:
            self.module.entry("main", self.graph)
        session = self.module.session(device, **{"fallback": "cpu"} if self.op in OF_MATRICES and device not in ("cpu", "reference") else {})
        self.plans = {}
        for letter, fetches in self.outputs.items():
            wanted = [f for f in fetches if f]
            if wanted:
                self.plans[letter] = session.prepare(list(self.inputs), wanted)

    def run(self, letter, **changed):
        """The results of that letter, None where missing."""
        if letter not in self.plans:
            return [None] * len(self.outputs[letter])
        got = iter(self.plans[letter].run(*[changed.get(n, a) for n, a in self.inputs.items()]))
        return [np.array(next(got)) if f else None for f in self.outputs[letter]]

    def loss(self, letter, seeds, changed):
        got = [v for v in self.run(letter, **changed) if v is not None]
        return sum(float(np.sum(np.where(v == -np.inf, 0, v) * self.inputs[f"{seeds}{i}"])) for i, v in enumerate(got))

    def differences(self, letter, seeds, name):
        """Of the loss <seeds, letter> for each element of an input."""
        x = self.inputs[name]
        out = np.zeros(x.shape)
        for place in np.ndindex(x.shape):
            values = []
            for sign in (1, -1):
                moved = np.array(x)
                moved[place] += sign * STEP
                values.append(self.loss(letter, seeds, {name: moved}))
            out[place] = (values[0] - values[1]) / (2 * STEP)
        return out


def check(gradients, letter, seeds, of):
    """The gradients of that letter equal the gradients of <seeds, of>; a missing gradient means zero."""
    for name, got in zip(gradients.names, gradients.run(letter), strict=True):
        wanted = gradients.differences(of, seeds, name)
        if got is None:
            got = np.zeros(wanted.shape)
        assert got.dtype == np.float64 and got.shape == wanted.shape, f"{letter} of {name}"
        np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=2e-7, err_msg=f"{letter} of {name}")
        if letter == "h" and not wanted.any():  # linear results have a second gradient of exact zeros
            assert not got.any(), f"{letter} of {name}"


@pytest.mark.parametrize("op, case", PICKED, ids=lambda v: str(v))
def test_rules_agree_with_finite_differences(context, device, op, case):
    if op == "cast" and case.attrs["to"] is not np.float64:
        pytest.skip("a result in fewer digits has no finite differences: see test_cast")
    gradients = Gradients(context, op, case)
    gradients.prepare(device)
    check(gradients, "d", "r", "y")
    if gradients.outputs.get("h"):
        check(gradients, "h", "s", "d")


@pytest.mark.parametrize("op", ["conv", "conv_grad_x", "conv_grad_w"])
def test_convolutions_go_back_without_a_detour(context, op):
    """A transposed convolution has exactly the dims of the original operand: nothing is cut off."""
    for case in CASES[op]:
        text = Gradients(context, op, case).module.to_text()
        assert " conv(" in text and "slice(" not in text, (str(case), text)


def catalogue(context):
    return {op["name"]: op for op in context.report("ops")}


def test_every_op_is_differentiable_and_checked_or_says_that_it_is_not(context, capsys):
    kinds = {name: op["vjp"] for name, op in catalogue(context).items() if "." not in name}
    missing = [n for n, kind in kinds.items() if kind == "missing"]
    assert missing == ["call", "cond", "scan", "switch", "while"]  # their bodies' ops have the rules
    smooth = {n for n, kind in kinds.items() if kind in ("rule", "body")}
    assert smooth - CASES.keys() == set() and CASES.keys() - smooth == set()
    with capsys.disabled():
        print(f" [{len(smooth)} ops, {len(PICKED)} cases] ", end="")


def shapes(context, op, case):
    """Dtypes of the operands and the results."""
    module = context.module()
    graph = module.graph("main")
    given = [graph.param(None, np.asarray(o).dtype, np.shape(o)) for o in case.operands]
    made = graph.node(op, *given, n_out=case.results, **case.attrs)
    return [np.shape(o) for o in case.operands], [tuple(graph.type(v)[1]) for v in (made if isinstance(made, list) else [made])]


def kinds(context, op, case):
    given, made = shapes(context, op, case)
    met = {"matmul": [s[:-2] for s in given], "broadcast_to": given + made, "sum_to": given + made}.get(op, given)
    every = given + made
    return {kind for kind, has in {
        "empty": any(0 in s for s in every), "size 1": any(1 in s for s in every), "broadcast": len(set(met)) > 1,
        "ordinary": any(every) and all(n > 1 for s in every for n in s)}.items() if has}


def test_each_op_has_ordinary_broadcast_empty_and_size_1_shapes(context):
    missing = {}
    for name, op in catalogue(context).items():
        if name not in CASES:
            continue
        wanted = {"ordinary", "empty", "size 1"}
        if name in ("broadcast_to", "sum_to") or any("bcast(" in r["pattern"] for r in op["results"]):
            wanted.add("broadcast")
        lacks = wanted.difference(*(kinds(context, name, case) for case in CASES[name]))
        if lacks:
            missing[name] = lacks
    assert missing == {}


# Piecewise linear: the first gradient is constant nearby.
FLAT = {
    "add", "sub", "mod", "rem", "maximum", "minimum", "neg", "abs", "sign", "floor", "ceil", "round", "relu", "leaky_relu", "clamp", "select",
    "cast", "identity", "fill", "reshape", "broadcast_to", "sum_to", "transpose", "concat", "split", "slice", "pad", "reverse", "trim", "unique", "tile", "gather",
    "scatter_add", "gather_elements", "gather_nd", "triangle", "linspace", "roll", "dynamic_slice", "dynamic_update_slice", "sort", "reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "top_k", "cumsum",
    "max_pool", "avg_pool", "random_uniform", "shuffle", "dft"}


@pytest.mark.parametrize("op", CASES)
def test_second_gradients_of_what_is_flat_are_none_or_zeros(context, op):
    bends = False
    for case in CASES[op]:
        gradients = Gradients(context, op, case)
        gradients.prepare("reference")
        seconds = [h for h in gradients.run("h") if h is not None and h.any()] if gradients.ys else []
        if op in FLAT or case.attrs.get("mode", "mul") != "mul":
            assert not seconds, str(case)
        bends |= bool(seconds)
    assert bends != (op in FLAT)


@pytest.mark.parametrize("to", [np.float64, np.float32, np.float16, np.int32, np.bool_])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)])
def test_cast(context, device, to, shape):
    """A cast to a float passes the gradient in its own dtype; a cast to another type blocks it."""
    gradients = Gradients(context, "cast", Case([np.linspace(-1.7, 1.9, int(np.prod(shape))).reshape(shape)], {"to": to}))
    if np.dtype(to).kind != "f":
        assert not gradients.ys
        return
    gradients.prepare(device)
    (d,) = gradients.run("d")
    np.testing.assert_array_equal(d, gradients.inputs["r0"].astype(np.float64))
    assert d.dtype == np.float64 and gradients.outputs["h"] == [None]


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_both_operands_get_the_gradient_of_a_nan(context, device, op):
    """As torch.maximum does; equal operands: the first one gets it."""
    nan, one = np.nan, np.ones(3)
    for x, y, dx, dy in [([nan, nan, nan], [1.0, nan, -np.inf], one, one), ([1.0, nan, 2.0], [nan, 1.0, nan], one, one),
                         ([2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [op == "maximum", op == "minimum", 1], [op == "minimum", op == "maximum", 0])]:
        gradients = Gradients(context, op, Case([np.array(x), np.array(y)]))
        gradients.prepare(device)
        seed = gradients.inputs["r0"]
        for got, wanted in zip(gradients.run("d"), [dx, dy], strict=True):
            np.testing.assert_array_equal(got, seed * wanted)


NONE = {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not",
    "bit_and", "bit_or", "bit_xor", "bit_not", "shift_left", "shift_right", "is_nan", "is_inf", "is_finite", "stop_gradient", "iota", "dim",
    "bit_cast", "slice_index", "nonzero", "argsort", "categorical", "one_hot", "eye", "random", "arg_max", "arg_min", "max_pool_index", "matmul_integer", "conv_integer",
    "non_max_suppression", "tree_ensemble",
    "read", "assign", "assign_add", "assign_sub", "print", "assert"}


def test_the_ops_without_a_gradient_are_these(context):
    assert {name for name, op in catalogue(context).items() if op["vjp"] == "none"} == NONE


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 2e-4), (np.float16, 0.1)], ids=["f32", "f16"])
@pytest.mark.parametrize("op", CASES)
def test_other_dtypes_give_what_float64_gives(context, device, op, dtype, rtol):
    for case in CASES[op]:
        if op in ("cast", "random_uniform") or any(is_float(o) and np.abs(o).max(initial=0) > 30 for o in case.operands):
            continue
        wide, narrow = Gradients(context, op, case), Gradients(context, op, case, dtype=dtype)
        for g in (wide, narrow):
            g.prepare(device)
        for letter in ("d", "h"):
            if letter == "h" and dtype is np.float16:
                continue
            for a, b in zip(wide.run(letter), narrow.run(letter), strict=True):
                assert (a is None) == (b is None)
                if a is None:
                    continue
                assert b.dtype == dtype and a.shape == b.shape
                scale = np.abs(a).max(initial=1)
                np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol * scale, err_msg=f"{case} {letter}")


def symbols(module, shape):
    return [module.dim(f"n{n}") if n > 1 else n for n in shape]


@pytest.mark.parametrize("op", CASES)
def test_sizes_may_be_symbols(context, op):
    """If the op accepts symbolic dims, its gradients do too, with the same values."""
    for case in CASES[op]:
        try:
            module = context.module()
            graph = module.graph("main")
            params = [graph.param(None, np.asarray(o).dtype, symbols(module, np.shape(o))) for o in case.operands]
            graph.node(op, *params, n_out=case.results, **case.attrs)
        except keel_abi.KeelError:
            continue
        gradients = Gradients(context, op, case, dims=symbols)
        gradients.prepare("reference")
        if "d" not in gradients.plans:
            continue
        assert all(d.shape == gradients.inputs[n].shape for n, d in zip(gradients.names, gradients.run("d")) if d is not None)
        check_ones(context, op, case, gradients)


def check_ones(context, op, case, gradients):
    """With seeds of ones: equal to the result without symbols."""
    plain = Gradients(context, op, case)
    plain.prepare("reference")
    for g in (plain, gradients):
        g.inputs = {n: np.ones_like(a) if n[0] in "rs" else a for n, a in g.inputs.items()}
    for letter in ("d", "h"):
        for a, b in zip(plain.run(letter), gradients.run(letter), strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9, err_msg=f"{case} {letter}")
