"""Functions whose result sizes only a run knows: trim, nonzero, where, compress, unique, t[mask]; numpy is the oracle."""
import keel
import numpy as np
import pytest

SIZES = (0, 1, 2, 7, 60)


def numbers(n, seed=0):
    return np.random.default_rng(seed + n).integers(-2, 3, n).astype("f4")


def same(got, expected):
    got, expected = [v if isinstance(v, tuple) else (v,) for v in (got, expected)]
    assert len(got) == len(expected)
    for g, e in zip(got, expected):
        g = np.asarray(g)
        assert g.shape == np.shape(e) and g.tolist() == np.asarray(e).tolist()


@pytest.mark.parametrize("n", SIZES)
def test_eager(device, n):
    x = numbers(n)
    same(keel.nonzero(keel.array(x)), np.nonzero(x))
    same(keel.nonzero(keel.zeros([n])), np.nonzero(np.zeros(n)))
    same(keel.compress(keel.array(x > 0), x), x[x > 0])
    same(keel.array(x)[keel.array(x > 0)], x[x > 0])
    same(keel.unique(x, True, True, True), np.unique(x, True, True, True))


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 5), (0, 3), (3, 0), (1, 1, 1, 1)])
def test_dims(device, shape):
    x = numbers(int(np.prod(shape))).reshape(shape)
    same(keel.nonzero(x), np.nonzero(x))
    same(keel.array(x)[x > 0], x[x > 0])
    same(keel.unique(x, return_inverse=True)[0], np.unique(x))
    for axis in range(len(shape)):
        keep = np.arange(shape[axis]) % 2 == 0
        same(keel.compress(keep, x, axis), np.compress(keep, x, axis))
    mask = np.arange(shape[-1]) % 2 == 1
    same(keel.array(x)[..., mask], x[..., mask])


@pytest.mark.parametrize("shape", [(0,), (1,), (9,), (3, 4), (2, 3, 5), (0, 3), (3, 0), (1, 1, 1)])
def test_where(device, shape):
    x = numbers(int(np.prod(shape))).reshape(shape)
    expected, traced = np.where(x > 0), keel.function(lambda x: keel.where(x > 0))
    for got in (keel.where(x > 0), keel.where(keel.array(x) > 0), traced(x)):
        assert isinstance(got, tuple) and all(i.dtype == "i64" for i in got)
        same(got, expected)
    same(keel.where(x), np.where(x))  # numbers
    same(keel.where(np.zeros(shape, bool)), np.where(np.zeros(shape, bool)))
    same(keel.gather_nd(x, keel.stack(keel.where(x > 0), 1)), x[x > 0])
    same(keel.where(x > 0, keel.array(x), 7.), np.where(x > 0, x, 7))


def test_where_one_trace_serves_all_sizes(device):
    @keel.function(signature="x: f32[n, m]")
    def found(x):
        rows, columns = keel.where(x > 0)
        return rows, columns, rows * 10 + columns, keel.gather(x, rows)

    for shape in ((3, 4), (0, 2), (1, 1), (7, 9), (2, 0), (3, 4)):
        x = numbers(shape[0] * shape[1]).reshape(shape)
        rows, columns = np.where(x > 0)
        same(found(x), (rows, columns, rows * 10 + columns, x[rows]))


@pytest.mark.parametrize("shape", [(0,), (1,), (9,), (3, 4)])
def test_gradients_pass_through_a_gather_at_where(device, shape):
    x = numbers(int(np.prod(shape))).reshape(shape)

    def loss(x):
        at = keel.where(x > 0)
        chosen = x[at] if x.ndim == 1 else keel.gather_nd(x, keel.stack(at, 1))
        return keel.reduce_sum(chosen * chosen * chosen)

    expected = np.where(x > 0, 3 * x * x, 0)
    same(keel.grad(loss)(keel.array(x)), expected)
    same(keel.function(keel.grad(loss))(keel.array(x)), expected)


def test_wrong_operands_of_where():
    with pytest.raises(keel.InvalidError, match=r"where: condition is bool\[\], expected at least one dim; reshape it to \[1\] first"):
        keel.where(True)
    with pytest.raises(keel.InvalidError, match="where: y is missing; expected a condition alone, or a condition, x and y"):
        keel.where([True, False], [1., 2.])
    with pytest.raises(keel.InvalidError, match="where: x is missing"):
        keel.where([True, False], y=1.)
    with pytest.raises(keel.Error, match="select.*the literal 1. is a float, the other operand bool"):
        keel.where([1., 0.], [1., 2.], [3., 4.])


@pytest.mark.parametrize("kind", ["i32", "u8", "bool", "f64"])
def test_dtypes(kind):
    x = numbers(12).astype({"i32": "i4", "u8": "u1", "bool": "?", "f64": "f8"}[kind])
    same(keel.nonzero(x), np.nonzero(x))
    same(keel.unique(x), np.unique(x))


def test_nan_is_not_zero_and_not_itself():
    x = [float("nan"), 0., 1., float("nan")]
    same(keel.nonzero(x), np.nonzero(x))
    same(keel.unique(x, return_inverse=True)[1], np.array([2, 0, 1, 3]))
    assert np.isnan(np.asarray(keel.unique(x))).tolist() == [False, False, True, True]


def test_one_trace_serves_all_sizes(device):
    @keel.function(signature="x: f32[n]")
    def chosen(x):
        found = x[x > 0]
        return found * 2, keel.nonzero(x)[0], keel.unique(x), keel.reduce_sum(found), keel.zeros([found.shape[0], 2])

    for n in (*SIZES, 7, 0):
        x = numbers(n)
        same(chosen(x), (x[x > 0] * 2, np.nonzero(x)[0], np.unique(x), x[x > 0].sum(), np.zeros([(x > 0).sum(), 2])))
    same(chosen(np.zeros(5, "f4")), (np.zeros(0), np.zeros(0, int), np.zeros(1), 0, np.zeros([0, 2])))


def test_a_choice_of_a_choice(device):
    @keel.function(signature="x: f32[n, 3]")
    def twice(x):
        rows = x[x[:, 0] > 0]
        return rows[rows[:, 1] > 0], rows @ keel.ones([3, 2])

    for n in SIZES:
        x = numbers(3 * n).reshape(n, 3)
        rows = x[x[:, 0] > 0]
        same(twice(x), (rows[rows[:, 1] > 0], rows @ np.ones([3, 2], "f4")))


def test_wrong_counts_and_operands(device):
    x = keel.array([1., 2., 3.])
    same(keel.trim(x, 2), np.array([1., 2.]))
    same(keel.trim(x, keel.array(0, "i64")), np.zeros(0))
    for count in (-1, 4, 2**40):
        with pytest.raises(keel.RangeError, match=rf"count {count} is not in \[0, 3\]"):
            keel.trim(x, keel.array(count, "i64"))
    with pytest.raises(keel.RangeError, match="count is 1, but the attribute size is 2"):
        keel.trim(x, 1, size=2)
    with pytest.raises(keel.InvalidError, match=r"nonzero: x is f32\[\], expected at least one dim"):
        keel.nonzero(1.)
    with pytest.raises(keel.InvalidError, match=r"expected bool\[k\]"):
        keel.compress([1, 0], x)
    with pytest.raises(keel.RangeError, match=r"index 3 is not in \[0, 3\)"):
        keel.compress([True] * 4, x).tolist()  # a device reports it when the result is read
    with pytest.raises(keel.ShapeError, match="dim 0 of the mask is 2, but dim 0 of t is 3"):
        x[keel.array([True, False])]
    with pytest.raises(keel.InvalidError, match="a bool without dims cannot be an index"):
        x[keel.array(True)]


def test_gradients_pass_through_the_chosen_elements(device):
    x = numbers(9)

    def loss(x):
        return keel.reduce_sum(keel.square(x[x > 0]))

    expected = np.where(x > 0, 2 * x, 0)
    same(keel.grad(loss)(keel.array(x)), expected)
    same(keel.function(keel.grad(loss))(keel.array(x)), expected)


def test_the_gradient_of_traced_calls(device):
    chosen = keel.function(lambda x: x[x > 0], signature="x: f32[n]")

    @keel.function(signature="x: f32[n]")
    def loss(x):
        return keel.reduce_sum(keel.square(x[x > 0]))

    for n in SIZES:
        x = numbers(n)
        same(keel.grad(lambda x: loss(x) + loss(-x))(keel.array(x)), 2 * x)  # another size in each call
        same(keel.function(keel.grad(loss))(keel.array(x)), np.where(x > 0, 2 * x, 0))
    with pytest.raises(keel.UnimplementedError, match=r"size size0 is known in a run only[^~]*in a traced function"):
        keel.grad(lambda x: keel.reduce_sum(chosen(x)))(keel.array(x))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_gradient_of_trim(device, count):
    x = keel.array([1., 2., 3.])

    def loss(x):
        return keel.reduce_sum(keel.square(keel.trim(x, keel.array(count))))

    expected = 2 * np.array([1., 2., 3.]) * (np.arange(3) < count)
    same(keel.grad(loss)(x), expected)
    same(keel.function(keel.grad(loss))(x), expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_files(tmp_path, threads):
    @keel.function(signature="x: f32[n]")
    def chosen(x):
        return x[x > 0] + 1

    keel.save(tmp_path / "m.keel", chosen=chosen.concrete(numbers(3)))
    module = keel.load(tmp_path / "m.keel")
    for again in (module, keel.parse(module.text())):
        session = keel.Session(again, threads=threads)
        for n in (*SIZES, 2):
            x = numbers(n)
            same(*session.run(x=x).values(), x[x > 0] + 1)


def test_a_size_of_the_run_is_no_number_in_a_trace():
    @keel.function(signature="x: f32[n]")
    def asks(x):
        return x if x[x > 0].shape[0] == 3 else -x

    @keel.function(signature="x: f32[n]")
    def counts(x):
        return keel.dim(x[x > 0].shape[0])  # the value itself is not used, but its size is

    with pytest.raises(keel.PreconditionError, match="the size size0 is known in a run only"):
        asks(numbers(4))
    for n in SIZES:
        same(counts(numbers(n)), np.asarray((numbers(n) > 0).sum()))


def test_loops_and_branches_over_chosen_elements(device):
    @keel.function(signature="x: f32[n]")
    def program(x):
        found = x[x > 0]
        total, sums = keel.scan(keel.array(0.), found, lambda s, v: (s + v, s + v))
        size = found.shape[0]
        grown = keel.while_loop(found, lambda v: keel.reduce_sum(v) < -1, lambda v: v + keel.ones([size]))
        return total, sums, grown, keel.cond(total > 3, lambda: keel.ones([size]), lambda: found)

    for n in SIZES:
        x = numbers(n)
        found = x[x > 0]
        same(program(x), (found.sum(), np.cumsum(found), found, np.ones(len(found)) if found.sum() > 3 else found))


def test_effects_keep_their_order(device):
    v = keel.Variable([0., 0.])

    @keel.function(signature="x: f32[n]")
    def count(x):
        found = x[x > 0]
        v.assign_add(keel.stack([keel.reduce_sum(found), keel.array(1.)]))
        return v + 0

    total = 0
    for k, n in enumerate(SIZES):
        x = numbers(n)
        total += float(x[x > 0].sum())
        same(count(x), np.array([total, k + 1.]))


def test_prepared_sessions(device):
    @keel.function(signature="x: f32[n]")
    def chosen(x):
        return x[x > 0]

    plan = keel.Session(chosen.concrete(numbers(3)), device).prepare()
    for n in SIZES:
        x = numbers(n)
        same(plan(x), x[x > 0])
