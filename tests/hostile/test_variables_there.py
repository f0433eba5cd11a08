"""Variables on an asynchronous device: runs with effects return before their work is done, and a fault that is seen later leaves every
variable as the exact prefix of effects before it made it. In any order that the device may choose; the model is NumPy."""
import random
import re
import threading

import hostile
import keel_abi
import numpy as np
import pytest

TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
X = np.ones((3, 4), np.float32)
ZERO = np.zeros(3, np.int32)
GOOD, BAD = np.array([2, 0, 1], np.int32), np.array([0, 7, 1], np.int32)
STEP = """keel 1
const one: i32[3] = [1, 1, 1]
var table: f32[3, 4] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
var count: i32[3] = [0, 0, 0]
var last: i32[3] = [0, 0, 0]
fn @main(i: i32[3], x: f32[3, 4]) -> f32[3, 4] {
  assign(last, i)
  t = read(table)
  pick = gather(t, i)
  new = add(pick, x)
  assign(table, new)
  assign_add(count, one)
  return new
}
entry main = @main (i, x) -> (_)
"""
NAMES = ("table", "count", "last")


class Training:
    """The plan of STEP, its variables, and their exact values."""

    def __init__(self, seed, device="hostile", **options):
        self.context = hostile.context(seed)
        self.module = self.context.parse(STEP)
        self.plan = self.module.session(device, results="device", **options).prepare()
        self.variables = {name: self.module.variable(name) for name in NAMES}
        self.exact = {"table": TABLE, "count": ZERO, "last": ZERO}

    def expect(self, i, x=X):
        """Effects before the gather take place even if it fails."""
        self.exact["last"] = i
        if i.max() < 3:
            self.exact["table"] = self.exact["table"][i] + x
            self.exact["count"] = self.exact["count"] + 1

    def step(self, i, x=X):
        result, = self.plan.run_arrays(i, x)
        self.expect(i, x)
        return result

    def check(self):
        for name, want in self.exact.items():
            np.testing.assert_array_equal(self.variables[name].read(), want, err_msg=name)


def reader_of(training):
    """A plan that doubles the table."""
    module = training.context.module()
    number = module.variable("table", add=training.variables["table"]).number
    graph = module.graph("main")
    table = graph.node("read", var=number)
    graph.result("y", graph.node("add", table, table))
    module.entry("main", graph)
    return module.session("hostile", results="device").prepare()


def fails(look):
    with pytest.raises(keel_abi.KeelError) as e:
        look()
    assert (e.value.code, e.value.node) == ("RANGE", "pick"), e.value
    assert "index 7 is not in [0, 3)" in e.value.message


@pytest.mark.parametrize("seed", range(1, hostile.SEEDS + 1))
def test_random_interleavings_of_steps_reads_writes_and_moves(seed):
    training, draw = Training(seed), random.Random(seed)
    exact, variables, context = training.exact, training.variables, training.context
    reader = training.module.session("reference").prepare()
    kept = []
    for _ in range(80):
        kind = draw.choice(["step", "step", "step", "read", "assign", "add", "there", "move", "host plan", "look", "drop"])
        index = np.array([draw.randrange(3) for _ in range(3)], np.int32)
        if kind == "step":
            kept.append((training.step(index), exact["table"]))
        elif kind == "read":
            name = draw.choice(NAMES)
            np.testing.assert_array_equal(variables[name].read(), exact[name])
        elif kind == "assign":
            exact["table"] = TABLE * draw.randrange(3)
            variables["table"].assign(exact["table"])
        elif kind == "add":
            sign = draw.choice([1, -1])
            exact["count"] = exact["count"] + sign * index
            variables["count"].add(index, sign)
        elif kind == "there":
            exact["table"] = exact["table"] + X
            variables["table"].add(context.array(X).to("hostile"))
        elif kind == "move":
            variables[draw.choice(NAMES)].to(draw.choice(["hostile", "hostile:1", None]))
        elif kind == "host plan":
            training.expect(index)
            np.testing.assert_array_equal(reader.run(index, X)[0], exact["table"])
        elif kept:
            array, want = kept.pop(draw.randrange(len(kept)))
            if kind == "look":
                np.testing.assert_array_equal(array.numpy(), want)
    training.check()


def device_of(variable):
    return variable.make(keel_abi.Array, "keel_variable_read", None, None).device


def test_a_variable_is_where_it_was_made_computed_or_moved():
    training = Training(2)
    context, table, last = training.context, training.variables["table"], training.variables["last"]
    assert device_of(table) == ""
    training.step(GOOD)
    assert (device_of(table), device_of(last)) == ("hostile:0", "")  # the feed is assigned as it is
    for device, name in (("hostile:1", "hostile:1"), ("hostile", "hostile:0"), (None, "")):
        table.to(device)
        assert device_of(table) == name
        training.step(GOOD)
        assert device_of(table) == "hostile:0"
        training.check()
    made = context.variable(context.array(X).to("hostile:1"))
    assert device_of(made) == "hostile:1"
    made.add(X)
    assert device_of(made) == "hostile:1"
    made.assign(X)
    assert device_of(made) == ""
    with pytest.raises(keel_abi.KeelError, match='no device "moon"'):
        made.to("moon")
    np.testing.assert_array_equal(made.read(), X)
    result = training.plan.run_arrays(BAD, X)
    training.expect(BAD)
    fails(lambda: table.to(None))
    training.check()
    del result


@pytest.mark.parametrize("seed", range(1, hostile.SEEDS + 1))
def test_a_fault_in_step_k_looked_at_in_step_k_plus_50(seed):
    training, draw = Training(seed), random.Random(seed)
    hostile.put(delay=seed % 3)
    first, k = training.plan, draw.randrange(20)
    for _ in range(k):
        training.step(np.array([draw.randrange(3) for _ in range(3)], np.int32))
    result = first.run_arrays(BAD, X)[0]
    training.expect(BAD)

    def later():  # a run may find that the fault is known by now
        for _ in range(50):
            result = first.run_arrays(GOOD, X)[0]
        result.numpy()
    fails(later)
    training.check()
    fails(result.numpy)
    for _ in range(5):
        training.step(GOOD)
    training.check()


@pytest.mark.parametrize("look", ["result", "variable", "run"])
@pytest.mark.parametrize("seed", range(1, 6))
def test_runs_that_only_read_a_variable_of_a_failed_run(seed, look):
    training = Training(seed)
    hostile.put(delay=20)
    reader = reader_of(training)
    training.step(GOOD)
    result, = training.plan.run_arrays(BAD, X)
    training.expect(BAD)

    def later():
        read = [reader.run_arrays()[0] for _ in range(50)]
        {"result": result.numpy, "variable": training.variables["table"].read, "run": read[-1].numpy}[look]()
    fails(later)
    training.check()
    np.testing.assert_array_equal(reader.run()[0], 2 * training.exact["table"])
    training.step(GOOD)
    training.check()


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("name", NAMES)
def test_a_write_while_a_failure_is_pending_is_taken_back_with_it(seed, name):
    training = Training(seed)
    hostile.put(delay=20)
    training.step(GOOD)
    result, = training.plan.run_arrays(BAD, X)
    training.expect(BAD)
    if name == "last":  # its write was before the fault
        training.exact["last"] = ZERO
    training.variables[name].assign(np.zeros_like(training.exact[name]))
    fails(result.numpy)
    training.check()
    training.variables[name].assign(np.full_like(training.exact[name], 5))
    training.exact[name] = np.full_like(training.exact[name], 5)
    training.check()


def test_two_threads_add_to_one_variable():
    context = hostile.context(3)
    module = context.parse("""keel 1
var w: i32[3] = [0, 0, 0]
fn @main(x: i32[3]) {
  y = add(x, x)
  assign_add(w, y)
  return
}
entry main = @main (x) -> ()
""")
    plan, w, one = module.session("hostile").prepare(), module.variable("w"), np.ones(3, np.int32)
    plan.run(one)

    def eager():
        for _ in range(60):
            w.add(there)

    def planned():
        for _ in range(60):
            plan.run(one)
    there = context.array(one).to("hostile")
    threads = [threading.Thread(target=f) for f in (eager, planned, eager, planned)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(w.read(), [2 + 2 * 60 + 2 * 120] * 3)


SHOW = re.sub(r"\[0.0.*\]", "[1.0, 2.0, 3.0]", STEP).replace("f32[3, 4]", "f32[3]").replace("return new", """print(new){format="new {}"}
  now = read(count)
  print(now){format="count {}"}
  return new""")


@pytest.mark.parametrize("observe", [0, 1])
def test_print_after_assign(observe):
    context, lines = hostile.context(4), []
    context.print_hook(lambda stream, line: lines.append(line))
    module = context.parse(SHOW)
    plan = module.session("hostile", level=0, observe=observe).prepare()
    x = np.ones(3, np.float32)
    plan.run(GOOD, x)
    plan.run(GOOD, x)
    assert lines == ["new [4 2 3]\n", "count [1 1 1]\n", "new [4 5 3]\n", "count [2 2 2]\n"]
    lines.clear()
    fails(lambda: plan.run(BAD, x))
    assert lines == []
    context.print_hook(None)
    np.testing.assert_array_equal(module.variable("table").read(), [4, 5, 3])
    np.testing.assert_array_equal(module.variable("last").read(), BAD)


@pytest.mark.parametrize("good", [True, False])
def test_files_text_and_checkpoints_of_variables_there(good, tmp_path):
    training = Training(5)
    hostile.put(delay=20)
    training.step(GOOD)
    checkpoint, saved = str(tmp_path / "c.keel"), str(tmp_path / "m.keel")

    def save():
        table = (keel_abi.C.c_void_p * 1)(training.variables["table"]._as_parameter_)
        keel_abi.call("keel_checkpoint_save", training.context, checkpoint.encode(), keel_abi.names(["table"])[0], table, 1)
    looks = {"checkpoint": save, "file": lambda: training.module.save(saved), "text": lambda: training.module.to_text()}
    if not good:
        for look in looks.values():
            result, = training.plan.run_arrays(BAD, X)
            training.expect(BAD)
            fails(look)
            training.check()
    for look in looks.values():
        training.step(GOOD)
        look()
    np.testing.assert_array_equal(training.context.load(saved).variable("count").read(), training.exact["count"] - 1)
    again = training.context.parse(training.module.to_text())
    for name, want in training.exact.items():
        np.testing.assert_array_equal(again.variable(name).read(), want)
    training.variables["table"].assign(TABLE)
    table = (keel_abi.C.c_void_p * 1)(training.variables["table"]._as_parameter_)
    keel_abi.call("keel_checkpoint_load", training.context, checkpoint.encode(), keel_abi.names(["table"])[0], table, 1)
    training.exact["table"] = training.variables["table"].read()
    training.step(GOOD)
    training.check()
