"""Control flow: cond, switch, while and scan on every device and level against the same programs in Python; errors; stopping;
many threads; bodies from C; observed runs."""
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import effects_model
import keel_abi
import numpy as np
import pytest
from control_cases import CASES, FIBONACCI, POWERS, SWITCH, random_program
from keel_abi import KeelError
from observed import run_observed


def plan_of(context, text, device, **options):
    return context.parse(text if text.startswith("keel") else "keel 1\n" + text).session(device, **options).prepare()


def check(got, want, exact=True):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        w = np.asarray(w)
        assert g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_array_equal(g, w) if exact else np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("level", [0, 2, 3])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_cases(context, device, case, level):
    _, text, inputs, model = case
    plan = plan_of(context, text, device, level=level)
    for _ in range(2):  # the second run is a warm one
        check(plan.run(*inputs), model(*inputs), exact="matmul" not in text)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(context, device, seed):
    text, model = random_program(seed)
    module = context.parse(text)
    assert context.parse(module.to_text()).to_text() == module.to_text()
    for level in (0, 1, 2, 3):
        plan = module.session(device, level=level).prepare()
        for n in (0, 1, 5):
            a, x = np.array(seed % 7 - 2, np.int32), np.arange(n, dtype=np.int32) * 3 - 4
            check(plan.run(a, x), model(a, x))


def test_files(context, device, tmp_path):
    for seed in range(10):
        text, model = random_program(seed)
        module = context.parse(text)
        module.save(tmp_path / "program.keel")
        loaded = context.load(tmp_path / "program.keel")
        assert loaded.to_text() == module.to_text()
        a, x = np.array(3, np.int32), np.arange(4, dtype=np.int32)
        check(loaded.session(device, graph="main").prepare().run(a, x), model(a, x))


def test_threads_share_a_plan(context, device):
    text, model = random_program(5)
    plan = plan_of(context, text, device)

    def one(n):
        a, x = np.array(n, np.int32), np.arange(n % 6, dtype=np.int32)
        for _ in range(20):
            check(plan.run(a, x), model(a, x))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(16)))


ENDLESS = """
fn @main(x: f32[]) -> f32[] {
  a = while(x){carry=1} test(a) { yield true } body(a) { %s }
  return a
}"""
BODIES = {"empty": "yield a", "one": "b = a + 1.0\nyield b"}


@pytest.mark.parametrize("body", BODIES)
def test_an_endless_loop_is_stopped(device, body):
    context = keel_abi.Context()
    text = ENDLESS % BODIES[body]
    with pytest.raises(KeelError, match="the time limit is 50 ms") as e:
        plan_of(context, text, device, timeout_ms=50).run(np.float32(1))
    assert e.value.code == "CANCELLED"
    plan = plan_of(context, text, device)
    threading.Thread(target=lambda: (time.sleep(0.05), keel_abi.lib().keel_context_cancel(context, 1))).start()
    with pytest.raises(KeelError, match="by keel_context_cancel"):
        plan.run(np.float32(1))
    keel_abi.lib().keel_context_cancel(context, 0)
    check(plan_of(context, POWERS, device).run(np.float32(2), np.int32(3)), [np.int32(3), np.float32(8)])


@pytest.mark.parametrize("index", [-1, 3, 1 << 40])
def test_no_branch_of_that_number(context, device, index):
    plan = plan_of(context, SWITCH, device)
    with pytest.raises(KeelError, match=rf'switch "a": index {index} is not in \[0, 3\)') as e:
        plan.run(np.array(index, np.int64), np.zeros(2, np.float32))
    assert e.value.code == "RANGE" and e.value.op == "switch" and e.value.node == "a"
    check(plan.run(np.array(2, np.int64), np.ones(2, np.float32)), [np.ones(2, np.float32)] * 2)


def test_a_body_that_fails_is_named(context, device):
    plan = plan_of(context, """
fn @main(x: f32[3], n: i32[]) -> f32[] {
  i, s = while(0, 0.0, x, n){carry=2}
    test(i, s, x, n) { t = i < n
      yield t }
    body(i, s, x, n) { v = gather(x, i)
      u = s + v
      j = i + 1
      yield j, u }
  return s
}""", device)
    x = np.array([1, 2, 4], np.float32)
    check(plan.run(x, np.int32(3)), [np.float32(7)])
    with pytest.raises(KeelError, match="3 is not in") as e:
        plan.run(x, np.int32(5))
    assert e.value.code == "RANGE" and e.value.op == "gather" and e.value.node == "main.i.body/v"
    check(plan.run(x, np.int32(2)), [np.float32(3)])


def test_built_by_hand(context, device):
    """The C functions alone: the sum of squares of 0 to n-1 by a while of two bodies."""
    module = context.module()
    test, body, main = (module.graph(name) for name in ("test", "body", "main"))
    a, b, c = (test.param(n, np.int32, []) for n in "abc")
    test.result(None, test.node("less", a, c))
    a, b, c = (body.param(n, np.int32, []) for n in "abc")
    one = body.constant(np.int32(1))
    body.result(None, body.node("add", a, one))
    body.result(None, body.node("add", b, body.node("mul", a, a)))
    n = main.param("n", np.int32, [])
    zero = main.constant(np.int32(0))
    i, total = main.node("while", zero, zero, n, n_out=2, test=test.number, body=body.number, carry=2)
    big = main.node("greater", total, main.constant(np.int32(10)))
    yes, no = module.graph("yes"), module.graph("no")
    yes.result(None, yes.param("x", np.int32, []))
    no.result(None, no.node("neg", no.param("x", np.int32, [])))
    main.result("total", total)
    main.result("signed", main.node("cond", big, total, then=yes.number, **{"else": no.number}))
    main.result("other", main.node("switch", i, total, branches=[yes.number, no.number, yes.number]))
    module.entry("main", main)
    plan = module.session(device).prepare()
    check(plan.run(np.int32(2)), [np.int32(1), np.int32(-1), np.int32(1)])
    check(module.session(device).run({"n": np.int32(1)}, ["total", "signed"]), [np.int32(0), np.int32(0)])
    with pytest.raises(KeelError, match="it cannot be changed"):
        body.param("more", np.int32, [])


def test_an_observer_sees_steps_of_bodies(context, device):
    plan = plan_of(context, FIBONACCI, device, observe=1)
    seen = []
    run_observed(plan, lambda event: seen.append((event.node.decode(), event.op.decode(), event.index)), np.int32(3))
    names = [name for name, _, _ in seen]
    assert names.count("main.k.body/s") == 3 and names.count("main.k.test/t") == 4 and names[-1] == "k"
    launches = plan.report()["launches"]
    for name, op, index in seen:
        assert (launches[index]["node"], launches[index]["op"]) == (name, op)
    assert [row.get("body_of") for row in launches] == [None] + ["k"] * (len(launches) - 1)


REFUSED = {
    "cond(p, x) then(x) { yield x } else(x) { yield x, x }":
        r"cond: else \(@main.r.else\) returns 2 results but then \(@main.r.then\) returns 1",
    "cond(p, x) then(x) { yield x } else(x) { yield 1 }":
        r"result 0 of else \(@main.r.else\) is i32\[\] but that of then \(@main.r.then\) is f32\[n\]",
    "cond(x, x) then(x) { yield x } else(x) { yield x }": r"p has 1 dims|p is f32 but must be bool",
    "cond(p, x) then(x) { yield x }": r"attribute else \(graph\) must be given",
    "cond(p, x) then(x) { yield x } then(x) { yield x }": "a second body 'then'",
    "cond(p, x) then(x, y) { yield x }": "the body has only 1 parameters",
    "cond(p, x) then() { yield 1 }": "the body has 1 parameters, but 0 names",
    "cond(p, x) then(x) { y = add(x, k) yield y } else(x) { yield x }": "no value 'k'",
    "cond(p, x) then(x) { }": "expected yield",
    "switch(k, x)": r"attribute branches \(graph\[\]\) must be given",
    "switch(k, x){branches=[]}": "attribute branches is empty",
    "while(x, k){carry=1} test(x, k) { yield k } body(x, k) { yield x }": r"must return one bool\[\], but returns i32\[\]",
    "while(x, k){carry=1} test(x, k) { yield true } body(x, k) { yield k }":
        r"result 0 of body \(@main.r.body\) is i32\[\] but the carried operand x\[0\] is f32\[n\]",
    "while(x, k){carry=3} test(x, k) { yield true } body(x, k) { yield x }": "carry is 3 but must be from 0 to 2",
    "while(x, k){carry=2} test(x, k) { yield true } body(x, k) { yield x }": "returns 1 results but carry is 2",
    "while(x, k) test(x, k) { yield true } body(x, k) { yield x }": r"attribute carry \(i64\) must be given",
    "scan(x, k){carry=1} body(x, e) { yield x }": r"x\[1\] has no dim to scan over",
    "scan(x){carry=1} body(x) { yield x }": "set the attribute length",
    "scan(x, z){} body(x, e) { yield x }": r"x\[1\] has m entries but x\[0\] has n",
    "scan(x){length=-2} body(x) { yield x }": "attribute length is -2",
    "scan(x){carry=1, invariants=1, length=2} body(x) { yield x }": "invariants is 1 but must be from 0 to 0",
}


@pytest.mark.parametrize("call", REFUSED, ids=lambda c: c[:50])
def test_refused(context, call):
    with pytest.raises(KeelError, match=REFUSED[call]) as e:
        context.parse(f"keel 1\nfn @main(p: bool[], x: f32[n], z: f32[m], k: i32[]) {{\n  r = {call}\n  return r\n}}\n")
    assert e.value.code in ("INVALID", "NOT_FOUND") and "3:" in e.value.message


def test_bodies_do_not_call_themselves(context):
    with pytest.raises(KeelError, match="'f'"):
        context.parse("keel 1\nfn @f(p: bool[]) -> bool[] {\n  y = cond(p, p){then=@f, else=@f}\n  return y\n}\n")


def test_bodies_nest_32_deep(context):
    def nested(depth):
        return "yield p" if not depth else f"q = cond(p, p) then(p) {{ {nested(depth - 1)} }} else(p) {{ yield p }}\nyield q"
    text = "keel 1\nfn @main(p: bool[]) -> bool[] {\n%s\n}\n"
    module = context.parse(text % (nested(32)[:-len("yield q")] + "return q"))
    assert context.parse(module.to_text()).to_text() == module.to_text()
    check(module.session("reference").prepare().run(np.array(True)), [np.array(True)])
    with pytest.raises(KeelError, match="nest"):
        context.parse(text % (nested(200)[:-len("yield q")] + "return q"))


def test_effects_in_bodies_happen_in_order(device):
    context, lines = keel_abi.Context(), []
    context.print_hook(lambda stream, line: lines.append(line))
    module = context.parse(effects_model.IN_CONTROL)
    assert context.parse(module.to_text()).to_text() == module.to_text()
    for level in (0, 2):
        effects_model.check_control(module.session(device, level=level).prepare(), module.variable("n"), lines)
    context.print_hook(None)


@pytest.mark.parametrize("level", [0, 2])
def test_loops_read_and_write_variables(device, level):
    context, lines = keel_abi.Context(), []
    context.print_hook(lambda stream, line: lines.append(line))
    module = context.parse(effects_model.IN_LOOP)
    effects_model.check_loop(module.session(device, level=level).prepare(), module.variable("w"), lines)
    context.print_hook(None)


def test_text_of_branches_with_a_named_result(context):
    """They are written as functions, all or none."""
    text = """keel 1

fn @negative(x: f32[]) -> f32[] {
  y = neg(x)
  return y
}

fn @same(x: f32[]) -> named: f32[] {
  return x
}

fn @main(k: i32[], x: f32[]) -> f32[] {
  y = switch(k, x){branches=[@negative, @same]}
  return y
}

entry main = @main (k, x) -> (_)
"""
    again = context.parse(context.parse(text).to_text())
    plan = again.session("reference").prepare()
    assert [float(plan.run(np.int32(k), np.float32(3))[0]) for k in (0, 1)] == [-3, 3]


def test_a_call_whose_body_has_no_nodes(context, device):
    text = """keel 1
fn @pass(a: f32[n], b: f32[n]) -> f32[n], f32[n] {
  return b, a
}

fn @main(x: f32[n], y: f32[n]) {
  p, q = call(x, y){body=@pass}
  return p, q
}
entry main = @main
"""
    for n in (0, 1, 3):
        x, y = np.arange(n, dtype=np.float32), np.arange(n, dtype=np.float32) + 10
        p, q = context.parse(text).session(device).prepare().run(x, y)
        np.testing.assert_array_equal(p, y)
        np.testing.assert_array_equal(q, x)
