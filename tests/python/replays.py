"""Recorded plans, for tests of each device that records: random feeds, sizes and faults, threads, variables. NumPy is the model."""
import random

import keel_abi
import numpy as np
import pytest
from together import together

PROGRAM = """keel 1
fn @main(x: f32[n, 4], w: f32[n, 4], i: i32[3]) -> f32[3, 4], f32[n, 4], f32[n, 4] {
  a = add(x, w)
  b = neg(a)
  c = mul(w, w)
  d = maximum(b, c)
  pick = gather(d, i)
  e = add(c, a)
  f = neg(pick)
  g = sub(e, b)
  return f, g, x
}
entry main = @main (x, w, i) -> (_, _, _)
"""
VARIABLE = """keel 1
var t: i32[3] = [1, 1, 1]
fn @main(i: i32[3]) -> i32[3] {
  a = read(t)
  b = add(a, a)
  pick = gather(b, i)
  c = neg(pick)
  d = add(c, a)
  assign(t, d)
  return d
}
entry main = @main (i) -> (_)
"""


def model(x, w, i):
    a = x + w
    return [-np.maximum(-a, w * w)[i], w * w + a + a, x]


def floats(draw, n):
    return np.array([[draw.randrange(-50, 50) for _ in range(4)] for _ in range(n)], np.float32).reshape(n, 4)


def plan_of(context, device, program=PROGRAM):
    return context.parse(program).session(device, level=0, results="device").prepare()


def same(got, want):
    for array, expected in zip(got, want, strict=True):
        np.testing.assert_array_equal(array.numpy(), expected)


def run_at_random(context, device, plan, draw):
    """60 runs of PROGRAM; results are read late, and some of them are feeds."""
    kept = []
    for _ in range(60):
        n = draw.choice([1, 2, 3, 8])
        x, w, i = floats(draw, n), floats(draw, n), np.array([draw.randrange(n) for _ in range(3)], np.int32)
        bad = draw.random() < 0.2
        if bad:
            i[1] = n + 4
        feeds = [context.array(a).to(device) if draw.random() < 0.5 else a for a in (x, w, i)]
        fed = draw.choice(kept)[0][2] if kept and n == 8 and draw.random() < 0.3 else None
        if fed is not None and fed.numpy().shape == x.shape:
            feeds[0], x = fed, fed.numpy()
        results = plan.run_arrays(*feeds)
        if bad:
            with pytest.raises(keel_abi.KeelError) as e:
                results[0].numpy()
            assert (e.value.code, e.value.node) == ("RANGE", "pick")
            assert f"index {n + 4} is not in [0, {n})" in e.value.message and "gather" in e.value.message
        else:
            kept.append((results, model(x, w, i)))
        if len(kept) > 5:
            same(*kept.pop(draw.randrange(len(kept))))
    for pair in kept:
        same(*pair)


def run_in_threads(plan, count, runs):
    """Threads that replay one recording of PROGRAM."""
    i = np.array([0, 2, 1], np.int32)

    def work(k):
        draw = random.Random(k)
        for _ in range(runs):
            x, w = floats(draw, 3), floats(draw, 3)
            for got, want in zip(plan.run(x, w, i), model(x, w, i), strict=True):
                np.testing.assert_array_equal(got, want)
    together(count, work)


def update_a_variable(context, device):
    """A run with a fault leaves the variable as it was, and the next one replays."""
    module = context.parse(VARIABLE)
    plan, t = module.session(device, level=0, results="device").prepare(), module.variable("t")
    want = np.ones(3, np.int32)
    for k in range(9):
        index = np.array([0, 5 if k % 4 == 3 else 2, 1], np.int32)
        result, = plan.run_arrays(index)
        if k % 4 == 3:
            with pytest.raises(keel_abi.KeelError, match=r"index 5 is not in \[0, 3\)"):
                result.numpy()
        else:
            want = -(want + want)[index] + want
            np.testing.assert_array_equal(result.numpy(), want)
        np.testing.assert_array_equal(t.read(), want)
