"""Concurrent launches of one run (session option "lanes"): which launches overlap, results are unchanged, and failures, time and
memory limits work as in serial runs. tests/proof checks the same on random graphs."""
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from keel_abi import KeelError

CELL = """
      u = matmul(s, w)
      t = tanh(add(u, v))
      yield t
    }
"""
TWO = f"""keel 1
fn @main(x: f32[n, 1, 32], w: f32[32, 32]) -> f32[1, 32], f32[1, 32] {{
  z = slice(x){{stop=[1, 1, 32]}}
  o = reshape(z){{to=[1, 32]}}
  a = scan(o, w, x){{carry=1, invariants=1}}
    body(s, w, v) {{{CELL}  b = scan(o, w, x){{carry=1, invariants=1, reverse=true}}
    body(s, w, v) {{{CELL}  return a, b
}}
entry main = @main (x, w) -> (a, b)
"""


def two(n):
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, 1, 32)).astype(np.float32), rng.standard_normal((32, 32)).astype(np.float32) / 6


def plan_of(context, text, **options):
    return context.parse(text).session("cpu", **{"threads": 2, **options}).prepare()


def test_loops_that_do_not_need_each_other_run_side_by_side(context):
    plan = plan_of(context, TWO)
    assert [sorted(section) for section in plan.report(*two(50))["lanes"]] == [["a", "b", "z"]]
    in_turn = plan_of(context, TWO, lanes="off")
    assert in_turn.report(*two(50))["lanes"] == []
    for n in (50, 7, 50, 200):
        for got, wanted in zip(plan.run(*two(n)), in_turn.run(*two(n)), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("why, text, sizes, options", [
    ("too short", TWO, two(1), {}),
    ("one thread", TWO, two(50), {"threads": 1}),
    ("each reads the one before", """keel 1
fn @main(x: f32[n, 1, 32], w: f32[32, 32]) -> f32[1, 32] {
  y = matmul(w, w)
  q = matmul(y, w)
  r = matmul(q, y)
  s = slice(r){stop=[1, 32]}
  return s
}
entry main = @main (x, w) -> (s)
""", two(50), {}),
    ("large products use all threads", """keel 1
fn @main(x: f32[n, 1, 32], w: f32[32, 32]) -> f32[1024, 1024], f32[1024, 1024] {
  k = broadcast_to(1.0){dims=[1024, 1024]}
  m = broadcast_to(slice(w){stop=[1, 1]}){dims=[1024, 1024]}
  a = matmul(m, m)
  b = matmul(m, k)
  return a, b
}
entry main = @main (x, w) -> (a, b)
""", two(50), {}),
])
def test_what_would_not_gain_runs_in_turn(context, why, text, sizes, options):
    assert plan_of(context, text, **options).report(*sizes)["lanes"] == [], why


def test_a_failure_is_the_one_that_runs_in_turn_tell(context):
    text = """keel 1
fn @main(x: f32[4], i: i32[], j: i32[]) -> f32[], f32[], f32[4] {
  ok = neg(x)
  a = gather(x, i)
  b = gather(x, j)
  return a, b, ok
}
entry main = @main (x, i, j) -> (a, b, ok)
"""
    x = np.arange(4, dtype=np.float32)
    plans = [plan_of(context, text, lanes=how) for how in ("off", "all")]
    for i, j in ((9, 1), (1, 9), (9, 8)):
        told = []
        for plan in plans:
            with pytest.raises(KeelError) as e:
                plan.run(x, np.int32(i), np.int32(j))
            told.append((e.value.code, e.value.message, e.value.node))
        assert told[0] == told[1]
    for plan in plans:  # and goes on
        assert [y.tolist() for y in plan.run(x, np.int32(1), np.int32(2))] == [1, 2, [-0.0, -1, -2, -3]]


def test_a_failure_in_a_body_is_told_with_its_name(context):
    text = TWO.replace("t = tanh(add(u, v))", "p = gather(v, i){axis=1}\n      t = mul(p, add(u, v))").replace(
        "carry=1, invariants=1", "carry=1, invariants=2").replace("(o, w, x)", "(o, w, i, x)").replace("(s, w, v)", "(s, w, i, v)").replace(
        "w: f32[32, 32])", "w: f32[32, 32], i: i32[1])").replace("(x, w) ->", "(x, w, i) ->")
    told = []
    for how in ("off", "auto"):
        plan = plan_of(context, text, lanes=how)
        assert bool(plan.report(*two(50), np.zeros(1, np.int32))["lanes"]) == (how == "auto")
        with pytest.raises(KeelError) as e:
            plan.run(*two(50), np.full(1, 99, np.int32))
        told.append((e.value.code, e.value.message, e.value.node))
        plan.run(*two(50), np.zeros(1, np.int32))
    assert told[0] == told[1]


ENDLESS = """keel 1
fn @main(x: f32[]) -> f32[], f32[] {
  a = while(x){carry=1}
    test(a) { yield true }
    body(a) { b = erf(a)
      yield b }
  c = while(x){carry=1}
    test(c) { yield true }
    body(c) { d = tanh(c)
      yield d }
  return a, c
}
entry main = @main (x) -> (a, c)
"""


def test_a_limit_of_time_ends_both(context):
    plan = plan_of(context, ENDLESS, lanes="all", timeout_ms=150)
    assert plan.report(np.float32(1))["lanes"]
    start = time.monotonic()
    with pytest.raises(KeelError, match="150 ms"):
        plan.run(np.float32(1))
    assert time.monotonic() - start < 20


def test_a_limit_of_memory_that_only_lanes_would_break_turns_them_off(context):
    lines = "\n".join(f"  a{i} = exp(add(x, {i}.0))\n  b{i} = reduce_sum(a{i})" for i in range(8))
    text = f"""keel 1
fn @main(x: f32[4096]) -> f32[] {{
{lines}
  c = add_n({", ".join(f"b{i}" for i in range(8))})
  return c
}}
entry main = @main (x) -> (c)
""".replace("add_n(" + ", ".join(f"b{i}" for i in range(8)) + ")", "+".join(f"b{i}" for i in range(8)))
    x = np.linspace(0, 1, 4096, dtype=np.float32)
    reports = {how: plan_of(context, text, lanes=how, level=0).report(x) for how in ("off", "all")}
    assert reports["all"]["lanes"] and reports["all"]["arena_bytes"] > 4 * reports["off"]["arena_bytes"]
    enough = reports["off"]["arena_bytes"] + reports["off"]["scratch_bytes"] + reports["off"]["result_bytes"]
    plan = plan_of(context, text, lanes="all", level=0, memory=enough)
    assert plan.report(x)["lanes"] == []
    np.testing.assert_array_equal(plan.run(x)[0], plan_of(context, text, lanes="all", level=0).run(x)[0])


def test_effects_keep_their_order(context):
    text = """keel 1
var v: f32[] = 0.0
fn @main(x: f32[]) -> f32[], f32[], f32[] {
  a = read(v)
  p = exp(x)
  q = add(a, p)
  assign(v, q)
  b = read(v)
  r = exp(b)
  s = add(r, a)
  assign_add(v, s)
  c = read(v)
  return a, b, c
}
entry main = @main (x) -> (a, b, c)
"""
    told = []
    for how in ("off", "all"):
        plan = plan_of(context, text, lanes=how)
        told.append([[float(y) for y in plan.run(np.float32(0.25))] for _ in range(3)])
    assert told[0] == told[1] and told[0][1][0] == told[0][0][2]


def test_many_threads_run_one_plan(context):
    plan = plan_of(context, TWO)
    wanted = plan_of(context, TWO, lanes="off").run(*two(50))
    wrong = []

    def work():
        for _ in range(20):
            wrong.extend(not np.array_equal(a, b) for a, b in zip(plan.run(*two(50)), wanted, strict=True))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(wrong) == 160 and not any(wrong)


def test_a_wrong_word_is_refused(context):
    with pytest.raises(KeelError, match='option "lanes": got "yes", expected off, auto or all'):
        plan_of(context, TWO, lanes="yes")


def test_scratch_is_in_turn_where_lanes_are_refused(context):
    """Each loop carries 16 MiB in scratch memory; run concurrently both need theirs, which exceeds the limit."""
    scan = """scan(x, y){carry=1}
    body(s, v) {
      t = add(s, v)
      u = exp(t)
      yield t, u
    }"""
    text = f"""keel 1
fn @main(x: f32[4194304], y: f32[2, 1]) -> f32[], f32[] {{
  a, p = {scan}
  b, q = {scan.replace("exp", "tanh")}
  m = reduce_max(add(a, slice(p){{stop=[1, 4194304]}}))
  n = reduce_max(add(b, slice(q){{stop=[1, 4194304]}}))
  return m, n
}}
entry main = @main (x, y) -> (m, n)
"""
    x, y = np.zeros(1 << 22, np.float32), np.array([[1], [2]], np.float32)
    report = plan_of(context, text, lanes="off", level=0).report(x, y)
    enough = sum(report[key] for key in ("arena_bytes", "scratch_bytes", "result_bytes"))
    plan = plan_of(context, text, lanes="all", level=0, memory=enough)
    assert plan_of(context, text, lanes="all", level=0).report(x, y)["scratch_bytes"] > report["scratch_bytes"]
    assert plan.report(x, y)["lanes"] == [] and plan.report(x, y)["scratch_bytes"] == report["scratch_bytes"]
    for _ in range(3):
        np.testing.assert_allclose([float(v) for v in plan.run(x, y)], [3 + np.exp(1), 3 + np.tanh(1)], rtol=1e-6)


YIELDS = "static int count; int sched_yield(void) { count++; return 0; } int yields(void) { return count; }"
ALONE = """import ctypes, os, sys
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # the team has one lane
from keel_abi import Context
from test_lanes import TWO, plan_of, two
plan, yields = plan_of(Context(threads=2), TWO), ctypes.CDLL(sys.argv[1]).yields
assert plan.report(*two(50))["lanes"]
before = yields()
for _ in range(20):
    plan.run(*two(50))
print(yields() - before)"""


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_lane_with_work_keeps_its_core(tmp_path):
    """Next to busy processes a core that was given up comes back after a time slice of milliseconds."""
    (tmp_path / "y.c").write_text(YIELDS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "y.so", tmp_path / "y.c"], check=True)
    here = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", ALONE, tmp_path / "y.so"], capture_output=True, text=True, check=True, timeout=60,
                          env={**os.environ, "LD_PRELOAD": str(tmp_path / "y.so"), "PYTHONPATH": f"{here}:{os.environ.get('PYTHONPATH', '')}"})
    assert done.stdout.split() == ["0"]
