"""Variables: the same one in a program and in graphs, eager additions, threads, bad input."""
import threading

import keel_abi
import numpy as np
import pytest


def f32(*values):
    return np.array(values, np.float32)


def test_variables_of_a_program_and_of_graphs_are_the_same(context, device):
    counter = context.variable(f32(1, 2))
    module = context.module()
    number = module.variable("model/w", counter).number
    graph = module.graph("main")
    x = graph.param("x", np.float32, [2])
    value = graph.node("read", var=number)
    graph.node("assign_add", x, n_out=0, name="step", var=number)
    graph.result("y", graph.node("mul", value, x))
    module.entry("main", graph)
    assert 'var "model/w": f32[2]' in module.to_text()
    assert '  step: assign_add("model/w", x)\n' in module.to_text()
    assert "# reads \"model/w\"  writes \"model/w\"" in module.to_text()
    np.testing.assert_array_equal(module.session(device).prepare().run(f32(3, 4))[0], [3, 8])
    np.testing.assert_array_equal(counter.read(), [4, 6])
    counter.add(f32(1, 1), -1)
    np.testing.assert_array_equal(module.variable("model/w").read(), [3, 5])
    other = context.module()
    assert other.variable("w", counter).number == 0
    assert other.variable("w", counter).number == 0, "it is there already"
    with pytest.raises(keel_abi.KeelError, match="already has a variable 'w'"):
        other.variable("w", context.variable(f32(1)))
    with pytest.raises(keel_abi.KeelError, match="no variable 'v'; it has 'w'"):
        other.variable("v")


DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
          "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_adding_to_a_variable_is_adding(context, dtype):
    """Bit by bit equal to the op `add`, in place and not, for odd, empty and size-1 shapes."""
    import ml_dtypes
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    for shape in [(), (1,), (0,), (3, 5), (257,)]:
        rng = np.random.default_rng(7)
        draw = (lambda: rng.integers(0, 256, (*shape, kind.itemsize), np.uint8).view(kind).reshape(shape)
                if kind.kind in "iu" else (rng.standard_normal(shape) * 100).astype(kind))
        start, x = np.asarray(draw()), np.asarray(draw())
        v = context.variable(start)
        for sign, op in ((1, "add"), (-1, "sub"), (1, "add")):
            want = np.asarray(context.apply("reference", op, start, x))
            v.add(x, sign)
            assert np.asarray(v.read()).tobytes() == want.tobytes(), (shape, op)
            start = want.copy()


def test_threads_add_up(context, device):
    """Concurrent additions lose nothing, and each read is a consistent snapshot."""
    module = context.parse("""keel 1
var n: i64[64] = hex"%s"
fn @main(x: i64[64]) -> i64[64] {
  assign_add(n, x)
  y = read(n)
  return y
}
entry main = @main (x) -> (_)
""" % ("00" * 512))
    plan, n, torn = module.session(device, threads=1).prepare(), module.variable("n"), []

    def work(eager):
        one = np.ones(64, np.int64)
        for _ in range(300):
            if eager:
                n.add(one)
                seen = n.read()
            else:
                seen = plan.run(one)[0]
            if seen.min() != seen.max():
                torn.append(seen.copy())
    threads = [threading.Thread(target=work, args=(i % 3 == 0,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not torn
    np.testing.assert_array_equal(n.read(), 8 * 300)


def test_bad_variables_are_refused(context):
    v = context.variable(f32(1, 2))
    with pytest.raises(keel_abi.KeelError, match=r"the variable is f32\[2\], got f32\[3\]"):
        v.assign(f32(1, 2, 3))
    with pytest.raises(keel_abi.KeelError, match=r"the variable is f32\[2\], got f64\[2\]"):
        v.add(np.zeros(2))
    with pytest.raises(keel_abi.KeelError, match="'how' is \"assign_mul\"; expected one of assign, assign_add, assign_sub"):
        v.write("assign_mul", f32(1, 2))
    with pytest.raises(keel_abi.KeelError, match="do not support bool variables"):
        context.variable(np.bool_(True)).add(np.bool_(True))
    with pytest.raises(keel_abi.KeelError, match="names variable 0"):
        context.apply("reference", "read", var=keel_abi.VariableNumber(0))
    graph = context.module().graph("g")
    with pytest.raises(keel_abi.KeelError, match="it names variable 5, but the module has 0"):
        graph.node("read", var=keel_abi.VariableNumber(5))


def test_a_symbolic_value_is_checked_when_it_is_assigned(context, device):
    module = context.parse("""keel 1
var w: f32[2] = [0.0, 0.0]
fn @main(x: f32[b]) {
  assign(w, x)
  return
}
entry main = @main (x) -> ()
""")
    plan = module.session(device).prepare()
    plan.run(f32(1, 2))
    with pytest.raises(keel_abi.KeelError, match="b = 3|3 is not equal to 2|2 is not equal to 3"):
        plan.run(f32(1, 2, 3))
    np.testing.assert_array_equal(module.variable("w").read(), [1, 2])
