"""Long runs on the cpu device stop soon after keel_context_cancel, and work divided for that purpose gives right results.

The test cancels a run after a tenth of its earlier time; it must end, cancelled, before half of that time; on a shared machine,
one attempt in five must succeed. Afterwards the same plan gives the same answer as before.
"""
import threading
import time

import keel_abi
import numpy as np
import pytest
from regions import as_nodes


def draw(*shape):
    return np.random.default_rng(3).standard_normal(shape, dtype=np.float32) * np.float32(0.1)


def product(relu, constant, *shapes):
    a, b = draw(*shapes[0]), draw(*shapes[1])

    def build(g, x, *y):
        z = g.node("matmul", x, y[0] if y else g.constant(b))
        return g.node("relu", z) if relu else z
    return build, [a] if constant else [a, b]


def image(x, w, relu=True, **attrs):
    def build(g, x):
        y = g.node("conv", x, g.constant(draw(*w)), **attrs)
        return g.node("relu", y) if relu else y
    return build, [draw(*x)]


def integers(x, w, **attrs):
    """Quantised images and weights, from bytes to bytes."""
    rng = np.random.default_rng(4)
    weights = rng.integers(-127, 128, w, np.int8)

    def build(g, x):
        y = g.node("cast", g.node("conv_integer", x, g.constant(weights), **attrs), to=np.float32)
        y = g.node("round", g.node("mul", y, g.constant(np.float32(1e-4))))
        return g.node("cast", g.node("clamp", y, g.constant(np.float32(0)), g.constant(np.float32(255))), to=np.uint8)
    return build, [rng.integers(0, 256, x, np.uint8)]


def attention(*shape, rows=None):
    """rows: of the queries (default: as many as of the keys)."""
    kept = draw(*shape)
    return (lambda g, q, k, v: g.node("attention", q, k, v)), [draw(*shape[:-2], rows or shape[-2], shape[-1]), kept, kept]


def one(op, shape, **attrs):
    return (lambda g, x: g.node(op, x, **attrs)), [draw(*shape)]


def training(x, made):
    """Forward and backward, in a region."""
    def build(g, x, w, v):
        a = g.node("max_pool", g.node("relu", g.node("conv", x, w, lo=[1, 1], hi=[1, 1])), window=[3, 3], stride=[2, 2])
        b = g.node("relu", g.node("conv", a, v))
        return g.gradient([g.node("mul", b, b)], [w, v])
    return build, [draw(*x), draw(made, x[1], 3, 3), draw(made, made, 1, 1)]


# Functions, so that a process holds the operands of one case only: those of all are 2.3 GB.
LONG = {"product": lambda: product(False, False, (2500, 2500), (2500, 2500)),
        "product of constants, relu": lambda: product(True, True, (3000, 2500), (2500, 2500)),
        "batched product": lambda: product(False, False, (48, 600, 600), (48, 600, 600)),
        "images": lambda: image((24, 64, 112, 112), (64, 64, 3, 3), lo=[1, 1], hi=[1, 1]),
        "one image": lambda: image((1, 96, 500, 500), (96, 96, 3, 3), lo=[1, 1], hi=[1, 1]),
        "one image alone": lambda: image((1, 96, 500, 500), (96, 96, 3, 3), relu=False),
        "quantised images": lambda: integers((24, 64, 112, 112), (128, 64, 3, 3), lo=[1, 1], hi=[1, 1]),
        "a quantised image": lambda: integers((1, 128, 500, 500), (128, 128, 3, 3)),
        "training": lambda: training((12, 64, 112, 112), 64),
        "attention": lambda: attention(1, 12, 2500, 64),
        "attention of a row": lambda: attention(400_000, 64, rows=1),
        "rows by a transposed matrix": lambda: (lambda g, a, b: g.node("matmul", a, b, tb=True), [draw(16, 4096), draw(10_000, 4096)]),
        "rounded rows by weights in blocks": lambda: (lambda g, x, w, scale: g.node("matmul_blocks", x, w, scale, rounded=True),
                                              [draw(300, 4096), np.full((4096, 128, 16), 77, np.uint8), draw(4096, 128)]),
        "softmax": lambda: one("softmax", (6000, 10000), axis=1),
        "dft": lambda: one("dft", (2_000_000, 2)),
        "reduction": lambda: one("reduce_max", (20000, 3, 2000), axes=[0]),
        "mean of a map": lambda: (lambda g, x: g.node("reduce_mean", g.node("tanh", x), axes=[0]), [draw(60_000_000)]),
        "sum of a map": lambda: (lambda g, x: g.node("reduce_sum", g.node("tanh", x), axes=[0]), [draw(600_000, 100)]),
        "top_k": lambda: (lambda g, x: g.node("top_k", x, k=keel_abi.Dim(1_000_000), n_out=2)[0], [draw(8_000_000)]),
        "singular values": lambda: (lambda g, x: g.node("svd", x, n_out=3)[1], [draw(300, 64, 64)]),
        "eigenvectors of a matrix": lambda: (lambda g, x: g.node("eigh", x, n_out=2)[1], [draw(600, 600)]),
        "singular vectors of a matrix": lambda: (lambda g, x: g.node("svd", x, n_out=3)[2], [draw(500, 500)]),
        "factors of a matrix": lambda: (lambda g, x: g.node("qr", x, n_out=2)[0], [draw(1200, 1200)]),
        "triangular factor of a matrix": lambda: (lambda g, x: g.node("cholesky", x),
                                                  [sum(np.eye(1500, k=k, dtype=np.float32) for k in (0, 0, 1, -1))]),
        "solutions by a triangle": lambda: (lambda g, a, x: g.node("triangular_solve", a, x), [np.eye(1500, dtype=np.float32), draw(1500, 1500)]),
        "inverse of a matrix": lambda: one("inv", (1000, 1000)),
        "tanh": lambda: one("tanh", (60_000_000,))}


def assert_stops(context, plan, inputs):
    before = np.array(plan.run(*inputs)[0])

    def attempt():
        start = time.perf_counter()
        plan.run(*inputs)
        whole = time.perf_counter() - start
        asking = threading.Timer(whole / 10, lambda: keel_abi.lib().keel_context_cancel(context, 1))
        asking.start()
        start, code = time.perf_counter(), None
        try:
            plan.run(*inputs)
        except keel_abi.KeelError as e:
            code = e.code
        took = time.perf_counter() - start
        asking.join()
        keel_abi.lib().keel_context_cancel(context, 0)
        assert code in (None, "CANCELLED")
        return code and took < whole / 2
    assert any(attempt() for _ in range(25))  # on a busy machine the cancelling thread may be late
    assert np.array_equal(before, np.array(plan.run(*inputs)[0]))


@pytest.mark.parametrize("name", LONG)
def test_long_runs_stop(name):
    build, inputs = LONG[name]()
    context = keel_abi.Context(threads=1)
    assert_stops(context, as_nodes(context, build, inputs, [], device="cpu"), inputs)


def convolve(x, w, stride, dil, lo, hi):
    x = np.pad(x, [(0, 0), (0, 0), *zip(lo, hi)])
    out = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dil)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    for i, j in np.ndindex(*w.shape[2:]):
        part = x[:, :, i * dil[0]:, j * dil[1]:][:, :, ::stride[0], ::stride[1]][:, :, :out[0], :out[1]]
        y += np.einsum("oc,nchw->nohw", w[:, :, i, j].astype(np.float64), part, optimize=True)
    return y


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("x, w, attrs", [
    ((1, 64, 420, 160), (64, 64, 3, 3), {"stride": [1, 1], "dil": [2, 1], "lo": [3, 1], "hi": [2, 0]}),
    ((1, 32, 900, 300), (96, 32, 5, 3), {"stride": [2, 1], "dil": [1, 1], "lo": [0, 1], "hi": [4, 1]}),
    ((3, 32, 500, 400), (64, 32, 3, 3), {"stride": [1, 1], "dil": [1, 1], "lo": [1, 1], "hi": [1, 1]}),
    ((5, 256, 100, 100), (256, 256, 1, 1), {"stride": [1, 1], "dil": [1, 1], "lo": [0, 0], "hi": [0, 0]})])
def test_convolutions_in_parts(x, w, attrs, fused):
    image, weights = draw(*x), draw(*w)
    wanted = convolve(image.astype(np.float64), weights, **attrs)
    more = draw(*wanted.shape)

    def build(g, x, s):
        y = g.node("conv", x, g.constant(weights), **attrs)
        return g.node("relu", g.node("add", y, s)) if fused else y
    got = np.array(as_nodes(keel_abi.Context(), build, [image, more], [], device="cpu").run(image, more)[0])
    assert np.abs(got - (np.maximum(wanted + more, 0) if fused else wanted)).max() < 1e-4


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("a, b", [((2100, 1100), (1100, 1000)), ((3, 1100, 1100), (3, 1100, 900)),
                                  ((2, 2, 900, 900), (2, 1, 900, 900)), ((70, 400, 400), (400, 400))])
def test_products_in_parts(a, b, ta):
    left, right = draw(*a), draw(*b)
    wanted = left.astype(np.float64) @ right
    more = [draw(*wanted.shape), draw(wanted.shape[-1]), draw(*wanted.shape[:-1], 1)]

    def build(g, x, y, *s):
        z = g.node("matmul", x, y, ta=ta)
        for part in s:
            z = g.node("add", g.node("tanh", z), part)
        return z
    inputs = [np.ascontiguousarray(np.swapaxes(left, -1, -2)) if ta else left, right, *more]
    got = np.array(as_nodes(keel_abi.Context(), build, inputs, [], device="cpu").run(*inputs)[0])
    for part in more:
        wanted = np.tanh(wanted) + part
    assert np.abs(got - wanted).max() < 1e-4
