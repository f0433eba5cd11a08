"""keel_context_cancel and a time limit stop runs on a slow device before all work is encoded; then the same plan computes the right
answer. The test counts launches instead of measuring time."""
import gc
import os
import signal
import threading
import time

import hostile
import keel_abi
import numpy as np
import pytest
from test_place import session

LENGTH = 600
X = np.arange(3, dtype=np.float32)
SLOW = 1000  # microseconds per command: more than half a second in total


def chain(context, length=LENGTH):
    module = context.module()
    graph = module.graph("main")
    value = graph.param("x", np.float32, [3])
    for k in range(length):
        value = graph.node("neg", value, name=f"n{k}")
    graph.result("y", value)
    module.entry("main", graph)
    return module


def stopped(plan, why, cancel=None):
    hostile.put(delay=SLOW, commands=0)
    thread = threading.Thread(target=cancel) if cancel else None
    if thread:
        thread.start()
    with pytest.raises(keel_abi.KeelError, match=why) as e:
        plan.run(X)
    assert e.value.code == "CANCELLED" and 'stopped after "n' in e.value.message
    e.value.__traceback__ = None  # it would keep the plan
    if thread:
        thread.join()
    assert 0 < hostile.get("commands") < LENGTH
    hostile.put(delay=0)


@pytest.mark.parametrize("options", [{}, {"observe": 1}, {"results": "device"}], ids=str)
def test_a_time_limit(options):
    context = hostile.context(1)
    plan = chain(context).session("hostile", level=0, timeout_ms=30, **options).prepare()
    for _ in range(2):
        stopped(plan, "the time limit is 30 ms")
    plan = chain(context).session("hostile", level=0, timeout_ms=600_000, **options).prepare()
    np.testing.assert_array_equal(plan.run_arrays(X)[0].numpy(), X)


@pytest.mark.parametrize("options", [{}, {"timeout_ms": 600_000}], ids=str)
def test_cancel(options):
    context = hostile.context(2)
    plan = chain(context).session("hostile", level=0, **options).prepare()

    def cancel():
        time.sleep(0.05)
        keel_abi.lib().keel_context_cancel(context, 1)

    stopped(plan, "by keel_context_cancel", cancel)
    with pytest.raises(keel_abi.KeelError, match='stopped after "n0" by keel_context_cancel'):
        plan.run(X)  # until it is cleared
    keel_abi.lib().keel_context_cancel(context, 0)
    np.testing.assert_array_equal(plan.run(X)[0], X)


@pytest.mark.parametrize("how", ["limit", "cancel"])
@pytest.mark.parametrize("options", [{}, {"results": "device"}], ids=str)
def test_a_stop_leaves_to_the_device_what_is_encoded(how, options):
    """12 seconds of launches; the run may take about 0.05; work in flight uses memory of this run only."""
    context = hostile.context(4)
    limit = {"timeout_ms": 30} if how == "limit" else {}
    # A run with results on the device and without a limit has returned by then: the read is cancelled.
    stopped_by = "cancelled while waiting for device hostile:0" if options and how == "cancel" else 'stopped after "n'
    plan = chain(context).session("hostile", level=0, **limit, **options).prepare()

    def took():
        hostile.put(delay=20_000, commands=0)
        thread = threading.Timer(0.03, lambda: keel_abi.lib().keel_context_cancel(context, 1))
        if how == "cancel":
            thread.start()
        begin = time.monotonic()
        with pytest.raises(keel_abi.KeelError, match=stopped_by) as e:
            plan.run(X)
        end = time.monotonic()
        assert e.value.code == "CANCELLED"
        e.value.__traceback__ = None
        if how == "cancel":
            thread.join()
        hostile.put(delay=0)
        keel_abi.lib().keel_context_cancel(context, 0)
        return end - begin - 0.03

    assert any(took() < 0.05 for _ in range(10))
    again = chain(context).session("hostile", level=0, **options).prepare()
    for k in range(3):
        np.testing.assert_array_equal(again.run_arrays(X + k)[0].numpy(), X + k)
    del plan, again
    gc.collect()
    assert hostile.get("violations") == 0


def test_a_forked_child_is_told_that_the_device_is_its_parents():
    context = hostile.context(5)
    plan = chain(context).session("hostile", level=0).prepare()
    np.testing.assert_array_equal(plan.run(X)[0], X)
    there = context.array(X).to("hostile").wait()
    child = os.fork()
    if not child:
        said = []
        try:
            signal.alarm(20)
            for use in (lambda: plan.run(X), lambda: there.numpy(), lambda: context.array(X).to("hostile")):
                try:
                    use()
                except keel_abi.KeelError as e:
                    said.append((e.code, "before fork()" in e.message))
        finally:
            os._exit(said != [("UNAVAILABLE", True)] * 3)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(plan.run(X)[0], X)


def test_a_placed_plan_has_one_limit_for_all_its_parts():
    """Six parts, each well within the limit."""
    context = hostile.context(3)
    places = [f"n{digit}??=hostile:{digit % 2}" for digit in range(1, 6)]
    plan = session(context, chain(context), "hostile:0", *places, level=0, timeout_ms=250).prepare()
    assert len(plan.report(context.array(X))["copies"]) >= 6
    stopped(plan, "the time limit is 250 ms")
    plan = session(context, chain(context), "cpu", *places, level=0, timeout_ms=600_000).prepare()
    np.testing.assert_array_equal(plan.run(X)[0], X)


def test_a_run_is_stopped_while_it_waits_for_what_another_holds():
    """The second run waits for its results with all launches encoded, and holds the resources that copy bytes to the host."""
    context = hostile.context(6)
    busy = chain(context, 40).session("hostile", level=0).prepare()
    quick = chain(context, 1).session("hostile", level=0, timeout_ms=300).prepare()
    quick.run(X)
    for _ in range(8):  # until the device's speed is known
        busy.run(X)
    hostile.put(delay=50_000)
    thread = threading.Thread(target=busy.run, args=(X,))
    thread.start()
    time.sleep(0.2)
    begin = time.monotonic()
    with pytest.raises(keel_abi.KeelError, match="the time limit is 300 ms") as e:
        for _ in range(3):  # it may finish in time
            quick.run(X)
    took = time.monotonic() - begin
    e.value.__traceback__ = None
    hostile.put(delay=0)
    thread.join()
    assert took < 1.6, took  # the second run ends 1.8 seconds after `begin`
