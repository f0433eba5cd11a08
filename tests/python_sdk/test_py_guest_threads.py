"""Threads: concurrent use of all features, other threads during runs, locks, and threads that are within Keel when Python ends.
"""
import subprocess
import sys
import threading
import time

import keel
import numpy as np
import pytest

X = np.arange(12, dtype="f4").reshape(3, 4)
ENV = {"PYTHONPATH": ":".join(sys.path)}


def in_threads(works):
    """Runs all of them concurrently; re-raises the exception of a failed one."""
    failed, begin = [], threading.Barrier(len(works))

    def run(work):
        try:
            begin.wait()
            work()
        except BaseException as error:
            failed.append(error)
    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    [t.start() for t in threads], [t.join() for t in threads]
    if failed:
        raise failed[0]


def test_everything_at_once():
    total = keel.Variable(0.)
    shared = keel.function(lambda batch, scale: {"y": batch["a"] * scale + batch["b"][0]}, max_traces=4)
    session = keel.Session(keel.function(lambda x: x @ x.T).concrete(X))
    plan, name = session.prepare(), session.results[0][0]

    @keel.function
    def step(x):
        total.assign_add(keel.reduce_sum(x))
        return total.value()

    def work(k):
        for i in range(12):
            batch = {"a": keel.ones(i % 5 + 1), "b": [keel.array(float(k))]}
            assert shared(batch, i)["y"].tolist() == [i + k] * (i % 5 + 1)
            assert (plan(X * k) == session.run(name, {session.parameters[0][0]: X * k})).numpy().all()
            with keel.Tape() as tape:
                w = keel.array(X)
                tape.watch(w)
                y = keel.reduce_sum(w * w * float(k))
            assert (tape.gradient(y, w).numpy() == 2 * k * X).all()
            own = keel.function(lambda x: keel.cond(x > 0, lambda: x + k, lambda: x))
            assert own(keel.array(1.)).item() == 1 + k and own(keel.array(-1.)).item() == -1
            with keel.device("reference" if k % 2 else "cpu"):
                assert keel.transpose(X, [1, 0])[3, 2].item() == 11 and keel.reduce_max(X, axes=[0]).tolist() == [8, 9, 10, 11]
            step(keel.ones(2))
            with pytest.raises(keel.ShapeError):
                keel.add(X, [1., 2.])
            shared.report(), shared.signatures()
    in_threads([lambda k=k: work(k) for k in range(6)])
    assert total.tolist() == 6 * 12 * 2


def test_a_new_function_is_first_called_by_many():
    for _ in range(20):
        f = keel.function(lambda tree, *rest: [t + tree["x"]["y"] for t in rest])
        args = {"x": {"y": np.float32(1), "unused": [np.ones(2, "f4")] * 5}}, keel.ones(2), np.ones(3, "f4")
        made = []
        in_threads([lambda: made.append([r.tolist() for r in f(*args)])] * 6)
        assert made == [[[2, 2], [2, 2, 2]]] * 6 and f.trace_count == 1


def long_runs():
    zero = keel.array(np.int64(0))
    f = keel.function(lambda n: keel.while_loop((zero, n), lambda i, n: i < n, lambda i, n: (i + 1, n))[0])
    session = keel.Session(f.concrete(zero))
    plan, n = session.prepare(), keel.array(np.int64(3 * 10**8))
    big = keel.ones((700, 700))

    def eager():
        with keel.device("reference"):
            return keel.matmul(big, big)
    return {"function": lambda: f(n), "plan": lambda: plan(n), "eager": eager,
            "session": lambda: session.run(session.results[0][0], {session.parameters[0][0]: n})}


@pytest.mark.parametrize("what", ["function", "plan", "session", "eager"])
def test_other_threads_go_on_during_runs(what):
    run, counted, done = long_runs()[what], [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)
    counter = threading.Thread(target=count)
    counter.start()
    before, begin = counted[0], time.perf_counter()
    run()
    took, during = time.perf_counter() - begin, counted[0] - before
    done.set(), counter.join()
    assert took > 0.02 and during > took * 50, (took, during)


PROGRAM = """
import faulthandler, sys, threading, time, keel, numpy as np
faulthandler.dump_traceback_later(40, exit=True)
x = keel.array(np.ones((64, 64), "f4"))
zero = keel.array(np.int64(0))
loop = keel.function(lambda n: keel.while_loop((zero, n), lambda i, n: i < n, lambda i, n: (i + 1, n))[0])
plan = keel.Session(loop.concrete(zero)).prepare()
"""


def outcome(code):
    done = subprocess.run([sys.executable, "-c", PROGRAM + code], capture_output=True, text=True, env=ENV)
    return done.returncode, done.stdout, done.stderr[-2000:]


def test_dropping_shared_memory_does_not_wait_for_who_waits_for_a_lock():
    """One thread drops traces, and NumPy arrays with them, under a lock of libkeel; others request reports with the GIL held."""
    assert outcome("""
until = time.time() + 1
f = keel.function(lambda x, n: x + keel.asarray(np.ones(8, "f4")) * n, max_traces=1)
def trace():
    n = 0
    while time.time() < until:
        n += 1
        f(keel.ones(8), n)
def ask():
    while time.time() < until:
        f.report(), f.signatures()
threads = [threading.Thread(target=t) for t in (trace, trace, ask, ask)]
[t.start() for t in threads], [t.join() for t in threads]
print("done")
""") == (0, "done\n", "")


WORKS = {
    "brief runs": "plan(keel.array(np.int64(3)))", "runs": "plan(keel.array(np.int64(30000)))", "endless run": "loop(keel.array(np.int64(10**13)))",
    "ops": "x @ x; keel.reduce_sum(x, axes=[0])", "errors": "[keel._keel.leaves(3), broken()]", "shared": "keel.asarray(np.ones(5000, 'f4')) + 1",
    "traces": "keel.function(lambda x: x + 1 if time.sleep(.0001) is None else x)(x)", "leaves": "keel._keel.map_leaves([x] * 10, lambda l: l)"}


@pytest.mark.parametrize("what", WORKS)
def test_python_ends_while_daemon_threads_are_within_keel(what):
    assert outcome(f"""
def broken():
    try:
        keel.add(x, keel.ones(3))
    except keel.ShapeError:
        pass
def work():
    while True:
        {WORKS[what]}
[threading.Thread(target=work, daemon=True).start() for _ in range(3)]
time.sleep(0.1)
kept = [x, loop, plan, keel.Variable(1.), keel.Tape()]
""") == (0, "", "")
