"""Recorded plans on a device that runs a launch before any other launch that it does not depend on, in random order: results, faults,
variables, failures of the device. NumPy is the model."""
import random
import threading

import hostile
import keel_abi
import numpy as np
import pytest

PROGRAM = """keel 1
fn @main(x: f32[n, 4], w: f32[n, 4], i: i32[3]) -> f32[3, 4], f32[n, 4], f32[n, 4] {
  a = add(x, w)
  b = neg(a)
  c = mul(w, w)
  d = maximum(b, c)
  pick = gather(d, i)
  e = add(c, a)
  f = neg(pick)
  g = sub(e, b)
  return f, g, x
}
entry main = @main (x, w, i) -> (_, _, _)
"""
GOOD = np.array([0, 0, 0], np.int32)


def model(x, w, i):
    a = x + w
    return [-np.maximum(-a, w * w)[i], w * w + a + a, x]


def floats(draw, n):
    return np.array([[draw.randrange(-50, 50) for _ in range(4)] for _ in range(n)], np.float32).reshape(n, 4)


def program(seed, **settings):
    hostile.put(**settings)
    context = hostile.context(seed)
    return context, context.parse(PROGRAM).session("hostile", level=0, results="device").prepare()


def same(got, want):
    for array, expected in zip(got, want, strict=True):
        np.testing.assert_array_equal(array.numpy(), expected)


@pytest.mark.parametrize("seed", range(1, hostile.SEEDS + 1))
def test_random_feeds_sizes_and_faults(seed):
    draw, kept = random.Random(seed), []
    context, plan = program(seed, shared=seed % 3 and 1, params=draw.choice([0, 40]) if seed % 3 else 0, delay=seed % 5 == 0)
    before = hostile.get("replays")
    for _ in range(60):
        n = draw.choice([1, 2, 3, 8])
        x, w, i = floats(draw, n), floats(draw, n), np.array([draw.randrange(n) for _ in range(3)], np.int32)
        bad = draw.random() < 0.2
        if bad:
            i[1] = n + 4
        feeds = [context.array(a).to("hostile") if draw.random() < 0.5 else a for a in (x, w, i)]
        fed = draw.choice(kept)[0][2] if kept and n == 8 and draw.random() < 0.3 else None  # a result is a feed
        if fed is not None and fed.numpy().shape == x.shape:
            feeds[0], x = fed, fed.numpy()
        results = plan.run_arrays(*feeds)
        if bad:
            with pytest.raises(keel_abi.KeelError) as e:
                results[0].numpy()
            assert (e.value.code, e.value.node) == ("RANGE", "pick")
            assert f"index {n + 4} is not in [0, {n})" in e.value.message and "gather" in e.value.message
        else:
            kept.append((results, model(x, w, i)))
        if len(kept) > 5:
            same(*kept.pop(draw.randrange(len(kept))))
    for pair in kept:
        same(*pair)
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
    wrong = []

    def go(k):
        draw = random.Random(k)
        for _ in range(15):
            x, w = floats(draw, 3), floats(draw, 3)
            for got, want in zip(plan.run(x, w, GOOD), model(x, w, GOOD)):
                if (got != want).any():
                    wrong.append(k)
    threads = [threading.Thread(target=go, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


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
    with pytest.raises(keel_abi.KeelError, match="by keel_context_cancel") as e:
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
    context = hostile.context(7)
    module = context.parse("""keel 1
var t: i32[3] = [1, 1, 1]
fn @main(i: i32[3]) -> i32[3] {
  a = read(t)
  b = add(a, a)
  pick = gather(b, i)
  c = neg(pick)
  d = add(c, a)
  assign(t, d)
  return d
}
entry main = @main (i) -> (_)
""")
    plan, t = module.session("hostile", level=0, results="device").prepare(), module.variable("t")
    want, before = np.ones(3, np.int32), hostile.get("replays")
    for k in range(9):
        index = np.array([0, 5 if k % 4 == 3 else 2, 1], np.int32)
        result, = plan.run_arrays(index)
        if k % 4 == 3:
            with pytest.raises(keel_abi.KeelError, match=r"index 5 is not in \[0, 3\)"):
                result.numpy()
        else:
            want = -(want + want)[index] + want
            np.testing.assert_array_equal(result.numpy(), want)
        np.testing.assert_array_equal(t.read(), want)
    assert hostile.get("replays") > before


def test_parameters_need_shared_memory():
    hostile.put(shared=0, params=40)
    context = hostile.context(8)
    with pytest.raises(keel_abi.KeelError, match="needs 40 bytes of parameters for each launch: .* no shared memory") as e:
        context.parse(PROGRAM).session("hostile", level=0).prepare().run(np.ones((1, 4), np.float32), np.ones((1, 4), np.float32), GOOD)
    assert e.value.code == "UNIMPLEMENTED" and e.value.node == "a"
