"""Ops in Python: results (NumPy is the oracle), weak literals, operators, arguments, errors, docstrings."""
import inspect
import json
import operator
import threading
import time

import keel
import numpy as np
import pytest
from keel import elsewhere

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(3, 4)).astype("f4"), RNG.uniform(.5, 2, size=(4,)).astype("f4")
I, J = RNG.integers(-9, 9, (3, 4)).astype("i4"), RNG.integers(1, 5, (4,)).astype("i4")


@pytest.mark.parametrize("name", ["add", "sub", "mul", "mod", "lt", "le", "gt", "ge", "eq", "ne", "floordiv"])
@pytest.mark.parametrize("a, b", [(X, Y), (I, J)])
def test_operators_agree_with_numpy(device, name, a, b):
    op = getattr(operator, name)
    for x, y in ((keel.array(a), keel.array(b)), (keel.array(a), b), (a, keel.array(b))):
        made = op(x, y)
        assert type(made) is keel.Tensor
        np.testing.assert_allclose(made, op(a, b), rtol=1e-5)


@pytest.mark.parametrize("way", [lambda f: f, keel.function])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_division_of_integers_is_true_division_as_numpys(dtype, way):
    a, b = np.array([7, 100, 1], dtype), np.array([2, 3, 100], dtype)
    x, y = keel.array(a), keel.array(b)
    for f, want in ((lambda x, y: x / y, a / b), (lambda x, y: x / 255, a / 255), (lambda x, y: 255 / x, 255 / a),
                    (lambda x, y: x / b, a / b), (lambda x, y: a / y, a / b), (lambda x, y: x / [1000, 2, 3], a / [1000, 2, 3])):
        made = way(f)(x, y)
        assert made.dtype == keel.f32
        np.testing.assert_allclose(made, want, rtol=1e-6)
    assert way(lambda x: x // 2)(x).dtype == x.dtype and keel.div(x, y).tolist() == [3, 33, 0]
    for wrong in (lambda x, y: x / 0.5, lambda x, y: x / y.astype("f4"), lambda x, y: x / y.astype("bool")):
        with pytest.raises(keel.DTypeError):  # like every op with another dtype
            way(wrong)(x, y)
    with pytest.raises(keel.DTypeError):
        x / keel.array(b.astype("i4" if dtype != "i4" else "i8"))


def test_division_by_zero_is_infinite_and_whole_division_fails():
    assert (keel.array([1, -1]) / 0).tolist() == [np.inf, -np.inf] and (keel.array([-7, 7]) // 2).tolist() == [-4, 3]
    assert (keel.array([-7., 7.]) / 2).tolist() == [-3.5, 3.5]
    x = keel.array([7, 2])
    x /= 2
    assert x.tolist() == [3.5, 1]


@pytest.mark.parametrize("way", [lambda f: f, keel.function])
def test_products_of_vectors_of_any_kind(way):
    m, v = np.arange(6., dtype="f4").reshape(3, 2), np.array([1., 2., 3.], "f4")
    kinds = lambda a: (keel.array(a), keel.Variable(a), a, a.tolist())
    for left in kinds(v):
        for right in kinds(m) + kinds(v):
            if any(isinstance(x, (keel.Tensor, keel.Variable)) for x in (left, right)):
                np.testing.assert_allclose(way(lambda: left @ right)(), v @ np.asarray(right, "f4"))
    for left in kinds(m.T):
        for right in kinds(v):
            if any(isinstance(x, (keel.Tensor, keel.Variable)) for x in (left, right)):
                np.testing.assert_allclose(way(lambda: left @ right)(), m.T @ v)
    with pytest.raises(keel.ShapeError):
        keel.Variable(v) @ keel.array(m.T)
    with pytest.raises(TypeError):
        keel.array(v) @ "x"


ASSIGNING = ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"]


@pytest.mark.parametrize("way", [lambda f: f, keel.function])
@pytest.mark.parametrize("name", ASSIGNING)
def test_assigning_operators_write_variables(name, way):
    op = getattr(operator, name)
    for delta in (2., [3., 4.], np.array([3., 4.], "f4"), keel.array([3., 4.]), keel.Variable([3., 4.]), np.float64(2)):
        want = op(np.array([5., 7.], "f4"), np.asarray(delta, "f4"))
        holder = {"v": keel.Variable([5., 7.])}
        v = holder["v"]

        def f():
            holder["v"] = op(holder["v"], delta)
            return holder["v"] * 1
        np.testing.assert_allclose(way(f)(), want, rtol=1e-6)
        assert holder["v"] is v
        np.testing.assert_allclose(v.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("way", [lambda f: f, keel.function])
def test_assigning_operators_in_closures_methods_branches_and_loops(way):
    class Model:
        def __init__(self):
            self.w, self.steps = keel.Variable([1., 2.]), keel.Variable(0)

        def step(self, x):
            self.w -= x * 0.5
            self.steps += 1
            if keel.reduce_max(self.w) > 0:
                self.w *= 2
            for _ in range(3):
                self.steps += 2
            return self.w + 0
    model = Model()
    w, steps = model.w, model.steps
    step = way(model.step)
    assert step(keel.array([2., 2.])).tolist() == [0, 2] and step(keel.array([2., 6.])).tolist() == [-1, -1]
    assert model.w is w and model.steps is steps and steps.item() == 14 and w.tolist() == [-1, -1]
    m, bits = keel.Variable(np.eye(2, dtype="f4")), keel.Variable(6, dtype="u32")

    def closure(n):
        nonlocal m, bits
        m @= [[0., 1.], [1., 0.]]
        bits |= 1
        bits <<= 1
        while n > 0:
            bits += n
            n = n - 1
        return m + 0
    kept = m, bits
    assert way(closure)(keel.array(2, "u32")).tolist() == [[0, 1], [1, 0]] and (m, bits) == kept and bits.item() == 17
    with pytest.raises(keel.DTypeError):
        bits += 0.5
    with pytest.raises(keel.DTypeError):
        bits /= 2
    with pytest.raises(keel.ShapeError):
        m += keel.zeros((3, 2, 2))


def test_other_operators():
    x, i, b = keel.array(X), keel.array(I), keel.array(X > 0)
    np.testing.assert_allclose(x @ keel.array(X.T), X @ X.T, rtol=1e-4)
    np.testing.assert_allclose(X @ keel.array(X.T), X @ X.T, rtol=1e-4)
    np.testing.assert_allclose(abs(-x ** 2), X ** 2, rtol=1e-5)
    np.testing.assert_array_equal((~b & True) | (b ^ b), ~(X > 0))
    np.testing.assert_array_equal((i & 6) | (~i ^ 1), (I & 6) | (~I ^ 1))
    assert (keel.u32([1, 2]) << 3 >> 1).tolist() == [4, 8] and (2 ** keel.array([1., 3.])).tolist() == [2, 8]
    assert (+x) is x


@pytest.mark.parametrize("a, b", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((4, 2, 3), (3,)), ((3,), (4, 3, 2)), ((0, 3), (3,))])
def test_products_with_vectors_are_those_of_numpy(device, a, b):
    a, b = np.arange(np.prod(a), dtype="f4").reshape(a) - 2, np.arange(np.prod(b), dtype="f4").reshape(b) + 1
    x, y = keel.array(a), keel.array(b)
    for got in (x @ y, keel.function(lambda x, y: x @ y, any_after=1)(x, y)):
        assert got.shape == (a @ b).shape
        np.testing.assert_array_equal(got, a @ b)
    gradient = keel.grad(lambda y: keel.reduce_sum(x @ y))(y)
    np.testing.assert_array_equal(gradient, keel.grad(lambda y: keel.reduce_sum(keel.matmul(
        x if x.ndim > 1 else x[None], y if y.ndim > 1 else y[:, None])))(y))


@pytest.mark.parametrize("make, dtype", [
    (lambda x: x + 1, "f32"), (lambda x: 1 - x, "f32"), (lambda x: x * 0.5, "f32"), (lambda x: x + [1, 2, 3, 4], "f32"),
    (lambda x: x.astype("f64") + 0.1, "f64"), (lambda x: x.astype("bf16") * 2, "bf16"),
    (lambda x: keel.select(x > 0, 1, 0.5), "f32"), (lambda x: keel.maximum(x, 0), "f32"), (lambda x: x > 0, "bool"),
    (lambda x: x * np.float64(2), "f32"), (lambda x: keel.add(1, 2), "i32"), (lambda x: keel.exp(1), "f32")])
def test_literals_take_their_partners_dtype(make, dtype):
    assert make(keel.array(X)).dtype == dtype


@pytest.mark.parametrize("make", [
    lambda: keel.array([1]) + 0.5, lambda: keel.array([True]) + 1, lambda: keel.array([1]) + keel.array([1.]),
    lambda: keel.exp(keel.array([1])), lambda: keel.logical_not(keel.array([1])), lambda: keel.array([1.]) & True,
    lambda: keel.array([1.]) + np.array([1.]), lambda: keel.select(keel.array([1]), 1, 2)])
def test_wrong_dtypes_are_dtype_errors(make):
    with pytest.raises(keel.DTypeError) as caught:
        make()
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, keel.InvalidError)
    assert caught.value.code == keel.Code.INVALID


@pytest.mark.parametrize("make", [
    lambda: keel.array([1., 2.]) + [1., 2., 3.], lambda: keel.zeros((2, 3)) @ keel.zeros((2, 3)),
    lambda: keel.reshape(keel.zeros(4), (3,)), lambda: keel.reduce_sum(keel.zeros(4), axes=[1]),
    lambda: keel.concat([keel.zeros((1, 2)), keel.zeros((1, 3))]), lambda: keel.broadcast_to(keel.zeros(3), (2,))])
def test_wrong_dims_are_shape_errors(make):
    with pytest.raises(keel.ShapeError):
        make()


def test_errors_say_what_where_and_how_to_mend_it():
    with pytest.raises(keel.ShapeError) as caught:
        keel.add(keel.zeros((2, 3)), keel.zeros(4))
    e = caught.value
    assert e.message.startswith("add(f32[2, 3], f32[4]): shapes [2, 3] and [4] do not broadcast")
    assert (e.op, e.code.name) == ("add", "INVALID")
    with pytest.raises(keel.DTypeError, match=r"cast\(x, keel.f32\)"):
        keel.array([1]) + 0.5
    with pytest.raises(keel.RangeError, match="index 5 is not in"):
        keel.gather([1., 2.], [5])
    with pytest.raises(IndexError, match="division by zero"):
        keel.array(1) // 0
    with pytest.raises(keel.DeviceError, match='no device "tpu"; available devices:'):
        keel.device("tpu")


@pytest.mark.parametrize("call, text", [
    (lambda: keel.add(X), r"add\(\) needs the argument 'b'"), (lambda: keel.add(X, X, X), "at most 2 arguments"),
    (lambda: keel.add(X, X, a=X), "'a' twice"), (lambda: keel.add(X, X, c=1), "no argument 'c'"),
    (lambda: keel.add(X, "a"), "b must be a tensor.*not str"), (lambda: keel.add({}, X), "a must be a tensor.*not dict"),
    (lambda: keel.reduce_sum(X, keep="no"), "'keep' has the wrong type"), (lambda: keel.reduce_sum(X, axes="ab"), "a size must be"),
    (lambda: keel.concat(3), "iter"), (lambda: keel.gelu(X, kind=3), "no argument|must be a string"),
    (lambda: keel.array(1.) + "a", "unsupported operand"), (lambda: keel.array(1.) + None, "unsupported operand")])
def test_wrong_arguments_are_type_errors(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_attributes_by_place_and_name(device):
    x = keel.array(X)
    np.testing.assert_allclose(keel.reduce_sum(x, [0]), X.sum(0), rtol=1e-5)
    np.testing.assert_allclose(keel.reduce_sum(x, axes=(1,), keep=True), X.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(keel.reduce_mean(x, axes=1), X.mean(1), rtol=1e-5)
    np.testing.assert_allclose(keel.matmul(x, X, tb=True), X @ X.T, rtol=1e-4)
    np.testing.assert_array_equal(keel.cast(x, to="i32"), X.astype("i4"))
    np.testing.assert_array_equal(keel.transpose(x, perm=[1, 0]), X.T)
    np.testing.assert_array_equal(keel.iota([3]), np.arange(3))
    np.testing.assert_array_equal(keel.concat([x, X], axis=1), np.concatenate([X, X], 1))


def test_several_results_are_a_tuple():
    x = keel.array(X)
    parts = keel.split(x, [1, 3], axis=1)
    assert type(parts) is tuple and [p.shape for p in parts] == [(3, 1), (3, 3)]
    np.testing.assert_array_equal(parts[1], X[:, 1:])
    values, places = keel.top_k(x, 2)
    np.testing.assert_array_equal(values, -np.sort(-X, 1)[:, :2])
    np.testing.assert_array_equal(places, np.argsort(-X, 1)[:, :2])


def test_optional_operands_may_be_left_out():
    q = keel.array(RNG.normal(size=(1, 3, 4)).astype("f4"))
    mask = keel.zeros((3, 3))
    np.testing.assert_allclose(keel.attention(q, q, q), keel.attention(q, q, q, mask), rtol=1e-5)
    np.testing.assert_allclose(keel.attention(q, q, q, None, causal=True), keel.attention(q, q, q, causal=True), rtol=1e-5)


def test_every_op_of_the_catalogue_has_a_documented_function():
    for op in json.loads(keel.report("ops")):
        parts = {a["type"].split()[0] for a in op["attributes"]} & {"graph", "graph[]", "var"}
        if "." in op["name"] or not op["results"] or parts:
            continue
        has_numpys_form = op["name"] in ("einsum", "nonzero", "unique")
        function = getattr(keel._keel.ops if has_numpys_form else keel, op["name"])
        names = [o["name"] for o in op["operands"]] + [a["name"] for a in op["attributes"]]
        assert set(inspect.signature(function).parameters) == set(names), op["name"]
        assert all(o["pattern"] in function.__doc__ for o in op["operands"]) and op["doc"] in function.__doc__


def test_other_threads_run_while_a_long_op_does():
    x = keel.array(RNG.normal(size=(1500, 1500)).astype("f4"))
    with keel.device("reference"):  # the slow one
        counted, done = [0], threading.Event()

        def count():
            while not done.is_set():
                counted[0] += 1
                time.sleep(0.001)
        thread = threading.Thread(target=count)
        thread.start()
        begin = time.perf_counter()
        keel.matmul(x, x[:, :100])
        took = time.perf_counter() - begin
        done.set(), thread.join()
    assert counted[0] > took * 100, (counted, took)


def test_devices_and_scopes():
    assert "cpu:0" in keel.devices() and "reference:0" in keel.devices()
    x = keel.array(X)
    with keel.device("reference") as scope:
        inside = keel.exp(x)
        with scope:
            assert keel.exp(x).shape == x.shape
    np.testing.assert_allclose(inside, keel.exp(x), rtol=1e-5)
    assert x.device == "" and x.to(None).tolist() == x.to("cpu").tolist() == X.tolist()
    with pytest.raises(keel.DeviceError):
        x.to("cuda:7")


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_an_index_as_bool_is_whether_it_is_not_zero(device):
    with keel.device(device):
        for x in (keel.iota(dims=[600], dtype="bool"), keel.iota(dims=[600, 2], dtype="bool")):
            assert np.argwhere(~x.numpy()[:, None] if x.ndim == 1 else ~x.numpy()).tolist() in ([[0, 0]], [[0, 0], [0, 1]])


def test_names_of_other_libraries_are_told(device):
    """In the package, and of tensors, where most are functions; a name that is merely misspelled has no hint, but Python's."""
    x = keel.array([1., 2.])
    for reads, told in ((lambda: keel.clip, "use keel.clamp"), (lambda: keel.logsumexp, "use keel.log_sum_exp"),
                        (lambda: x.sum(), r"use keel.reduce_sum\(t\)"), (lambda: x.reshape(2, 1), r"use keel.reshape\(t\)"),
                        (lambda: keel.sofmax, "module 'keel' has no attribute 'sofmax'$"),
                        (lambda: x.shap, "'keel.Tensor' object has no attribute 'shap'$")):
        with pytest.raises(AttributeError, match=told) as e:
            reads()
        assert e.value.name and e.value.obj in (keel, x)
    assert not hasattr(x, "sum") and not hasattr(keel, "clip") and np.sum(x) == 3


def test_each_told_name_exists_and_no_name_that_exists_is_told():
    for theirs, ours in elsewhere.OURS.items():
        assert operator.attrgetter(ours)(keel) and theirs not in dir(keel)
