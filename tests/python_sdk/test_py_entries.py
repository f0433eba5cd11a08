"""Entries of loaded modules as functions, and training continued after loading, bit for bit."""
import collections
import dataclasses
import gc
import pickle
import weakref

import keel
import numpy as np
import pytest

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(64, 6)).astype("f4"), RNG.integers(0, 3, 64).astype("i4")


class Model:
    """A small net, its training step, and a file of both."""

    def __init__(self):
        random = np.random.default_rng(1)
        self.weights = {"w": keel.Variable(random.normal(size=(6, 3)).astype("f4"), name="w"), "b": keel.Variable(keel.zeros(3), name="b")}
        self.optimizer = keel.optim.Adam(0.05, weight_decay=0.01)
        self.serve = keel.function(self.logits, signature="x: f32[n, 6]")
        self.train = keel.function(self.step, signature="x: f32[n, 6], y: i32[n]")

    def logits(self, x):
        return keel.linear(x, self.weights["w"], self.weights["b"])

    def step(self, x, y):
        with keel.Tape() as tape:
            loss = keel.reduce_mean(keel.cross_entropy(self.logits(x), y))
        self.optimizer.apply(tape.gradient(loss, self.weights), self.weights)
        return loss

    def save(self, path):
        keel.save(path, serve=self.serve.concrete(keel.array(X)), train=self.train.concrete(keel.array(X), keel.array(Y)))


def steps(train, n, seed):
    return [train(x, y).item() for x, y in keel.data.from_slices((X, Y), batch=16, shuffle=seed, epochs=n)]


@pytest.fixture
def loaded(tmp_path):
    model = Model()
    steps(model.train, 3, 1)
    model.save(tmp_path / "m.keel")
    return model, keel.load(tmp_path / "m.keel")


def test_training_goes_on_after_loading_bit_for_bit(loaded):
    model, module = loaded
    before = module["serve"](X)
    assert keel.same(before, model.serve(keel.array(X)))
    assert steps(model.train, 4, 2) == steps(module["train"], 4, 2)
    for name, w in model.weights.items():
        assert keel.same(module.variables()[name].value(), w.value())
    assert keel.same(module["serve"](X), model.serve(keel.array(X))) and not keel.same(module["serve"](X), before)


def test_variables_of_modules_are_set_and_kept_in_checkpoints(loaded, tmp_path):
    model, module = loaded
    assert sorted(module.variables()) == ["b", "b/mean", "b/square", "steps", "w", "w/mean", "w/square"]
    keel.save_checkpoint(tmp_path / "m.ckpt", module.variables())
    steps(module["train"], 1, 3)
    assert module.variables()["steps"].item() == 16 and not keel.same(module["serve"](X), model.serve(keel.array(X)))
    keel.load_checkpoint(tmp_path / "m.ckpt", module.variables())
    assert keel.same(module["serve"](X), model.serve(keel.array(X)))
    module.variables()["w"].assign(keel.zeros((6, 3))), module.variables()["b"].assign([1., 2., 3.])
    assert module["serve"](X[:2]).tolist() == [[1, 2, 3]] * 2


def test_arguments_go_by_place_and_name_and_literals_get_their_dtype():
    f = keel.function(lambda a, b: {"sum": a + b, "a": a}, signature="a: f64[], b: f64[]")
    module = keel.join(f=f.concrete(keel.f64[()], keel.f64[()]))
    entry = module["f"]
    for got, a, total in ((entry(0.1, b=2), 0.1, 2.1), (entry(b=2., a=1), 1, 3)):
        assert {name: r.item() for name, r in got.items()} == {"sum": total, "a": a}
    with keel.device("reference"):
        assert entry(1, 2)["sum"].item() == 3
    assert repr(entry) == "Entry f(a: f64[], b: f64[])" and module["f"] is entry
    gone = weakref.ref(entry)
    del entry
    module = None
    gc.collect()
    assert gone() is None
    module = keel.join(f=f.concrete(keel.f64[()], keel.f64[()]))
    entry = module["f"]
    for wrong in (lambda: entry(1.), lambda: entry(1., 2., 3.), lambda: entry(1., a=1.), lambda: entry(1., c=1.), lambda: entry(1., b=2, c=1)):
        with pytest.raises(keel.InvalidError, match=r"takes \(a, b\)"):
            wrong()
    with pytest.raises(keel.NotFoundError, match=r"no entry 'g'\n.*'f'"):
        module["g"]
    with pytest.raises(keel.Error):
        entry(keel.zeros(3, "f64"), 1.)


def test_loaded_functions_are_trained_by_a_new_step_bit_for_bit(loaded):
    """Training continued from the file, with a newly written step, equals training continued in the program."""
    model, module = loaded

    def trained(serve, weights):
        optimizer = keel.optim.SGD(0.1, momentum=0.9)

        @keel.function
        def step(x, y):
            with keel.Tape() as tape:
                loss = keel.reduce_mean(keel.cross_entropy(serve(x), y))
            optimizer.apply(tape.gradient(loss, weights), weights)
            return loss
        return steps(step, 3, 9)
    variables = module.variables()
    mine = {name: variables[name] for name in model.weights}
    assert trained(model.serve, model.weights) == trained(module["serve"], mine)
    assert all(keel.same(mine[name].value(), w.value()) for name, w in model.weights.items())


def nested(w, n):
    """Branches, loops, constants and writes on one variable."""
    @keel.function(signature="x: f32[b, 3], k: i32[] where b % 2 == 0")
    def f(x, k):
        n.assign_add(1)
        y = keel.cond(keel.reduce_sum(x) > 0, lambda: keel.tanh(x @ w), lambda: x @ (w * [2., 3., 4.]))
        y = keel.while_loop((0, y), lambda i, y: i < k, lambda i, y: (i + 1, y * y + w[0]))[1]
        total, rows = keel.scan(keel.zeros(3), y, lambda s, row: (s + row, s * row))
        return keel.reshape(rows, (-1,)), total, n.value()
    return f


@pytest.fixture
def pair():
    w, n = keel.Variable(RNG.normal(size=(3, 3)).astype("f4"), name="w"), keel.Variable(0, name="n", trainable=False)
    f = nested(w, n)
    text = keel.join(f=f.concrete(keel.zeros((2, 3)), keel.array(1))).text()
    return f, w, keel.parse(text)


@pytest.mark.parametrize("sign", [1, -1])
def test_gradients_of_entries_are_those_of_their_code(pair, sign):
    f, w, module = pair
    x, v = keel.array(sign * np.abs(X[:4, :3])), module.variables()["w"]

    def differentiated(f, w, traced):
        def run(x):
            with keel.Tape() as tape:
                tape.watch(x)
                rows, total, count = f(x, keel.array(2))
                loss = keel.reduce_sum(rows * rows) + keel.reduce_sum(total)
            return loss, tape.gradient(loss, [x, w]), count
        return (keel.function(run) if traced else run)(x)
    for traced in (False, True):
        (a, da, _), (b, db, count) = differentiated(f, w, traced), differentiated(module["f"], v, traced)
        assert keel.same(a, b) and all(keel.same(p, q) for p, q in zip(da, db)) and count.item() == 1 + traced
    with keel.Tape() as outer:
        outer.watch(x)
        inner = keel.grad(lambda x: keel.reduce_sum(module["f"](x, keel.array(1))[1]))(x)
    assert np.abs(outer.gradient(inner, x)).max() > 0


def test_entries_are_written_into_functions_and_saved_again(pair, tmp_path):
    f, w, module = pair
    own = keel.Variable([10., 20., 30.], name="w")  # a name that the module also uses

    @keel.function
    def both(x):
        return keel.cond(x[0, 0] > 100, lambda: module["f"](x, keel.array(0))[1], lambda: module["f"](x, keel.array(1))[1]) + own
    x = keel.array(X[:6, :3])
    want = f(x, keel.array(1))[1].numpy() + [10, 20, 30]
    np.testing.assert_array_equal(both(x), want)
    keel.save(tmp_path / "both.keel", both=both.concrete(x))
    again = keel.load(tmp_path / "both.keel")
    np.testing.assert_array_equal(again["both"](x), want)
    assert sorted(again.variables()) == ["n", "w", "w_1"]
    alone = module["f"].concrete()  # some of these variables belong to the module
    count = module.variables()["n"].item()
    keel.join(g=alone)["g"](x, keel.array(0))
    assert module.variables()["n"].item() == count + 1


@pytest.mark.parametrize("traced", [False, True])
def test_sizes_are_those_that_the_entry_takes(pair, traced):
    _, _, module = pair
    entry = module["f"]
    call = keel.function(lambda x, k: entry(x, k), any_after=0) if traced else entry
    for rows in (2, 4, 8):
        assert call(keel.zeros((rows, 3)), keel.array(1))[0].shape == (rows * 3,)
    for wrong in (keel.zeros((3, 3)), keel.zeros((2, 4)), keel.zeros(3), keel.zeros((2, 3), "f64")):
        with pytest.raises(keel.InvalidError):
            call(wrong, keel.array(1))


def test_debugging_runs_entries_too_but_tapes_say_that_they_cannot(loaded):
    model, module = loaded
    with keel.Eagerly():
        np.testing.assert_allclose(module["serve"](X), model.serve(keel.array(X)), rtol=1e-5, atol=1e-6)
        with keel.Tape(), pytest.raises(keel.PreconditionError, match="is a graph"):
            module["serve"](X)


def test_modules_go_on_without_their_names(loaded):
    module = loaded[1]
    f = module["serve"]
    module = None
    assert f(X).shape == (64, 3)


def test_saving_what_is_no_module_says_what_is(tmp_path):
    double = keel.function(lambda x: x * 2)
    path = tmp_path / "m.keel"
    with pytest.raises(TypeError, match=r"a keel.Module, such as f.concrete\(x\); got <keel.function <lambda>\(x\)>"):
        keel.save(path, double)
    with pytest.raises(TypeError, match=r"the path comes first: keel.save\('m.keel', ...\)"):
        keel.save(double, "m.keel")
    assert not path.exists()


class Pair(collections.namedtuple("Pair", "low high")):
    pass


@dataclasses.dataclass
class Point:
    y: keel.Tensor
    x: keel.Tensor


def structured(weights, x, scale):
    z, a = x * weights["w"] + weights["b"][0], weights["b"][1] * scale
    return {"z": z, "a": [a, None], "pair": Pair(z, a), "point": Point(y=a, x=z), 3: (z + 1,)}


def test_entries_keep_names_and_structures(tmp_path):
    f, x = keel.function(structured, name="f"), keel.array([1., 2.])
    weights = {"w": keel.array([3., 4.]), "b": [keel.array(1.), keel.array(2.)]}
    keel.save(tmp_path / "f.keel", serve=f.concrete(weights, x, 5), gradients=False)
    module = keel.load(tmp_path / "f.keel")
    again = keel.parse(module.text())
    tape = keel.Tape()
    with tape:
        tape.watch(x)
        under = module["serve"](weights, x, 5)
    assert tape.gradient(under["z"], x).tolist() == [3, 4]
    calls = [f(weights, x, 5), module["serve"](weights, x, 5), module["serve"](x=x, weights=weights), module(weights, x), under,
             again["serve"](weights, x, 5), module["serve"].concrete()(weights, x), module(x=x, weights=weights, scale=5),
             keel.function(lambda x: module["serve"](weights, x))(x), pickle.loads(pickle.dumps(module))(weights, x)]
    for got in calls:
        assert list(got) == ["z", "a", "pair", "point", 3] and type(got["a"]) is list and got["a"][1] is None
        assert got["z"].tolist() == [4, 9] and got["a"][0].item() == 10 and got[3][0].tolist() == [5, 10]
        assert got["pair"].low.tolist() == [4, 9] == got["point"].x.tolist() and got["pair"].high.item() == 10 == got["point"].y.item()
    flat = dict(zip([name for name, *_ in keel.Session(module).parameters], (*weights["b"], weights["w"], x)))
    assert module["serve"](**flat)["z"].tolist() == module(**flat)["z"].tolist() == [4, 9]
    for wrong, said in (((weights, x, 6), "scale is fixed to the saved value 5"), (({"w": 1.}, x), "weights must have the saved structure"),
                        ((weights,), r"takes \(weights, x\)"), (((1., 2.), x), "'w': a tensor")):
        with pytest.raises(keel.InvalidError, match=said):
            module["serve"](*wrong)
        with pytest.raises(keel.InvalidError, match=said):
            module(*wrong)


def test_a_dict_comes_back_in_its_order_with_its_names(tmp_path):
    f = keel.function(lambda x: {"second": x * 2, "first": x, "n": keel.array(1)}, name="f")
    keel.save(tmp_path / "f.keel", f.concrete(keel.f32[()]))
    module = keel.load(tmp_path / "f.keel")
    want = [("second", 4), ("first", 2), ("n", 1)]
    for got in (module["f"](2.), module(2.), keel.Session(module).run(x=2.), keel.join(g=module)["g"](2.)):
        assert [(k, v.item()) for k, v in got.items()] == want
    named = keel.function(lambda x: Pair(x, x + 1), name="f").concrete(keel.f32[()])
    assert [r["name"] for r in named.info()["entries"][0]["results"]] == ["low", "high"] and named(2.).high.item() == 3
    assert keel.function(lambda x: [x, x], name="f").concrete(keel.f32[()])["f"](2.)[1:][0].item() == 2


def test_entries_take_any_number_of_arguments_as_their_function_did(tmp_path):
    x, y, z = (keel.array([v, 2. * v]) for v in (1., 2., 3.))

    @keel.function
    def f(first, *rest, scale, **others):
        return first + rest[0] * scale + rest[1]["z"] * others["w"]
    keel.save(tmp_path / "f.keel", f=f.concrete(x, y, {"z": z}, scale=x, w=y), sums=keel.function(lambda a, *b: a + b[0]).concrete(x, y))
    module = keel.load(tmp_path / "f.keel")
    want = f(x, y, {"z": z}, scale=x, w=y).tolist()
    entry = module["f"]
    for got in (entry(x, y, {"z": z}, scale=x, w=y), entry(first=x, rest=(y, {"z": z}), scale=x, others={"w": y})):
        assert got.tolist() == want
    assert module["sums"](x, y).tolist() == [3, 6] == module["sums"].concrete()(x, y).tolist()
    for wrong in (lambda: entry(x, y, scale=x, w=y), lambda: entry(x, y, {"z": z}, scale=x, v=y), lambda: entry(x, y, {"z": z}, w=y),
                  lambda: module["sums"](x), lambda: module["sums"](x, y, z), lambda: module["sums"](x, y, c=z),
                  lambda: entry(x, y, {"z": z}, first=x, scale=x, w=y)):
        with pytest.raises(keel.InvalidError, match="entry '(f|sums)'"):
            wrong()


def test_nothing_comes_back_as_nothing():
    v = keel.Variable(keel.array(1.))
    module = keel.join(f=keel.function(lambda x: v.assign_add(x) and None).concrete(keel.array(2.)))
    assert module["f"](2.) is None and module(3.) is None and module.variable(v.name or "v0").item() == 6
