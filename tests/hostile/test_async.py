"""Runs return before their work is done: arrays in flight are fed to further runs, read late or never, and dropped; a fault is seen by
whoever reads what was computed from it. In any order that the device may choose."""
import random

import hostile
import keel_abi
import numpy as np
import pytest

X = np.arange(12, dtype=np.float32).reshape(3, 4)
GOOD, BAD = np.array([2, 0, 1], np.int32), np.array([0, 7, 1], np.int32)


def plan_of(context, write, **params):
    """A plan whose results stay on the device; `write` adds nodes to a graph with these parameters."""
    module = context.module()
    graph = module.graph("main")
    graph.result("y", write(graph, *[graph.param(name, array.dtype, array.shape) for name, array in params.items()]))
    module.entry("main", graph)
    return module.session("hostile", level=0, results="device").prepare()


def picked(graph, x, i):
    return graph.node("gather", graph.node("neg", x), i, axis=0, name="pick")


def fails(array):
    with pytest.raises(keel_abi.KeelError) as e:
        array.numpy()
    assert (e.value.code, e.value.node) == ("RANGE", "pick")
    assert "index 7 is not in [0, 3)" in e.value.message and "hostile:0" in e.value.message


@pytest.mark.parametrize("seed", range(1, hostile.SEEDS + 1))
def test_random_programs_of_runs_in_flight(seed):
    context, draw = hostile.context(seed), random.Random(seed)
    ops = {name: context.bind("hostile", name) for name in ("neg", "add", "maximum")}
    plan = plan_of(context, picked, x=X, i=GOOD)
    known = [(context.array(X), X)]
    for _ in range(150):
        (a, x), (b, y) = draw.choice(known), draw.choice(known)
        kind = draw.choice(["neg", "add", "maximum", "plan", "move", "read", "drop"])
        if kind == "neg":
            known.append((ops["neg"].arrays(a)[0], -x))
        elif kind in ("add", "maximum"):
            known.append((ops[kind].arrays(a, b)[0], (np.add if kind == "add" else np.maximum)(x, y)))
        elif kind == "plan":
            index = np.array([draw.randrange(3) for _ in range(3)], np.int32)
            known.append((plan.run_arrays(a, index)[0], -x[index]))
        elif kind == "move":
            known.append((a.to(draw.choice(["hostile", None])), x))
        elif kind == "read":
            np.testing.assert_array_equal(a.numpy(), x)
        elif len(known) > 4:
            del known[draw.randrange(len(known))]
        if np.abs(known[-1][1]).max() > 1e6:
            known[-1] = (context.array(X), X)
    for array, want in known:
        np.testing.assert_array_equal(array.numpy(), want)


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_fault_travels_to_all_that_was_computed_from_it(seed):
    context = hostile.context(seed)
    hostile.put(delay=1)  # else a run may have failed before its result is fed, and feeding it is the error
    plan, neg, add = plan_of(context, picked, x=X, i=GOOD), context.bind("hostile", "neg"), context.bind("hostile", "add")
    bad, good = plan.run_arrays(X, BAD)[0], plan.run_arrays(X, GOOD)[0]
    further = neg.arrays(bad)[0]
    mixed = add.arrays(good, further)[0]
    np.testing.assert_array_equal(good.numpy(), -X[GOOD])
    for array in (mixed, further, bad, mixed, bad):
        fails(array)
    with pytest.raises(keel_abi.KeelError, match="index 7"):
        mixed.wait()
    with pytest.raises(keel_abi.KeelError, match="index 7"):
        neg.arrays(bad)  # known by now
    np.testing.assert_array_equal(neg(good), X[GOOD])


SAYING = """keel 1
fn @main(x: f32[3, 4], k: i32[]) -> i32[] {
  i = while(0, k, x){carry=1}
    test(i, k, x) { t = i < k
      yield t }
    body(i, k, x) {
      print(x){format="saw {}"}
      j = i + 1
      yield j
    }
  return i
}
entry main = @main (x, k) -> (_)
"""


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("observe", [0, 1])
def test_a_body_does_not_act_on_the_output_of_a_failed_run(seed, observe):
    context, lines = hostile.context(seed), []
    context.print_hook(lambda stream, line: lines.append(line))
    hostile.put(delay=1)
    plan, say = plan_of(context, picked, x=X, i=GOOD), context.parse(SAYING).session("hostile", level=0, observe=observe).prepare()
    np.testing.assert_array_equal(say.run(plan.run_arrays(X, GOOD)[0], np.int32(2))[0], 2)
    assert len(lines) == 2 and lines[0].startswith("saw")
    lines.clear()
    with pytest.raises(keel_abi.KeelError, match="index 7 is not in") as e:
        say.run(plan.run_arrays(X, BAD)[0], np.int32(2))
    assert e.value.node == "pick" and lines == []
    e.value.__traceback__ = None
    context.print_hook(None)


def test_a_fault_is_kept_when_its_plan_is_gone():
    context = hostile.context(3)
    plan = plan_of(context, picked, x=X, i=GOOD)
    bad = plan.run_arrays(X, BAD)[0]
    del plan
    fails(bad)


def test_unread_faults_and_many_runs_in_flight():
    """More runs than slots of fault bytes in one segment, read in reverse."""
    context = hostile.context(4)
    plan = plan_of(context, picked, x=X, i=GOOD)
    runs = [plan.run_arrays(X, BAD if k % 7 == 3 else GOOD)[0] for k in range(600)]
    for k in reversed(range(600)):
        if k % 7 == 3:
            fails(runs[k])
        else:
            np.testing.assert_array_equal(runs[k].numpy(), -X[GOOD])


def test_a_long_chain_of_unread_runs():
    context = hostile.context(5)
    plan, y = plan_of(context, picked, x=X, i=GOOD), context.array(X)
    want = X
    for _ in range(3000):
        y, want = plan.run_arrays(y, GOOD)[0], -want[GOOD]
    np.testing.assert_array_equal(y.numpy(), want)


def test_a_run_without_results_that_fails_is_an_error_at_once():
    context = hostile.context(6)
    module = context.parse("""keel 1
fn @main(x: f32[3], i: i32[2]) -> f32[3] {
  y = gather(x, i)
  return x
}
entry main = @main (x, i) -> (_)
""")
    plan = module.session("hostile", level=0).prepare(fetches=[], targets=["y"])
    with pytest.raises(keel_abi.KeelError, match="index 7"):
        plan.run(np.arange(3, dtype=np.float32), BAD[:2])


@pytest.mark.parametrize("shared", [0, 1])
def test_fault_bytes_in_shared_memory_and_in_a_copy(shared):
    hostile.put(shared=shared)
    context = hostile.context(7)
    plan = plan_of(context, picked, x=X, i=GOOD)
    for index in (GOOD, BAD, GOOD, BAD):
        y = plan.run_arrays(X, index)[0]
        if index is BAD:
            fails(y)
        else:
            np.testing.assert_array_equal(y.numpy(), -X[GOOD])
