"""Work that the cpu device divides so that it can be stopped gives right results for sizes that do not divide: gradients of
convolutions against the reference device and, divided, against the f64 loops; long rows and few rows against NumPy."""
import keel_abi
import numpy as np
import pytest
from regions import as_nodes

RNG = np.random.default_rng(5)
LONG = 3 * 256 * 1024 + 77  # elements: more than one chunk, and a remainder
TOLERANCE = {"float16": 2e-2, "float32": 2e-4, "float64": 1e-9}


def run(device, op, inputs, n_out=1, **attrs):
    made = as_nodes(keel_abi.Context(), lambda g, *v: g.node(op, *v, n_out=n_out, **attrs), inputs, [], device=device)
    got = [np.array(y) for y in made.run(*inputs)]
    return got[0] if n_out == 1 else got


def draw(shape, dtype="float32"):
    return (RNG.standard_normal(shape) * 0.5).astype(dtype)


# images, channels, outputs, image, window, stride, dil, lo, groups
GRADS = [(2, 3, 5, (9, 8), (3, 2), (2, 1), (1, 2), (1, 0), 1), (1, 8, 12, (17, 13), (3, 3), (1, 1), (1, 1), (1, 1), 4),
         (3, 16, 16, (12, 11), (5, 3), (3, 2), (1, 1), (2, 1), 16), (0, 2, 2, (4, 4), (2, 2), (1, 1), (1, 1), (0, 0), 1),
         (1, 1, 1, (1, 1), (1, 1), (1, 1), (1, 1), (0, 0), 1), (2, 32, 48, (10, 10), (1, 1), (1, 1), (1, 1), (0, 0), 1),
         (2, 16, 8, (100,), (7,), (2,), (3,), (4,), 2), (1, 4, 6, (6, 7, 8), (3, 2, 3), (1, 2, 1), (1, 1, 1), (1, 0, 2), 2),
         (1, 4, 4, (11, 11), (2, 2), (4, 3), (1, 1), (0, 1), 1)]


def places(image, window, stride, dil, lo):
    return tuple((n + 2 * a - d * (k - 1) - 1) // s + 1 for n, k, s, d, a in zip(image, window, stride, dil, lo))


def gradients(case, dtype):
    """Returns operands and attributes of conv_grad_x and conv_grad_w."""
    n, c, o, image, window, stride, dil, lo, groups = case
    dy = draw((n, o, *places(image, window, stride, dil, lo)), dtype)
    w, x = draw((o, c // groups, *window), dtype), draw((n, c, *image), dtype)
    attrs = {"stride": list(stride), "dil": list(dil), "lo": list(lo), "groups": groups}
    return {"conv_grad_x": ([dy, w], {"dims": list(x.shape), **attrs}),
            "conv_grad_w": ([dy, x], {"dims": list(w.shape), **attrs})}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("op", ["conv_grad_x", "conv_grad_w"])
@pytest.mark.parametrize("case", GRADS)
def test_gradients_of_convolutions(case, op, dtype):
    inputs, attrs = gradients(case, dtype)[op]
    wanted, got = (run(device, op, inputs, **attrs).astype(np.float64) for device in ("reference", "cpu"))
    assert got.shape == wanted.shape
    assert np.abs(got - wanted).max(initial=0) <= TOLERANCE[dtype] * max(1, np.abs(wanted).max(initial=0))


@pytest.mark.parametrize("op", ["conv_grad_x", "conv_grad_w"])
@pytest.mark.parametrize("case", [
    (11, 32, 48, (131, 90), (3, 3), (1, 1), (1, 1), (1, 1), 1), (1, 16, 32, (1203, 401), (3, 5), (2, 1), (1, 1), (1, 2), 1),
    (1, 3, 64, (531, 300), (7, 7), (1, 1), (1, 1), (0, 3), 1), (2, 16, 16, (1050, 351), (5, 3), (1, 1), (2, 1), (4, 1), 2),
    (7, 512, 640, (10, 9), (3, 3), (1, 1), (1, 1), (1, 1), 1)])
def test_gradients_of_convolutions_in_parts(case, op):
    inputs, attrs = gradients(case, "float32")[op]
    wanted = run("cpu", op, [a.astype(np.float64) for a in inputs], **attrs)
    got = run("cpu", op, inputs, **attrs)
    assert np.abs(got - wanted).max() <= 2e-5 * np.abs(wanted).max() + 1e-5


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("a, b", [((3, 14000), (14000, 6007)), ((130, 2000), (2000, 10007)), ((7, 9000003), (9000003, 3)),
                                  ((1, 40000), (40000, 2001)), ((20001, 3), (3, 5003))])
def test_products_of_few_rows_in_parts(a, b, after):
    left, right, bias = draw(a), draw(b), draw(b[1:])
    wanted = left.astype(np.float64) @ right

    def build(g, x, y, z):
        p = g.node("matmul", x, y)
        return g.node("relu", g.node("add", p, z)) if after else p
    got = np.array(as_nodes(keel_abi.Context(), build, [left, right, bias], [], device="cpu").run(left, right, bias)[0])
    assert np.abs(got - (np.maximum(wanted + bias, 0) if after else wanted)).max() <= 2e-5 * np.abs(wanted).max() + 1e-4


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("x, w, attrs", [((1, 3, 601, 599), (64, 3, 7, 7), {"lo": [3, 3], "hi": [3, 2]}),
                                         ((2, 1, 2501, 700), (24, 1, 11, 11), {"stride": [2, 1]}),
                                         ((1, 32, 801, 701), (32, 1, 13, 13), {"groups": 32})])
def test_convolutions_of_few_channels_in_parts(x, w, attrs, after):
    x, w = draw(x), draw(w)
    wanted = run("cpu", "conv", [x.astype(np.float64), w.astype(np.float64)], **attrs)

    def build(g, x):
        y = g.node("conv", x, g.constant(w), **attrs)
        return g.node("mul", g.node("relu", y), g.constant(np.float32(2))) if after else y
    got = np.array(as_nodes(keel_abi.Context(), build, [x], [], device="cpu").run(x)[0])
    assert np.abs(got - (2 * np.maximum(wanted, 0) if after else wanted)).max() <= 2e-5 * np.abs(wanted).max()


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max())
    return e / e.sum()


X, M = draw(LONG), draw((1027, 1543))
I, J = RNG.integers(0, 1000, LONG), RNG.integers(0, 5, (7, 1)).astype(np.int32)
U, BIG = RNG.integers(-9, 9, (7, LONG)).astype(np.int32), RNG.integers(-9, 9, (5, LONG)).astype(np.int32)


def added():
    y = np.zeros((5, LONG), np.int32)
    np.add.at(y, J[:, 0], U)
    return y


CASES = {"reverse": ("reverse", [X], {}, lambda: X[::-1]),
         "slice": ("slice", [X], {"start": [1], "step": [3]}, lambda: X[1::3]),
         "pad": ("pad", [X, np.float32(7)], {"lo": [3], "hi": [2]}, lambda: np.pad(X, (3, 2), constant_values=7)),
         "broadcast_to": ("broadcast_to", [X[:2, None]], {"dims": [2, LONG]}, lambda: np.broadcast_to(X[:2, None], (2, LONG))),
         "tile": ("tile", [M[:5]], {"times": [3, 211]}, lambda: np.tile(M[:5], (3, 211))),
         "tile of long": ("tile", [X], {"times": [3]}, lambda: np.tile(X, 3)),
         "concat": ("concat", [X, X[:5], X], {}, lambda: np.concatenate([X, X[:5], X])),
         "triangle": ("triangle", [BIG], {"k": 300000}, lambda: np.tril(BIG, 300000)),
         "triangle, upper": ("triangle", [BIG], {"k": 262144, "upper": True}, lambda: np.triu(BIG, 262144)),
         "transpose": ("transpose", [M], {}, lambda: M.T),
         "transpose of few rows": ("transpose", [BIG], {}, lambda: BIG.T),
         "transpose of few columns": ("transpose", [np.ascontiguousarray(BIG.T)], {}, lambda: BIG),
         "one_hot": ("one_hot", [I[:2001]], {"depth": keel_abi.Dim(999)}, lambda: np.eye(1000, 999, dtype=np.float32)[I[:2001]]),
         "gather": ("gather", [X[:1000], I], {}, lambda: X[:1000][I]),
         "gather of long rows": ("gather", [BIG, J[:, 0]], {}, lambda: BIG[J[:, 0]]),
         "gather_elements": ("gather_elements", [M[:1000], I[:1000 * 700].reshape(1000, 700)], {},
                             lambda: np.take_along_axis(M[:1000, :700], I[:1000 * 700].reshape(1000, 700), 0)),
         "gather_nd of long rows": ("gather_nd", [BIG, J], {}, lambda: BIG[J[:, 0]]),
         "scatter_add of long rows": ("scatter_add", [J[:, 0], U], {"size": keel_abi.Dim(5)}, added),
         "scatter_nd of long rows": ("scatter_nd", [np.zeros_like(BIG), J, U], {"mode": "add"}, added),
         "sum": ("reduce_sum", [BIG], {}, lambda: BIG.sum(dtype=np.int32)),
         "sum of long rows": ("reduce_sum", [BIG], {"axes": [1]}, lambda: BIG.sum(1, dtype=np.int32)),
         "sum of few columns": ("reduce_sum", [np.ascontiguousarray(BIG.T)], {"axes": [0]}, lambda: BIG.sum(1, dtype=np.int32)),
         "sum of first and last": ("reduce_sum", [BIG[:, 1:].reshape(5, 4, -1)], {"axes": [0, 2]},
                                   lambda: BIG[:, 1:].reshape(5, 4, -1).sum((0, 2), dtype=np.int32)),
         "max": ("reduce_max", [X], {}, lambda: X.max()),
         "arg_max": ("arg_max", [BIG], {"axis": 1}, lambda: BIG.argmax(1)),
         "arg_max, last": ("arg_max", [BIG[0]], {"last": True}, lambda: np.int64(LONG - 1 - BIG[0, ::-1].argmax())),
         "arg_min of columns": ("arg_min", [np.ascontiguousarray(BIG.T)], {}, lambda: BIG.argmin(1)),
         "cumsum": ("cumsum", [BIG[0]], {}, lambda: BIG[0].cumsum(dtype=np.int32)),
         "softmax": ("softmax", [X], {"axis": 0}, lambda: softmax(X)),
         "log_softmax": ("log_softmax", [X], {"axis": 0}, lambda: np.log(softmax(X))),
         "layer_norm": ("layer_norm", [X, np.ones_like(X), np.zeros_like(X)], {},
                        lambda: (X - X.mean(dtype=np.float64)) / np.sqrt(X.var(dtype=np.float64) + 1e-5)),
         "max_pool": ("max_pool", [X[None, None]], {"window": [3]}, lambda: np.maximum(np.maximum(X[:-2], X[1:-1]), X[2:])[None, None]),
         "avg_pool": ("avg_pool", [X[None, None]], {"window": [2], "stride": [2]},
                      lambda: (X[:-1:2].astype(np.float64) + X[1::2])[None, None] / 2),
         "avg_pool of all": ("avg_pool", [M[None, None]], {"window": [1027, 1543]}, lambda: M.mean(dtype=np.float64)[None, None, None, None])}


@pytest.mark.parametrize("name", CASES)
def test_long_rows_in_pieces(name):
    op, inputs, attrs, oracle = CASES[name]
    wanted, got = np.asarray(oracle()), run("cpu", op, inputs, **attrs)
    assert got.shape == wanted.shape
    if wanted.dtype == np.float64:
        assert np.abs(got - wanted).max() <= 1e-5 * max(1, np.abs(wanted).max())
    else:
        assert got.dtype == wanted.dtype and np.array_equal(got, wanted)
