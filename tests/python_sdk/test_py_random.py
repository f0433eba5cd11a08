"""Random numbers: keys, generators and seeds. The C++ SDK has the same literals (keel/random.hpp)."""
import threading

import keel
import numpy as np
import pytest


def test_the_same_numbers_as_in_cpp(device):
    keel.random.seed(42)
    g = keel.random.Generator(3)
    assert keel.random.normal((3,)).tolist() == [-0.071062922477722168, 0.95501804351806641, -1.7487204074859619]
    assert keel.random.normal(2, mean=2, stddev=0.5).tolist() == [1.8061707019805908, 2.5258662700653076]
    assert keel.random.uniform((2,), -1, 1).tolist() == [-0.752166748046875, -0.53822124004364014]
    assert g.uniform(4, -3, 100, keel.i32).tolist() == [54, 5, 30, 91]
    assert g.normal(2, dtype=keel.f64).tolist() == [1.720782059194873, 1.950501895688054]


def test_numbers_depend_on_key_and_place_only(device):
    a = keel.random.normal((3, 4), key=7)
    assert keel.same(a, keel.random.normal((3, 4), key=keel.array(np.uint64(7))))
    assert keel.same(a, keel.random(7, (3, 4), kind="normal"))
    assert not keel.same(a, keel.random.normal((3, 4), key=8))
    with keel.device("reference"):
        assert keel.same(a, keel.random.normal((3, 4), key=7))
    assert keel.random.uniform(2, key=2**64 - 1).shape == (2,) and keel.random.uniform((), key=1).shape == ()


def test_a_seed_begins_the_same_numbers_anew():
    g = keel.Generator(5)
    first, second = g.uniform(4), g.uniform(4)
    g.seed(5)
    assert keel.same(g.uniform(4), first) and keel.same(g.uniform(4), second) and not keel.same(first, second)
    g.seed(6)
    assert not keel.same(g.uniform(4), first)


def test_numbers_are_where_they_were_asked_to_be():
    whole = keel.random.uniform(10000, -3, 4, "i32", key=1).numpy()
    counts = np.bincount(whole + 3, minlength=7)
    assert len(counts) == 7 and (abs(counts - 10000 / 7) < 200).all()
    x = keel.random.normal(20000, 2, 3, key=1).numpy()
    assert abs(x.mean() - 2) < 0.1 and abs(x.std() - 3) < 0.1
    bits = keel.random.bits(4000, key=1)
    share = np.unpackbits(bits.numpy().view("u1")).reshape(-1, 8).mean(0)
    assert bits.dtype is keel.u32 and (abs(share - 0.5) < 0.03).all() and bits.numpy().max() > 2**31


def test_truncated_normal(device):
    x = keel.random.truncated_normal(20000, 0, 2, mean=5, stddev=2, key=1).numpy()
    assert x.dtype == np.float32 and x.min() >= 5 and x.max() <= 9 and abs(x.mean() - 5 - 2 * 0.7228) < 0.05
    y = keel.random.truncated_normal((2, 0), dtype=keel.f16)
    assert y.shape == (2, 0) and y.dtype is keel.f16
    assert keel.same(keel.random.truncated_normal(3, key=4), keel.truncated_normal(4, -2.0, 2.0, [3]))
    assert keel.Generator(3).truncated_normal((4,), low=keel.array(1.5), high=float("inf")).numpy().min() >= 1.5
    with pytest.raises(keel.RangeError, match=r"no number in \[2, 1\]"):
        keel.random.truncated_normal(3, 2, 1)
    with pytest.raises(keel.InvalidError, match="i32"):
        keel.random.truncated_normal(3, dtype=keel.i32)


def test_categories(device):
    logits = np.log(np.array([[0.1, 0.9], [0.5, 0.5]], np.float32))
    share = keel.random.categorical(logits, 5000, key=1).numpy().mean(0)
    np.testing.assert_allclose(share, [0.9, 0.5], atol=0.04)
    one = keel.random.categorical(logits)
    assert one.shape == (2,) and one.dtype is keel.i64
    g, again = keel.Generator(3), keel.Generator(3)
    assert keel.same(g.categorical(logits, (4, 5)), again.categorical(logits, (4, 5)))
    assert not keel.same(g.categorical(logits, (4, 5)), keel.Generator(4).categorical(logits, (4, 5)))
    with pytest.raises(keel.InvalidError, match="logits"):
        keel.random.categorical(1.0)


def test_shuffles(device):
    x = np.arange(12).reshape(4, 3)
    moved = keel.random.shuffle(x, key=2).numpy()
    np.testing.assert_array_equal(moved[np.argsort(moved[:, 0])], x)
    across = keel.random.shuffle(x, axis=1, key=2).numpy()
    np.testing.assert_array_equal(np.sort(across, 1), x)
    g = keel.Generator(3)
    f = keel.function(lambda n: g.shuffle(n))
    first, second = f(keel.arange(100)), f(keel.arange(100))
    assert not keel.same(first, second) and keel.same(first, keel.Generator(3).shuffle(keel.arange(100)))
    assert sorted(first.tolist()) == list(range(100))
    with pytest.raises(keel.InvalidError, match="axis"):
        keel.random.shuffle(x, axis=2)


def test_a_traced_function_draws_new_numbers_in_each_run():
    mine, same_seed = keel.Generator(3), keel.Generator(3)
    f = keel.function(lambda x: x + mine.normal(2))
    zero = keel.zeros(2)
    for _ in range(3):
        assert keel.same(f(zero), zero + same_seed.normal(2))
    assert f.trace_count == 1 and keel.same(mine.normal(2), same_seed.normal(2))  # eager code continues its own sequence
    fixed = keel.function(lambda x: x + keel.random.normal(2, key=1))
    assert keel.same(fixed(zero), fixed(zero))
    fresh = keel.Generator(9)  # its first use is in a trace
    assert keel.same(keel.function(lambda: fresh.bits(2))(), keel.Generator(9).bits(2))


def test_a_graph_draws_new_numbers_in_each_run():
    mine, same_seed = keel.Generator(4), keel.Generator(4)
    with keel.Graph().as_default() as g:
        x, y = mine.normal(2), mine.normal(2)
    session = keel.Session(g)
    for _ in range(2):
        wanted = [same_seed.normal(2) for _ in range(2)]
        assert all(map(keel.same, session.run([x, y]), wanted))
    session.run(y), same_seed.key(), same_seed.key()
    assert keel.same(session.run(x), same_seed.normal(2))


def test_keys_of_many_threads_differ():
    g, keys = keel.Generator(1), []
    threads = [threading.Thread(target=lambda: keys.extend(g.key().item() for _ in range(50))) for _ in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert len(set(keys)) == 200


@pytest.mark.parametrize("call, kind", [
    (lambda: keel.random.uniform(2, 0, 1.5, "i32"), keel.DTypeError), (lambda: keel.random.uniform(2, 6, 5, "i32"), keel.RangeError),
    (lambda: keel.random.uniform(2, 5, 5, "i8"), keel.RangeError), (lambda: keel.random.uniform(2, 2, 1), keel.RangeError),
    (lambda: keel.random.uniform(2, 0., float("nan")), keel.RangeError),
    (lambda: keel.random.normal(2, dtype="i32"), keel.InvalidError),
    (lambda: keel.random.normal(2, dtype="f33"), keel.DTypeError), (lambda: keel.random.normal(-2), keel.InvalidError),
    (lambda: keel.random.normal(2, key=keel.array(1.)), keel.DTypeError),
    (lambda: keel.random.normal(2, key=-1), keel.InvalidError),
    (lambda: keel.random.normal(2, key=2**64), keel.InvalidError), (lambda: keel.Generator("a"), TypeError),
    (lambda: keel.Generator(-1), keel.InvalidError), (lambda: keel.random.normal("ab"), TypeError)])
def test_wrong_arguments_are_errors(call, kind):
    with pytest.raises(kind):
        call()


def test_a_single_number_may_be_drawn():
    assert keel.random.uniform(2, 5, 6, "i32").tolist() == [5, 5] and keel.random.uniform(2, 1., 1.).tolist() == [1, 1]
