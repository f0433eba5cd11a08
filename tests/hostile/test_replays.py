"""Recorded plans on a device that runs a launch before any other launch that it does not depend on, in random order: results, faults,
variables, failures of the device."""
import random
import threading

import hostile
import keel_abi
import numpy as np
import pytest
import replays
from replays import floats, model, same

GOOD = np.array([0, 0, 0], np.int32)


def program(seed, **settings):
    hostile.put(**settings)
    context = hostile.context(seed)
    return context, replays.plan_of(context, "hostile")


@pytest.mark.parametrize("seed", range(1, hostile.SEEDS + 1))
def test_random_feeds_sizes_and_faults(seed):
    draw = random.Random(seed)
    context, plan = program(seed, shared=seed % 3 and 1, params=draw.choice([0, 40]) if seed % 3 else 0, delay=seed % 5 == 0)
    before = hostile.get("replays")
    replays.run_at_random(context, "hostile", plan, draw)
    assert hostile.get("replays") > before + 40
    assert hostile.get("recordings") == 4


def test_an_empty_array():
    draw = random.Random(1)
    _, plan = program(1)
    x, w = floats(draw, 0), floats(draw, 0)
    for _ in range(3):
        with pytest.raises(keel_abi.KeelError, match="gather \"pick\""):
            plan.run(x, w, GOOD)


@pytest.mark.parametrize("seed", range(1, 6))
def test_threads_replay_one_recording(seed):
    _, plan = program(seed)
    replays.run_in_threads(plan, 2, 15)


@pytest.mark.parametrize("function", ["record_begin", "run", "record_end", "replay"])
@pytest.mark.parametrize("code", ["UNIMPLEMENTED", "OOM"])
@pytest.mark.parametrize("n", [1, 4])
def test_failures_while_recording(function, code, n):
    """UNIMPLEMENTED: the run goes on without a recording. Another code is its error, and a later run records."""
    context, plan = program(3)
    draw = random.Random(3)
    x, w = floats(draw, 3), floats(draw, 3)
    same(plan.run_arrays(x, w, GOOD), model(x, w, GOOD))
    hostile.fail(function, n, {"UNIMPLEMENTED": 12, "OOM": 8}[code])
    errors, before = 0, hostile.get("replays")
    for _ in range(8):
        try:
            same(plan.run_arrays(x, w, GOOD), model(x, w, GOOD))
        except keel_abi.KeelError as e:
            assert e.code == code
            errors += 1
    fired = hostile.get("fired")
    hostile.fail()
    declines = code == "UNIMPLEMENTED" and function != "replay"
    assert fired == (n == 1 or function in ("run", "replay"))
    assert errors == (fired and not declines)
    assert hostile.get("recordings") == (0 if fired and declines else 1)
    assert (hostile.get("replays") == before) == bool(fired and declines)


def test_cancel_while_replays_are_in_flight():
    """The recording outlives the cancelled run, and later runs replay it."""
    context, plan = program(5, delay=200)
    draw = random.Random(5)
    x, w = floats(draw, 3), floats(draw, 3)
    for _ in range(3):
        same(plan.run_arrays(x, w, GOOD), model(x, w, GOOD))
    before = hostile.get("replays")
    thread = threading.Timer(0.05, keel_abi.lib().keel_context_cancel, (context, 1))
    thread.start()
    with pytest.raises(keel_abi.KeelError, match="by keel_context_cancel|cancelled while waiting for device") as e:
        while True:
            plan.run(x, w, GOOD)
    e.value.__traceback__ = None
    thread.join()
    keel_abi.lib().keel_context_cancel(context, 0)
    assert hostile.get("replays") > before
    for _ in range(3):
        x, w = floats(draw, 3), floats(draw, 3)
        before = hostile.get("replays")
        same(plan.run_arrays(x, w, GOOD), model(x, w, GOOD))
        assert hostile.get("replays") == before + 1
    assert hostile.get("recordings") == 1


def test_variables_after_a_fault_in_a_replay():
    context, before = hostile.context(7), hostile.get("replays")
    replays.update_a_variable(context, "hostile")
    assert hostile.get("replays") > before


def test_parameters_need_shared_memory():
    hostile.put(shared=0, params=40)
    context = hostile.context(8)
    with pytest.raises(keel_abi.KeelError, match="needs 40 bytes of parameters for each launch: .* no shared memory") as e:
        context.parse(replays.PROGRAM).session("hostile", level=0).prepare().run(np.ones((1, 4), np.float32), np.ones((1, 4), np.float32), GOOD)
    assert e.value.code == "UNIMPLEMENTED" and e.value.node == "a"
