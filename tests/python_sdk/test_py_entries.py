"""Entries of loaded modules as functions, and training that goes on after loading, bit for bit."""
import gc
import weakref

import keel
import numpy as np
import pytest

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(64, 6)).astype("f4"), RNG.integers(0, 3, 64).astype("i4")


class Model:
    """A small net, its step of training, and a file of both."""

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
    assert [r.item() for r in entry(0.1, b=2)] == [0.1, 2.1] and [r.item() for r in entry(b=2., a=1)] == [1, 3]
    with keel.device("reference"):
        assert entry(1, 2)[1].item() == 3
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


def test_what_tapes_and_traces_cannot_follow_is_refused(loaded):
    _, module = loaded
    with keel.Tape(), pytest.raises(keel.PreconditionError, match="not recorded.*\n.*entry beside it"):
        module["serve"](X)
    with pytest.raises(keel.PreconditionError, match="not recorded"):
        keel.function(lambda x: module["serve"](x))(keel.array(X))
    with keel.Tape(), keel.no_record():
        assert module["serve"](X).shape == (64, 3)
