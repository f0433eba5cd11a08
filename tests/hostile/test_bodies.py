"""Control flow on a device with its own memory: bodies run there, the host reads only predicates; failures in a body, endless
loops, observed runs. The programs are those of tests/python/control_cases.py."""
import threading
import time

import hostile
import keel_abi
import numpy as np
import pytest
from control_cases import CASES, FIBONACCI, random_program
from hostile import seeds_of
from observed import run_observed


def session(context, text, device="hostile", **options):
    return context.parse(text if text.startswith("keel") else "keel 1\n" + text).session(device, **options)


def check(got, want):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        w = np.asarray(w)
        assert g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_cases(case):
    name, text, inputs, model = case
    for seed in seeds_of(name):
        context = hostile.context(seed)
        for options in ({}, {"results": "device"}):
            plan = session(context, text, **options).prepare()
            for _ in range(2):
                check([array.to().numpy() for array in plan.run_arrays(*inputs)], model(*inputs))


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed):
    text, model = random_program(seed)
    plan = session(hostile.context(seed % 20 + 1), text).prepare()
    for n in (0, 1, 5):
        a, x = np.array(seed % 7 - 2, np.int32), np.arange(n, dtype=np.int32) * 3 - 4
        check(plan.run(a, x), model(a, x))


ENDLESS = """
fn @main(x: f32[3]) -> f32[3] {
  a = while(x){carry=1} test(a) { yield true } body(a) { b = neg(a)
    yield b }
  return a
}"""


def test_an_endless_loop_is_stopped():
    context = hostile.context(3)
    plan = session(context, ENDLESS, timeout_ms=50).prepare()
    for _ in range(2):
        with pytest.raises(keel_abi.KeelError, match="the time limit is 50 ms") as e:
            plan.run(np.zeros(3, np.float32))
        e.value.__traceback__ = None
    plan = session(context, ENDLESS).prepare()
    thread = threading.Thread(target=lambda: (time.sleep(0.05), keel_abi.lib().keel_context_cancel(context, 1)))
    thread.start()
    with pytest.raises(keel_abi.KeelError, match="by keel_context_cancel|cancelled while waiting for device") as e:
        plan.run(np.zeros(3, np.float32))
    e.value.__traceback__ = None
    thread.join()
    keel_abi.lib().keel_context_cancel(context, 0)
    check(session(context, FIBONACCI).prepare().run(np.int32(3)), [np.int32(2), np.int32(3), np.int32(7)])


def test_a_fault_in_a_body_ends_the_loop():
    context = hostile.context(4)
    plan = session(context, """
fn @main(x: f32[3], i: i32[]) -> f32[] {
  j, s = while(i, 0.0, x){carry=2}
    test(i, s, x) { yield true }
    body(i, s, x) { v = gather(x, i)
      u = s + v
      j = i + 1
      yield j, u }
  return s
}""").prepare()
    with pytest.raises(keel_abi.KeelError, match=r"index 3 is not in \[0, 3\)") as e:
        plan.run(np.ones(3, np.float32), np.int32(0))
    assert e.value.code == "RANGE" and e.value.node == "main.j.body/v"
    e.value.__traceback__ = None


def test_an_observer_sees_values_in_bodies():
    context = hostile.context(5)
    plan = session(context, FIBONACCI, observe=1).prepare()
    seen = []

    def look(event):
        value = event.outputs[0].contents
        if event.node == b"main.k.body/s":
            seen.append(np.ctypeslib.as_array(keel_abi.C.cast(value.data, keel_abi.C.POINTER(keel_abi.C.c_int32)), (1,))[0])
    run_observed(plan, look, np.int32(5))
    assert seen == [1, 2, 3, 5, 8]


def test_placed_whole():
    """A control node and its bodies run on the device of the node, all other nodes elsewhere."""
    context = hostile.context(6)
    text = FIBONACCI.replace("return a, b, c", "d = neg(a)\n  return d, b, c")
    placed = session(context, text, "reference", place="k=hostile")
    check(placed.prepare().run(np.int32(9)), [np.int32(-34), np.int32(55), np.int32(7)])
    rows = {row["node"]: row["device"] for row in placed.prepare().report()["placement"]}
    assert rows["k"] == "hostile:0" and rows["d"] == "reference:0"
