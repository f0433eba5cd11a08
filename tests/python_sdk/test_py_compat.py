"""keel.compat.v2: TensorFlow's names and parameters, printing, errors, devices; NumPy is the oracle."""
import inspect
import operator

import keel
import numpy as np
import pytest
from rows_common import tf, tf1  # noqa: F401

X = np.array([[.5, -1., 2.], [0., 3., -4.]], "f4")
N = np.array([[1, 5, 3], [7, 2, 9]], "i4")
M = np.array([[4, 1], [1, 3]], "f4")
GENERAL = np.array([[1, 2], [-3, 5]], "f4")
SQUARE = np.array([[1, 9, 3], [4, 5, 6], [7, 8, 2]], "f4")
ROWS = np.array([[0, 1, 0], [0, 0, 1]], "f4")
LOSS = np.log(np.exp(X).sum(1)) - X[[0, 1], [1, 2]]  # cross entropy of the classes 1 and 2


def both(*rows):
    """(name, call of tf, NumPy's result)"""
    return [pytest.param(call, wanted, id=name) for name, call, wanted in rows]


@pytest.mark.parametrize("call, wanted", both(
    ("abs", lambda tf: tf.abs(X), np.abs(X)), ("math_exp", lambda tf: tf.math.exp(X), np.exp(X)),
    ("negative", lambda tf: tf.negative(X), -X),
    ("subtract", lambda tf: tf.subtract(X, 1.), X - 1), ("multiply", lambda tf: tf.math.multiply(x=X, y=X), X * X),
    ("divide", lambda tf: tf.divide(tf.constant(N), 2), N / 2), ("truediv", lambda tf: tf.truediv(X, 2), X / 2),
    ("floordiv", lambda tf: tf.math.floordiv(-7, 2), np.int32(-4)),
    ("floormod", lambda tf: tf.math.floormod(-7, 2), np.int32(1)),
    ("matmul", lambda tf: tf.matmul(X, X, transpose_b=True), X @ X.T),
    ("linalg_matmul", lambda tf: tf.linalg.matmul(X, X, True), X.T @ X),
    ("cast", lambda tf: tf.cast([1.7, -1.7], tf.int32), np.array([1, -1], "i4")),
    ("shape", lambda tf: tf.shape(X), np.array([2, 3], "i4")),
    ("size", lambda tf: tf.size(X), np.int32(6)), ("rank", lambda tf: tf.rank(X), np.int32(2)),
    ("reshape", lambda tf: tf.reshape(X, [3, -1]), X.reshape(3, 2)),
    ("reshape_by_tensor", lambda tf: tf.reshape(X, tf.constant([6])), X.ravel()),
    ("transpose", lambda tf: tf.transpose(X, perm=[1, 0]), X.T),
    ("expand_dims", lambda tf: tf.expand_dims(X, -1), X[..., None]),
    ("expand_dims_1", lambda tf: tf.expand_dims(X, axis=1), X[:, None]),
    ("squeeze", lambda tf: tf.squeeze(X[None, :, None]), X),
    ("squeeze_axis", lambda tf: tf.squeeze(X[None, :, None], axis=[0]), X[:, None]),
    ("split", lambda tf: tf.split(X, 3, axis=1)[1], X[:, 1:2]),
    ("split_sizes", lambda tf: tf.split(X, [1, 2], 1)[1], X[:, 1:]),
    ("unstack", lambda tf: tf.unstack(X)[1], X[1]), ("stack", lambda tf: tf.stack([X, X], axis=1), np.stack([X, X], 1)),
    ("concat", lambda tf: tf.concat([X, X], axis=-1), np.concatenate([X, X], -1)),
    ("tile", lambda tf: tf.tile(X, [2, 1]), np.tile(X, (2, 1))),
    ("pad", lambda tf: tf.pad(X, [[1, 0], [0, 2]], constant_values=7), np.pad(X, [[1, 0], [0, 2]], constant_values=7)),
    ("reverse", lambda tf: tf.reverse(X, [1]), X[:, ::-1]),
    ("zeros", lambda tf: tf.zeros([2, 3], tf.int64), np.zeros((2, 3), "i8")),
    ("zeros_scalar", lambda tf: tf.zeros(5), np.zeros(5, "f4")),
    ("ones_like", lambda tf: tf.ones_like(N), np.ones_like(N)),
    ("fill", lambda tf: tf.fill([2], 3.5), np.full(2, 3.5, "f4")),
    ("eye", lambda tf: tf.eye(2, num_columns=3), np.eye(2, 3, dtype="f4")),
    ("range", lambda tf: tf.range(1, 7, delta=2), np.arange(1, 7, 2, dtype="i4")),
    ("gather", lambda tf: tf.gather(X, [2, 0], axis=1), X[:, [2, 0]]),
    ("gather_nd", lambda tf: tf.gather_nd(X, [[1, 2], [0, 0]]), X[[1, 0], [2, 0]]),
    ("one_hot", lambda tf: tf.one_hot([2, 0], 3), np.eye(3, dtype="f4")[[2, 0]]),
    ("one_hot_values", lambda tf: tf.one_hot([1], 2, on_value=5., off_value=-1.), np.array([[-1, 5]], "f4")),
    ("where", lambda tf: tf.where(X > 0, X, 0.), np.where(X > 0, X, 0)),
    ("clip", lambda tf: tf.clip_by_value(X, -1., 1.), X.clip(-1, 1)),
    ("argmax", lambda tf: tf.argmax(X, axis=1), X.argmax(1)),
    ("argmin", lambda tf: tf.argmin(X, 1, output_type=tf.int32), X.argmin(1).astype("i4")),
    ("cumsum", lambda tf: tf.cumsum(X, axis=1), X.cumsum(1)),
    ("atan", lambda tf: tf.atan(X), np.arctan(X)), ("asin", lambda tf: tf.math.asin(X / 9), np.arcsin(X / 9)),
    ("acos", lambda tf: tf.acos(x=X / 9), np.arccos(X / 9)), ("tan", lambda tf: tf.math.tan(X), np.tan(X)),
    ("atan2", lambda tf: tf.math.atan2(y=X, x=-1.), np.arctan2(X, np.float32(-1))),
    ("linspace", lambda tf: tf.linspace(1., 2., 5), np.linspace(1, 2, 5, dtype="f4")),
    ("roll", lambda tf: tf.roll(X, shift=-1, axis=1), np.roll(X, -1, 1)),
    ("sort", lambda tf: tf.sort(X, axis=0), np.sort(X, 0)),
    ("sort_down", lambda tf: tf.sort(X, direction="DESCENDING"), -np.sort(-X)),
    ("argsort", lambda tf: tf.argsort(X, axis=1), np.argsort(X, 1).astype("i4")),
    ("cholesky", lambda tf: tf.linalg.cholesky(M), np.linalg.cholesky(M)), ("inv", lambda tf: tf.linalg.inv(GENERAL), np.linalg.inv(GENERAL)),
    ("inv_adjoint", lambda tf: tf.linalg.inv(GENERAL, adjoint=True), np.linalg.inv(GENERAL).T),
    ("det", lambda tf: tf.linalg.det([GENERAL, M]), np.linalg.det(np.stack([GENERAL, M]))),
    ("solve", lambda tf: tf.linalg.solve(GENERAL, X), np.linalg.solve(GENERAL, X)),
    ("solve_adjoint", lambda tf: tf.linalg.solve(GENERAL, X, adjoint=True), np.linalg.solve(GENERAL.T, X)),
    ("triangular_solve", lambda tf: tf.linalg.triangular_solve(GENERAL, rhs=X, lower=False), np.linalg.solve(np.triu(GENERAL), X)),
    ("triangular_solve_adjoint", lambda tf: tf.linalg.triangular_solve(GENERAL, X, adjoint=True), np.linalg.solve(np.tril(GENERAL).T, X)),
    ("eigenvalues", lambda tf: tf.linalg.eigh(M)[0], np.linalg.eigvalsh(M)),
    ("eigenvectors", lambda tf: (lambda w, v: tf.matmul(v * w, v, transpose_b=True))(*tf.linalg.eigh(M)), M),
    ("qr", lambda tf: tf.matmul(*tf.linalg.qr(X)), X), ("singular_values", lambda tf: tf.linalg.svd(X, compute_uv=False), np.linalg.svd(X)[1]),
    ("svd", lambda tf: (lambda s, u, v: tf.matmul(u * s, v, transpose_b=True))(*tf.linalg.svd(X)), X),
    ("svd_of_a_batch", lambda tf: tf.linalg.svd([M, GENERAL])[2] * 0., np.zeros((2, 2, 2), "f4")),
    ("band_part", lambda tf: tf.linalg.band_part(SQUARE, 1, 0), np.tril(np.triu(SQUARE, -1))),
    ("band_part_lower", lambda tf: tf.linalg.band_part(SQUARE, -1, 1), np.tril(SQUARE, 1)),
    ("band_part_upper", lambda tf: tf.linalg.band_part(SQUARE, 0, -1), np.triu(SQUARE)),
    ("einsum", lambda tf: tf.einsum("ij,kj->ik", X, X), X @ X.T), ("cumprod", lambda tf: tf.math.cumprod(X, axis=1), X.cumprod(1)),
    ("top_k", lambda tf: tf.math.top_k(SQUARE, k=2)[0], -np.sort(-SQUARE)[:, :2]),
    ("top_k_places", lambda tf: tf.nn.top_k(SQUARE, 2)[1], np.argsort(-SQUARE)[:, :2].astype("i4")),
    ("shuffled", lambda tf: tf.sort(tf.random.shuffle(N.ravel(), seed=3)), np.sort(N.ravel())),
    ("categorical", lambda tf: tf.random.categorical([[0., -1e9], [-1e9, 0.]], 3), np.array([[0, 0, 0], [1, 1, 1]])),
    ("truncated_normal", lambda tf: tf.cast(tf.abs(tf.random.truncated_normal([50], 5., 0.5, seed=1) - 5.) < 1., tf.int32), np.ones(50, "i4")),
    ("variance", lambda tf: tf.math.reduce_variance(X, axis=1), X.var(1)),
    ("std", lambda tf: tf.math.reduce_std(X, 0, keepdims=True), X.std(0, keepdims=True)),
    ("reduce_mean", lambda tf: tf.reduce_mean(X, axis=[0]), X.mean(0)),
    ("reduce_sum_keep", lambda tf: tf.math.reduce_sum(X, 1, keepdims=True), X.sum(1, keepdims=True)),
    ("reduce_max", lambda tf: tf.reduce_max(N), N.max()),
    ("reduce_all", lambda tf: tf.reduce_all(X > -9, axis=1), np.array([True, True])),
    ("reduce_any", lambda tf: tf.reduce_any(X > 2, axis=1), np.array([False, True])),
    ("logsumexp", lambda tf: tf.reduce_logsumexp(X), np.log(np.exp(X).sum())),
    ("logsumexp_axis", lambda tf: tf.reduce_logsumexp(X, axis=1), np.log(np.exp(X).sum(1))),
    ("softmax", lambda tf: tf.nn.softmax(X), np.exp(X) / np.exp(X).sum(1, keepdims=True)),
    ("bitwise", lambda tf: tf.bitwise.bitwise_and(N, 3), N & 3),
    ("maximum", lambda tf: tf.maximum(0., X), np.maximum(0, X)),
    ("leaky_relu", lambda tf: tf.nn.leaky_relu(X), np.where(X > 0, X, X * np.float32(.2))),
    ("cross_entropy", lambda tf: tf.nn.softmax_cross_entropy_with_logits(ROWS, logits=X), LOSS),
    ("sparse_cross_entropy", lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 2], logits=X), LOSS),
    ("cond", lambda tf: tf.cond(tf.constant(1) > 0, lambda: 1, lambda: 2), np.int32(1)),
    ("switch_case", lambda tf: tf.switch_case(tf.constant(1), [lambda: 1, lambda: 2]), np.int32(2)),
    ("while_loop", lambda tf: tf.while_loop(lambda i: i < 5, lambda i: (i + 2,), [tf.constant(0)])[0], np.int32(6)),
    ("constant_shape", lambda tf: tf.constant(3., shape=[2, 2]), np.full((2, 2), 3, "f4")),
    ("constant_reshaped", lambda tf: tf.constant([1, 2, 3, 4], shape=(2, 2)), np.array([[1, 2], [3, 4]], "i4"))))
def test_functions_do_what_tensorflows_do(tf, call, wanted):
    got = call(tf)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6, atol=1e-7)
    traced = tf.function(lambda: call(tf))()
    np.testing.assert_array_equal(traced.numpy(), got.numpy())


def test_functions_tell_their_parameters(tf, tf1):  # noqa: F811
    for module in (tf, tf1):
        assert str(inspect.signature(module.matmul)) == "(a, b, transpose_a=False, transpose_b=False)"
        assert module.matmul.__name__ == "matmul" and "tf.matmul" in module.matmul.__doc__
    assert "stderr" in tf.print.__doc__


def test_names_are_taken_and_mean_nothing_eagerly(tf):
    assert tf.add(1, 2, name="sum").numpy() == 3 and tf.constant(3, name="a").numpy() == 3
    with tf.name_scope("layer"), tf.control_dependencies([]):
        assert tf.add(1, 2).numpy() == 3 and tf.executing_eagerly()
    with tf.Graph().as_default() as g:
        with tf.name_scope("layer"):
            assert g.name_of(tf.constant(1)) == "layer/const"
        assert g.name_of(tf.add(tf.constant(1, name="one"), 2, name="sum")) == "sum" and g.node("one").op == "constant"


@pytest.mark.parametrize("call, kind, said", [
    (lambda tf: tf.keras, AttributeError, "keel.compat.v2 has no 'keras'"), (lambda tf: tf.add(1), TypeError, "y"),
    (lambda tf: tf.reduce_mean(X, axes=1), TypeError, "axes"),
    (lambda tf: tf.squeeze(X, axis=0), ValueError, "dim 0 has the size 2, expected 1"),
    (lambda tf: tf.split(X, 2, axis=1), ValueError, "into 2 equal parts"),
    (lambda tf: tf.matmul(X, X), ValueError, "matmul"), (lambda tf: tf.sort(X, direction="UP"), ValueError, "DESCENDING"),
    (lambda tf: tf.linalg.qr(X, full_matrices=True), ValueError, "tf.linalg.qr: full_matrices=True is not supported"),
    (lambda tf: tf.linalg.svd(X, True), ValueError, "tf.linalg.svd: full_matrices=True"),
    (lambda tf: tf.linalg.solve(X, X), ValueError, "solve"), (lambda tf: tf.linalg.einsum("ij", X, X), ValueError, "einsum"),
    (lambda tf: tf.constant("text"), TypeError, "str cannot be converted to a tensor"),
    (lambda tf: tf.device("/gpu"), keel.DeviceError, "no device"),
    (lambda tf: tf.constant([1], dtype="f33"), TypeError, "no dtype"),
    (lambda tf: tf.Variable(), TypeError, "initial_value")])
def test_wrong_uses_are_errors(tf, call, kind, said):
    if kind is keel.DeviceError and "cuda:0" in keel.devices():
        pytest.skip("there is a GPU")
    with pytest.raises(kind, match=said):
        call(tf)


def test_tensors_print_as_tensorflows(tf):
    t = tf.constant([[1., 2.], [3., 4.]])
    assert str(t) == "tf.Tensor(\n[[1. 2.]\n [3. 4.]], shape=(2, 2), dtype=float32)"
    assert repr(t) == ("<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\n"
                       "array([[1., 2.],\n       [3., 4.]], dtype=float32)>")
    assert repr(tf.constant(11)) == "<tf.Tensor: shape=(), dtype=int32, numpy=11>"
    assert str(tf.constant(True)) == "tf.Tensor(True, shape=(), dtype=bool)"
    assert f"{t}" == "[[1. 2.]\n [3. 4.]]" and "{:.1f}".format(tf.constant(2.)) == "2.0"
    seen = []
    tf.function(lambda x: seen.append((str(x), repr(x))) or x, input_signature=[tf.TensorSpec([None, 2])])(t)
    assert seen == [("Tensor(shape=(None, 2), dtype=float32)", "<tf.Tensor shape=(None, 2) dtype=float32>")]
    keel.compat.enable(False)
    assert str(t) == "[[1. 2.]\n [3. 4.]]" and repr(tf.constant(11)) == "Tensor i32[]: 11"


def test_errors_are_of_both_kinds(tf):
    for call, ours, theirs in (
            (lambda: tf.gather(X, [7]), keel.RangeError, "InvalidArgumentError"),
            (lambda: keel.load("no.keel"), keel.NotFoundError, "NotFoundError"),
            (lambda: tf.add(X, N), keel.DTypeError, "InvalidArgumentError"),
            (lambda: tf.function(lambda x: x.numpy())(N), keel.PreconditionError, "FailedPreconditionError")):
        with pytest.raises(getattr(tf.errors, theirs)) as caught:
            call()
        assert isinstance(caught.value, (ours, tf.errors.OpError)) and type(caught.value).__name__ == theirs
    keel.compat.enable(False)
    with pytest.raises(keel.RangeError) as caught:
        tf.gather(X, [7])
    assert type(caught.value) is keel.RangeError


def test_variables_and_tapes(tf):
    w, frozen = tf.Variable([1., 2.], name="w"), tf.Variable(3., trainable=False)
    with tf.GradientTape(persistent=True) as tape:
        x = tf.constant([3., 4.])
        tape.watch([x])
        y = tf.reduce_sum(w * x * frozen)
    grads = tape.gradient(y, {"w": w, "x": x, "f": frozen})
    assert grads["w"].numpy().tolist() == [9, 12] and grads["x"].numpy().tolist() == [3, 6] and grads["f"] is None
    assert tape.gradient(y, frozen, unconnected_gradients="zero").numpy() == 0
    assert tape.gradient(w * x, x, output_gradients=tf.constant([1., 10.])) is None  # created outside the tape
    assert w.assign_sub([1., 1.]) is w and w.numpy().tolist() == [0, 1]
    assert w.assign([5, 6]).read_value().numpy().tolist() == [5, 6]
    assert repr(w) == "<tf.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([5., 6.], dtype=float32)>"
    assert tf.Variable(lambda: 1).numpy() == 1 and tf.Variable(1, dtype=tf.float64).dtype == tf.float64
    assert tf.is_tensor(w)


def test_functions_are_polymorphic_and_concrete(tf):
    f = tf.function(lambda x, y=2: x * y)
    for n in range(1, 6):
        f(tf.zeros(n))
    assert f.trace_count == 5 and "Args:" in f.pretty_printed_concrete_signatures()
    loose = tf.function(lambda x: x * 2, reduce_retracing=True)
    for n in range(2, 7):
        loose(tf.zeros(n))
    assert loose.trace_count == 3
    concrete = f.get_concrete_function(tf.TensorSpec([2], tf.int32))
    assert concrete(tf.constant([3, 4])).numpy().tolist() == [6, 8] and "mul" in concrete.graph.as_graph_def()
    assert keel.parse(concrete.graph.as_graph_def()).text() == concrete.graph.as_graph_def()

    class Model:
        def __init__(self):
            self.w = tf.Variable(3.)

        @tf.function
        def __call__(self, x):
            return x * self.w
    assert Model()(tf.constant(2.)).numpy() == 6


def test_devices_are_listed(tf):
    assert "CPU" in {d.device_type for d in tf.config.list_physical_devices()}
    assert tf.config.list_logical_devices("CPU")[0].name == "/device:CPU:0"
    with tf.device("/cpu:0"), tf.device(None):
        assert tf.add(1, 2).numpy() == 3


def test_print_and_assertions(tf, capfd):
    tf.print("x:", tf.constant([1, 2]), "{y}", summarize=-1)
    tf.print(tf.constant(1.5), 2, sep=", ")
    assert capfd.readouterr().err == "x: [1 2] {y}\n1.5, 2\n"
    tf.debugging.assert_equal(tf.constant([1, 2]), [1, 2])
    for wrong in (lambda: tf.debugging.assert_equal([1, 2], [1, 3], message="mine"),
                  lambda: tf.debugging.assert_less(2, 1), lambda: tf.debugging.assert_positive(0)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            wrong()


def test_datasets(tf):
    data = tf.data.Dataset.from_tensor_slices({"x": np.arange(5)})
    assert [b["x"].numpy().tolist() for b in data.batch(2).repeat(2)] == [[0, 1], [2, 3], [4]] * 2
    shuffled = [int(b["x"]) for b in data.shuffle(5, seed=3)]
    assert sorted(shuffled) == list(range(5)) and len(data.batch(2, drop_remainder=True)) == 2


def test_conversion_is_a_choice(tf):
    def code(x):
        return x if x > 0 else -x
    assert tf.function(code)(tf.constant(-2)).numpy() == 2
    for plain in (tf.function(code, autograph=False), tf.function(tf.autograph.experimental.do_not_convert(code))):
        with pytest.raises(keel.PreconditionError):
            plain(tf.constant(-2))


def test_both_modules_live_side_by_side(tf, tf1):
    a = tf1.constant(3)
    assert a.symbolic and not tf.constant(3).symbolic and tf.compat.v1 is tf1
    assert not keel.add(1, 2).symbolic and keel.executing_eagerly()


def test_hints_fit_the_case(tf):
    @tf.function
    def counts(n):
        total = tf.constant(0)
        for i in tf.range(n):
            total += i
        for i in tf.range(1, n, 2):
            total += i * 100
        return total
    assert counts(tf.constant(5)).numpy() == 410 and counts(tf.constant(0)).numpy() == 0
    for use in (lambda n: tf.reduce_sum(tf.range(n)), lambda n: tf.range(n) + 1, lambda n: [i for i in tf.range(n)],
                lambda n: tf.range(n).shape, lambda n: tf.zeros(1) * tf.range(n)):
        with pytest.raises(keel.PreconditionError, match="for i in tf.range"):
            tf.function(use)(tf.constant(3))
    with pytest.raises(AttributeError, match=r"keel.compat has no tf.nn.rellu: do you mean tf.nn.relu\?"):
        tf.nn.rellu
    with pytest.raises(AttributeError, match=r"no tf.nn.rms_norm, but Keel has keel.rms_norm"):
        tf.nn.rms_norm
    for name, said in (("math.betainc", "keel.compat has no tf.math.betainc: use keel"), ("keras", "keel.optim and keel.data"),
                       ("image", "has no tf.image: use keel"), ("custom_gradient", "but Keel has keel.custom_gradient"),
                       ("recompute_grad", r"keel.custom_gradient\(f, backward\)"), ("nn.softmaxx", "do you mean tf.nn.softmax")):
        with pytest.raises(AttributeError, match=said):
            operator.attrgetter(name)(tf)
    with pytest.raises(AttributeError, match="v2 has no 'reduce_sums'.*do you mean tf.reduce_sum"):
        tf.reduce_sums


def test_concrete_functions_take_the_tensors_alone(tf):
    f = tf.function(lambda a, b, c=1.: a * b + c)
    spec, x = tf.TensorSpec([2], tf.float32), tf.constant([1., 2.])
    for made in (f.get_concrete_function(a=spec, b=2), f.get_concrete_function(spec, 2)):
        for got in (made(x), made(a=x), made(x, 2), made(x, 2, 1.)):
            assert got.numpy().tolist() == [3, 5]
    for other in (lambda: f.get_concrete_function(spec, 2)(x, 3), lambda: f.get_concrete_function(a=spec, b=2, c=1.)(x, 2, c=2.)):
        with pytest.raises(TypeError, match="is concrete for (b=2, not 3|c=1.0, not 2.0)"):
            other()
    wide = tf.TensorSpec([None], tf.float32)
    for made, args in ((f, (wide, 2)), (tf.function(lambda a, b: a * b), (wide, wide))):
        with pytest.raises(keel.InvalidError, match="has sizes without a number") as caught:
            made.get_concrete_function(*args)
        done = eval(caught.value.hint.partition(" is for all sizes")[0], {"tf": tf, "f": made})  # noqa: S307
        assert [done(*[tf.constant([2.] * n)] * (1 if args[1] == 2 else 2)).numpy()[0] for n in (1, 3)] == ([5, 5] if args[1] == 2 else [4, 4])
    g = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec([None], tf.float32)])
    assert g.get_concrete_function()(tf.constant([1., 2., 3.])).numpy().tolist() == [2, 4, 6]

    class Model:
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x):
            return x * 3

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def twice(self, x):
            return x * 2
    assert Model().twice(x).numpy().tolist() == [2, 4] and Model()(x).numpy().tolist() == [3, 6]
    assert Model().twice.get_concrete_function()(x).numpy().tolist() == [2, 4]
