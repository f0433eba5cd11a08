"""What Keel tells a device of its launches: order, scratch, parameters, recordings, time. The device checks `number` and `depends` of
each launch by its addresses (null/order.c); NumPy is the oracle of the results."""
import ctypes as C
import os
import random
import threading

import counting
import keel_abi
import numpy as np
import pytest
from counting import counted, counts

OPS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "neg": np.negative}


@pytest.fixture
def null(null_plugin):
    null_plugin.null_disorder.restype = C.c_char_p
    yield null_plugin
    null_plugin.null_hold(0)
    null_plugin.null_refuse_recordings(0)
    null_plugin.null_params(C.c_uint64(0))
    null_plugin.null_scratch(C.c_uint64(0))
    assert null_plugin.null_disorder() is None


@pytest.fixture
def context(null):
    made = keel_abi.Context()
    made.load_plugin(counting.plugin("null"))
    return made


def text_of(lines, results, head="x: i32[n], y: i32[n]"):
    body = "".join(f"  {line}\n" for line in lines)
    names = [part.split(":")[0] for part in head.split(", ")]
    return (f"keel 1\nfn @main({head}) -> {', '.join(['i32[n]'] * len(results))} {{\n{body}  return {', '.join(results)}\n}}\n"
            f"entry main = @main ({', '.join(names)}) -> ({', '.join('_' * len(results))})\n")


def random_program(draw, length):
    """Its text, and the same in NumPy; i32 wraps around in both."""
    names, steps, lines = ["x", "y"], [], []
    for k in range(length):
        op = draw.choice(list(OPS))
        args = [draw.choice(names[-draw.choice([2, 6, 40]):]) for _ in range(1 if op == "neg" else 2)]
        lines.append(f"v{k} = {op}({', '.join(args)})")
        steps.append((f"v{k}", op, args))
        names.append(f"v{k}")
    results = draw.sample(names[2:], min(length, draw.choice([1, 2, 4]))) + draw.choice([[], ["x"]])

    def run(x, y):
        known = {"x": x, "y": y}
        for name, op, args in steps:
            known[name] = OPS[op](*(known[arg] for arg in args))
        return [known[name] for name in results]
    return text_of(lines, results), run


def plan_of(context, text, **options):
    return context.parse(text).session("null", level=0, results="device", **options).prepare()


def numbers(draw, n):
    return np.array([draw.randrange(-2**31, 2**31) for _ in range(n)], np.int32)


def same(got, want):
    for array, expected in zip(got, want, strict=True):
        np.testing.assert_array_equal(array.numpy(), expected)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("scratch", [0, 64, 4096])
def test_random_programs_in_recorded_and_unrecorded_runs(null, context, seed, scratch):
    """Sizes change in between; results of earlier runs are kept."""
    draw, kept = random.Random(seed), []
    null.null_scratch(C.c_uint64(scratch))
    null.null_params(C.c_uint64(draw.choice([0, 16, 40])))
    text, run = random_program(draw, draw.choice([3, 5, 40, 300]))
    plan = plan_of(context, text)
    before = null.null_ordered()
    for n in [0, 1, 7, 64, 1000] * 4:
        x, y = numbers(draw, n), numbers(draw, n)
        kept.append((plan.run_arrays(x, y), run(x, y)))
        if draw.random() < 0.5:
            same(*kept.pop(draw.randrange(len(kept))))
    for pair in kept:
        same(*pair)
    assert null.null_ordered() > before


CHAIN = ["a = add(x, y)", "b = add(a, y)", "c = add(b, y)", "d = add(c, y)", "e = add(d, y)", "f = add(e, y)"]
APART = [f"{name} = add(x, y)" for name in "abcdef"]


def warm(call, runs=3):
    for _ in range(runs):
        call()
    with counted("null") as seen:
        call()
    return seen


def barriers(null, context, lines, results, n, scratch):
    null.null_scratch(C.c_uint64(scratch))
    plan, x = plan_of(context, text_of(lines, results)), np.ones(n, np.int32)
    before = null.null_barriers()
    plan.run_arrays(x, x)
    return null.null_barriers() - before


@pytest.mark.parametrize("lines, scratch, count", [
    (CHAIN, 0, 6), (APART, 0, 1),
    (APART, 64, 2),      # three blocks of scratch in turn
    (APART, 2048, 3),    # two: an eighth of 6 results of 4,000 bytes and one block is 3,256 bytes
    (APART, 8192, 6),    # one
], ids=str)
def test_barriers_that_a_device_needs(null, context, lines, scratch, count):
    results = list("abcdef") if lines is APART else ["f"]
    assert barriers(null, context, lines, results, 1000, scratch) == count


def long_chain(length, op="add"):
    return text_of([f"v{k} = {op}({f'v{k - 1}' if k else 'x'}, y)" for k in range(length)], [f"v{length - 1}"])


def there(context, array):
    return context.array(array).to("null").wait()


@pytest.mark.parametrize("length", [4, 200, 1000])
def test_a_plan_is_replayed_from_its_second_run_on(context, length):
    plan, x, y = plan_of(context, long_chain(length)), there(context, np.arange(5, dtype=np.int32)), there(context, np.ones(5, np.int32))
    for replays in ({}, {"replays": 1}, {"replays": 1}):
        with counted("null") as seen:
            z, = plan.run_arrays(x, y)
        first = {} if replays else {"prepares": length, "submits": (length + 255) // 256}
        assert {k: n for k, n in seen.items() if k != "prepares"} == {
            k: n for k, n in ({"launches": length, "submits": 1} | replays | first).items() if k != "prepares"}
        np.testing.assert_array_equal(z.numpy(), np.arange(5) + length)


def test_few_launches_are_not_recorded(context):
    plan, x = plan_of(context, long_chain(3)), there(context, np.ones(5, np.int32))
    assert warm(lambda: plan.run_arrays(x, x)) == {"launches": 3, "submits": 1}


@pytest.mark.parametrize("which", [1, 2, 3])
def test_a_device_that_refuses_is_not_asked_again(null, context, which):
    plan, x = plan_of(context, long_chain(20)), there(context, np.ones(5, np.int32))
    null.null_refuse_recordings(which)
    for _ in range(2):
        same(plan.run_arrays(x, x), [np.full(5, 21)])
    null.null_refuse_recordings(0)
    assert warm(lambda: plan.run_arrays(x, x)) == {"launches": 20, "submits": 1}
    other = plan_of(context, long_chain(20))
    assert warm(lambda: other.run_arrays(x, x)) == {"launches": 20, "submits": 1, "replays": 1}


def test_recordings_are_freed_with_their_plan_and_after_their_replays(null, context):
    before = counts("null").get("recordings", 0)
    owned, x = [plan_of(context, long_chain(20))], there(context, np.ones(5, np.int32))
    for _ in range(3):
        owned[0].run_arrays(x, x)
    assert counts("null")["recordings"] == before + 1
    null.null_hold(1)
    late, = owned[0].run_arrays(x, x)
    late.keep = [context]  # not the plan
    ending = threading.Thread(target=owned.clear)  # waits for the replay
    ending.start()
    ending.join(0.1)
    held = counts("null")["recordings"], ending.is_alive()
    null.null_hold(0)
    ending.join(20)
    same([late], [np.full(5, 21)])
    assert held == (before + 1, True)
    assert counts("null").get("recordings", 0) == before


def test_results_in_flight_are_fed_to_replays(context, null):
    plan, x, one = plan_of(context, long_chain(20)), there(context, np.ones(5, np.int32)), there(context, np.ones(5, np.int32))
    kept = [x]
    null.null_hold(1)
    for _ in range(30):
        kept += plan.run_arrays(kept[-1], one)
    null.null_hold(0)
    same(kept, [np.full(5, 1 + 20 * k) for k in range(31)])


def test_threads_share_a_recording(context):
    plan, wrong = plan_of(context, long_chain(50)), []

    def go(k):
        for i in range(40):
            x, y = np.full(3 + i % 2, k, np.int32), np.full(3 + i % 2, i, np.int32)
            z, = plan.run_arrays(x, y)
            if (z.numpy() != k + 50 * i).any():
                wrong.append((k, i))
    threads = [threading.Thread(target=go, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == [] and not any(thread.is_alive() for thread in threads)


PICK = """keel 1
fn @main(x: i32[n], i: i32[2]) -> i32[2] {
  a = add(x, x)
  b = neg(a)
  c = add(b, x)
  pick = gather(c, i)
  d = neg(pick)
  return d
}
entry main = @main (x, i) -> (_)
"""


def test_a_fault_in_a_replay_is_of_that_run(context):
    plan, x = plan_of(context, PICK), np.arange(4, dtype=np.int32)
    for k in range(8):
        y, = plan.run_arrays(x, np.array([0, 9 if k % 3 == 2 else 3], np.int32))
        if k % 3 == 2:
            with pytest.raises(keel_abi.KeelError, match="found by device null:0") as e:
                y.numpy()
            assert (e.value.code, e.value.node) == ("RANGE", "pick")
        else:
            np.testing.assert_array_equal(y.numpy(), [0, 3])


def test_a_time_limit_ends_a_replay(context, null):
    plan, x = plan_of(context, long_chain(20), timeout_ms=50), there(context, np.ones(5, np.int32))
    for _ in range(3):
        plan.run_arrays(x, x)
    null.null_hold(1)
    with pytest.raises(keel_abi.KeelError, match="the time limit is 50 ms"):
        plan.run_arrays(x, x)
    null.null_hold(0)
    same(plan.run_arrays(x, x), [np.full(5, 21)])


def test_a_forked_child_replays_nothing_and_its_parent_goes_on(context):
    plan, x = plan_of(context, long_chain(20)), there(context, np.ones(5, np.int32))
    for _ in range(3):
        plan.run_arrays(x, x)
    child = os.fork()
    if not child:
        status = 1
        try:
            plan.run_arrays(x, x)
        except keel_abi.KeelError as e:
            status = 0 if "before fork()" in e.message else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    same(plan.run_arrays(x, x), [np.full(5, 21)])


LOOP = """keel 1
fn @main(x: i32[n], k: i32[]) -> i32[n] {
  i, y = while(0, x, k){carry=2}
    test(i, y, k) { t = i < k
      yield t }
    body(i, y, k) {
      j = i + 1
      a = add(y, y)
      z = sub(a, j)
      yield j, z
    }
  return y
}
entry main = @main (x, k) -> (_)
"""


@pytest.mark.parametrize("params", [0, 16, 5000])
def test_launches_of_bodies_have_parameters_and_are_not_recorded(context, null, params):
    null.null_params(C.c_uint64(params))
    plan = plan_of(context, LOOP)
    for rounds in (0, 3, 50, 3):
        want = np.arange(4, dtype=np.int32)
        for j in range(rounds):
            want = want + want - (j + 1)
        with counted("null") as seen:
            same(plan.run_arrays(np.arange(4, dtype=np.int32), np.int32(rounds)), [want])
        assert "replays" not in seen


def test_parameters_do_not_pile_up(context, null):
    null.null_params(C.c_uint64(4096))
    plan, x = plan_of(context, long_chain(20)), there(context, np.ones(5, np.int32))
    once = plan_of(context, long_chain(2))
    for _ in range(3):
        plan.run_arrays(x, x), once.run_arrays(x, x)
    before = counts("null")["segments"]
    for _ in range(500):
        plan.run_arrays(x, x), once.run_arrays(x, x)
    assert counts("null")["segments"] == before


class Event(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("n_in", C.c_uint32), ("n_out", C.c_uint32), ("index", C.c_uint32), ("node", C.c_char_p),
                ("op", C.c_char_p), ("impl", C.c_char_p), ("inputs", C.c_void_p), ("out", C.POINTER(C.POINTER(keel_abi.Tensor))),
                ("out_names", C.c_void_p), ("begin", C.c_int64), ("end", C.c_int64)]


def watched(plan, *feeds):
    """(node, begin, end, whether it has data) of each launch, and the result."""
    seen = []

    @C.CFUNCTYPE(C.c_int32, C.c_void_p, C.POINTER(Event))
    def observer(_, event):
        e = event[0]
        seen.append((e.node.decode(), e.begin, e.end, bool(e.out[0][0].data)))
        return 0
    keep, inputs = keel_abi.pointers(plan.keep[0].context, feeds)
    out = (C.c_void_p * 1)()
    keel_abi.call("keel_plan_run_observed", plan, inputs, len(feeds), out, 1, observer, None)
    return seen, keel_abi.Array(C.c_void_p(out[0]), plan)


def test_a_profile_measures_on_the_device_and_waits_once(context):
    plan, x = plan_of(context, long_chain(20), profile=1), there(context, np.ones(5, np.int32))
    for _ in range(2):
        with counted("null") as seen:
            events, y = watched(plan, x, x)
        assert {key: n for key, n in seen.items() if key != "prepares"} == {
            "launches": 20, "submits": 1, "host_waits": 1, "timestamps": 21}
        assert [node for node, *_ in events] == [f"v{k}" for k in range(20)]
        times = [t for _, begin, end, _ in events for t in (begin, end)]
        assert times == sorted(times) and not any(data for *_, data in events)
        np.testing.assert_array_equal(y.numpy(), 21)
    assert warm(lambda: plan.run_arrays(x, x))["replays"] == 1


def test_a_watched_run_sees_values(context):
    plan, x = plan_of(context, long_chain(5), observe=1), there(context, np.ones(5, np.int32))
    events, _ = watched(plan, x, x)
    assert [data for *_, data in events] == [True] * 5
