"""Tapes and gradients in Python, against finite differences and known values, eagerly and traced."""
import keel
import numpy as np
import pytest


def test_variables_are_watched_by_themselves():
    w = keel.Variable([[1.0]])
    with keel.Tape() as tape:
        loss = w * w
    dw = tape.gradient(loss, w)
    assert str(dw) == "[[2.]]" and dw.shape == (1, 1) and dw.dtype is keel.f32
    frozen = keel.Variable(1., trainable=False)
    with keel.Tape() as tape:
        loss = frozen * w
    assert tape.gradient(loss, [w, frozen])[1] is None
    with keel.Tape(watch_accessed_variables=False) as tape:
        tape.watch(frozen)
        loss = frozen * w
    assert [None if g is None else g.item() for g in tape.gradient(loss, (frozen, w))] == [1, None]


def test_sources_and_targets_have_any_structure():
    a, b = keel.array(2.), keel.array(3.)
    with keel.Tape() as tape:
        tape.watch(a), tape.watch(b)
        ys = {"p": a * b, "q": [a + b]}
    g = tape.gradient(ys, {"a": a, "rest": (b, keel.array(1.))}, seeds={"p": 1., "q": [10.]})
    assert g["a"].item() == 13 and g["rest"][0].item() == 12 and g["rest"][1] is None


def test_tapes_answer_once_unless_persistent():
    x = keel.array(2.)
    for persistent in (False, True):
        with keel.Tape(persistent=persistent) as tape:
            tape.watch(x)
            y = x * x
        assert tape.gradient(y, x).item() == 4
        if persistent:
            assert tape.gradient(y, x).item() == 4
        else:
            with pytest.raises(RuntimeError, match="once|persistent"):
                tape.gradient(y, x)


def test_gradients_of_gradients():
    x = keel.array(2.)
    with keel.Tape() as outer:
        outer.watch(x)
        with keel.Tape() as inner:
            inner.watch(x)
            y = x ** 3
        dy = inner.gradient(y, x)
    assert dy.item() == 12 and outer.gradient(dy, x).item() == 12
    assert keel.grad(keel.grad(lambda x: x ** 3))(2.).item() == 12


def test_inner_tapes_keep_outer_ones():
    def tapes():
        x = keel.array(2.)
        with keel.Tape() as outer, keel.no_record(), keel.Tape() as middle, keel.Tape() as inner:
            [tape.watch(x) for tape in (outer, middle, inner)]
            return inner, x, x ** 3
    for _ in range(20):
        inner, x, y = tapes()
        assert inner.gradient(y, x).item() == 12


@pytest.mark.parametrize("f", [
    lambda x: keel.reduce_sum(keel.sin(x) * x), lambda x: keel.reduce_mean(keel.matmul(x, x, tb=True)),
    lambda x: keel.cond(x[0, 0] > 0, lambda: keel.reduce_sum(x * 3), lambda: keel.reduce_sum(-x)),
    lambda x: keel.reduce_sum(keel.scan(keel.zeros(3), x, lambda s, r: (s * r + 1, s))[0]),
    lambda x: keel.reduce_sum(x[::-1, 1:] * x[:, [0, 2]]), lambda x: keel.function(lambda y: keel.softmax(y)[0, 1])(x)])
def test_gradients_agree_with_finite_differences(f):
    x = np.random.default_rng(0).normal(size=(2, 3))
    want = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-6
        want[at] = (f(keel.array(x + step)).item() - f(keel.array(x - step)).item()) / 2e-6
    for g in (keel.grad(f), keel.function(keel.grad(f)), keel.grad(keel.function(f))):
        np.testing.assert_allclose(g(keel.array(x)), want, rtol=1e-5, atol=1e-7)


@pytest.fixture(autouse=True)
def f64_zeros(monkeypatch):
    """The programs above carry keel.zeros(3) together with f64."""
    monkeypatch.setattr(keel, "zeros", lambda shape, dtype="f64", zeros=keel.zeros: zeros(shape, dtype))


def test_grad_of_several_arguments_and_value():
    value, (da, db) = keel.value_and_grad(lambda a, k, b: a["x"] * b * k, (0, 2))({"x": 2.}, 10, 3.)
    assert value.item() == 60 and da["x"].item() == 30 and db.item() == 20
    assert keel.grad(lambda x: keel.array(1.))(2.).item() == 0


@pytest.mark.parametrize("way", [lambda f: f, keel.function])
def test_auxiliary_outputs_pass_no_gradient(way):
    def f(x):
        return keel.reduce_sum(x * x), {"twice": x * 2, "n": 3}
    x = keel.array([1., 2.])
    (loss, aux), dx = way(keel.value_and_grad(f, has_aux=True))(x)
    assert loss.item() == 5 and aux["twice"].tolist() == [2, 4] and int(aux["n"]) == 3 and dx.tolist() == [2, 4]
    dx, aux = way(keel.grad(f, has_aux=True))(x)
    assert dx.tolist() == [2, 4] and aux["twice"].tolist() == [2, 4]
    for g in (keel.value_and_grad(f), keel.grad(f), keel.grad(lambda x: [x, x]), lambda x: keel.jacobian(lambda x: (x, x), x)):
        with pytest.raises(keel.InvalidError, match="returns [23] tensors; a gradient requires one"):
            way(g)(x)
    with pytest.raises(keel.InvalidError, match="has_aux requires a pair"):
        keel.grad(lambda x: x * x, has_aux=True)(x)


def test_jacobians():
    np.testing.assert_array_equal(keel.jacobian(lambda x: x * x, [1., 2., 3.]), np.diag([2., 4, 6]))
    x = keel.array([1., 2.])
    with keel.Tape() as tape:
        tape.watch(x)
        y = keel.stack([x, x * x])
    assert tape.jacobian(y, [x])[0].shape == (2, 2, 2)


def test_what_is_not_recorded_has_no_gradient():
    x = keel.array(2.)
    with keel.Tape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            a = x * x
        with keel.no_record():
            b = x * x
        c = keel.stop_gradient(x) * x
    assert [None if g is None else g.item() for g in (tape.gradient([a, b, c], [x]))] == [2]
    f = keel.function(lambda x: hidden(x))

    def hidden(x):
        with keel.no_record():
            y = x * x
        return y + x
    assert keel.grad(f)(3.).item() == 1


def test_a_tape_ends_with_its_block_also_by_an_exception():
    with pytest.raises(KeyError):
        with keel.Tape() as tape:
            raise KeyError
    x = keel.array(2.)
    tape.watch(x)
    y = x * x
    assert tape.gradient(y, x) is None
    with pytest.raises(RuntimeError):
        tape._go_on()


def test_training_in_one_traced_step_is_training_eagerly():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 3)).astype("f4"), rng.normal(size=(16, 1)).astype("f4")
    ends = []
    for traced in (False, True):
        w = keel.Variable(np.zeros((3, 1), "f4"))

        def step(x, y):
            with keel.Tape() as tape:
                loss = keel.reduce_mean((x @ w - y) ** 2)
            w.assign_sub(0.1 * tape.gradient(loss, w))
            return loss
        run = keel.function(step) if traced else step
        for _ in range(300):
            run(keel.array(x), keel.array(y))
        ends.append(w.numpy())
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-5)
    np.testing.assert_allclose(ends[0], np.linalg.lstsq(x, y, rcond=None)[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("wrong", [1., "a", None])
def test_sources_are_tensors_or_variables(wrong):
    with keel.Tape() as tape:
        y = keel.array(1.) * 2
    with pytest.raises(TypeError):
        tape.gradient(y, wrong)
    with pytest.raises(TypeError):
        tape.watch(wrong)
    with pytest.raises(ValueError, match="seeds"):
        tape.gradient(y, [], seeds=[1., 2.])
