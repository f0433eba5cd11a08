"""3x3 convolutions by Winograd's algorithm, which the cpu device uses for many channels and pixels: against the reference device,
in all variants of its loops, with values that must not affect other results of a tile, and with reproducible bits."""
import os
import subprocess
import sys
from pathlib import Path

import keel_abi
import numpy as np
import pytest
from regions import as_call, as_nodes, assert_close, cpu_class

HERE = Path(__file__).resolve().parent
CORES = len(os.sched_getaffinity(0))


def draw(seed, *shape, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def scalar(value):
    return np.array(value, np.float32)


def weights(outputs, channels, seed=1):
    return draw(seed, outputs, channels, 3, 3, scale=(9 * channels)**-0.5)


def conv(g, x, w, lo=(1, 1), hi=(1, 1), **attrs):
    return g.node("conv", x, w, lo=list(lo), hi=list(hi), **attrs)


def bounded(g, v, low, high):
    return g.node("clamp", v, g.constant(scalar(low)), g.constant(scalar(high)))


def norm(g, v, n):
    return g.node("batch_norm", v, *(g.constant(np.abs(draw(k, n)) + 0.5) for k in range(4)), eps=1e-5)


def run_both(context, build, x, *constants):
    """Returns (results of the cpu device, in one launch, results of the reference)."""
    plan = as_nodes(context, build, [x], list(constants), device="cpu")
    assert [step["impl"] for step in plan.report(x)["launches"]] in (["oneDNN region"], ["oneDNN convolution"])
    first = [np.array(y) for y in plan.run(x)]
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, plan.run(x))), "a second run differs"
    return first, as_nodes(context, build, [x], list(constants)).run(x)


BEHIND = {
    "nothing": lambda g, v, o: v,
    "bias, relu": lambda g, v, o: g.node("relu", g.node("add", v, g.constant(draw(2, o, 1, 1)))),
    "batch norm, relu6": lambda g, v, o: bounded(g, norm(g, v, o), 0, 6),
    "clamp": lambda g, v, o: bounded(g, v, -0.5, 0.25),
    "scale, silu": lambda g, v, o: g.node("silu", g.node("mul", v, g.constant(draw(3, o, 1, 1)))),
    "leaky relu": lambda g, v, o: g.node("leaky_relu", v),
    "relu, bias": lambda g, v, o: g.node("add", g.node("relu", v), g.constant(draw(2, o, 1, 1))),
}
# images, channels, outputs, image, padding before, behind
SHAPES = [(1, 64, 64, (14, 14), (1, 1), (1, 1)), (3, 32, 48, (13, 9), (1, 1), (1, 1)), (2, 33, 47, (16, 15), (0, 2), (1, 0)),
          (1, 40, 32, (31, 18), (2, 0), (2, 1)), (1, 32, 32, (2, 200), (1, 1), (1, 1)), (5, 96, 32, (7, 8), (0, 0), (0, 0)),
          (41, 32, 32, (3, 3), (0, 0), (0, 0))]


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_a_convolution(context, shape, behind):
    n, c, o, image, lo, hi = shape
    got, wanted = run_both(context, lambda g, x, w: BEHIND[behind](g, conv(g, x, w, lo, hi), o),
                           draw(5, n, c, *image), weights(o, c))
    assert_close(got, wanted, 5e-6)


@pytest.mark.parametrize("wanted_later", [False, True])
@pytest.mark.parametrize("behind", ["nothing", "bias, relu"])
def test_what_is_added_first(context, behind, wanted_later):
    """In place if the operand has no later use, else read in its memory."""
    def build(g, x, w, v):
        short = g.node("conv", x, v)
        y = BEHIND[behind](g, g.node("add", conv(g, g.node("relu", x), w), short), 48)
        return [y, g.node("relu", short)] if wanted_later else y
    got, wanted = run_both(context, build, draw(6, 2, 32, 15, 12), weights(48, 32), draw(7, 48, 32, 1, 1, scale=0.2))
    assert_close(got, wanted, 5e-6)


def test_a_chain_of_them(context):
    def build(g, x, *ws):
        for w in ws:
            x = g.node("relu", g.node("add", conv(g, x, w), x))
        return x
    got, wanted = run_both(context, build, draw(8, 2, 32, 17, 16), *(weights(32, 32, seed) for seed in range(5)))
    assert_close(got, wanted, 1e-5)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("at", [(0, 0), (13, 13), (6, 7)])
def test_a_cell_is_seen_by_its_own_results_only(context, number, at):
    """Results of the same tile that do not depend on the special value are unchanged by it."""
    def build(g, x, w):
        return g.node("relu", conv(g, x, w))
    x, w = draw(9, 1, 32, 14, 14), weights(32, 32) * np.float32(8)
    plan, nodes = as_call(context, build, [x], [w]), as_nodes(context, build, [x], [w])
    clean = np.array(plan.run(x)[0])
    dirty = x.copy()
    dirty[0, 5, at[0], at[1]] = number
    got, wanted = np.array(plan.run(dirty)[0]), nodes.run(dirty)[0]
    assert not np.array_equal(clean, got)
    assert np.array_equal(np.isnan(got), np.isnan(wanted)) and np.array_equal(np.isinf(got), np.isinf(wanted))
    kept = np.isfinite(wanted)
    assert np.allclose(got[kept], wanted[kept], rtol=1e-4, atol=1e-4)
    assert np.array_equal(plan.run(x)[0], clean)


@pytest.mark.skipif(CORES < 2, reason="needs two cores to compare with one")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_same_bits_with_any_number_of_threads(shape):
    n, c, o, image, lo, hi = shape
    x, w = draw(5, n, c, *image), weights(o, c)
    one, many = (as_call(keel_abi.Context(threads=t), lambda g, x, w: conv(g, x, w, lo, hi), [x], [w]).run(x)[0]
                 for t in (1, CORES))
    assert np.array_equal(one, many)


# Prints the oneDNN primitives that run a convolution of such weights and images.
TELL = """
import sys
sys.path[:0] = {paths!r}
import keel_abi
from test_winograd import as_call, conv, draw, weights
x, w = draw(1, *{x!r}), draw(2, *{w!r})
build = lambda g, x, w: conv(g, x, w, **{attrs!r})
plan = as_call(keel_abi.Context(threads=1), build, *([[x], [w]] if {constant!r} else [[x, w], []]))
plan.run(*([x] if {constant!r} else [x, w]))
"""


@pytest.mark.parametrize("x, w, attrs, constant, wanted", [
    ((1, 64, 14, 14), (64, 64, 3, 3), {}, True, {"matmul"}),
    ((1, 64, 14, 14), (64, 64, 3, 3), {}, False, {"convolution"}),
    ((1, 64, 14, 14), (64, 64, 3, 3), {"stride": [2, 2]}, True, {"convolution"}),
    ((1, 64, 14, 14), (64, 64, 3, 3), {"dil": [2, 2]}, True, {"convolution"}),
    ((1, 64, 14, 14), (64, 32, 3, 3), {"groups": 2}, True, {"convolution"}),
    ((1, 64, 8, 8), (64, 64, 3, 3), {}, True, {"convolution"}),
    ((1, 16, 40, 40), (64, 16, 3, 3), {}, True, {"convolution"})])
def test_where_it_is_taken(context, x, w, attrs, constant, wanted):
    if not is_taken(context):
        pytest.skip("for SSE4 oneDNN wants other layouts")
    code = TELL.format(paths=[str(HERE), str(HERE.parent / "python")], x=x, w=w, attrs=attrs, constant=constant)
    out = subprocess.run([sys.executable, "-c", code], env={**os.environ, "ONEDNN_VERBOSE": "2", "KEEL_CPU_PRODUCTS": "own"}, capture_output=True,
                         text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    lines = [line.split(",") for line in out.stdout.splitlines() if line.startswith("onednn_verbose,exec")]
    if cpu_class(context) == "avx2":
        wanted = wanted - {"matmul"}  # by the plugin's own kernels
    assert {line[3] for line in lines} - {"reorder"} == wanted


def is_taken(context):
    """With SSE4 oneDNN's images are in another layout, and all convolutions are its own."""
    return cpu_class(context) != "sse4"


def test_exact_convolution_turns_it_off(context):
    x, w = draw(1, 1, 64, 14, 14), weights(64, 64)
    x[..., 6, 6] = 1e5
    w[..., 1, :] = w[..., :, 1] = 0  # direct: the cell adds 0 to five results; Winograd: a rounding
    ways = {exact: np.array(as_call(context, conv, [x], [w], exact_convolution=exact).run(x)[0]) for exact in ("0", "1")}
    assert np.array_equal(ways["1"], as_call(context, conv, [x, w], []).run(x, w)[0])  # an operand: direct
    wide = as_nodes(context, conv, [x.astype(np.float64)], [w.astype(np.float64)]).run(x.astype(np.float64))[0]
    error = {exact: abs(y - wide)[..., [5, 6, 6, 6, 7], [6, 5, 6, 7, 6]].max() for exact, y in ways.items()}
    assert error["1"] < 1e-5, error
    assert error["0"] > 1e-3 if is_taken(context) else error["0"] == error["1"], error
    with pytest.raises(keel_abi.KeelError, match='option "exact_convolution": got "2", expected 0 or 1'):
        as_call(context, conv, [x], [w], exact_convolution="2")


GRAPH = """keel 1
fn @main(x: f32[1, 64, 14, 14]) {
  i = iota(){dims=[64, 64, 3, 3], axis=1, dtype=f32}
  j = iota(){dims=[64, 64, 3, 3], axis=3, dtype=f32}
  w = sin(i * 3.7 + j * 1.3)
  y = conv(x, w){lo=[1, 1], hi=[1, 1]}
  return y
}
entry main = @main (x)
"""


def test_exact_convolution_on_the_command_line(context, tmp_path):
    (tmp_path / "m.keelt").write_text(GRAPH)
    command = [keel_abi.BUILD / "bin" / "keel", "run", "m.keelt", "-i", "x=randn(1)", "-o", "@y.npz"]
    y = []
    for flags in ["--level", "1"], ["--exact-convolution", "--level", "1"], ["--exact-convolution", "--level", "0"]:
        subprocess.run([*command, *flags], cwd=tmp_path, check=True, timeout=60)
        y.append(np.load(tmp_path / "y.npz")["y"])
    assert np.array_equal(y[0], y[1]) != is_taken(context)
    assert np.allclose(y[0], y[1], atol=1e-3) and np.allclose(y[1], y[2], atol=1e-3)
