"""keel.arange() of numbers of a trace, whose count only a run knows, against numpy.arange(); limits; errors."""
import keel
import numpy as np
import pytest

WHOLE = [(0, 5, 1), (2, 9, 3), (9, 2, -3), (3, 3, 1), (5, 2, 1), (2, 5, -1), (-4, 4, 4), (0, 1, 1), (-7, -1, 5)]
FLOATS = [(0., 1., .25), (0., .5, .1), (1., 0., -.125), (0., 0., 1.), (-2.5, 2.5, .75), (1., -1., .5), (0., 1e-3, 1.), (0., .7, .1)]


@pytest.mark.parametrize("numbers", WHOLE, ids=str)
@pytest.mark.parametrize("kind", ["i32", "i64", "u8"])
def test_integers(device, numbers, kind):
    if kind == "u8" and min(numbers) < 0:
        numbers = [abs(v) for v in numbers]
    of = keel.function(lambda a, b, c: keel.arange(a, b, c, limit=9), name="of")
    got = of(*(keel.array(v, kind) for v in numbers))
    assert got.dtype is keel.i32 and got.tolist() == np.arange(*numbers).tolist()


@pytest.mark.parametrize("numbers", FLOATS, ids=str)
def test_floats(device, numbers):
    @keel.function
    def of(a, b, c):
        return keel.arange(a, b, c, limit=9), keel.arange(a, b, c, keel.f64, limit=9)

    narrow, wide = of(*(keel.array(v, keel.f64) for v in numbers))
    want = np.arange(*numbers)
    assert narrow.dtype is keel.f32 and wide.dtype is keel.f64
    np.testing.assert_allclose(wide.numpy(), want, rtol=1e-15, atol=1e-15)
    np.testing.assert_array_equal(keel.arange(*numbers, dtype=keel.f64).numpy().shape, want.shape)
    np.testing.assert_allclose(narrow.numpy(), want.astype("f4"), rtol=1e-7)


def test_one_trace_serves_all_counts(device):
    @keel.function(signature="x: f32[n], stop: i32[]")
    def f(x, stop):
        places = keel.arange(stop, limit=x.shape[0])
        return places * 2, keel.gather(x, places), keel.zeros([places.shape[0], 2]), keel.arange(1, stop, 2, limit=50)

    for n, stop in ((5, 3), (5, 0), (0, 0), (7, 7), (1, 1), (5, -2)):
        x = np.sin(np.arange(n, dtype="f4"))
        doubled, first, zeros, odd = f(x, stop)
        np.testing.assert_array_equal(doubled, np.arange(stop) * 2)
        np.testing.assert_array_equal(first, x[:max(stop, 0)])
        assert tuple(zeros.shape) == (max(stop, 0), 2) and odd.tolist() == list(range(1, stop, 2))
    assert f.trace_count == 1


def test_sizes_numbers_and_variables_meet(device):
    start = keel.Variable(2)

    @keel.function(signature="x: f32[n], step: i32[]")
    def f(x, step):
        return keel.arange(start, x.shape[0] + 1, step, limit=x.shape[0] + 1), keel.arange(0, x.shape[0] / 2, keel.cast(step, "f32"), limit=20)

    for n, step in ((6, 1), (6, 2), (1, 3)):
        whole, halves = f(np.zeros(n, "f4"), step)
        assert whole.tolist() == list(range(2, n + 1, step))
        np.testing.assert_array_equal(halves, np.arange(0, n / 2, step, "f4"))


def test_more_numbers_than_the_limit(device):
    f = keel.function(lambda n: keel.arange(n, limit=4), name="f")
    assert f(keel.array(4)).tolist() == [0, 1, 2, 3]
    with pytest.raises(keel.RangeError, match=r"count 5 is not in \[0, 4\]"):
        f(keel.array(5)).tolist()
    assert keel.arange(4, limit=4).tolist() == [0, 1, 2, 3]
    with pytest.raises(keel.RangeError, match="arange: there are 5 numbers, but limit is 4"):
        keel.arange(keel.array(5), limit=4)


def test_without_a_limit_the_error_names_it():
    f = keel.function(lambda n: keel.arange(n), name="f")
    with pytest.raises(keel.PreconditionError, match="(?s)arange: start, stop or step is a tensor of a trace.*hint: pass limit=N, the most numbers"):
        f(keel.array(5))


def test_gradients_flow_to_start_and_step(device):
    def loss(start, step):
        return keel.reduce_sum(keel.arange(start, start + 3.5 * step, step, limit=8))

    f = keel.function(lambda a, b: keel.grad(loss, argnums=(0, 1))(a, b), name="f")
    assert [float(d) for d in f(keel.array(1.), keel.array(2.))] == [4, 6]
