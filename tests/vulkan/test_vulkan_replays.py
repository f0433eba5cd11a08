"""Recorded plans, as in replays.py, and recordings longer than a batch."""
import gc
import random

import keel_abi
import numpy as np
import pytest
import replays
from vulkan_build import PLUGIN, is_on


@pytest.mark.parametrize("seed", range(3))
def test_random_feeds_sizes_and_faults(context, driver, seed):
    before = driver.calls("vkCmdUpdateBuffer")
    replays.run_at_random(context, "vulkan", replays.plan_of(context, "vulkan"), random.Random(seed))
    assert driver.calls("vkCmdUpdateBuffer") > before + 40 or is_on("KEEL_VULKAN_NO_RECORDINGS")


def test_threads_replay_one_recording(context):
    replays.run_in_threads(replays.plan_of(context, "vulkan"), 4, 25)


def chain(launches):
    lines = "".join(f"  s{k + 1} = add(s{k}, y)\n" for k in range(launches))
    return f"keel 1\nfn @main(s0: f32[3], y: f32[3]) -> f32[3] {{\n{lines}  return s{launches}\n}}\nentry main = @main (s0, y) -> (_)\n"


@pytest.mark.parametrize("launches", [4, 99, 100, 101, 350])
def test_long_recordings_are_submitted_in_parts(context, driver, launches):
    """No part has more than 100 launches, so that watchdogs do not end it; the driver is called once."""
    plan, y = replays.plan_of(context, "vulkan", chain(launches)), np.array([1, 2, -3], np.float32)
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
    plan, y = replays.plan_of(context, "vulkan", chain(250)), np.array([1, 2, -3], np.float32)
    there, parts = context.array(y).to("vulkan").wait(), driver.parts()
    got, = plan.run_arrays(there, there)
    assert driver.parts() - parts == 3
    np.testing.assert_array_equal(got.numpy(), 251 * y)


def test_recordings_are_freed(driver, loaded):
    gc.collect()  # contexts of other tests
    before = driver.alive()
    made = keel_abi.Context()
    made.load_plugin(PLUGIN)
    plan, x = replays.plan_of(made, "vulkan"), np.ones((2, 4), np.float32)
    for _ in range(4):
        plan.run(x, x, np.array([0, 1, 1], np.int32))
    assert driver.alive() > before
    del plan, made
    assert driver.alive() == before


def test_variables_after_a_fault_in_a_replay(context):
    replays.update_a_variable(context, "vulkan")
