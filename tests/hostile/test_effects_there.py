"""Variables and effects on an asynchronous device with its own memory keep program order, with failures and several devices;
random programs against the model of tests/python."""
import random

import effects_model as model
import hostile
import keel_abi
import numpy as np
import pytest
from test_place import session


def context_of(name):
    made = hostile.context(hostile.seeds_of(name)[0])
    made.lines = []
    made.print_hook(lambda stream, line: made.lines.append(line))
    return made


TEXT = """keel 1
var w: f32[4] = [1.0, 2.0, 3.0, 4.0]
fn @main(x: f32[4], i: i32[4]) -> f32[4] {
  old = read(w)
  twice = add(x, x)
  assign(w, twice)
  print(twice){format="is {}"}
  y = gather(old, i)
  print(y){format="then {}"}
  sum = add(y, twice)
  assign_add(w, sum)
  return sum
}
entry main = @main (x, i) -> (_)
"""
X, GOOD, BAD = np.array([1, 2, 3, 4], np.float32), np.array([3, 2, 1, 0], np.int32), np.array([0, 9, 0, 0], np.int32)


@pytest.mark.parametrize("place", [(), ("y=hostile:1",), ("sum=reference", "twice=hostile:1")], ids=" ".join)
@pytest.mark.parametrize("level", [0, 2])
def test_effects_keep_their_order(place, level):
    context = context_of(f"order{place}")
    module = context.parse(TEXT)
    options = {"level": level} if not place else {}
    plan, w = session(context, module, "hostile:0", *place, **options).prepare(), module.variable("w")
    np.testing.assert_array_equal(plan.run(X, GOOD)[0], [6, 7, 8, 9])
    assert context.lines == ["is [2 4 6 8]\n", "then [4 3 2 1]\n"]
    np.testing.assert_array_equal(w.read(), [8, 11, 14, 17])
    context.lines.clear()
    w.assign(X)
    with pytest.raises(keel_abi.KeelError, match="index"):
        plan.run(X, BAD)
    assert context.lines == ["is [2 4 6 8]\n"]
    np.testing.assert_array_equal(w.read(), [2, 4, 6, 8])
    context.print_hook(None)


@pytest.mark.parametrize("level", [0, 2])
def test_effects_of_bodies_happen_where_they_are_called(level):
    context = context_of("nested")
    module = context.parse(model.NESTED)
    plan = module.session("hostile:0", level=level).prepare()
    model.check_nested(plan, module.variable("w"), context.lines)
    context.print_hook(None)


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("text, check, var", [(model.IN_CONTROL, model.check_control, "n"),
                                              (model.IN_LOOP, model.check_loop, "w")], ids=["control", "loop"])
def test_branches_and_loops_run_there_with_their_effects(text, check, var, level, seed):
    context = context_of(f"control{seed}")
    module = context.parse(text)
    plan = module.session("hostile:0", level=level).prepare()
    for _ in range(2):
        check(plan, module.variable(var), context.lines)
    context.print_hook(None)


def test_eager_print_and_assert_take_arrays_of_the_device():
    context = context_of("eager")
    there = context.array(X).to("hostile")
    context.apply("hostile", "print", there, n_out=0)
    assert context.lines == ["[1 2 3 4]\n"]
    context.print_hook(None)


@pytest.mark.parametrize("seed", range(15))
def test_random_programs_do_what_the_model_does(seed):
    r = random.Random(seed)
    nodes, results = model.program(500 + seed)
    context = context_of(f"random{seed}")
    module = context.parse(model.text(nodes, results))
    place = [] if seed % 3 == 0 else [f"n*{r.randrange(10)}=hostile:1", "n*3=reference", "m*=cpu"][:seed % 3 + 1]
    place = [p for p in place if any(n.name.startswith(p[0]) and (p[2:p.index("=")] in ("", n.name[-1]))
                                     for n in nodes)]
    plan = session(context, module, "hostile:0", *place).prepare()
    state = {k: v.copy() for k, v in model.VARS.items()}
    for round in range(6):
        feeds = {"x": np.array([r.randrange(-5, 6) for _ in range(4)], np.int32),
                 "i": np.array([r.randrange(0, 4 if r.random() < 0.7 else 6) for _ in range(4)], np.int32),
                 "limit": np.int32(r.choice([2, 10, 1000]))}
        want, failed, lines = model.run(nodes, results, feeds, state)
        try:
            got, error = plan.run(*feeds.values()), None
        except keel_abi.KeelError as e:
            got, error = None, e
        where = f"{place}\n{model.text(nodes, results)}\n{error}"
        assert context.lines == lines, where
        context.lines.clear()
        assert (error.node if error else None) == failed, where
        for name, value in state.items():
            np.testing.assert_array_equal(module.variable(name).read(), value, err_msg=where)
        for g, w in zip(got or [], want or []):
            np.testing.assert_array_equal(g, w, err_msg=where)
    context.print_hook(None)
