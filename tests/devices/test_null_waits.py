"""Threads, forks and limits on a device with queues. null_hold keeps its tickets pending, so no test sleeps to imitate a
slow device."""
import os
import signal
import subprocess
import sys
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


def test_runs_return_while_the_device_is_busy(null):
    f = keel.function(lambda x: keel.relu(x) * 2.0)
    x = ready_array()
    f(x).numpy()
    null.device_reset()
    null.null_hold(1)
    results = [f(keel.neg(x)) for _ in range(5)]
    assert "host_waits" not in counts("null")
    null.null_hold(0)
    for y in results:
        np.testing.assert_array_equal(y.numpy(), 0)


def embedding():
    """A step that may fail, its variables, and a function that only reads one."""
    table, count = keel.Variable(np.arange(12, dtype=np.float32).reshape(6, 2)), keel.Variable(np.zeros(1, np.int32))

    @keel.function
    def step(i, x):
        rows = keel.gather(table, i)
        table.assign_sub(keel.ones_like(table) * keel.reduce_sum(rows * x))
        count.assign_add(keel.ones_like(count))
        return rows
    return step, keel.function(lambda: table * 2.0), table, count


def test_a_fault_in_step_k_is_seen_50_runs_later(null):
    """Meanwhile the device does not begin, so no run can know of the fault; nothing waits."""
    step, double, table, count = embedding()
    x, good, bad = (keel.array(np.array(a)) for a in (np.float32(1), np.int32([0, 5]), np.int32([0, 6])))
    double()
    for _ in range(3):
        step(keel.array(np.int32([0, 0])), x).numpy()
    want, counted_steps = table.numpy(), count.numpy()
    null.device_reset()
    null.null_hold(1)
    failed = step(bad, x)
    results = [double() for _ in range(50)]
    assert "host_waits" not in counts("null")
    null.null_hold(0)
    with pytest.raises(keel.RangeError, match="gather .* found by device null:0"):
        results[-1].numpy()
    np.testing.assert_array_equal(table.numpy(), want)
    np.testing.assert_array_equal(count.numpy(), counted_steps)
    with pytest.raises(keel.RangeError):
        failed.numpy()
    np.testing.assert_array_equal(double().numpy(), want * 2)
    step(good, x)
    np.testing.assert_array_equal(count.numpy(), counted_steps + 1)


def test_a_ready_array_is_read_during_another_threads_wait(held, null):
    ready, neg = held
    late, = neg.arrays(ready)
    run = started(late.numpy)
    until(lambda: counts("null").get("blocked_waits"))
    np.testing.assert_array_equal(ready.numpy(), np.arange(4))
    assert run.is_alive()
    null.null_hold(0)
    ended(run)


@pytest.mark.parametrize("read", [lambda x: x.numpy(), lambda x: x.tolist(), lambda x: keel.same(x, x), repr],
                         ids=["numpy", "tolist", "same", "repr"])
def test_other_python_threads_run_while_one_reads(null, read):
    """This thread gives the ticket that the read waits for: with the GIL held by the read it could not."""
    late = keel.reduce_sum(ready_array(), [0])
    null.device_reset()
    null.null_hold(1)
    late = late + 1.0
    reader = started(lambda: read(late))
    until(lambda: counts("null").get("blocked_waits"))
    null.null_hold(0)
    ended(reader)


def test_ctrl_c_ends_a_read(null):
    x = ready_array()
    keel.neg(x).numpy()
    null.device_reset()
    null.null_hold(1)

    def interrupt():
        until(lambda: counts("null").get("blocked_waits"))
        os.kill(os.getpid(), signal.SIGINT)
    late = keel.neg(x)
    thread = started(interrupt)
    with pytest.raises(KeyboardInterrupt):
        late.numpy()
    ended(thread)
    null.null_hold(0)
    np.testing.assert_array_equal(late.numpy(), -2)


def test_a_fed_array_may_be_overwritten_after_the_call(held, null):
    """Its memory is the program's, and the device has not begun."""
    _, neg = held
    memory = np.arange(4, dtype=np.float32)
    late, = neg.arrays(memory)
    memory[:] = 99
    null.null_hold(0)
    np.testing.assert_array_equal(late.numpy(), [0, -1, -2, -3])


def test_a_time_limit_is_kept_by_a_device_that_never_comes_back(null):
    slow = keel.function(lambda x: keel.relu(x) + 1.0, timeout_ms=50)
    x = ready_array()
    np.testing.assert_array_equal(slow(x).numpy(), 3)
    null.null_hold(1)
    with pytest.raises(keel.CancelledError, match="the time limit is 50 ms"):
        slow(x)
    null.null_hold(0)
    np.testing.assert_array_equal(slow(x).numpy(), 3)


GIVEN_UP = """
import gc, sys
sys.path[:0] = [{devices!r}, {python!r}]
import counting, keel, numpy as np
keel.load_plugin(str(counting.plugin("null")))
with keel.device("null"):
    x = keel.add(keel.array(np.ones(4, np.float32)), 1.0)
    slow = keel.function(lambda x: keel.relu(x) + 1.0, timeout_ms=50)
    slow(x).numpy()
    counting.door("null").null_hold(1)
    try:
        slow(x)
    except keel.CancelledError as e:
        print(e)
    del slow
    gc.collect()
    try:
        keel.neg(x)
    except keel.DeviceError as e:
        print(e)
"""


def test_work_that_never_ends_is_given_up_with_the_device():
    """The end of a plan waits for its launches, but not for ever, and the process ends."""
    code = GIVEN_UP.format(devices=str(counting.ROOT / "tests/devices"), python=str(counting.BUILD / "python"))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0 and "before device null:0 had finished the work" in ran.stdout, ran
    assert "device null:0 was given up: its queues had not finished their work 5 s after a run was stopped" in ran.stdout


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
            keel.add(ready, 1.0).numpy()
        except keel.DeviceError as e:
            status = 0 if "before fork()" in str(e) else 2
        finally:
            os._exit(status)
    until(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT))
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(keel.add(ready, 1.0).numpy(), 3)
