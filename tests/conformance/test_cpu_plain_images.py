"""Pooling of plain images, and convolutions with a 1x1 window or of single channels or a few between them, alone on the cpu device: against
NumPy in f64, with NaN, sizes from 1, any padding and stride, for each class of processor; pooling and convolutions by the own products have
the same bits for any number of threads."""
import keel_abi
import numpy as np
from regions import as_call, cpu_class
from test_cpu_isa import call_in_each_class

# image, window, stride, dilation, padding below and above
POOLS = [((112, 112), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)), ((28, 28), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0)),
         ((1, 1), (1, 1), (1, 1), (1, 1), (0, 0), (0, 0)), ((1, 1), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
         ((7, 33), (2, 3), (1, 1), (1, 1), (0, 1), (1, 0)), ((9, 17), (3, 2), (3, 2), (2, 3), (2, 1), (1, 2)),
         ((5, 70), (5, 4), (1, 3), (1, 2), (4, 3), (0, 3)), ((6, 6), (2, 2), (4, 5), (1, 1), (0, 0), (0, 0)),
         ((3, 15), (1, 16), (1, 2), (1, 1), (0, 9), (0, 15)), ((200, 31), (100, 1), (7, 1), (1, 1), (0, 0), (0, 0)),
         ((2, 9000), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0)), ((40, 300), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
         ((9, 35), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0)), ((5, 14), (2, 2), (2, 2), (1, 1), (0, 0), (1, 1)),
         ((4, 31), (2, 2), (2, 2), (1, 1), (0, 0), (0, 1)), ((11, 20), (4, 2), (2, 2), (1, 1), (0, 0), (0, 0))]
# images, channels, image, results, with a bias, with relu, stride if not 1
POINTWISE = [(1, 64, (56, 56), 64, 1, 0), (2, 5, (1, 130), 7, 0, 0), (3, 1, (12, 11), 1, 1, 1), (1, 300, (400,), 40, 1, 1),
             (1, 16, (2, 9, 11), 33, 1, 0), (1, 128, (300, 301), 64, 1, 1), (2, 8, (11, 11), 8, 1, 0),
             (1, 64, (56, 56), 32, 1, 1, 2, 2), (2, 70, (37, 22), 5, 0, 0, 3, 1), (1, 65, (300,), 9, 1, 0, 2),
             (2, 64, (9, 11, 13), 3, 0, 1, 1, 2, 3), (1, 64, (500, 2), 7, 1, 0, 2, 5),
             # by the own products: of panels of images, full or not, by weights of fewer and more rows than a block, and of weights
             (2, 256, (31, 33), 37, 1, 0), (1, 512, (64,), 64, 0, 0), (3, 128, (32, 32), 11, 1, 0), (2, 70, (32, 32), 4, 1, 0), (1, 256, (40, 36), 80, 1, 0, 2, 2),
             (2, 130, (6, 16), 130, 1, 0), (2, 2100, (7, 7), 64, 1, 0), (1, 320, (14, 14), 32, 0, 0), (2, 128, (33, 1), 128, 1, 0)]
# By the own products with AVX2 and AVX-512: of panels of images, one, several and an odd number, the last full or not; and of weights.
OWN = [(1, 512, (32, 1), 128, 0, 0), (2, 129, (31, 33), 129, 1, 0), (3, 256, (8, 20), 160, 1, 0, 1, 1), (1, 130, (64, 64), 128, 0, 0, 2, 1),
       (1, 256, (48, 48), 64, 1, 0), (2, 256, (7, 7), 128, 1, 0), (1, 2048, (5, 7), 160, 0, 0), (1, 160, (7, 7), 320, 1, 0)]
# channels, image, window, stride, dilation, padding below and above, with a bias
DEPTHWISE = [(3, (56, 56), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1), (2, (57, 33), (3, 3), (2, 2), (1, 1), (1, 0), (0, 1), 1),
             (4, (5, 18), (5, 5), (1, 1), (1, 1), (2, 2), (2, 2), 0), (1, (40, 41), (5, 5), (2, 1), (1, 2), (0, 3), (2, 0), 1),
             (2, (3, 35), (3, 3), (3, 2), (1, 2), (1, 4), (2, 1), 0), (2, (9, 17), (3, 3), (1, 1), (3, 1), (3, 0), (3, 1), 1),
             (2, (13, 21), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 0), (2, (6, 16), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
             (1, (2, 40), (3, 3), (1, 1), (1, 1), (5, 0), (4, 2), 1), (1, (11, 37), (5, 5), (2, 2), (1, 1), (2, 2), (2, 2), 0),
             (5, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1), (2, (1, 7), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 0),
             (3, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 0), (3, (2, 15), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
             # a stride of 2, so that even and odd columns are apart
             *((2, (9 + n % 3, n), (3, 3), (2, 2), (1, 1), (1, n % 4), (0, 1), n % 2) for n in (31, 32, 33, 34, 56, 64, 67)),
             (2, (12, 58), (5, 5), (1, 2), (1, 1), (2, 3), (2, 0), 1), (1, (14, 66), (3, 3), (2, 2), (1, 1), (0, 0), (0, 0), 1),
             # more padding than a vector, and windows wholly in it
             (2, (12, 19), (3, 3), (1, 1), (1, 1), (9, 40), (10, 37), 1), (2, (20, 5), (3, 3), (2, 2), (1, 1), (11, 39), (1, 41), 0),
             (3, (17, 50), (5, 5), (2, 2), (1, 1), (1, 3), (4, 0), 1), (1, (9, 16), (5, 5), (1, 1), (1, 1), (2, 2), (2, 2), 0),
             (3, (9, 1), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1), (40, (5, 4), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1)]

# groups, channels of a group in and out, image, window, stride, dilation, padding below and above, with a bias
GROUPED = [(1, 3, 9, (65, 63), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1), (1, 1, 8, (9, 34), (3, 3), (1, 1), (1, 1), (0, 0), (0, 0), 0),
           (1, 4, 10, (40, 86), (7, 7), (2, 2), (1, 2), (3, 2), (3, 3), 1), (1, 2, 11, (300, 40), (5, 4), (2, 1), (1, 1), (0, 3), (5, 0), 0),
           (1, 3, 8, (1, 80), (3, 3), (1, 2), (2, 1), (2, 0), (2, 1), 1), (1, 3, 8, (7, 20), (3, 3), (2, 2), (1, 1), (9, 40), (1, 5), 0),
           (8, 4, 4, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1), (3, 7, 2, (9, 33), (3, 2), (1, 1), (1, 2), (2, 0), (1, 3), 0),
           (2, 3, 7, (130, 70), (5, 5), (1, 1), (1, 1), (2, 2), (2, 2), 1), (5, 1, 3, (4, 4), (1, 1), (1, 1), (1, 1), (0, 0), (0, 0), 1),
           (2, 5, 5, (1, 5000), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1), (4, 6, 6, (17, 1), (3, 3), (1, 1), (2, 1), (2, 5), (2, 4), 0),
           (2, 2, 4, (300, 16), (7, 1), (1, 1), (1, 1), (0, 0), (0, 0), 1), (4, 4, 4, (20, 20), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1),
           (3, 4, 8, (12, 12), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 0), (4, 8, 8, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
           (2, 8, 5, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 0), (2, 12, 16, (9, 15), (2, 3), (1, 1), (2, 1), (0, 1), (3, 1), 1),
           (2, 9, 32, (40, 40), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1), (2, 32, 10, (4, 130), (1, 5), (1, 1), (1, 2), (0, 4), (0, 4), 0),
           (2, 32, 3, (30, 31), (1, 1), (1, 1), (1, 1), (0, 0), (0, 0), 1)]


def cells(x, window, stride, dilation, low, high, fill):
    """-> [n, c, out..., cells of the window], cells in the padding are `fill`."""
    n, c, *image = x.shape
    padded = np.pad(x, [(0, 0), (0, 0), *zip(low, high)], constant_values=fill)
    out = [(d + a + b - g * (w - 1) - 1) // s + 1 for d, a, b, g, w, s in zip(image, low, high, dilation, window, stride)]
    seen = [padded[:, :, i * dilation[0]:, j * dilation[1]:][:, :, ::stride[0], ::stride[1]][:, :, :out[0], :out[1]]
            for i in range(window[0]) for j in range(window[1])]
    return np.stack(seen, -1)


def check_pool(contexts, case):
    image, window, stride, dilation, low, high = case
    random = np.random.default_rng(3)
    x = random.standard_normal((2, 3, *image)).astype(np.float32)
    attrs = dict(window=window, stride=stride, dil=dilation, lo=low, hi=high)
    seen = cells(x.astype(np.float64), *case[1:], np.nan)
    counts = (~np.isnan(seen)).sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        want = {"avg_pool": np.nansum(seen, -1) / counts, "max_pool": np.where(np.isnan(seen), -np.inf, seen).max(-1)}
    for op in want:
        got = [np.array(c.apply("cpu", op, x, **attrs)) for c in contexts]
        np.testing.assert_allclose(got[0], want[op], rtol=2e-6, atol=1e-6, err_msg=f"{op} {case}")
        for other in got[1:]:
            np.testing.assert_array_equal(got[0], other)
    x[random.random(x.shape) < 0.05] = np.nan
    inside = cells(np.ones_like(x), *case[1:], 0) > 0
    nan = (np.isnan(cells(x, *case[1:], 0)) & inside).any(-1)
    np.testing.assert_array_equal(np.isnan(contexts[0].apply("cpu", "max_pool", x, **attrs)), nan, err_msg=str(case))


def pointwise(case):
    """-> image, weights, shift, and a graph of them."""
    n, c, image, o, has_bias, has_relu, *stride = case
    stride = stride or [1] * len(image)
    random = np.random.default_rng(5)
    x, w, shift = (random.standard_normal(s).astype(np.float32) for s in ((n, c, *image), (o, c, *[1] * len(image)), (o, *[1] * len(image))))
    x[0, 0].flat[0] = np.inf

    def build(g, v, w, shift):
        y = g.node("conv", v, w, stride=stride)
        y = g.node("add", y, shift) if has_bias else y
        return g.node("relu", y) if has_relu else y
    return x, w, shift, build


def check_pointwise(contexts, case):
    n, c, image, o, has_bias, has_relu, *stride = case
    x, w, shift, build = pointwise(case)
    seen = x[(..., *(slice(None, None, step) for step in stride or [1] * len(image)))].astype(np.float64)
    want = np.einsum("nc...,oc->no...", seen, w.reshape(o, c)) + (shift if has_bias else 0)
    for context in contexts:  # the bits of a region may depend on the threads
        got = np.array(as_call(context, build, [x], [w, shift]).run(x)[0])
        np.testing.assert_allclose(got, np.maximum(want, 0) if has_relu else want, rtol=1e-5, atol=3e-6 * c**0.5, err_msg=str(case))


def check_bits():
    contexts = [keel_abi.Context(threads=n) for n in (1, 2, 3, 5)]
    if cpu_class(contexts[0]) == "sse4":
        return  # oneDNN computes them
    for case in OWN:
        check_pointwise(contexts, case)
        x, w, shift, build = pointwise(case)
        one, *others = (np.array(as_call(context, build, [x], [w, shift]).run(x)[0]) for context in contexts)
        for other in others:
            np.testing.assert_array_equal(one, other, err_msg=str(case))


def check_depthwise(contexts, case):
    c, image, window, stride, dilation, low, high, has_bias = case
    random = np.random.default_rng(5)
    x, w, shift = (random.standard_normal(s).astype(np.float32) for s in ((2, c, *image), (c, 1, *window), (c, 1, 1)))
    x[0, 0, 0, 0] = np.nan
    seen = cells(x.astype(np.float64), window, stride, dilation, low, high, 0)
    want = (seen * w.reshape(c, 1, 1, -1)).sum(-1) + (shift if has_bias else 0)
    attrs = dict(stride=list(stride), dil=list(dilation), lo=list(low), hi=list(high), groups=c)

    def build(g, v, w, shift):
        y = g.node("conv", v, w, **attrs)
        return g.node("add", y, shift) if has_bias else y
    for context in contexts:
        np.testing.assert_allclose(as_call(context, build, [x], [w, shift]).run(x)[0], want, rtol=1e-5, atol=1e-5, err_msg=str(case))
    w[0, 0, 0, 0] = np.inf  # padding adds nothing, whatever the weight
    got = as_call(contexts[0], build, [x], [w, shift]).run(x)[0]
    with np.errstate(invalid="ignore"):
        inside = cells(np.ones_like(x), window, stride, dilation, low, high, 0) > 0
        products = np.where(inside, seen * w.reshape(c, 1, 1, -1), 0).sum(-1) + (shift if has_bias else 0)
    np.testing.assert_allclose(got, products, rtol=1e-5, atol=1e-5, err_msg=str(case))


def check_grouped(contexts, case):
    groups, ins, outs, image, window, stride, dilation, low, high, has_bias = case
    random = np.random.default_rng(5)
    x, w, shift = (random.standard_normal(s).astype(np.float32)
                   for s in ((2, groups * ins, *image), (groups * outs, ins, *window), (groups * outs, 1, 1)))
    x[0, 0, 0, 0] = np.nan  # of the first group
    seen = cells(x.astype(np.float64), window, stride, dilation, low, high, 0)
    seen = seen.reshape(2, groups, ins, *seen.shape[2:])
    want = np.einsum("ngchwk,gock->ngohw", seen, w.reshape(groups, outs, ins, -1)).reshape(2, groups * outs, *seen.shape[3:5])
    attrs = dict(stride=list(stride), dil=list(dilation), lo=list(low), hi=list(high), groups=groups)

    def build(g, v, w, shift):
        y = g.node("conv", v, w, **attrs)
        return g.node("add", y, shift) if has_bias else y
    got = [np.array(as_call(context, build, [x], [w, shift]).run(x)[0]) for context in contexts]
    np.testing.assert_allclose(got[0], want + (shift if has_bias else 0), rtol=1e-5, atol=2e-5, err_msg=str(case))
    for other in got[1:]:
        np.testing.assert_array_equal(got[0], other, err_msg=str(case))


def check_all():
    contexts = [keel_abi.Context(threads=n) for n in (1, 2, 5)]
    for case in POOLS:
        check_pool(contexts, case)
    for case in POINTWISE:
        check_pointwise(contexts, case)
    for case in DEPTHWISE:
        check_depthwise(contexts, case)
    for case in GROUPED:
        check_grouped(contexts, case)


def test_in_each_class():
    call_in_each_class("test_cpu_plain_images", "check_all")


def test_the_own_products_have_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setenv("ONEDNN_VERBOSE", "2")  # names the primitives that run
    for isa, text in call_in_each_class("test_cpu_plain_images", "check_bits").items():
        run = {line.split(",")[3] for line in text.splitlines() if line.startswith("onednn_verbose,exec")}
        assert run <= {"reorder"}, isa
