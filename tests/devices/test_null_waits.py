"""Threads, forks and limits on a device with queues. null_hold keeps its tickets pending, so no test sleeps to imitate a
slow device."""
import os
import threading
import time

import counting
import keel
import keel_abi
import numpy as np
import pytest
from counting import counted, counts

LIMIT = 20  # seconds; the tests take milliseconds


def ready_array():
    return keel.add(keel.array(np.ones(4, np.float32)), 1.0)


def started(call):
    thread = threading.Thread(target=call)
    thread.start()
    return thread


def ended(*threads):
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive()


def until(holds):
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.fixture
def held(null):
    """An array on the device and a bound op, of a context of the C ABI: ctypes releases the GIL while a call waits."""
    context = keel_abi.Context()
    context.load_plugin(counting.plugin("null"))
    ready = context.array(np.arange(4, dtype=np.float32)).to("null").wait()
    neg = context.bind("null", "neg")
    neg(ready)
    null.device_reset()
    null.null_hold(1)
    return ready, neg


def test_a_small_op_waits_without_the_gil(null):
    """This thread gives the ticket that the op waits for: with the GIL held by the op it could not."""
    x = ready_array()
    keel.neg(x)
    null.device_reset()
    null.null_hold(1)
    run = started(lambda: keel.neg(x))
    until(lambda: counts("null").get("blocked_waits"))
    null.null_hold(0)
    ended(run)


def test_a_ready_array_is_read_only_after_another_threads_op(held, null):
    """Both use the one transfer queue, in turn."""
    ready, neg = held
    run = started(lambda: neg(ready))
    until(lambda: counts("null").get("blocked_waits"))
    read = started(ready.numpy)
    read.join(0.1)
    waits = read.is_alive()
    null.null_hold(0)
    ended(run, read)
    assert waits


@pytest.mark.parametrize("read", [lambda x: x.numpy(), lambda x: x.tolist(), lambda x: keel.same(x, x), repr],
                         ids=["numpy", "tolist", "same", "repr"])
def test_other_python_threads_run_while_one_reads(null, read):
    ready = ready_array()
    keel.reduce_sum(ready, [0])
    null.device_reset()
    null.null_hold(1)

    def total():
        with keel.device("null"):
            keel.reduce_sum(ready, [0])
    run = started(total)
    until(lambda: counts("null").get("blocked_waits"))
    reader = started(lambda: read(ready))
    reader.join(0.05)  # for ever, if the reader held the GIL
    null.null_hold(0)
    ended(run, reader)


def test_an_eager_op_returns_only_when_the_device_is_done(held, null):
    ready, neg = held
    run = started(lambda: neg(ready))
    until(lambda: counts("null").get("blocked_waits"))
    assert run.is_alive()
    null.null_hold(0)
    ended(run)


def test_a_time_limit_is_kept_by_a_device_that_never_comes_back(null):
    slow = keel.function(lambda x: keel.relu(x) + 1.0, timeout_ms=50)
    x = ready_array()
    np.testing.assert_array_equal(slow(x).numpy(), 3)
    null.null_hold(1)
    with pytest.raises(keel.CancelledError, match="the time limit is 50 ms"):
        slow(x)
    null.null_hold(0)
    np.testing.assert_array_equal(slow(x).numpy(), 3)


def test_threads_share_the_device(null):
    """Each launch and each feed of each run, and no more; the answers are NumPy's."""
    @keel.function
    def f(x, y):
        return keel.reduce_sum(keel.relu(x @ y) * 0.1 + x)

    def go(k):
        rng = np.random.default_rng(k)
        x, y = (rng.standard_normal((24, 24)).astype(np.float32) for _ in range(2))
        want = (np.maximum(x @ y, 0) * 0.1 + x).sum()
        with keel.device("null"):  # each thread has a stack of its own
            errors.extend(abs(float(f(keel.array(x), keel.array(y)).numpy()) - want) for _ in range(6))
    errors = []
    go(0)
    with counted("null") as seen:
        ended(*[started(lambda k=k: go(k)) for k in range(6)])
    assert len(errors) == 7 * 6 and max(errors) < 1e-3
    assert {key: seen[key] for key in ("launches", "uploads")} == {"launches": 36 * 5, "uploads": 36 * 2}


def test_a_forked_child_is_told_and_its_parent_goes_on(null):
    ready = ready_array()
    child = os.fork()
    if not child:
        status = 1
        try:
            keel.add(ready, 1.0)
        except keel.DeviceError as e:
            status = 0 if "before fork()" in str(e) else 2
        finally:
            os._exit(status)
    until(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT))
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(keel.add(ready, 1.0).numpy(), 3)
