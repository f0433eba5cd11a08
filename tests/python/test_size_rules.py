"""Size rules: `where b in 2..64, b % 8 == 0` after a graph's signature: kept in text and file, checked when a run binds its
sizes, for each kind of run."""
import numpy as np
import pytest

import keel_abi
from keel_abi import KeelError
from tested_devices import DEVICES

TEXT = """keel 1

fn @main(x: f32[b, 2], y: f32[n]) -> f32[b, 2], f32[n] where %s {
  z = add(x, x) : f32[b, 2]
  w = neg(y) : f32[n]
  return z, w
}

entry main = @main (x, y) -> (_, _)
"""


def run(plan, b, n=3):
    x, y = np.ones((b, 2), np.float32), np.ones(n, np.float32)
    z, w = plan.run(x, y)
    np.testing.assert_array_equal(z, x + x)
    np.testing.assert_array_equal(w, -y)


@pytest.mark.parametrize("rule, good, bad", [
    ("b in 2..16", [2, 16], [0, 1, 17]), ("b in 4..", [4, 100], [3]), ("b in ..4", [0, 4], [5]),
    ("b % 8 == 0", [0, 8, 64], [1, 12]), ("b <= 4", [4], [5]), ("b >= 4", [4], [3]), ("b < 4", [3], [4]), ("b > 4", [5], [4]),
    ("b in 2..64, b % 8 == 0", [8, 64], [0, 4, 72]), ("b == n + 1", [4], [3]), ("max(b, n) < 9, n == 3", [8], [9]),
], ids=str)
@pytest.mark.parametrize("device", DEVICES)
def test_runs_obey_rules(device, rule, good, bad):
    context = keel_abi.Context()
    module = context.parse(TEXT % rule)
    plan = module.session(device).prepare()
    for b in good:
        run(plan, b)
    for b in bad:
        with pytest.raises(KeelError, match=r"does not hold of \"[xy]\", which is f32\[") as failure:
            run(plan, b)
        assert any(f'"{r}"' in str(failure.value) for r in rule.split(", ")) or "max" in rule
    run(plan, good[0])


def test_text_and_file_keep_rules(tmp_path):
    context = keel_abi.Context()
    module = context.parse(TEXT % "b in 2..64, max(b,\n  n) % 4 == 0")
    text = module.to_text()
    assert " where b in 2..64, max(b, n) % 4 == 0 {" in text
    assert context.parse(text).to_text() == text
    module.save(str(tmp_path / "rules.keel"))
    loaded = context.load(str(tmp_path / "rules.keel"))
    assert loaded.to_text() == text
    plan = loaded.session("reference").prepare()
    run(plan, 4)
    with pytest.raises(KeelError, match=r'"b in 2..64" does not hold of "x", which is f32\[b, 2\]: with these sizes 68 is '
                                        'greater than 64'):
        run(plan, 68)


@pytest.mark.parametrize("rule, message", [
    ("k in 2..4", 'no size is named k; the sizes are b, n'), ("b", "expected `in` with a range"), ("b in 4", "expected a range"),
    ("b in ..", "expected a range"), ("b in 2..n n", "expected an operator"), ("b == ", "expected a number"),
    ("b // 0 == 1", "divided by zero"), ("b in 1.." + "9" * 1100, "longer than")])
def test_bad_rules_are_named_with_their_place(rule, message):
    with pytest.raises(KeelError) as failure:
        keel_abi.Context().parse(TEXT % rule)
    assert message in str(failure.value) and "3:62: rule " in str(failure.value)
    assert "b % 8 == 0" in str(failure.value)  # the hint


def test_what_is_cut_off_has_no_rule():
    context = keel_abi.Context()
    module = context.parse(TEXT % "b in 2..4, n % 2 == 0")
    plan = module.session("reference").prepare(feeds=["y"], fetches=["w"])
    np.testing.assert_array_equal(plan.run(np.ones(4, np.float32))[0], -np.ones(4))
    with pytest.raises(KeelError, match="n % 2 == 0"):
        plan.run(np.ones(3, np.float32))


def test_placed_graphs_keep_rules():
    context = keel_abi.Context()
    module = context.parse(TEXT % "b in 2..4")
    kv = (keel_abi.Kv * 1)((b"place", b"w=reference"))
    plan = module.make(keel_abi.Session, "keel_session_new", b"cpu", kv, 1).prepare()
    run(plan, 3)
    with pytest.raises(KeelError, match="b in 2..4"):
        run(plan, 5)


# The last is checked for an op of a body, the others for a composite op, an op and a declared type.
@pytest.mark.parametrize("node, op", [
    ("y = matmul_blocks(x, w, s)", "matmul_blocks"), ("y = add(x, s)", "add"), ("y = transpose(x) {perm=[1, 0]} : f32[2, b]", "transpose"),
    ("y = cond(c, x, s)\n then(u, v) { t = add(u, v) yield t }\n else(p, q) { yield p }", "add")])
@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_a_size_that_does_not_fit_names_the_node(node, op, device):
    text = f"keel 1\nfn @f(c: bool[], x: f32[b, d], w: u8[2, 1, n], s: f32[k, 1]) {{\n {node}\n return y\n}}\nentry main = @f (c, x, w, s)\n"
    plan = keel_abi.Context().parse(text).session(device).prepare()
    with pytest.raises(KeelError, match=r'node "(y|f\.y\.then/t)": .*with these sizes') as failure:
        plan.run(np.array(True), np.zeros((3, 4), np.float32), np.zeros((2, 1, 1), np.uint8), np.zeros((2, 1), np.float32))
    assert failure.value.node == "y" and failure.value.code == "INVALID"
    assert op in str(failure.value) or "declared" in str(failure.value)


CALL = """keel 1
fn @part(x: f32[a], y: f32[b]) -> f32[a] {
  v0 = add(x, y) : f32[a]
  v1 = neg(v0) : f32[a]
  return v1
}
fn @main(x: f32[a], y: f32[b]) -> z: f32[a] {
  z = call(x, y){body=@part} : f32[a]
  return z
}
entry main = @main (x, y) -> (z)
"""


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("device", DEVICES)
def test_a_size_that_does_not_fit_in_an_inlined_body_names_the_call(device, level):
    plan = keel_abi.Context().parse(CALL).session(device, level=level).prepare()
    np.testing.assert_array_equal(plan.run(np.ones(3, np.float32), np.ones(3, np.float32))[0], np.full(3, -2, np.float32))
    with pytest.raises(KeelError, match="with these sizes") as failure:
        plan.run(np.ones(3, np.float32), np.ones(4, np.float32))
    assert level > 0 or failure.value.node.startswith("z")
