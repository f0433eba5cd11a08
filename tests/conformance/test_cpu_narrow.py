"""1x1 convolutions of f32 images with channels last to 16 or 24 channels, which the cpu device with AVX-512 computes by loops of its own:
sizes, bias and bounds, a summand, special values, bits and where they are taken, against the reference device."""
import numpy as np
import pytest
from regions import assert_close, cpu_class
from test_cpu_images import PATHS, before, conv, filters, run_limited
from test_winograd import BEHIND, draw, run_both

# images, channels, outputs, image
SHAPES = {
    "24, blocks of pixels": (1, 96, 24, (28, 28)),
    "24, with a rest": (2, 144, 24, (9, 7)),
    "24, several units": (3, 33, 24, (20, 21)),
    "24, most channels": (1, 192, 24, (14, 14)),
    "24, a pixel": (1, 40, 24, (1, 1)),
    "24, a channel": (1, 1, 24, (5, 6)),
    "16, blocks of pixels": (1, 32, 16, (56, 56)),
    "16, with a rest": (5, 17, 16, (3, 11)),
    "16, line": (2, 64, 16, (45,)),
}


@pytest.mark.parametrize("name, behind", [(name, behind) for name, shape in SHAPES.items()
                                          for behind in ("nothing", "bias, relu", "clamp", "relu, bias", "scale, silu")
                                          if behind == "nothing" or len(shape[3]) == 2])
def test_between_others(context, name, behind):
    n, c, o, image = shape = SHAPES[name]

    def build(g, x, w):
        y = BEHIND[behind](g, conv(g, before(g, x, shape), w, {}), o)
        return conv(g, y, g.constant(filters(32, o, *[1] * len(image), seed=3)), {})
    got, wanted = run_both(context, build, draw(5, n, c, *image), filters(o, c, *[1] * len(image)))
    assert_close(got, wanted, 1e-5)


@pytest.mark.parametrize("wanted_later", [False, True])
@pytest.mark.parametrize("behind", ["nothing", "bias, relu", "clamp"])
@pytest.mark.parametrize("o", [16, 24])
def test_what_is_added_first(context, o, behind, wanted_later):
    """In place if the operand has no later use, else read in its memory; 81 pixels are no whole blocks."""
    def build(g, x, w):
        short = before(g, x, (1, o, o, (9, 9)))
        y = BEHIND[behind](g, g.node("add", conv(g, g.node("relu", short), w, {}), short), o)
        made = conv(g, y, g.constant(filters(32, o, 1, 1, seed=3)), {})
        return [made, g.node("neg", short)] if wanted_later else made
    got, wanted = run_both(context, build, draw(6, 1, o, 9, 9), filters(o, o, 1, 1))
    assert_close(got, wanted, 1e-5)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("o", [16, 24])
def test_special_numbers(context, o, number):
    """A NaN stays one behind bounds."""
    x = draw(9, 1, 20, 5, 5)
    x[0, 3, 0, 4] = number

    def build(g, x, w):
        y = BEHIND["clamp"](g, conv(g, g.node("neg", g.node("neg", x)), w, {}), o)
        return g.node("neg", y)
    got, wanted = run_both(context, build, x, filters(o, 20, 1, 1) * 8)
    assert np.array_equal(np.isnan(got[0]), np.isnan(wanted[0])) and np.isnan(wanted[0]).any() == np.isnan(number)
    kept = np.isfinite(wanted[0])
    assert np.allclose(got[0][kept], wanted[0][kept], rtol=1e-4, atol=1e-4)


PROGRAM = """
import sys
sys.path[:0] = {paths!r}
import keel_abi
import numpy as np
from regions import as_nodes
from test_cpu_narrow import SHAPES, before, conv, draw, filters
names = {names!r}
contexts = [keel_abi.Context(threads=t) for t in {threads!r}]
for name in names:
    n, c, o, image = shape = SHAPES[name]
    def build(g, x, w):
        return conv(g, g.node("relu", conv(g, before(g, x, shape), w, {{}})), g.constant(filters(32, o, *[1] * len(image))), {{}})
    x, w = draw(5, n, c, *image), filters(o, c, *[1] * len(image))
    one, *many = (as_nodes(k, build, [x], [w], "cpu").run(x)[0] for k in contexts)
    print(name, all(np.array_equal(one, y) for y in many))
"""


def run_here(context, names, threads, **given):
    if cpu_class(context) in ("sse4", "avx2"):
        pytest.skip("this processor, or KEEL_CPU_ISA, has no AVX-512")
    code = PROGRAM.format(paths=PATHS, names=list(names), threads=threads)
    return run_limited(code, KEEL_CPU_ISA=cpu_class(context), **given).splitlines()


def test_the_same_bits_with_any_number_of_threads(context):
    assert run_here(context, SHAPES, (1, 2, 3, 7)) == [f"{name} True" for name in SHAPES]


@pytest.mark.parametrize("name", ["24, blocks of pixels", "24, with a rest", "16, blocks of pixels"])
def test_where_they_are_taken(context, name):
    """The convolutions before and behind are oneDNN's only ones."""
    lines = run_here(context, [name], (1,), ONEDNN_VERBOSE="2")
    done = [line.split(",")[3] for line in lines if line.startswith("onednn_verbose,exec")]
    assert done.count("convolution") + done.count("matmul") == 2, done
