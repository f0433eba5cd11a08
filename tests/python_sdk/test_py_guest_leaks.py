"""Nothing leaks: a million calls leave memory and references unchanged; the process exits without errors."""
import gc
import subprocess
import sys
import weakref

import keel
import numpy as np

X, Y = keel.array(np.ones((4, 4), "f4")), keel.array(np.arange(16, dtype="f4").reshape(4, 4))
FLOATS = np.ones(8, "f4")
FUNCTION = keel.function(lambda x, y: {"sum": x + y, "both": (x, y)})
SINGLE = keel.function(lambda x: x * 2)
PLAN = keel.Session(SINGLE.concrete(X)).prepare()
V = keel.Variable(np.zeros((4, 4), "f4"))


def wrong(call):
    try:
        call()
    except (keel.Error, TypeError):
        return
    raise AssertionError("no error")


def gradient():
    with keel.Tape() as tape:
        tape.watch(X)
        y = X * Y
    assert tape.gradient(y, X) is not None


# Calls out of a million, by operation.
CALLS = [
    (250_000, lambda: keel.add(X, Y)), (250_000, lambda: X * 2 - Y), (60_000, lambda: X[1, ::2]), (150_000, lambda: PLAN(X)),
    (150_000, lambda: SINGLE(X)), (30_000, lambda: FUNCTION(X, y=Y)), (10_000, lambda: FUNCTION(FLOATS, FLOATS)),
    (20_000, lambda: wrong(lambda: keel.add(X, FLOATS[:3]))), (10_000, lambda: wrong(lambda: keel.add(X, "a"))),
    (5_000, lambda: wrong(lambda: PLAN(X, Y))), (5_000, lambda: wrong(lambda: SINGLE("a"))), (10_000, gradient),
    (10_000, lambda: keel.from_dlpack(X)), (10_000, lambda: np.from_dlpack(X)), (10_000, X.numpy),
    (10_000, lambda: keel.asarray(FLOATS) + FLOATS), (10_000, lambda: (V.assign_add(X), V * X)),
    (9_900, lambda: (X.tolist(), repr(X), X.shape, X.dtype)), (100, lambda: keel.function(lambda x: x + 1)(X))]


def rounds(share):
    for count, call in CALLS:
        for _ in range(int(count * share)):
            call()
    gc.collect()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def counts():
    kept = (X, Y, FLOATS, FUNCTION, SINGLE, PLAN, V, keel.f32, keel.ShapeError, None.__class__)
    return [sys.getrefcount(k) for k in kept], len(gc.get_objects())


def test_a_million_calls_leave_no_trace():
    assert sum(count for count, _ in CALLS) == 1_010_000
    rounds(.03)
    references, objects = counts()
    before = resident()
    rounds(.97)
    assert resident() - before < 2 << 20
    after, more = counts()
    assert after == references and more - objects < 20


def test_long_lists_of_results_and_objects_are_freed():
    big = np.zeros(1 << 18, "f4")

    def round_of_big_ones():
        view = keel.asarray(big)
        f = keel.function(lambda x, scale: x * scale + view)  # holds the array until it is destroyed
        f(view, 2)
        with keel.Tape() as tape:
            tape.watch(view)
            y = keel.reduce_sum(view * view)
        tape.gradient(y, view)
        module = f.concrete(view, 3)
        keel.Session(module).prepare()(view)
    for _ in range(3):
        round_of_big_ones()
    gc.collect()
    before, references = resident(), sys.getrefcount(big)
    for _ in range(30):
        round_of_big_ones()
    gc.collect()
    assert resident() - before < 8 << 20 and sys.getrefcount(big) == references


def test_functions_in_cycles_are_collected():
    class Model:
        def __init__(self):
            self.w = keel.Variable(1.)
            self.step = keel.function(self.code)

        def code(self, x, key=None):
            return {"y": x * self.w}

    def closure():
        def code(x):
            return x + len(kept)
        kept = [keel.function(code)]
        kept[0](keel.ones(2))
        return kept[0]
    model = Model()
    model.step(keel.ones(3), model), model.step(keel.ones(3), keel)
    seen = [weakref.ref(model), weakref.ref(model.step), weakref.ref(closure())]
    assert gc.collect() >= 0 and seen[0]() is model
    del model
    gc.collect()
    assert [ref() for ref in seen] == [None] * 3


def test_the_end_of_the_process_is_silent():
    code = """
import keel, numpy as np
f = keel.function(lambda x: {"y": x + 1})
x = keel.asarray(np.ones(3, "f4"))
kept = [f(x), keel.Session(f.concrete(x)), keel.Session(f.concrete(x)).prepare(), keel.Variable(1.), keel.device("cpu"), keel.Tape()]
with keel.Tape() as tape:
    tape.watch(x)
    y = x * x
kept.append(kept)
keel.kept = kept
try:
    keel.add(x, keel.ones(4))
except keel.Error as error:
    kept.append(error)
"""
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
