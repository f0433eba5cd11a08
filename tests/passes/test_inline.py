"""Which calls and bodies of ops are inlined and which stay: devices that accept them, effects, sizes, and names in errors."""
import keel_abi
import numpy as np
import pytest
from optimizer import dump, optimize
from operands import same_bits

VAR = "var v: f32[] = [2.0]\n"
SMALL = "fn @f(a: f32[]) -> f32[] {\n  b = tanh(a)\n  return b\n}\n"


def function(name, nodes):
    lines = "\n".join(f"  n{i + 1} = neg(n{i})" for i in range(nodes))
    return f"fn @{name}(n0: f32[]) -> f32[] {{\n{lines}\n  return n{nodes}\n}}\n"


def text(head, body):
    return f"keel 1\n{head}fn @main(x: f32[]) {{\n{body}\n}}\nentry main = @main (x)\n"


def optimized(tmp_path, head, body, device="reference"):
    """Returns @main after the pass, and its results before and after; a second run must change nothing."""
    before, after, again = (tmp_path / f"{name}.keelt" for name in ("before", "after", "again"))
    before.write_text(text(head, body))
    optimize(before, after, device, only="inline")
    optimize(after, again, device, only="inline")
    assert dump(again) == dump(after), "a second run changed something"
    return dump(before), dump(after), dump(after).split("fn @main(")[1]


CASES = [
    ("a device that takes it", "claims:0", SMALL, "return call(x){body=@f}", 1),
    ("a device that does not", "claims:2", SMALL, "return call(x){body=@f}", 0),
    ("a write", "reference", VAR + "fn @f(a: f32[]) -> f32[] {\n  assign(v, a)\n  return a\n}\n", "return call(x){body=@f}", 1),
    ("a print", "reference", "fn @f(a: f32[]) -> f32[] {\n  print(a)\n  return a\n}\n", "return call(x){body=@f}", 1),
    ("a read", "reference", VAR + "fn @f(a: f32[]) -> f32[] {\n  r = read(v)\n  b = mul(a, r)\n  return b\n}\n",
     "a = call(x){body=@f}\nassign(v, x)\nb = call(x){body=@f}\nreturn a + b", 0),
    ("large, once", "reference", function("f", 33), "return call(x){body=@f}", 0),
    ("large, twice", "reference", function("f", 33), "return call(call(x){body=@f}){body=@f}", 2),
    ("small, twice", "reference", function("f", 32), "return call(call(x){body=@f}){body=@f}", 0),
]


def fits(after, left):
    """The number of calls left in @main."""
    assert after.split("fn @main(")[1].count("= call(") == left, after


@pytest.mark.parametrize("device, head, body, left", [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_counts(context, tmp_path, device, head, body, left):
    before, after, _ = optimized(tmp_path, head, body, device)
    fits(after, left)
    got = [np.array(context.parse(text).session("reference", level=0).prepare().run(np.float32(1.5))[0]) for text in (before, after)]
    assert same_bits(*got)


OPS = [  # and the launches of the device cpu, with only this pass
    ("einsum(a, b){x=[0, 1], y=[1, 2], to=[0, 2]}", ["matmul"]),
    ("einsum(a, c){x=[0, 1], y=[1, 2], to=[0, 2]}", ["matmul"]),  # whether n is 3 is checked in each run
    ("reduce_std(a){axes=[1]}", ["reduce_mean", "sub", "mul", "reduce_sum", "div", "sqrt"]),  # of a body's body
    ("log_softmax(a)", ["log_softmax"]),  # the device has it
    ("mean_squared_error(a, a + 2)", ["add", "sub", "mul", "reduce_mean"]),
]


def launches(report):
    return [launch["op"] for launch in report["launches"]]


@pytest.mark.parametrize("body, ops", OPS, ids=[body.split("(")[0] + str(i) for i, (body, _) in enumerate(OPS)])
def test_ops_that_the_device_lacks(context, tmp_path, body, ops):
    """Files keep them; a plan has their bodies, with the same bits."""
    source = f"keel 1\nfn @main(a: f32[2, 3], b: f32[3, m], c: f32[n, m]) {{\n  return {body}, c\n}}\nentry main = @main (a, b, c)\n"
    before, after = tmp_path / "before.keelt", tmp_path / "after.keelt"
    before.write_text(source)
    optimize(before, after, "cpu", only="inline")
    assert dump(after) == dump(before)
    inputs = [np.random.default_rng(3).normal(size=shape).astype("f4") for shape in ((2, 3), (3, 4), (3, 4))]
    plan = context.parse(source).session("cpu", passes="inline").prepare()
    assert launches(plan.report(*inputs)) == ops
    wanted = context.parse(source).session("cpu", level=0).prepare().run(*inputs)[0]
    assert same_bits(np.array(plan.run(*inputs)[0]), np.array(wanted))


def test_sizes_that_a_body_does_not_check(context):
    source = ("keel 1\nfn @main(a: f32[2, n], b: f32[m]) {\n  return einsum(a, b){x=[0, 1], y=[2], to=[]}, einsum(a, b){x=[0, 1], y=[1], to=[0, 1]}\n}\n"
              "entry main = @main (a, b)\n")
    plan = context.parse(source).session("cpu").prepare()
    plan.run(np.ones((2, 3), "f4"), np.ones(3, "f4"))
    for m in (1, 4):
        with pytest.raises(keel_abi.KeelError, match="differ in the size of a label"):
            plan.run(np.ones((2, 3), "f4"), np.ones(m, "f4"))


def test_other_passes_see_the_body(context):
    """Products that einsum consists of are part of an attention, which is one launch."""
    source = ("keel 1\nfn @main(q: f32[b, l, 3, 64], k: f32[b, s, 3, 64], v: f32[b, s, 3, 64]) {\n"
              "  scores = softmax(einsum(q, k){x=[0, 1, 2, 3], y=[0, 4, 2, 3], to=[0, 2, 1, 4]} * 0.125)\n"
              "  return einsum(scores, v){x=[0, 2, 1, 4], y=[0, 4, 2, 3], to=[0, 1, 2, 3]}\n}\nentry main = @main (q, k, v)\n")
    q, k, v = (np.random.default_rng(i).normal(size=(2, rows, 3, 64)).astype("f4") for i, rows in enumerate((5, 40, 40)))
    plan = context.parse(source).session("cpu").prepare()
    assert launches(plan.report(q, k, v)) == ["call"]
    scores = np.exp(np.einsum("bqhd,bkhd->bhqk", q, k, dtype="f8") * 0.125)
    want = np.einsum("bhqk,bkhd->bqhd", scores / scores.sum(-1, keepdims=True), v)
    np.testing.assert_allclose(np.array(plan.run(q, k, v)[0]), want, rtol=1e-4, atol=1e-5)


def test_a_tower_of_calls_ends(tmp_path):
    """Each function calls the next one twice: inlined completely, 2**13 nodes."""
    tower = "fn @f0(a: f32[]) -> f32[] {\n  b = tanh(a)\n  return b\n}\n"
    for i in range(1, 14):
        tower += f"fn @f{i}(a: f32[]) -> f32[] {{\n  b = call(a){{body=@f{i - 1}}}\n  c = call(b){{body=@f{i - 1}}}\n  return c\n}}\n"
    main = optimized(tmp_path, tower, "return call(x){body=@f13}")[2]
    assert 2000 < main.count(" = ") <= 4096


@pytest.mark.parametrize("level", [0, 2])
def test_failures_are_told_by_the_same_names(context, level):
    inner = "fn @g(a: f32[3], i: i32[1]) -> f32[1] {\n  return neg(gather(a, i))\n}\n"
    text = (f"keel 1\n{inner}fn @f(a: f32[3], i: i32[1]) -> f32[1] {{\n  k = call(a, i){{body=@g}}\n  return exp(k)\n}}\n"
            "fn @main(x: f32[3], i: i32[1], j: i32[1]) {\n  p = call(x, i){body=@f}\n  q = call(x, j){body=@f}\n  return p + q\n}\n"
            "entry main = @main (x, i, j)\n")
    plan = context.parse(text).session("reference", level=level).prepare()
    for i, j, name in ((7, 0, "p/k/gather"), (0, 7, "q/k/gather")):
        with pytest.raises(keel_abi.KeelError, match=f'gather "{name}": index 7'):
            plan.run(np.ones(3, np.float32), np.int32([i]), np.int32([j]))
