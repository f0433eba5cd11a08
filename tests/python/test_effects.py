"""Effects in graphs: each rule of their order, pruning and strictness, random programs against a model,
saving, bad input. Tests of example programs (tests/rows) are named T16 to T18."""
import random

import effects_model as model
import keel_abi
import numpy as np
import pytest


@pytest.fixture
def context():
    made = keel_abi.Context()
    made.lines = []
    made.print_hook(lambda stream, line: made.lines.append((stream, line)))
    yield made
    made.print_hook(None)


def printed(context):
    lines = [line for _, line in context.lines]
    context.lines.clear()
    return lines


def f32(*values):
    return np.array(values, np.float32)


# ---- the order of effects
ORDER = """keel 1
var w: f32[2] = [1.0, 2.0]
fn @main(x: f32[2], ok: bool[]) -> f32[2], f32[2] {
  before = read(w)
  assign(w, x)
  between = read(w)
  print(before, between){format="was {} is {}"}
  assert(ok, x){message="x is odd"}
  assign_add(w, x)
  print(between){format="after {}"}
  return before, between
}
entry main = @main (x, ok) -> (_, _)
"""


def test_a_read_sees_the_writes_before_it_and_not_those_behind(context, device):
    module = context.parse(ORDER)
    plan, w = module.session(device).prepare(), module.variable("w")
    for round in range(3):  # the second finds an idle runner
        was = w.read().copy()
        before, between = plan.run(f32(5, 6), np.bool_(True))
        np.testing.assert_array_equal(before, was)
        np.testing.assert_array_equal(between, [5, 6])
        np.testing.assert_array_equal(w.read(), [10, 12])
        assert printed(context) == [f"was [{was[0]:g} {was[1]:g}] is [5 6]\n", "after [5 6]\n"]


def test_an_assertion_holds_back_later_writes_and_prints(context, device):
    """TensorFlow writes the variable in this case."""
    module = context.parse(ORDER)
    with pytest.raises(keel_abi.KeelError, match=r"x is odd: \[5 6\]") as e:
        module.session(device).prepare().run(f32(5, 6), np.bool_(False))
    assert (e.value.code, e.value.op) == ("INVALID", "assert")
    np.testing.assert_array_equal(module.variable("w").read(), [5, 6])
    assert printed(context) == ["was [1 2] is [5 6]\n"]


def test_what_was_read_stays_as_it_was(context, device):
    module = context.parse("""keel 1
var w: f32[3] = [1.0, 2.0, 3.0]
fn @main() -> f32[3], f32[3] {
  old = read(w)
  same = reshape(old){to=[3]}
  assign_add(w, old)
  assign_add(w, old)
  new = read(w)
  return same, new
}
entry main = @main () -> (_, _)
""")
    plan, w = module.session(device).prepare(), module.variable("w")
    held = w.read()
    old, new = plan.run()
    np.testing.assert_array_equal(old, [1, 2, 3])
    np.testing.assert_array_equal(new, [3, 6, 9])
    kept = new.copy()
    plan.run()
    np.testing.assert_array_equal(new, kept)
    np.testing.assert_array_equal(held, [1, 2, 3])


def test_an_update_happens_where_the_value_lies_if_nobody_else_holds_it(context, device):
    if device not in ("cpu", "reference"):
        pytest.skip("the host sees copies of the variable's value")
    module = context.parse("""keel 1
var w: f32[1000] = hex"%s"
fn @main(x: f32[1000]) -> f32[] {
  old = read(w)
  s = reduce_sum(old)
  assign_sub(w, x)
  return s
}
entry main = @main (x) -> (_)
""" % ("00" * 4000))
    plan, w = module.session(device).prepare(), module.variable("w")
    x = np.ones(1000, np.float32)

    def place():
        array = w.read()
        return array.ctypes.data
    plan.run(x)
    first = place()
    plan.run(x)
    assert place() == first
    held = w.read()
    plan.run(x)
    assert place() != first
    np.testing.assert_array_equal(held, -2)
    np.testing.assert_array_equal(w.read(), -3)


# ---- pruning
T18 = """keel 1
fn @main(x: f32[1]) -> f32[1] {
  i = add(1, 0)
  unused = gather(x, i)
  return x
}
entry main = @main (x) -> (_)
"""


def test_T17_a_gather_that_is_fetched_fails(context, device):
    with pytest.raises(keel_abi.KeelError, match=r"index 1 is not in \[0, 1\)"):
        context.parse(T18).session(device).run({"x": f32(0)}, ["unused"])


@pytest.mark.parametrize("level", range(4))
def test_T18_an_unused_gather_is_pruned_and_strict_raises_it(context, device, level):
    module = context.parse(T18)
    np.testing.assert_array_equal(module.session(device, level=level).prepare().run(f32(0))[0], [0])
    with pytest.raises(keel_abi.KeelError, match=r"index 1 is not in \[0, 1\)"):
        module.session(device, level=level, strict=1).prepare().run(f32(0))


def test_T16_effects_run_though_nobody_needs_them(context, device):
    module = context.parse("""keel 1
var n: i32[] = 0
fn @main(x: i32[]) -> i32[] {
  unused = mul(x, 2)
  doubled = add(x, x)
  assign_add(n, doubled)
  print(doubled){stream=out}
  return x
}
entry main = @main (x) -> (_)
""")
    plan = module.session(device, level=0).prepare()
    plan.run(np.int32(3))
    assert module.variable("n").read() == 6
    assert context.lines == [(1, "6\n")]
    assert [x["node"] for x in plan.report()["launches"]] == ["doubled", "v2", "v3"]


def test_fetches_and_targets_run_nothing_else(context, device):
    module = context.parse(ORDER.replace("  assign(w, x)", "  set: assign(w, x)"))
    session, w = module.session(device), module.variable("w")
    np.testing.assert_array_equal(session.run({}, ["between"])[0], [1, 2])
    assert printed(context) == []
    session.run({"x": f32(8, 9)}, [], ["set"])
    np.testing.assert_array_equal(w.read(), [8, 9])
    session.run({"ok": np.bool_(True), "x": f32(0, 0)}, [], ["v4", "v6"])
    assert printed(context) == ["after [8 9]\n"]
    np.testing.assert_array_equal(session.run({"between": f32(3, 3)}, [], ["v6"]), [])
    assert printed(context) == ["after [3 3]\n"]
    with pytest.raises(keel_abi.KeelError, match="node 'set' of graph 'main' has no value"):
        session.run({"x": f32(8, 9)}, ["set"])


def test_what_a_failed_run_did_is_what_stood_before(context, device):
    module = context.parse("""keel 1
var w: i32[] = 0
fn @main(x: f32[2], i: i32[]) -> f32[] {
  assign_add(w, 1)
  print(){format="one"}
  y = gather(x, i)
  print(){format="two"}
  assign_add(w, 10)
  z = add(y, 1)
  return z
}
entry main = @main (x, i) -> (_)
""")
    for level in range(4):
        plan = module.session(device, level=level).prepare()
        with pytest.raises(keel_abi.KeelError, match="index 7"):
            plan.run(f32(1, 2), np.int32(7))
        assert (module.variable("w").read(), printed(context)) == (1, ["one\n"])
        plan.run(f32(1, 2), np.int32(1))
        assert (module.variable("w").read(), printed(context)) == (12, ["one\n", "two\n"])
        module.variable("w").assign(np.int32(0))


# ---- inside bodies
@pytest.mark.parametrize("level", range(4))
def test_effects_of_bodies_happen_where_they_are_called(context, device, level):
    module, lines = context.parse(model.NESTED), []
    context.print_hook(lambda stream, line: lines.append(line))
    assert "fn @main(x: i32[2], i: i32[]) -> i32[2] {  # reads w  writes w  prints err" in module.to_text()
    model.check_nested(module.session(device, level=level).prepare(), module.variable("w"), lines)


# ---- print
@pytest.mark.parametrize("value,edge,shown", [
    (np.float32(1.5), 3, "1.5"), (np.float32(4), 3, "4"), (np.bool_(True), 3, "true"), (f32(), 3, "[]"),
    (np.arange(7), 3, "[0 1 2 ... 4 5 6]"), (np.arange(6), 3, "[0 1 2 3 4 5]"), (np.arange(4), 1, "[0 ... 3]"),
    (np.arange(9), -1, "[0 1 2 3 4 5 6 7 8]"), (np.arange(4), 0, "[...]"),
    (np.arange(4, dtype=np.int8).reshape(2, 2), 3, "[[0 1]\n [2 3]]"),
    (np.arange(8, dtype=np.float64).reshape(2, 2, 2), 3, "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"),
    (np.arange(12).reshape(4, 3), 1, "[[0 ... 2]\n ...\n [9 ... 11]]"),
    (f32(np.nan, np.inf, -np.inf, 0.1), 3, "[nan inf -inf 0.1]")], ids=str)
def test_print_shows_tensors_as_tensorflow_does(context, device, value, edge, shown):
    context.apply(device, "print", value, n_out=0, edge=edge)
    assert printed(context) == [shown + "\n"]


def test_print_fills_its_format(context, device):
    context.apply(device, "print", np.int32(1), np.int32(2), n_out=0)
    context.apply(device, "print", np.int32(1), np.int32(2), n_out=0, format="{{{}}} {}!")
    context.apply(device, "print", n_out=0, format="hello", stream="out")
    assert context.lines == [(0, "1 2\n"), (0, "{1} 2!\n"), (1, "hello\n")]
    for wrong in ("{}", "{} {} {}", "{ {}", "} {} {}"):
        with pytest.raises(keel_abi.KeelError, match="format"):
            context.apply(device, "print", np.int32(1), np.int32(2), n_out=0, format=wrong)


def test_print_goes_to_stderr_by_default(context, device, capfd):
    context.print_hook(None)
    context.apply(device, "print", np.int32(7), n_out=0)
    context.apply(device, "print", np.int32(8), n_out=0, stream="out")
    out, err = capfd.readouterr()
    assert (err, out) == ("7\n", "8\n")


def test_assert_eagerly(context, device):
    context.apply(device, "assert", np.bool_(True), n_out=0)
    with pytest.raises(keel_abi.KeelError, match="too big: 3, \\[1 2\\]"):
        context.apply(device, "assert", np.bool_(False), np.int32(3), np.arange(1, 3), n_out=0, message="too big")


# ---- random programs
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_do_what_the_model_does(context, device, seed):
    r = random.Random(1000 + seed)
    nodes, results = model.program(seed)
    text = model.text(nodes, results)
    module = context.parse(text)
    assert context.parse(module.to_text()).to_text() == module.to_text()
    state = {k: v.copy() for k, v in model.VARS.items()}
    variables = {k: module.variable(k) for k in state}
    plans = {}
    for round in range(10):
        feeds = {"x": np.array([r.randrange(-5, 6) for _ in range(4)], np.int32),
                 "i": np.array([r.randrange(0, 4 if r.random() < 0.7 else 6) for _ in range(4)], np.int32),
                 "limit": np.int32(r.choice([2, 10, 1000]))}
        if max(abs(v).max() for v in state.values()) > 10_000:
            for k, v in model.VARS.items():
                state[k] = v.copy()
                variables[k].assign(v)
        level, strict = r.randrange(4), r.random() < 0.3
        fetches = targets = None
        if r.random() < 0.3:
            names = [n.name for n in nodes if not n.must() and n.kind not in ("less", "reduce_max")]
            fetches, targets = r.sample(names, min(2, len(names))), [n.name for n in nodes if n.must()][:2]
        want, failed, lines = model.run(nodes, results, feeds, state, strict, fetches, targets or ())
        key = (level, strict, tuple(fetches or ["entry"]))
        if key not in plans:
            session = module.session(device, level=level, strict=int(strict))
            plans[key] = session.prepare(None if fetches is None else list(feeds), fetches, targets)
        try:
            got, error = plans[key].run(*feeds.values()), None
        except keel_abi.KeelError as e:
            got, error = None, e
        where = f"round {round} level {level} strict {strict} fetches {fetches}\n{text}\n{error}"
        assert printed(context) == lines, where
        assert (error.node if error else None) == failed, where
        for name, value in state.items():
            np.testing.assert_array_equal(variables[name].read(), value, err_msg=where)
        for g, w in zip(got or [], want or []):
            np.testing.assert_array_equal(g, w, err_msg=where)


# ---- saving
def test_a_saved_module_has_the_values_of_now(context, device, tmp_path):
    module = context.parse(ORDER)
    module.session(device).prepare().run(f32(5, 6), np.bool_(True))
    module.save(tmp_path / "m.keel")
    module.variable("w").assign(f32(0, 0))
    again = context.load(tmp_path / "m.keel")
    np.testing.assert_array_equal(again.variable("w").read(), [10, 12])
    assert again.to_text() == module.to_text().replace("[0.0, 0.0]", "[10.0, 12.0]")
    again.session(device).prepare().run(f32(1, 1), np.bool_(True))
    np.testing.assert_array_equal(again.variable("w").read(), [2, 2])
    again.save(tmp_path / "m.keel")  # over the file that is mapped
    np.testing.assert_array_equal(context.load(tmp_path / "m.keel").variable("w").read(), [2, 2])


def test_info_tells_variables_and_effects(context):
    info = context.parse(ORDER).info()
    assert info["variables"] == [{"name": "w", "type": "f32[2]", "bytes": 8}]
    assert info["graphs"][0]["effects"] == {"reads": ["w"], "writes": ["w"], "prints": True, "may_stop": True}


# ---- bad input
@pytest.mark.parametrize("line,message", [
    ("assign(w, 1.5)", "has 0 dims"), ("assign(v, x)", "no variable 'v'; it has 'w'"), ("y = read(x)", "no variable 'x'"),
    ("assign(w, ok)", "ok is bool|is bool"), ("assign(w)", "takes 1 operands, got 0"), ("read(w, x)", "takes 0 operands"),
    ("y = assign(w, x)", "has 0 results"), ("y: read(w)", "has results"), ("assert(x)", "is f32 but must be bool"),
    ("assign_add(b, true)", "must be one of"), ("y = read(w){var=3}", "line|expected|var"),
    ("print(x){edge=-2}", "edge = -2"), ("print(x){stream=tape}", "err, out"), ("a: print(x)\n  a: print(x)", "already"),
    ("read()", "a variable")])
def test_bad_programs_are_refused(context, line, message):
    text = ORDER.replace("  assign(w, x)", "  " + line).replace("fn @", "var b: bool[] = false\nfn @")
    with pytest.raises(keel_abi.KeelError, match=message):
        context.parse(text)
