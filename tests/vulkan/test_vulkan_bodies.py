"""Graphs with bodies: an impl of the plugin declines the sizes of a node in a branch or a loop, and the body of its op replaces it there; a
called graph with effects whose ops have no impl."""
import keel_abi
import numpy as np
import pytest
from vulkan_build import BUILD, PLUGIN

pytestmark = pytest.mark.usefixtures("loaded")
ATTENTION = """keel 1
fn @main(i: i32[], q: f32[m, 4], k: f32[n, 4]) -> f32[m, 4] {
  a = switch(i, q, k)
    branches(q0, k0) {
      yield q0
    }
    branches(q1, k1) {
      b = attention(q1, k1, k1)
      c = reverse(b){axes=[0]}
      yield c
    }
  d = gather(a, i){axis=1}
  e = add(a, attention(a, k, k))
  return e
}
entry main = @main (i, q, k) -> (_)
"""
LOOP = """keel 1
fn @main(q: f32[M, 4], k: f32[n, 4]) -> f32[M, 4] {
  r0, r1, r2 = while(i32(0), q, k){carry=3}
    test(c, x, z) {
      more = less(c, i32(3))
      yield more
    }
    body(c, x, z) {
      next = add(c, i32(1))
      y = attention(x, z, z)
      yield next, y, z
    }
  return r1
}
entry main = @main (q, k) -> (_)
"""
EFFECT = """keel 1
var w: f32[] = [0]

fn @called(x: f32[3]) -> f32[] {
  y = log_sum_exp(x)
  assign(w, y)
  return y
}

fn @main(x: f32[3], z: f32[1, 1]) -> f32[], f32[] {
  a = call(x){body=@called}
  b = reduce_min(z)
  return a, b
}
entry main = @main (x, z) -> (_, _)
"""
EMPTY = """keel 1
fn @main(i: i32[], x: f32[2, 0], y: i64[2]) -> i64[2] {
  a = switch(i, x, y)
    branches(x0, y0) {
      yield y0
    }
    branches(x1, y1) {
      b = arg_min(x1){axis=1}
      yield b
    }
  return a
}
entry main = @main (i, x, y) -> (_)
"""


def context():
    made = keel_abi.Context()
    for plugin in ("reference", "vulkan", "passes"):
        made.load_plugin(PLUGIN if plugin == "vulkan" else BUILD / "lib" / "keel" / "plugins" / f"keel-{plugin}.so")
    return made


def agree(text, runs, level=0):
    """vulkan and reference, the same session for all sizes."""
    sides = [context().parse(text).session(device, level=level).prepare() for device in ("vulkan", "reference")]
    for feeds in runs:
        got, want = (side.run(*feeds) for side in sides)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def normal(*shape):
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("level", [0, 2])
def test_sizes_that_attention_declines_in_a_branch(level):
    """8 rows or more are one launch, fewer the body; before, fewer were an error in a branch."""
    agree(ATTENTION, [(np.array(i, np.int32), normal(m, 4), normal(n, 4)) for m, n in [(1, 5), (9, 5), (2, 1), (64, 33), (1, 6)]
                      for i in (0, 1)], level)


@pytest.mark.parametrize("rows", [1, 7, 8])
def test_sizes_that_attention_declines_in_a_loop(rows):
    """The rows are a number of the graph; the columns are known to each run."""
    agree(LOOP.replace("M", str(rows)), [(normal(rows, 4), normal(n, 4)) for n in (3, 1, 40)])


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_called_graph_with_an_effect_and_a_result(level):
    agree(EFFECT, [(normal(3), normal(1, 1))] * 2, level)


def test_an_index_of_no_elements_is_an_error_where_it_runs():
    x, y = np.zeros((2, 0), np.float32), np.array([3, 4])
    for device in ("vulkan", "reference"):
        plan = context().parse(EMPTY).session(device).prepare()
        for _ in range(3):
            np.testing.assert_array_equal(plan.run(np.array(0, np.int32), x, y)[0], y)
            with pytest.raises(keel_abi.KeelError, match="RANGE.*arg_min: the dim has no elements"):
                plan.run(np.array(1, np.int32), x, y)
