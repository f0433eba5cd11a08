"""Convolutions of f32 images with channels last, which the cpu device with AVX2 computes by the kernels of its own products for
many channels: windows, strides, padding, dilation, bias and bounds, special values and bits, against the reference device."""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from regions import assert_close, cpu_class
from test_winograd import BEHIND, draw, run_both

HERE = Path(__file__).resolve().parent


def filters(outputs, channels, *window, seed=1):
    return draw(seed, outputs, channels, *window, scale=(channels * np.prod(window))**-0.5)


# images, channels, outputs, image, window, attributes
SHAPES = {
    "1x1": (1, 128, 64, (14, 14), (1, 1), {}),
    "1x1, 49 cells": (1, 960, 160, (7, 7), (1, 1), {}),
    "1x1, several blocks": (3, 130, 48, (13, 9), (1, 1), {}),
    "1x1, a panel not full": (2, 128, 122, (5, 7), (1, 1), {}),
    "1x1, sum in pieces": (1, 2100, 32, (4, 5), (1, 1), {}),
    "1x1, stride": (2, 256, 64, (15, 12), (1, 1), {"stride": [2, 3]}),
    "3x3, stride": (1, 256, 48, (14, 13), (3, 3), {"stride": [2, 2], "lo": [1, 0], "hi": [1, 2]}),
    "3x3, small image": (2, 256, 32, (3, 4), (3, 3), {"lo": [1, 1], "hi": [1, 1]}),
    "3x2, dilation": (1, 257, 32, (9, 11), (3, 2), {"dil": [2, 3], "lo": [3, 2], "hi": [1, 4]}),
    "5x5, more padding than image": (1, 300, 16, (3, 3), (5, 5), {"lo": [4, 4], "hi": [4, 4]}),
    "line": (2, 256, 32, (40,), (3,), {"lo": [1], "hi": [1]}),
    "volume": (1, 256, 32, (3, 4, 5), (2, 2, 2), {"lo": [1, 0, 1], "hi": [0, 1, 0]}),
    "most channels of a piece": (1, 1100, 16, (5, 5), (3, 3), {"lo": [1, 1], "hi": [1, 1]}),
}


def conv(g, x, w, attrs):
    return g.node("conv", x, w, **attrs)


def before(g, x, shape):
    """A convolution in front keeps the image in the layout of its primitive."""
    return g.node("relu", g.node("conv", x, g.constant(filters(shape[1], shape[1], *[1] * len(shape[3]), seed=4))))


# Bias and bounds are for two image dims.
CASES = [(name, behind) for name, shape in SHAPES.items() for behind in ("nothing", "bias, relu", "clamp", "relu, bias")
         if behind == "nothing" or len(shape[3]) == 2]


@pytest.mark.parametrize("name, behind", CASES)
def test_it_is_a_convolution(context, name, behind):
    n, c, o, image, window, attrs = SHAPES[name]
    got, wanted = run_both(context, lambda g, x, w: BEHIND[behind](g, conv(g, x, w, attrs), o),
                           draw(5, n, c, *image), filters(o, c, *window))
    assert_close(got, wanted, 5e-6)


@pytest.mark.parametrize("name, behind", CASES)
def test_between_others(context, name, behind):
    shape = SHAPES[name]
    n, c, o, image, window, attrs = shape

    def build(g, x, w):
        y = conv(g, before(g, x, shape), w, attrs)
        return conv(g, BEHIND[behind](g, y, o), g.constant(filters(16, o, *[1] * len(image), seed=3)), {})
    got, wanted = run_both(context, build, draw(5, n, c, *image), filters(o, c, *window))
    assert_close(got, wanted, 1e-5)


@pytest.mark.parametrize("wanted_later", [False, True])
@pytest.mark.parametrize("behind", ["nothing", "bias, relu", "clamp"])
@pytest.mark.parametrize("c, o, window", [(128, 128, 1), (256, 256, 3), (1100, 1100, 1)])
def test_what_is_added_first(context, c, o, window, behind, wanted_later):
    """In place if the operand has no later use, else read in its memory."""
    pad = {"lo": [window // 2] * 2, "hi": [window // 2] * 2}

    def build(g, x, w):
        short = before(g, x, (1, c, o, (6, 6)))
        y = BEHIND[behind](g, g.node("add", conv(g, g.node("relu", short), w, pad), short), o)
        return [y, g.node("neg", short)] if wanted_later else y
    got, wanted = run_both(context, build, draw(6, 2, c, 6, 6), filters(o, c, window, window))
    assert_close(got, wanted, 1e-5)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("c, window", [(128, 1), (256, 3)])
def test_special_numbers(context, c, window, number):
    """A NaN stays one behind relu, and cells outside the image add nothing."""
    pad = {"lo": [window // 2] * 2, "hi": [window // 2] * 2}
    x = draw(9, 1, c, 5, 5)
    x[0, 3, 0, 4] = number
    got, wanted = run_both(context, lambda g, x, w: g.node("relu", conv(g, x, w, pad)), x, filters(64, c, window, window) * 8)
    assert np.array_equal(np.isnan(got[0]), np.isnan(wanted[0])) and np.array_equal(np.isinf(got[0]), np.isinf(wanted[0]))
    kept = np.isfinite(wanted[0])
    assert np.allclose(got[0][kept], wanted[0][kept], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_weights_behind_padding(context, number):
    """Padding adds nothing, even if the weight is not finite."""
    w = filters(64, 256, 3, 3)
    w[5, 7, 0, 0] = number
    got, wanted = run_both(context, lambda g, x, w: conv(g, x, w, {"lo": [1, 1], "hi": [1, 1], "stride": [2, 2]}),
                           draw(9, 1, 256, 8, 8), w)
    assert np.array_equal(np.isnan(got[0]), np.isnan(wanted[0])) and np.array_equal(np.isinf(got[0]), np.isinf(wanted[0]))


def run_limited(code, **given):
    """Runs code in a process that is limited to AVX2, with the own products for all convolutions that may take them."""
    env = {**os.environ, "KEEL_CPU_ISA": "avx2", "KEEL_CPU_PRODUCTS": "own", **given}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    return out.stdout


BITS = """
import sys
sys.path[:0] = {paths!r}
import keel_abi
import numpy as np
from regions import as_call
from test_cpu_images import SHAPES, conv, draw, filters
contexts = [keel_abi.Context(threads=t) for t in (1, 2, 3, 7)]
for name, (n, c, o, image, window, attrs) in SHAPES.items():
    x, w = draw(5, n, c, *image), filters(o, c, *window)
    one, *many = (as_call(k, lambda g, x, w: conv(g, x, w, attrs), [x], [w]).run(x)[0] for k in contexts)
    print(name, all(np.array_equal(one, y) for y in many))
"""
PATHS = [str(HERE), str(HERE.parent / "python")]


def test_the_same_bits_with_any_number_of_threads(context):
    if cpu_class(context) == "sse4":
        pytest.skip("this processor, or KEEL_CPU_ISA, has no AVX2")
    assert run_limited(BITS.format(paths=PATHS)).splitlines() == [f"{name} True" for name in SHAPES]


TELL = """
import sys
sys.path[:0] = {paths!r}
import keel_abi
from regions import as_nodes
from test_cpu_images import SHAPES, conv, draw, filters
n, c, o, image, window, attrs = SHAPES[{name!r}]
build = lambda g, x, w: conv(g, g.node("relu", conv(g, x, w, attrs)), g.constant(filters(16, o, 1, 1)), {{}})
x, w = draw(1, n, c, *image), filters(o, c, *window)
as_nodes(keel_abi.Context(threads=1), build, [x], [w], "cpu").run(x)
"""


@pytest.mark.parametrize("name", ["1x1", "1x1, stride", "3x3, stride", "3x3, small image"])
def test_where_they_are_taken(context, name):
    """The last convolution, of too few channels, is oneDNN's only one."""
    if cpu_class(context) == "sse4":
        pytest.skip("this processor, or KEEL_CPU_ISA, has no AVX2")
    lines = run_limited(TELL.format(paths=PATHS, name=name), ONEDNN_VERBOSE="2").splitlines()
    done = [line.split(",")[3] for line in lines if line.startswith("onednn_verbose,exec")]
    assert done.count("convolution") == 1, done
