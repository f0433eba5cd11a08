"""A `while` over scalars on the cpu device: machine code against the loop that the reference device runs node by node.

Each program is the body of one loop over carries a, b (f32), k (i32), p (bool) and so on, in graph text; short programs also have
an expected value computed here.
"""
import itertools
import time

import numpy as np
import pytest
from keel_abi import KeelError
from regions import cpu_class

LOOP = """keel 1
fn @main({params}) {{
  {names} = while({inits}){{carry={carry}}}
    test({names}{more}) {{
{test}
    }}
    body({names}{more}) {{
{body}
    }}
  return {names}
}}
entry main = @main ({feeds})
"""


def loop(params, carry, test, body):
    """`params`: "a: f32[]" and so on, the carried ones first; lines of the graphs, the last yields."""
    fed = [p.split(":")[0].strip() for p in params.split(", ")]
    own = [f"{n}_" for n in fed]
    indented = ["\n".join("      " + line.strip() for line in text.strip().splitlines()) for text in (test, body)]
    return LOOP.format(params=", ".join(p.replace(n, o, 1) for p, n, o in zip(params.split(", "), fed, own)), feeds=", ".join(own),
                       names=", ".join(fed[:carry]), more="".join(f", {n}" for n in fed[carry:]), inits=", ".join(own),
                       carry=carry, test=indented[0], body=indented[1])


COUNT = "go = less(k, n)\nyield go"
F32, F64, I32, I64, U32 = np.float32, np.float64, np.int32, np.int64, np.uint32
PROGRAMS = {
    "sum": (loop("k: i32[], a: f32[], n: i32[], x: f32[]", 2, COUNT, "j = k + 1\nb = a * 0.5\nc = b + x\nyield j, c"),
            [I32(0), F32(0), I32(1000), F32(1)]),
    "no iteration": (loop("k: i32[], a: f32[], n: i32[], x: f32[]", 2, COUNT, "j = k + 1\nc = a + x\nyield j, c"),
                     [I32(5), F32(3), I32(5), F32(1)]),
    "swapped": (loop("k: i64[], a: f64[], b: f64[], n: i64[]", 3, COUNT, "j = k + 1\nc = a + b\nyield j, b, c"),
                [I64(0), F64(0), F64(1), I64(60)]),
    "turned round": (loop("k: i32[], a: f32[], b: f32[], c: f32[], n: i32[]", 4, COUNT, "j = k + 1\nyield j, c, a, b"),
                     [I32(0), F32(1), F32(2), F32(3), I32(7)]),
    "one for two": (loop("k: i32[], a: f32[], b: f32[], n: i32[]", 3, COUNT, "j = k + 1\nc = a + 1.0\nyield j, c, c"),
                    [I32(0), F32(1), F32(2), I32(7)]),
    "what is given": (loop("k: i32[], a: f32[], n: i32[], x: f32[]", 2, COUNT, "j = k + 1\nyield j, x"),
                      [I32(0), F32(1), I32(3), F32(9)]),
    "a flag": (loop("p: bool[], a: f32[], n: f32[]", 2, "yield p",
                    "b = a * 1.5\nq = less(b, n)\nyield q, b"), [np.bool_(True), F32(1), F32(1000)]),
    "flags": (loop("k: i32[], p: bool[], q: bool[], n: i32[]", 3, COUNT,
                   "j = k + 1\nr = logical_xor(p, q)\ns = logical_not(p)\nyield j, r, s"),
              [I32(0), np.bool_(True), np.bool_(False), I32(11)]),
    "functions": (loop("k: i32[], a: f32[], n: i32[]", 2, COUNT,
                       "j = k + 1\nb = tanh(a)\nc = exp(b)\nd = sin(c)\ne = pow(d, 1.5)\nf = e + b\nyield j, f"),
                  [I32(0), F32(0.3), I32(20)]),
    "select and cast": (loop("k: i64[], a: f32[], n: i64[]", 2, COUNT,
                             "j = k + 1\nf = cast(k){to=f32}\np = greater(f, 10.0)\nb = select(p, a, f)\nyield j, b"),
                        [I64(0), F32(0.3), I64(50)]),
    "wrap": (loop("k: u32[], a: i32[], n: u32[]", 2, COUNT, "j = k + 1\nb = a * 1103515245\nc = b + 12345\nyield j, c"),
             [U32(0), I32(1), U32(1000)]),
    "newton": (loop("a: f64[], b: f64[], x: f64[]", 2, "d = a - b\ne = abs(d)\ngo = greater(e, 1e-12)\nyield go",
                    "q = x / a\ns = a + q\nc = s * 0.5\nyield c, a"), [F64(2), F64(0), F64(2)]),
}


def is_whole(context, plan, inputs):
    """Whether it is one launch; without AVX2 there is no machine code, and nothing to check."""
    if cpu_class(context) == "sse4":
        return None
    return [step["impl"] for step in plan.report(*inputs)["launches"]] == ["loop over scalars"]


def same(a, b):
    a, b = np.array(a), np.array(b)
    return a.dtype == b.dtype and (a.tobytes() == b.tobytes() or (a.dtype.kind == "f" and np.isnan(a) and np.isnan(b)))


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(context, name, level):
    text, inputs = PROGRAMS[name]
    plan = context.parse(text).session("cpu", level=level).prepare()
    assert is_whole(context, plan, inputs) in (True, None)
    wanted = context.parse(text).session("reference", level=0).prepare().run(*inputs)
    for _ in range(2):
        for a, b in zip(plan.run(*inputs), wanted, strict=True):
            if name == "functions":  # each device has its own exp
                np.testing.assert_allclose(np.array(a), np.array(b), rtol=1e-4)
            else:
                assert same(a, b), (np.array(a), np.array(b))


def test_bits_are_those_of_the_ops_alone(context):
    """The cpu device's own exp, tanh, sin and pow, one launch each: an observed run reports every node."""
    text, inputs = PROGRAMS["functions"]
    module = context.parse(text)
    value = F32(0.3)
    for _ in range(20):
        b = context.apply("cpu", "tanh", value)
        e = context.apply("cpu", "pow", context.apply("cpu", "sin", context.apply("cpu", "exp", b)), F32(1.5))
        value = context.apply("cpu", "add", e, b)
    assert same(module.session("cpu").prepare().run(*inputs)[1], value)


def test_literals(context):
    text, inputs = PROGRAMS["sum"]
    a = F32(0)
    for _ in range(1000):
        a = a * F32(0.5) + F32(1)
    got = context.parse(text).session("cpu").prepare().run(*inputs)
    assert int(np.array(got[0])) == 1000 and same(got[1], a)


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -3.5, 2.5]


@pytest.mark.parametrize("a, b", list(itertools.product(SPECIAL, SPECIAL)), ids=str)
def test_special_values(context, a, b):
    text = loop("k: i32[], a: f32[], b: f32[], n: i32[]", 3, COUNT,
                "j = k + 1\nc = maximum(a, b)\nd = minimum(c, a)\ne = relu(d)\nf = e / b\nyield j, f, a")
    inputs = [I32(0), F32(a), F32(b), I32(2)]
    got = context.parse(text).session("cpu").prepare().run(*inputs)
    k, x, y = 0, F32(a), F32(b)
    while k < 2:
        c = context.apply("cpu", "maximum", x, y)
        e = context.apply("cpu", "relu", context.apply("cpu", "minimum", c, x))
        k, x, y = k + 1, context.apply("cpu", "div", e, y), x
    assert same(got[1], x) and same(got[2], y)


NOT_WHOLE = {
    "a constant that no node reads": (loop("k: i32[], a: f32[], b: f32[], n: i32[]", 3, COUNT, "j = k + 1\nc = a + b\nyield j, c, 2.5"),
                   [I32(0), F32(1), F32(100), I32(3)]),
    "no test": (loop("k: i32[], a: f32[], n: i32[]", 2, "yield false", "j = k + 1\nyield j, a"), [I32(0), F32(1), I32(9)]),
    "an op that may fail": (loop("k: i32[], a: i32[], n: i32[]", 2, COUNT, "j = k + 1\nb = a / k\nyield j, b"),
                            [I32(1), I32(100), I32(4)]),
    "a vector": (loop("k: i32[], a: f32[3], n: i32[]", 2, COUNT, "j = k + 1\nb = a + 1.0\nyield j, b"),
                 [I32(0), np.ones(3, F32), I32(4)]),
    "half": (loop("k: i32[], a: f16[], n: i32[]", 2, COUNT, "j = k + 1\nb = a + 1.0\nyield j, b"),
             [I32(0), np.float16(1), I32(4)]),
}


@pytest.mark.parametrize("name", NOT_WHOLE)
def test_others_run_node_by_node(context, name):
    text, inputs = NOT_WHOLE[name]
    plan = context.parse(text).session("cpu").prepare()
    assert is_whole(context, plan, inputs) in (False, None)
    for a, b in zip(plan.run(*inputs), context.parse(text).session("reference").prepare().run(*inputs), strict=True):
        np.testing.assert_array_equal(np.array(a), np.array(b))


def test_more_values_than_registers(context):
    names = [f"a{i}" for i in range(31)]
    text = loop("k: i32[], " + ", ".join(f"{n}: f32[]" for n in names) + ", n: i32[]", 32, COUNT,
                "j = k + 1\n" + "\n".join(f"b{i} = a{i} + a{(i + 1) % 31}" for i in range(31)) + "\nyield j, "
                + ", ".join(f"b{i}" for i in range(31)))
    inputs = [I32(0), *[F32(i) for i in range(31)], I32(5)]
    plan = context.parse(text).session("cpu").prepare()
    assert is_whole(context, plan, inputs) in (False, None)
    for a, b in zip(plan.run(*inputs), context.parse(text).session("reference").prepare().run(*inputs), strict=True):
        assert same(a, b)


def test_a_loop_of_constants_is_not_run_at_planning(context):
    text = "keel 1\nfn @main(x: f32[]) {\n  a = while(1.0){carry=1}\n    test(a) { yield true }\n    body(a) { b = a + 1.0\n" \
        "      yield b }\n  return a\n}\nentry main = @main (x)\n"
    plan = context.parse(text).session("cpu", timeout_ms=100).prepare()
    start = time.monotonic()
    with pytest.raises(KeelError):
        plan.run(F32(1))
    assert time.monotonic() - start < 20


def test_an_endless_loop_is_stopped(context):
    text = loop("k: i32[], a: f32[]", 2, "go = greater_equal(k, k)\nyield go", "j = k + 1\nb = a * 0.5\nyield j, b")
    plan = context.parse(text).session("cpu", timeout_ms=200).prepare()
    assert is_whole(context, plan, [I32(0), F32(1)]) in (True, None)
    with pytest.raises(KeelError, match="time limit is 200"):
        plan.run(I32(0), F32(1))
