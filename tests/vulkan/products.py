"""Products and convolutions at sizes around the tiles of plugins/vulkan, on vulkan and on the device `reference`. Run by
test_products.py in a process for each kind of shader."""
import itertools

import keel
import numpy as np

RNG = np.random.default_rng(11)
BOUNDS = {"f64": 1e-12, "f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}


def numbers(dtype, *shape):
    if dtype in BOUNDS:
        return keel.cast(keel.array(RNG.standard_normal(shape).astype(np.float32)), dtype)
    return keel.cast(keel.array(RNG.integers(-7, 8, shape).astype(np.int32)), dtype)


def check(what, dtype, function, *operands):
    answers = []
    for device in ("vulkan", "reference"):
        with keel.device(device):
            got = function(*[keel.array(o.numpy()) if device == "vulkan" else o for o in operands])
            answers.append(got.numpy().astype(np.float64))
    got, want = answers
    assert got.shape == want.shape, (what, got.shape, want.shape)
    if dtype not in BOUNDS:
        np.testing.assert_array_equal(got, want, err_msg=str(what))
    else:
        scale = np.abs(want[np.isfinite(want)]).max(initial=1)
        np.testing.assert_allclose(got, want, rtol=BOUNDS[dtype], atol=BOUNDS[dtype] * scale, err_msg=str(what))


def product(dtype, rows, inner, columns, ta=False, tb=False, batch_a=(), batch_b=()):
    a = numbers(dtype, *batch_a, *((inner, rows) if ta else (rows, inner)))
    b = numbers(dtype, *batch_b, *((columns, inner) if tb else (inner, columns)))
    what = ("matmul", dtype, rows, inner, columns, ta, tb, batch_a, batch_b)
    check(what, dtype, lambda a, b: keel.matmul(a, b, ta=ta, tb=tb), a, b)


def products():
    for rows, columns in itertools.product((1, 2, 5, 8, 9, 17), (2, 7, 8, 9, 66)):
        product("f32", rows, 11 if rows % 2 else 12, columns)
    for ta, tb in itertools.product((False, True), repeat=2):
        for rows, inner, columns in ((18, 6, 10), (17, 6, 10), (18, 7, 10), (18, 6, 11), (33, 1, 65)):
            product("f32", rows, inner, columns, ta, tb)
    for dtype in ("f64", "f16", "bf16", "i8", "u16", "i32", "i64"):
        product(dtype, 19, 13, 9)
        product(dtype, 18, 12, 10, tb=True)
    product("f32", 6, 5, 7, batch_a=(3, 1), batch_b=(2,))
    product("f32", 6, 4, 8, batch_a=(2, 3), batch_b=(1,))
    product("f32", 6, 8195, 10)  # two steps of the inner dim
    product("f32", 8_500_000, 2, 1)  # more groups than a grid has
    product("f32", 6, 0, 10)
    product("f32", 0, 4, 10)
    x, w, bias = numbers("f32", 3, 7, 21), numbers("f32", 21, 34), numbers("f32", 34)
    check("linear", "f32", keel.linear, x, w, bias)


def convolution(dtype, image, window, outs, ins=4, groups=1, images=2, weights=None, **how):
    x = numbers(dtype, images, ins, *image)
    w = numbers(dtype, outs, ins // groups, *window) if weights is None else weights
    what = ("conv", dtype, image, window, outs, ins, groups, how)
    check(what, dtype, lambda x, w: keel.conv(x, w, groups=groups, **how), x, w)


def convolutions():
    for stride, dil, lo, hi in itertools.product((1, 2, 3), (1, 2), (0, 1), (0, 2)):
        convolution("f32", (11, 10), (3, 2), 6, stride=[stride, 1], dil=[dil, dil], lo=[lo, lo], hi=[hi, 1])
    convolution("f32", (9, 9), (1, 1), 18, stride=[2, 2])
    convolution("f32", (8, 8), (1, 1), 18, ins=6, groups=2)
    convolution("f32", (7, 7), (1, 1), 17)
    convolution("f32", (6, 6), (3, 3), 17, lo=[1, 1], hi=[1, 1], groups=1)
    convolution("f32", (40,), (5,), 9, stride=[2], lo=[2], hi=[2])
    convolution("f32", (5, 6, 7), (2, 3, 2), 8, stride=[1, 2, 1], lo=[1, 0, 1], hi=[0, 1, 1])
    convolution("f32", (3, 3), (3, 3), 5, ins=1000, lo=[1, 1], hi=[1, 1], images=1)  # two steps of the inner dim
    convolution("f32", (2,), (2,), 2, images=350_000, lo=[1])  # more channels than a thread has iterations
    for dtype in ("f64", "f16", "bf16"):
        convolution(dtype, (9, 8), (3, 3), 10, stride=[2, 1], lo=[1, 1], hi=[1, 1])
        convolution(dtype, (9, 8), (3, 3), 4, groups=4, lo=[1, 1], hi=[1, 1])
    for stride, dil, width in itertools.product((1, 2), (1, 2), (1, 7, 8, 17)):  # each channel is a group
        convolution("f32", (9, width + 6), (3, 3), 4, groups=4, stride=[stride, stride], dil=[dil, dil], lo=[1, 2], hi=[2, 1])


def halves():
    """Of f16, which GPUs multiply by cooperative matrices."""
    for rows, inner, columns in ((5, 1, 5), (64, 32, 64), (63, 33, 65), (130, 70, 20), (8, 0, 9), (0, 8, 9), (40, 8200, 40)):
        for ta, tb in itertools.product((False, True), repeat=2):
            product("f16", rows, inner, columns, ta, tb)
    product("f16", 33, 40, 47, batch_a=(3, 1), batch_b=(2,))
    x, w, bias = numbers("f16", 3, 7, 41), numbers("f16", 41, 67), numbers("f16", 67)
    check("linear", "f16", keel.linear, x, w, bias)
    for image, window, outs, ins, groups in (((9, 8), (3, 3), 10, 4, 1), ((12, 11), (1, 1), 66, 40, 1), ((9, 8), (2, 3), 12, 8, 2)):
        convolution("f16", image, window, outs, ins, groups, stride=[2, 1], lo=[1, 0], hi=[0, 1])
    w = np.ones((8, 4, 3, 3), np.float32)
    w[1, 2, 0], w[2, 0, 1, 1] = np.inf, np.nan
    convolution("f16", (7, 9), (3, 3), 8, weights=keel.cast(keel.array(w), "f16"), lo=[1, 1], hi=[1, 1])


def infinities():
    """Padding adds 0 even for infinite weights, and infinities in the image stay."""
    w = np.ones((4, 4, 3, 3), np.float32)
    w[1, 2, 0] = np.inf
    w[2, 0, 1, 1] = np.nan
    how = dict(lo=[1, 1], hi=[1, 1])
    convolution("f32", (7, 9), (3, 3), 4, weights=keel.array(w), **how)
    convolution("f32", (7, 9), (3, 3), 2, weights=keel.array(w[1:3]), **how)
    convolution("f32", (7, 9), (3, 3), 4, weights=keel.array(w), stride=[2, 2], **how)
    convolution("f32", (7, 9), (3, 3), 4, groups=4, weights=keel.array(w[:, 2:3]), **how)


def gradients():
    for dtype, (window, stride, pad) in itertools.product(("f32", "f16"), (((1, 1), 1, 0), ((3, 3), 1, 1), ((3, 3), 2, 1))):
        x, w = numbers(dtype, 2, 6, 8, 8), numbers(dtype, 10, 6, *window)

        def loss(x, w, stride=stride, pad=pad):
            with keel.Tape() as tape:
                tape.watch(x)
                tape.watch(w)
                y = keel.reduce_sum(keel.conv(x, w, stride=[stride] * 2, lo=[pad] * 2, hi=[pad] * 2) ** 2)
            of_x, of_w = tape.gradient(y, [x, w])
            return keel.concat([keel.reshape(of_x, to=[-1]), keel.reshape(of_w, to=[-1])], axis=0)
        check(("gradients", window, stride), dtype, loss, x, w)


