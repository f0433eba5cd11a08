"""Recorded plans: random feeds, sizes and faults, threads, recordings longer than a batch. NumPy is the model."""
import random
import threading

import keel_abi
import numpy as np
import pytest
from vulkan_build import PLUGIN, is_on

PROGRAM = """keel 1
fn @main(x: f32[n, 4], w: f32[n, 4], i: i32[3]) -> f32[3, 4], f32[n, 4], f32[n, 4] {
  a = add(x, w)
  b = reverse(a){axes=[1]}
  c = add(w, w)
  d = add(b, c)
  pick = gather(d, i)
  e = add(c, a)
  f = add(pick, pick)
  g = add(e, b)
  return f, g, x
}
entry main = @main (x, w, i) -> (_, _, _)
"""


def model(x, w, i):
    b = (x + w)[:, ::-1]
    return [2 * (b + w + w)[i], w + w + (x + w) + b, x]


def floats(draw, n):
    return np.array([[draw.randrange(-50, 50) for _ in range(4)] for _ in range(n)], np.float32).reshape(n, 4)


def plan_of(context, program=PROGRAM):
    return context.parse(program).session("vulkan", level=0, results="device").prepare()


def same(got, want):
    for array, expected in zip(got, want, strict=True):
        np.testing.assert_array_equal(array.numpy(), expected)


@pytest.mark.parametrize("seed", range(3))
def test_random_feeds_sizes_and_faults(context, driver, seed):
    draw, kept, plan = random.Random(seed), [], plan_of(context)
    before = driver.calls("vkCmdUpdateBuffer")
    for _ in range(60):
        n = draw.choice([1, 2, 3, 8])
        x, w, i = floats(draw, n), floats(draw, n), np.array([draw.randrange(n) for _ in range(3)], np.int32)
        bad = draw.random() < 0.2
        if bad:
            i[1] = n + 4
        feeds = [context.array(a).to("vulkan") if draw.random() < 0.5 else a for a in (x, w, i)]
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
    assert driver.calls("vkCmdUpdateBuffer") > before + 40 or is_on("KEEL_VULKAN_NO_RECORDINGS")


def test_threads_replay_one_recording(context):
    plan, wrong = plan_of(context), []

    def go(k):
        draw = random.Random(k)
        for _ in range(25):
            x, w, i = floats(draw, 3), floats(draw, 3), np.array([0, 2, 1], np.int32)
            for got, want in zip(plan.run(x, w, i), model(x, w, i)):
                if (got != want).any():
                    wrong.append(k)
    threads = [threading.Thread(target=go, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def chain(launches):
    lines = "".join(f"  s{k + 1} = add(s{k}, y)\n" for k in range(launches))
    return f"keel 1\nfn @main(s0: f32[3], y: f32[3]) -> f32[3] {{\n{lines}  return s{launches}\n}}\nentry main = @main (s0, y) -> (_)\n"


@pytest.mark.parametrize("launches", [4, 99, 100, 101, 350])
def test_long_recordings_are_submitted_in_parts(context, driver, launches):
    """No part has more than 100 launches, so that watchdogs do not end it; the driver is called once."""
    plan, y = plan_of(context, chain(launches)), np.array([1, 2, -3], np.float32)
    there = context.array(y).to("vulkan").wait()
    for k in range(5):
        start = context.array(np.full(3, k, np.float32)).to("vulkan").wait()
        before, parts = driver.calls("vkQueueSubmit2"), driver.parts()
        got, = plan.run_arrays(start, there)
        if k > 1 and not is_on("KEEL_VULKAN_NO_RECORDINGS"):  # replays; the first part has 16 launches
            assert driver.calls("vkQueueSubmit2") == before + 1
            assert driver.parts() - parts == 1 + max(0, -(-(launches - 16) // 100))
        np.testing.assert_array_equal(got.numpy(), k + launches * y)


def test_long_runs_without_a_recording_are_submitted_in_parts(context, driver):
    """The first run of a plan is not recorded."""
    plan, y = plan_of(context, chain(250)), np.array([1, 2, -3], np.float32)
    there, parts = context.array(y).to("vulkan").wait(), driver.parts()
    got, = plan.run_arrays(there, there)
    assert driver.parts() - parts == 3
    np.testing.assert_array_equal(got.numpy(), 251 * y)


def test_recordings_are_freed(driver, loaded):
    before = driver.alive()
    made = keel_abi.Context()
    made.load_plugin(PLUGIN)
    plan, x = plan_of(made), np.ones((2, 4), np.float32)
    for _ in range(4):
        plan.run(x, x, np.array([0, 1, 1], np.int32))
    assert driver.alive() > before
    del plan, made
    assert driver.alive() == before


def test_variables_after_a_fault_in_a_replay(context):
    module = context.parse("""keel 1
var t: f32[3] = [1, 1, 1]
fn @main(i: i32[3]) -> f32[3] {
  a = read(t)
  b = add(a, a)
  pick = gather(b, i)
  c = reverse(pick){axes=[0]}
  d = add(c, a)
  assign(t, d)
  return d
}
entry main = @main (i) -> (_)
""")
    plan, t = module.session("vulkan", level=0, results="device").prepare(), module.variable("t")
    want = np.ones(3, np.float32)
    for k in range(9):
        index = np.array([0, 5 if k % 4 == 3 else 2, 1], np.int32)
        result, = plan.run_arrays(index)
        if k % 4 == 3:
            with pytest.raises(keel_abi.KeelError, match=r"index 5 is not in \[0, 3\)"):
                result.numpy()
        else:
            want = (want + want)[index][::-1] + want
            np.testing.assert_array_equal(result.numpy(), want)
        np.testing.assert_array_equal(t.read(), want)
