"""keel.function: the structure of arguments and results, numbers, variables, and values that are errors."""
import collections
import dataclasses
import typing

import keel
import numpy as np
import pytest

Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Layer:
    w: typing.Any
    scale: int = 2


def test_arguments_and_results_may_have_any_structure():
    seen = []

    @keel.function
    def f(tree, layer, *rest, flag=True, **named):
        seen.append(1)
        return {"sum": tree["a"][0] + tree["b"].left, "pair": Pair(layer.w * layer.scale, None), "rest": [r + 1 for r in rest],
                "named": (named["z"], 3)}
    for k in (1., 2.):
        x = keel.array(k)
        out = f({"b": Pair(x, 1), "a": [x, "text", None]}, Layer(x), x, x, z=np.float32(5))
        assert out["sum"].item() == 2 * k and type(out["pair"]) is Pair and out["pair"].right is None
        assert out["pair"].left.item() == 2 * k and [r.item() for r in out["rest"]] == [k + 1] * 2
        assert out["named"][0].item() == 5 and out["named"][1].dtype is keel.i32 and list(out) == ["sum", "pair", "rest", "named"]
    assert len(seen) == 1
    f({"b": Pair(x, 1), "a": [x, "other", None]}, Layer(x), x, x, z=np.float32(5))
    f({"b": Pair(x, 1), "a": [x, "text", None]}, Layer(x, 3), x, x, z=np.float32(5))
    assert len(seen) == 3


def test_results_have_the_structure_of_their_own_trace():
    @keel.function
    def f(x, how):
        return {"one": x} if how == "dict" else (x, x) if how == "two" else None if how == "none" else [x]
    x = keel.array(1.)
    for _ in range(2):
        assert list(f(x, "dict")) == ["one"] and len(f(x, "two")) == 2 and f(x, "none") is None and type(f(x, "list")) is list


def test_results_by_sizes_keep_their_structure():
    @keel.function(any_after="never")
    def f(x):
        return (x, x) if x.shape[0] == 3 else [x]
    for _ in range(2):
        assert type(f(keel.zeros(3))) is tuple and type(f(keel.zeros(4))) is list


@pytest.mark.parametrize("wrong", [object(), "text", {1, 2}, b"bytes"])
def test_results_that_are_no_tensors_are_errors(wrong):
    with pytest.raises(TypeError, match="a result"):
        keel.function(lambda x: {"a": wrong})(keel.array(1.))


def test_values_of_a_trace_cannot_be_read():
    for read in (bool, float, int, lambda t: t.numpy(), lambda t: t.tolist(), np.asarray, lambda t: t.item(), lambda t: f"{t:.1f}"):
        with pytest.raises(keel.PreconditionError, match="keel.cond"):
            keel.function(lambda x: read(x) and x)(keel.array(1.))
    for sized in (keel.zeros, lambda n: keel.zeros([2, n]), lambda n: keel.ones(4)[:n]):
        with pytest.raises(keel.PreconditionError, match="or as a size\n  hint: use sizes of x.shape"):
            keel.function(sized)(keel.array(3))
    with pytest.raises(keel.PreconditionError, match="which has no value yet\n  hint: pass limit=N"):
        keel.function(keel.arange)(keel.array(3))
    leaked = []
    keel.function(lambda x: leaked.append(x) or x)(keel.array(1.))
    with pytest.raises(keel.Error, match="trace"):
        leaked[0] + 1
    assert "of a trace" in str(leaked[0])


def test_variables_count_by_identity_and_are_written_in_order():
    v, w = keel.Variable(1., name="v"), keel.Variable(10.)
    seen = []

    @keel.function
    def f(a, x):
        seen.append(1)
        before = a.value()
        a.assign_add(x)
        return before, a * 2
    assert [r.item() for r in f(v, keel.array(2.))] == [1, 6] and [r.item() for r in f(w, keel.array(2.))] == [10, 24]
    assert [r.item() for r in f(v, keel.array(2.))] == [3, 10] and len(seen) == 2 and v.value().item() == 5
    assert (v.name, v.dtype, v.shape, v.trainable) == ("v", "f32", (), True)


def test_variables_are_made_on_the_first_trace_only():
    made = []

    @keel.function
    def f(x):
        if not made:
            made.append(keel.Variable(keel.zeros(x.shape)))
        made[0].assign_add(x)
        return made[0].value()
    assert f(keel.array([1., 2.])).tolist() == [1, 2] and f(keel.array([1., 2.])).tolist() == [2, 4]
    bad = keel.function(lambda x, n: keel.Variable(x * 2).value())
    with pytest.raises(keel.Error):
        bad(keel.array(1.), 1)


def test_variables_stand_for_their_values():
    v = keel.Variable([[1., 2.], [3., 4.]])
    assert (v @ v + 1).tolist() == [[8, 11], [16, 23]] and (2 - v)[0].tolist() == [1, 0] and v[1, 0].item() == 3
    assert keel.reduce_sum(v).item() == 10 and np.asarray(v).tolist() == v.tolist() and len(v) == 2 and (v > 2).tolist()[1] == [True, True]
    v.assign(v * 0), v.assign_sub(keel.ones((2, 2)))
    assert v.tolist() == [[-1, -1], [-1, -1]] and {v: 1}[v] == 1
    with pytest.raises(keel.Error):
        v.assign([1., 2.])
    with pytest.raises(TypeError):
        v.assign("a")


def test_structures_that_hold_themselves_or_are_too_deep_are_errors():
    own = []
    own.append(own)
    deep = keel.array(1.)
    for _ in range(100_000):
        deep = (deep,)
    for wrong in (lambda: keel.array(own), lambda: keel.add(1, own), lambda: keel.function(lambda x: 1)(own), lambda: keel.function(lambda x: x)(deep)):
        with pytest.raises(keel.InvalidError, match="deeper"):
            wrong()


def test_what_was_not_made_or_entered_is_an_error_and_no_crash():
    for wrong, kind, said in (
            (lambda: keel.device("cpu").__exit__(None, None, None), keel.PreconditionError, "the scope was not entered"),
            (lambda: keel.Function.__new__(keel.Function)(1), keel.PreconditionError, r"functions are made by keel.function\(\)"),
            (lambda: keel.Plan.__new__(keel.Plan)(1), TypeError, r"plans are made by Session.prepare\(\)")):
        with pytest.raises(kind, match=said):
            wrong()


@pytest.mark.parametrize("way", [lambda f: f, keel.function])
def test_numpys_f64_scalars_are_weak_as_pythons_floats(way):
    two = np.float64(2)
    for x in (keel.array([1., 3.]), keel.array([1., 3.], "f16"), keel.array([1., 3.], "f64")):
        assert way(lambda x, s: x * s)(x, two).dtype == x.dtype and way(lambda x, s: x * s["s"])(x, {"s": two}).tolist() == [2, 6]
        assert way(lambda x: x * two)(x).dtype == x.dtype and way(lambda x, s: keel.clamp(x, s, 9))(x, two).tolist() == [2, 3]
    with pytest.raises(keel.DTypeError):
        way(lambda x, s: x * s)(keel.array([1]), two)
    assert way(lambda s: keel.array(s))(two).dtype == keel.f64 and way(lambda s: keel.array(s))(2.).dtype == keel.f32
    assert way(lambda s: s)(np.float32(2)).dtype == keel.f32


def test_a_number_is_a_tensor_where_the_signature_says_so():
    f = keel.function(lambda x, y: (x * 2, y["n"] + 1), signature="x: f32[], y.n: i32[]")
    for two in (2, 2., np.float64(2), np.float32(2), keel.array(2.)):
        assert [r.item() for r in f(two, {"n": 3})] == [4, 4]
    assert f.trace_count == 1
    with pytest.raises(keel.DTypeError):
        f(2., {"n": 0.5})
