"""A convolution, 1x1 or of a plain image, and the depthwise 3x3 convolution of its result, which the cpu device computes as one step from
AVX2 on, by strips of rows: shapes, bounds, special values, where the step is taken and its bits, against the reference device."""
import numpy as np
import pytest
from regions import assert_close, cpu_class
from test_cpu_images import PATHS, filters, run_limited
from test_winograd import BEHIND, bounded, draw, run_both

# images, channels, wide channels, image, stride, padding before, padding behind; and of a first convolution that is not 1x1: window,
# attributes
SHAPES = {
    "one tile": (1, 32, 96, (7, 7), 1, (1, 1), (1, 1)),
    "two tiles": (1, 24, 32, (14, 14), 1, (1, 1), (1, 1)),
    "tiles with a rest": (2, 8, 48, (9, 18), 1, (1, 1), (1, 1)),
    "a rest at the edge": (1, 3, 16, (5, 8), 1, (1, 1), (1, 1)),
    "no padding": (1, 17, 16, (16, 23), 1, (0, 0), (0, 0)),
    "padding before rows": (2, 5, 16, (6, 15), 1, (1, 1), (0, 0)),
    "padding behind rows": (1, 16, 16, (12, 14), 1, (0, 0), (1, 1)),
    "stride": (1, 16, 96, (28, 28), 2, (1, 1), (1, 1)),
    "stride, padding behind rows": (3, 16, 32, (14, 30), 2, (0, 0), (1, 1)),
    "stride, odd image": (1, 20, 32, (31, 29), 2, (1, 1), (1, 1)),
    "stride, no padding": (1, 20, 16, (17, 40), 2, (0, 0), (0, 0)),
    "two rows": (1, 4, 16, (2, 112), 1, (1, 1), (1, 1)),
    "one row": (1, 4, 16, (1, 60), 1, (1, 1), (1, 1)),
    "rows of half a block": (1, 6, 32, (3, 7), 1, (1, 1), (1, 1)),
    "most depth": (1, 192, 16, (10, 10), 1, (1, 1), (1, 1)),
    "plain": (1, 3, 32, (28, 28), 1, (1, 1), (1, 1), (3, 3), {"stride": [2, 2], "lo": [1, 1], "hi": [1, 1]}),
    "plain, padding behind rows": (2, 3, 16, (20, 34), 2, (1, 1), (1, 1), (3, 3), {"stride": [2, 2], "lo": [0, 0], "hi": [1, 1]}),
    "plain, odd window": (3, 2, 16, (13, 19), 1, (0, 0), (1, 1), (2, 5), {"stride": [1, 1], "lo": [2, 3], "hi": [3, 4], "dil": [2, 3]}),
    "plain, large window": (1, 3, 16, (24, 24), 1, (1, 1), (1, 1), (7, 7), {"stride": [3, 2], "lo": [3, 3], "hi": [3, 3]}),
    "plain, one channel": (1, 1, 16, (9, 9), 1, (1, 1), (1, 1), (3, 3), {}),
    "plain, cells not seen": (1, 4, 16, (10, 20), 1, (1, 1), (1, 1), (1, 1), {"stride": [2, 2]}),
}


def windows(wide):
    return draw(7, wide, 1, 3, 3, scale=1 / 3)


def first(g, x, w, shape):
    return g.node("conv", x, w, **(shape[8] if len(shape) > 7 else {}))


def deep(g, x, w, shape):
    _, _, wide, _, stride, lo, hi, *_ = shape
    return g.node("conv", x, w, lo=list(lo), hi=list(hi), stride=[stride] * 2, groups=wide)


def pair(g, x, w, v, shape, between="bias, relu", behind="clamp"):
    """The two convolutions. Images stay in a region's layout if a convolution follows."""
    wide = shape[2]
    made = BEHIND[behind](g, deep(g, BEHIND[between](g, first(g, x, w, shape), wide), v, shape), wide)
    return g.node("conv", made, g.constant(filters(40, wide, 1, 1, seed=3)))


def given(shape):
    n, c, wide, image, *_ = shape
    window = shape[7] if len(shape) > 7 else (1, 1)
    return draw(5, n, c, *image), filters(wide, c, *window), windows(wide)


@pytest.mark.parametrize("between, behind", [("nothing", "nothing"), ("bias, relu", "clamp"), ("batch norm, relu6", "batch norm, relu6"),
                                             ("clamp", "scale, silu"), ("scale, silu", "bias, relu")])
@pytest.mark.parametrize("name", SHAPES)
def test_they_are_two_convolutions(context, name, between, behind):
    shape = SHAPES[name]
    got, wanted = run_both(context, lambda g, x, w, v: pair(g, x, w, v, shape, between, behind), *given(shape))
    assert_close(got, wanted, 1e-5)


def test_what_is_wanted_of_the_image_between(context):
    """A result, or a second use."""
    shape = SHAPES["two tiles"]

    def build(g, x, w, v):
        wide = g.node("relu", g.node("conv", x, w))
        made = deep(g, wide, v, shape)
        return [wide, g.node("add", made, g.node("neg", wide))]
    got, wanted = run_both(context, build, *given(shape))
    assert_close(got, wanted, 1e-5)


@pytest.mark.parametrize("name", ["two tiles", "stride", "tiles with a rest", "plain"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 3e38])
def test_special_numbers(context, name, number):
    """A NaN stays one behind bounds."""
    shape = SHAPES[name]
    x, w, v = given(shape)
    x[0, 1, 0, 4] = x[0, 2, 4, 13] = number

    def build(g, x, w, v):
        made = deep(g, bounded(g, first(g, x, w, shape), -1e38, 6), v, shape)
        return bounded(g, made, -1e38, 1e38)
    got, wanted = run_both(context, build, x, w, v)
    assert np.array_equal(np.isnan(got[0]), np.isnan(wanted[0])) and np.isnan(wanted[0]).any() == np.isnan(number)
    kept = np.isfinite(wanted[0])
    assert np.allclose(got[0][kept], wanted[0][kept], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["two tiles", "stride", "tiles with a rest", "a rest at the edge"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_weights_behind_padding(context, name, number):
    """Padding adds nothing, even if the weight is not finite."""
    shape = SHAPES[name]
    x, w, v = given(shape)
    v[5, 0, 0, 0], v[6, 0, 1, 2], v[7, 0, 2, 1] = number, number, number
    got, wanted = run_both(context, lambda g, x, w, v: deep(g, bounded(g, g.node("conv", x, w), 0.5, 6), v, shape), x, w, v)
    assert np.array_equal(np.isnan(got[0]), np.isnan(wanted[0])) and np.array_equal(np.isinf(got[0]), np.isinf(wanted[0]))
    kept = np.isfinite(wanted[0])
    assert np.allclose(got[0][kept], wanted[0][kept], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_weights_of_a_plain_image_behind_padding(context, number):
    shape = SHAPES["plain"]
    x, w, v = given(shape)
    w[5, 0, 0, 0], w[6, 1, 1, 0] = number, -number
    got, wanted = run_both(context, lambda g, x, w, v: deep(g, bounded(g, first(g, x, w, shape), 0.5, 6), v, shape), x, w, v)
    assert np.array_equal(np.isnan(got[0]), np.isnan(wanted[0]))


BITS = """
import sys
sys.path[:0] = {paths!r}
import keel_abi
import numpy as np
from regions import as_nodes
from test_cpu_strips import SHAPES, given, pair
contexts = [keel_abi.Context(threads=t) for t in (1, 2, 3, 7)]
for name, shape in SHAPES.items():
    x, w, v = given(shape)
    one, *many = (as_nodes(k, lambda g, x, w, v: pair(g, x, w, v, shape), [x], [w, v], "cpu").run(x)[0] for k in contexts)
    print(name, all(np.array_equal(one, y) for y in many))
"""


def test_the_same_bits_with_any_number_of_threads(context):
    if cpu_class(context) == "sse4":
        pytest.skip("this processor, or KEEL_CPU_ISA, has no AVX2")
    assert run_limited(BITS.format(paths=PATHS), KEEL_CPU_ISA=cpu_class(context)).splitlines() == [f"{name} True" for name in SHAPES]


TELL = """
import sys
sys.path[:0] = {paths!r}
import keel_abi
from regions import as_nodes
from test_cpu_strips import SHAPES, given, pair
shape = SHAPES[{name!r}]
x, w, v = given(shape)
as_nodes(keel_abi.Context(threads=1), lambda g, x, w, v: pair(g, x, w, v, shape), [x], [w, v], "cpu").run(x)
"""


@pytest.mark.parametrize("name", SHAPES)
def test_where_they_are_taken(context, name):
    """The last convolution is oneDNN's only one."""
    if cpu_class(context) == "sse4":
        pytest.skip("this processor, or KEEL_CPU_ISA, has no AVX2")
    how = {"KEEL_CPU_ISA": cpu_class(context), "ONEDNN_VERBOSE": "2", "KEEL_CPU_PRODUCTS": "onednn"}
    lines = run_limited(TELL.format(paths=PATHS, name=name), **how).splitlines()
    done = [line.split(",")[3] for line in lines if line.startswith("onednn_verbose,exec")]
    assert done.count("convolution") + done.count("matmul") <= 1, done
