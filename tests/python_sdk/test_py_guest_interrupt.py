"""Ctrl-C stops Keel's work in the main thread, and does not affect the program's own handlers and other threads."""
import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import keel
import numpy as np
import pytest

LONG = 10**13
ZERO = keel.array(np.int64(0))


def counted(n):
    return keel.while_loop((ZERO, n), lambda i, n: i < n, lambda i, n: (i + 1, n))[0]


def products(n, x):
    return keel.while_loop((ZERO, n, x), lambda i, n, x: i < n, lambda i, n, x: (i + 1, n, x @ x))[2]


count, multiply = keel.function(counted), keel.function(products)
SESSION = keel.Session(count.concrete(ZERO))
PLAN = SESSION.prepare()
EYE = keel.array(np.eye(300, dtype="f4"))
BIG = keel.ones((3000, 3000))


def number(n):
    return keel.array(np.int64(n))


def by_session(n):
    return SESSION.run(SESSION.results[0][0], {SESSION.parameters[0][0]: number(n)})


def eager_matmul(n):
    with keel.device("reference"):
        return keel.matmul(BIG[:n], BIG)


# what: (a long call, a short one of the same objects, its result)
RUNS = {
    "plan": (lambda: PLAN(number(LONG)), lambda: PLAN(number(3)), 3),
    "session": (lambda: by_session(LONG), lambda: by_session(3), 3),
    "function": (lambda: count(number(LONG)), lambda: count(number(3)), 3),
    "matmuls": (lambda: multiply(number(LONG), EYE), lambda: multiply(number(3), EYE)[0, 0], 1),
    "eager op": (lambda: eager_matmul(None), lambda: eager_matmul(1)[0, 0], 3000),
    "eager loop": (lambda: counted(number(LONG)), lambda: counted(number(3)), 3)}


class Interrupt:
    """Sends SIGINT while the block runs; stores how much later it ended."""

    def __init__(self, send=lambda: os.kill(os.getpid(), signal.SIGINT), after=0.15):
        self.send, self.timer = send, threading.Timer(after, self.now)

    def now(self):
        self.sent = time.perf_counter()
        self.send()

    def __enter__(self):
        self.timer.start()
        return self

    def __exit__(self, *_):
        self.late = time.perf_counter() - getattr(self, "sent", time.perf_counter())
        self.timer.join()


@pytest.mark.parametrize("what", RUNS)
def test_ctrl_c_stops_runs_and_leaves_all_usable(what):
    long, short, result = RUNS[what]
    assert short().item() == result
    for _ in range(2):
        with Interrupt() as interrupt, pytest.raises(KeyboardInterrupt):
            long()
        assert interrupt.late < 0.5
        assert short().item() == result and not keel.add(1, 1).item() != 2


@pytest.mark.parametrize("send", [lambda: signal.raise_signal(signal.SIGINT), lambda: signal.pthread_kill(
    threading.main_thread().ident, signal.SIGINT)])
def test_signals_that_other_threads_raise(send):
    with Interrupt(send), pytest.raises(KeyboardInterrupt):
        PLAN(number(LONG))
    assert PLAN(number(2)).item() == 2


def test_each_signal_is_one_interrupt():
    for k in range(60):
        with pytest.raises(KeyboardInterrupt), Interrupt(after=k % 6 * 1e-4):
            while True:
                PLAN(number(20000 if k % 2 else LONG))
        assert PLAN(number(20000)).item() == 20000


def test_what_was_done_before_the_stop_stays_done():
    v = keel.Variable(0)

    @keel.function
    def step(n):
        v.assign_add(1)
        i = counted(n)
        v.assign_add(keel.cast(i, "i32") * 0 + 10)
        return i
    with Interrupt(), pytest.raises(KeyboardInterrupt):
        step(number(LONG))
    assert v.tolist() == 1
    assert step(number(3)).item() == 3 and v.tolist() == 12


def test_code_that_is_traced_is_interrupted_as_python_is():
    slow = [True]

    @keel.function
    def f(x):
        while slow[0]:
            x = x + 1
            time.sleep(0.01)
        return x
    with Interrupt() as interrupt, pytest.raises(KeyboardInterrupt):
        f(keel.array(1.))
    slow[0] = False
    assert interrupt.late < 0.5 and f(keel.array(1.)).item() == 1 and keel.executing_eagerly()


@pytest.fixture
def handler():
    yield lambda new: signal.signal(signal.SIGINT, new)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run_of_a_while():
    begin = time.perf_counter()
    made = PLAN(number(2 * 10**8)).item()
    assert made == 2 * 10**8
    return time.perf_counter() - begin


def test_handlers_of_the_program_run_when_the_run_is_over(handler):
    calls = []
    handler(lambda *_: calls.append(1))
    with Interrupt(after=0.01):
        run_of_a_while()
    assert calls == [1]
    handler(signal.SIG_IGN)
    with Interrupt(after=0.01):
        run_of_a_while()
    handler(signal.default_int_handler)  # as Jupyter does for each cell
    with Interrupt(), pytest.raises(KeyboardInterrupt):
        PLAN(number(LONG))


def test_asyncio_keeps_its_own_way():
    async def main():
        with Interrupt(after=0.01):
            run_of_a_while()
        await asyncio.sleep(10)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with Interrupt(), pytest.raises(KeyboardInterrupt):
        PLAN(number(LONG))


def test_runs_of_other_threads_go_on_while_the_main_thread_waits():
    made, done = [], threading.Event()

    def work():
        made.append(PLAN(number(5 * 10**8)).item())
        done.set()
    threading.Thread(target=work).start()
    with Interrupt(after=0.02), pytest.raises(KeyboardInterrupt):
        done.wait()
    done.wait()
    assert made == [5 * 10**8]


def test_what_the_program_cancelled_stays_cancelled():
    with Interrupt(lambda: (keel.cancel(), os.kill(os.getpid(), signal.SIGINT))), pytest.raises(KeyboardInterrupt):
        PLAN(number(LONG))
    with pytest.raises(keel.CancelledError, match=r"by keel\.cancel\n.*keel\.cancel\(False\)"):
        PLAN(number(3))
    keel.cancel(False)
    assert PLAN(number(3)).item() == 3


def test_handlers_of_other_libraries_stay():
    code = """
import faulthandler, os, signal, sys, threading, keel, numpy as np
f = keel.function(lambda n: keel.while_loop((keel.array(np.int64(0)), n), lambda i, n: i < n, lambda i, n: (i + 1, n))[0])
n, sent = keel.array(np.int64(5 * 10**7)), []
f(keel.array(np.int64(1)))  # traced before the signal: faulthandler cannot read a frame that is changing
faulthandler.register(signal.SIGINT, sys.stdout, all_threads=False)
threading.Timer(0.02, lambda: (os.kill(os.getpid(), signal.SIGINT), sent.append(1))).start()
while not sent:
    assert f(n).item() == 5 * 10**7
print("done")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 0 and "most recent call first" in done.stdout and done.stdout.endswith("done\n"), done


@pytest.mark.parametrize("after", [0.01, 0.02, 0.04, 0.08])
def test_the_first_run_is_stopped_while_its_device_is_loaded(after):
    code = f"""
import os, subprocess, keel, numpy as np
big = np.random.default_rng(0).random((3500, 3500))
subprocess.Popen(["sh", "-c", f"sleep {after}; kill -INT {{os.getpid()}}"])  # a thread would wait for the GIL
try:
    keel.svd(big)  # half a minute
except KeyboardInterrupt:
    print("stopped")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=10, env={"PYTHONPATH": ":".join(sys.path)})
    assert done.stdout == "stopped\n", done
