"""fork() while other threads are within Keel: they run, plan, trace, open and write; each child continues to use all of it."""
import pytest

PROGRAM = """
import itertools, os, signal, sys, threading, time
import keel, numpy as np

X = np.ones((20, 20), "f4")
total = keel.Variable(keel.zeros(1000), name="total")
many = keel.function(lambda x: keel.reduce_sum(x * 2) + 1, max_traces=4)
count = keel.function(lambda n: keel.while_loop((keel.array(np.int64(0)), n), lambda i, n: i < n, lambda i, n: (i + 1, n))[0])
session = keel.Session(keel.function(lambda x: x @ x + 1).concrete(X))
plan = session.prepare()
numbers = itertools.count(1)


def run(k):
    assert plan(X)[0][0].item() == 21 and keel.exp(keel.zeros(k % 7 + 1))[0].item() == 1


def runs_side_by_side(k):
    assert many(keel.array(X)).item() == 801 and count(keel.array(np.int64(1000))).item() == 1000


def trace(k):
    own = keel.function(lambda x: keel.reduce_sum(keel.softmax(x) + k))
    assert own(keel.ones(4)).item() == 4 * k + 1
    assert many(keel.ones((k % 9 + 1, k % 5 + 1))).item() == 2 * (k % 9 + 1) * (k % 5 + 1) + 1


def long_trace(k):
    @keel.function
    def slow(x):
        time.sleep(0.002)  # others have Python's lock meanwhile
        return x + k
    assert slow(keel.ones(1)).item() == k + 1 and shared(keel.ones(k)).item() == k


@keel.function(max_traces=2)
def shared(x):
    time.sleep(0.001)
    return keel.reduce_sum(x)


def add(k):
    total.assign_add(keel.ones(1000))
    assert (mine := total.numpy()).min() == mine.max()  # never a half of it


def gradient(k):
    with keel.Tape() as tape:
        w = keel.ones(k % 11 + 1)
        tape.watch(w)
        y = keel.reduce_sum(w * w * k)
    assert tape.gradient(y, w)[0].item() == 2 * k


def open_all(k):
    graph = keel.Session(keel.function(lambda x: x @ x).concrete(keel.f32[k % 5 + 1, k % 5 + 1]))
    assert graph.prepare()(keel.ones((k % 5 + 1, k % 5 + 1)))[0][0].item() == k % 5 + 1
    for device in ("reference", "cpu"):
        with keel.device(device):
            assert keel.reduce_max(keel.ones(k % 13 + 1), axes=[0]).item() == 1


def take_memory(k):
    assert [keel.ones(1 << s)[0].item() for s in range(0, 18, 3)] == [1] * 6


WORK = [run, runs_side_by_side, trace, long_trace, add, gradient, open_all, take_memory]


def again(work):
    while not stop.is_set():
        work(next(numbers))


def child(n):
    signal.alarm(20)  # in case a lock is never released
    for k in range(2):
        for work in WORK:
            work(10**6 + 10 * n + k)
    again = threading.Thread(target=lambda: [work(n) for work in WORK])
    again.start()
    again.join()
    os._exit(0)


for work in WORK:
    work(next(numbers))
stop = threading.Event()
threads = [threading.Thread(target=again, args=(work,), daemon=True) for work in eval(sys.argv[1])]
[t.start() for t in threads]
slowest, deadline = 0, time.monotonic() + 100
for n in range(int(sys.argv[2])):
    begin = time.monotonic()
    pid = os.fork()
    if not pid:
        child(n)
    slowest = max(slowest, time.monotonic() - begin)
    state = os.waitpid(pid, 0)[1]
    assert state == 0, (n, state, "14: waited for ever")
    assert time.monotonic() < deadline, n
stop.set()
[t.join(20) for t in threads]
assert not any(t.is_alive() for t in threads)
print("fine", round(slowest * 1e3))
"""


@pytest.mark.parametrize("works, forks", [("WORK", 200), ("[trace] * 4", 40), ("[add] * 4", 40), ("[open_all] * 3", 40), ("[long_trace] * 3", 20),
                                          ("[gradient, trace, run]", 40)])
def test_children_of_a_busy_process_go_on(script, works, forks):
    assert script(PROGRAM, works, forks, timeout=120).split()[0] == "fine"
