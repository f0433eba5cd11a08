"""Loops, branches and calls in which a run finds sizes (t[mask], nonzero, unique, trim); numpy is the oracle."""
import threading
import time

import keel
import numpy as np
import pytest

SHAPES = [(0, 3), (3, 0), (1, 1), (2, 7), (5, 60)]
ROUNDS = (0, 1, 4)


def numbers(shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).integers(-4, 5, shape).astype("f4") / 4


def near(got, expected):
    got, expected = [v if isinstance(v, tuple) else (v,) for v in (got, expected)]
    for g, e in zip(got, expected, strict=True):
        np.testing.assert_allclose(np.asarray(g), e, rtol=1e-5, atol=1e-6)
        assert np.asarray(g).shape == np.shape(e)


def repeated(x, rounds):
    """The sum of the elements above a bound that grows in each iteration."""
    return keel.while_loop((0, 0.), lambda i, s: i < rounds, lambda i, s: (i + 1, s + keel.reduce_sum(x[x > keel.cast(i, "f32") * 0.25])))[1]


def repeated_in_numpy(x, rounds):
    return sum((x[x > i * 0.25].sum() for i in range(rounds)), np.float32(0))


def both(f, signature):
    """f, and f as one trace for all sizes."""
    return f, keel.function(f, signature=signature)


def test_while(device):
    for run in both(repeated, "x: f32[n, m], rounds: i32[]"):
        for shape in SHAPES:
            for rounds in ROUNDS:
                x = numbers(shape)
                near(run(keel.array(x), keel.array(rounds)), repeated_in_numpy(x, rounds))


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(device, reverse):
    def program(x):
        def step(most, row):
            found = row[row > most]
            return most + 0.25, (keel.reduce_sum(found), keel.dim(found.shape[0]), row * keel.reduce_sum(found))
        return keel.scan(keel.array(-1.), x, step, reverse=reverse)

    for run in both(program, "x: f32[n, m]"):
        for shape in SHAPES:
            x = numbers(shape)
            bounds = (np.arange(len(x), dtype="f4") / 4 - 1)[::-1 if reverse else 1, None]
            sums = np.where(x > bounds, x, 0).sum(1)
            most, (totals, counts, rows) = run(keel.array(x))
            near((most, totals, counts, rows), (np.float32(len(x) / 4 - 1), sums, (x > bounds).sum(1), x * sums[:, None]))


def test_branches(device):
    def program(x, i):
        either = keel.cond(keel.reduce_sum(x) > 0, lambda: keel.reduce_sum(x[x > 0]), lambda: keel.reduce_sum(x[x < 0] * 2))
        return either, keel.switch(i, [lambda: keel.dim(keel.unique(x).shape[0]), lambda: keel.reduce_sum(keel.nonzero(x)[1])])

    for run in both(program, "x: f32[n, m], i: i32[]"):
        for shape in SHAPES:
            for i in (0, 1):
                x = numbers(shape)
                near(run(keel.array(x), keel.array(i)), (x[x > 0].sum() if x.sum() > 0 else x[x < 0].sum() * 2,
                                                         [len(np.unique(x)), np.nonzero(x)[1].sum()][i]))


def test_branches_that_do_not_exist(device):
    index = keel.function(lambda i: keel.switch(i, [lambda: keel.reduce_sum(keel.array([1., 0.])[keel.array([True, False])])] * 2))
    near(index(keel.array(1)), np.float32(1))
    for bad in (-1, 2):
        with pytest.raises(keel.RangeError, match=rf"index {bad} is not in \[0, 2\)"):
            index(keel.array(bad)).tolist()


def test_bodies_in_bodies_read_sizes_from_outside(device):
    def program(x, rounds):
        found = x[x > -0.5]  # a size of the outer graph, in two loops and a call
        count = keel.function(lambda v: keel.dim(v[v > 0].shape[0]) + keel.dim(found.shape[0]))

        def step(total, row):
            return total + keel.reduce_sum(row[row > 0]) + keel.reduce_sum(keel.ones([found.shape[0]])), count(row)
        return keel.while_loop((0, 0.), lambda i, s: i < rounds,
                               lambda i, s: (i + 1, s + keel.reduce_sum(found[found > 0]) + keel.scan(0., x, step)[0]))[1]

    for run in both(program, "x: f32[n, m], rounds: i32[]"):
        for shape in SHAPES:
            x = numbers(shape)
            once = x[x > 0].sum() * 2 + len(x) * (x > -0.5).sum()
            near(run(keel.array(x), keel.array(3)), np.float32(3 * once))


def test_effects_take_place_in_order(device, capfd):
    v = keel.Variable(1.)

    @keel.function(signature="x: f32[n, m]")
    def program(x):
        def body(i):
            found = x[x > keel.cast(i, "f32") / 4]
            v.assign(v * 2 + keel.reduce_sum(found))
            keel.print("round {}: {}", i, v)
            return i + 1
        keel.while_loop(0, lambda i: i < 3, body)
        return v + 0

    x, expected = numbers((2, 7)), 1.
    result, lines = program(keel.array(x)).item(), []
    for i in range(3):
        expected = expected * 2 + x[x > i / 4].sum()
        lines.append(f"round {i}: {expected:g}")
    assert capfd.readouterr().err.splitlines() == lines
    assert result == v.item() == expected


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients(device, shape):
    x = numbers(shape)

    def scanned(x):
        total, sums = keel.scan(keel.array(0.), x, lambda s, row: (s + keel.reduce_sum(row[row > 0] * 2), keel.reduce_sum(keel.square(row[row < 0]))))
        return total + keel.reduce_sum(sums)

    cases = [(lambda x: repeated(x, 3), sum((x > i / 4).astype("f4") for i in range(3))),
             (lambda x: keel.cond(keel.reduce_sum(x) > -9, lambda: keel.reduce_sum(keel.square(x[x > 0])), lambda: keel.reduce_sum(x)), np.where(x > 0, 2 * x, 0)),
             (scanned, np.where(x > 0, 2, 2 * np.minimum(x, 0)))]
    for f, expected in cases:
        near(keel.grad(f)(keel.array(x)), expected)
        near(keel.function(keel.grad(f))(keel.array(x)), expected)


def test_results_of_bodies_have_known_sizes():
    x = keel.array(numbers((2, 7)))
    with pytest.raises(keel.UnimplementedError, match=r"returns [^:]*: f32\[size0\], whose size only a run of the body knows\n.*return a value of known size"):
        keel.function(lambda x: keel.scan(0., keel.ones([7, 1]), lambda s, row: (s, x[x > 0])))(x)
    with pytest.raises(keel.InvalidError, match=r"result 0 of else \(.*\) is f32\[size1\] but that of then"):
        keel.function(lambda x: keel.cond(keel.reduce_sum(x) > 0, lambda: x[x > 0], lambda: x[x < 0]))(x)


def test_a_wrong_count_names_the_node_in_the_body(device):
    f = keel.function(lambda x: keel.while_loop((0, 0.), lambda i, s: i < 9, lambda i, s: (i + 1, s + keel.reduce_sum(keel.trim(x, i))))[1])
    with pytest.raises(keel.RangeError, match=r"trim \".*body.*\": count 3 is not in \[0, 2\]"):
        f(keel.array([1., 2.])).tolist()


def test_files_threads_and_levels(tmp_path):
    traced = keel.function(repeated, signature="x: f32[n, m], rounds: i32[]")
    keel.save(tmp_path / "m.keel", f=traced.concrete(keel.ones([1, 1]), 1))
    module = keel.load(tmp_path / "m.keel")
    for again in (module, keel.parse(module.text())):
        for level in (0, 1, 2, 3):
            session = keel.Session(again, level=level)

            def work(seed):
                for shape in SHAPES:
                    x = numbers(shape, seed)
                    near(session.run(x=x, rounds=np.int32(3)).popitem()[1], repeated_in_numpy(x, 3))
            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()


def test_endless_loops_stop():
    x = keel.array(numbers((2, 7)))
    f = keel.function(lambda x: keel.while_loop(0., lambda s: s > -1, lambda s: keel.reduce_sum(x[x > 0]))).concrete(x)
    session = keel.Session(f, timeout_ms=100)
    begin = time.perf_counter()
    with pytest.raises(keel.CancelledError):
        session.run(x=x)
    assert time.perf_counter() - begin < 10
