"""Other processes: fork with and without threads in runs, pools of all start methods, and pickled objects."""
import concurrent.futures
import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading

import keel
import numpy as np
import pytest

X = np.ones((100, 100), "f4")
ENV = {"PYTHONPATH": ":".join(sys.path)}


@keel.function
def squares(x):
    return keel.reduce_sum(x @ x, axes=[0]) + 1


def count_to(n):
    zero = keel.array(np.int64(0))
    return keel.while_loop((zero, n), lambda i, n: i < n, lambda i, n: (i + 1, n))[0]


count = keel.function(count_to)
SESSION = keel.Session(squares.concrete(X))
PLAN = SESSION.prepare()
VARIABLE = keel.Variable([1., 2.], name="w")


def use(k=1):
    """Uses many features, including ones not used before; the result shows whether all values were right."""
    x = keel.array(X * k)
    assert PLAN(x).shape == (100,) and count(keel.array(np.int64(5))).item() == 5
    assert (SESSION.run(v := SESSION.results[0][0], {SESSION.parameters[0][0]: x}) == PLAN(x)).numpy().all(), v
    fresh = keel.function(lambda a: keel.exp(a) * k)
    assert keel.Session(fresh.concrete(keel.f32[k + 2])).prepare()(keel.zeros(k + 2)).tolist() == [k] * (k + 2)
    with keel.Tape() as tape:
        tape.watch(x)
        y = keel.reduce_sum(x * x)
    assert tape.gradient(y, x).numpy()[0, 0] == 2 * k
    return float(squares(x)[0].item())


RIGHT = [float(10000 * k * k + 1) for k in range(4)]


def in_child(code):
    """Runs code in a forked child; returns its exit status, or that of SIGALRM if it blocks forever."""
    child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            code()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


def test_forked_children_go_on_where_the_parent_was():
    assert use() == RIGHT[1]

    def child():
        assert [use(k) for k in range(4)] == RIGHT
        VARIABLE.assign([5., 5.])
        for _ in range(2):  # grandchildren, too
            assert in_child(lambda: use(3)) == 0
    assert in_child(child) == 0
    assert VARIABLE.tolist() == [1, 2] and use(2) == RIGHT[2]


def test_fork_while_other_threads_are_in_runs():
    stop = threading.Event()

    def long_runs():
        while not stop.is_set():
            count(keel.array(np.int64(10**7)))
            PLAN(X)
    threads = [threading.Thread(target=long_runs) for _ in range(2)]
    [t.start() for t in threads]
    try:
        assert [in_child(lambda: use(k % 4)) for k in range(8)] == [0] * 8
    finally:
        stop.set(), [t.join() for t in threads]


def test_children_can_be_interrupted_and_their_children_too():
    def child():
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            count(keel.array(np.int64(10**13)))
        use()
    assert in_child(child) == 0
    states = []

    def forks():  # during a run of the main thread, which the child does not continue
        states.append(in_child(child))
    threading.Timer(0.05, forks).start()
    threading.Timer(0.05, forks).start()
    while len(states) < 2:
        count(keel.array(np.int64(10**7)))
    assert states == [0, 0]


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_pools(how, tmp_path):
    code = """
import concurrent.futures, multiprocessing, sys, keel, test_py_guest_processes as here
if __name__ == "__main__":
    here.use()
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(sys.argv[1])) as pool:
        print(list(pool.map(here.use, range(4))) == here.RIGHT, end=" ")
        print(pool.submit(here.squares, keel.ones((100, 100))).result()[0].item() == 10001, end=" ")
        print(pool.submit(here.SESSION.run, None, {here.SESSION.parameters[0][0]: here.X}).result().popitem()[1][0].item() == 10001, end=" ")
        error = pool.submit(keel.add, keel.ones(2), keel.ones(3)).exception()
        print(type(error).__name__, error.op, end=" ")
"""
    (tmp_path / "program.py").write_text(code)
    env = {"PYTHONPATH": ":".join([os.path.dirname(__file__), *sys.path]), **{k: os.environ[k] for k in ("KEEL_BUILD",) if k in os.environ}}
    done = subprocess.run([sys.executable, tmp_path / "program.py", how], capture_output=True, text=True, env=env, timeout=60)
    assert (done.stdout, done.returncode) == ("True True True ShapeError add ", 0), done.stderr


def same_results(a, b):
    return keel.same(squares_of(a), squares_of(b))


def squares_of(session):
    return session.run(session.results[0][0], {session.parameters[0][0]: X})


@pytest.mark.parametrize("make, same", [
    (lambda: keel.bool_, lambda a, b: a is b), (lambda: keel.f32, lambda a, b: a is b),
    (lambda: keel.f32["b", 3], lambda a, b: repr(a) == repr(b) and a.dtype is b.dtype),
    (lambda: keel.array([[1, 2]]), keel.same), (lambda: squares, lambda a, b: a is b),
    (lambda: keel.Variable([1., 2.], "w", trainable=False), lambda a, b: (a.name, a.trainable, a.tolist(), a.id != b.id) == (
        b.name, b.trainable, b.tolist(), True)),
    (lambda: squares.concrete(X), lambda a, b: a.text() == b.text()), (lambda: SESSION, same_results),
    (lambda: {"w": [keel.ones(2)]}, lambda a, b: keel.same(a["w"][0], b["w"][0]))])
def test_what_travels_and_is_copied(make, same):
    value = make()
    assert same(value, pickle.loads(pickle.dumps(value))) and same(value, copy.deepcopy(value))


@pytest.mark.parametrize("make, text", [
    (lambda: keel.function(lambda x: x), "lambda"),(lambda: PLAN, "cannot pickle 'keel.Plan'"), (lambda: keel.Tape(), "cannot pickle 'Tape'"),
    (lambda: keel.device("cpu"), "cannot pickle 'DeviceScope'")])
def test_what_cannot_travel_says_so(make, text):
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError), match=text):
        pickle.dumps(make())


def test_errors_travel_whole():
    with pytest.raises(keel.RangeError) as caught:
        keel.gather([1., 2.], [5])
    back = pickle.loads(pickle.dumps(caught.value))
    assert type(back) is keel.RangeError and vars(back) == vars(caught.value) and str(back) == str(caught.value)


def test_threads_of_a_pool_share_everything():
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, [0, 1, 2, 3] * 8)) == RIGHT * 8
    assert multiprocessing.active_children() == []
