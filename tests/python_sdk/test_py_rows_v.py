"""The example programs V1 to V15 in Python, named by their ids; see tests/rows/README.md."""
import subprocess
import traceback
from pathlib import Path

import keel
import numpy as np
import pytest
from rows_common import LIBRARY, on_hostile, regular, run, tf, tf1  # noqa: F401

pytestmark = pytest.mark.usefixtures("device")


def test_V1_hello_matmul(tf):
    x = [[2.]]
    m = tf.matmul(x, x)
    assert "hello, {}".format(m) == "hello, [[4.]]"


def test_V2_values_at_once_and_errors_that_tell(tf):
    x = tf.constant([[1., 2.]]) + 1
    assert x.numpy().tolist() == [[2, 3]]
    with pytest.raises(keel.ShapeError) as caught:
        tf.matmul(x, x)
    assert str(caught.value).startswith("matmul(f32[1, 2], f32[1, 2]): ") and caught.value.op == "matmul"
    assert traceback.extract_tb(caught.tb)[0].filename == __file__


def test_V3_the_same_code_on_other_hardware():
    out = on_hostile("import keel\nfor name in ('cpu', 'hostile:0'):\n with keel.device(name):\n"
                     "  x = keel.array([[1, 2]]).to(name)\n  print(x + x, keel.function(lambda x: x + x)(x))")
    assert out == "[[2 4]] [[2 4]]\n" * 2


def test_V4_graphs_have_nodes_and_values():
    """The figure: add_1 reads matmul_1 and a second input."""
    g = keel.Graph()
    with g.as_default():
        x, b = keel.placeholder(keel.f32, [2, 2], "x"), keel.constant([1., 2.], name="b")
        y = keel.matmul(x, x) + b
        keel.matmul(y, x) + b
    assert [(n.name, n.inputs) for n in g.nodes()] == [
        ("matmul", ["x", "x"]), ("add", ["matmul", "b"]), ("matmul_1", ["add", "x"]), ("add_1", ["matmul_1", "b"])]
    assert [v.name for v in g.values()] == ["x", "b", "matmul", "add", "matmul_1", "add_1"]


def test_V5_graphs_run_without_python():
    needed = subprocess.run(["ldd", LIBRARY], capture_output=True, text=True, check=True).stdout
    assert "libc.so" in needed and "python" not in needed


def launches(text, device, **options):
    report = keel.Session(keel.parse(text), device, **options).prepare()._report()
    return report, report.count('"impl":')


def test_V6_constants_are_folded():
    text = "keel 1\nfn @f(x: f32[2]) {\n  return x * (f32(1.0) + f32(1.0))\n}\nentry f = @f (x) -> (y)\n"
    report, n = launches(text, "cpu")
    assert n == 1 and '"op":"mul"' in report and '"op":"add"' not in report
    assert keel.Session(keel.parse(text)).run(x=[1., 2.])["y"].tolist() == [2, 4]


LOOPS = """keel 1
fn @f(x: f32[1000]) {
  a = scan(f32(0.0), x){carry=1}
    body(s, v) { t = tanh(s + v)
      yield t }
  b = scan(f32(0.0), x){carry=1, reverse=true}
    body(s, v) { t = sin(s + v)
      yield t }
  return a, b
}
entry f = @f (x) -> (c, d)
"""


def test_V7_independent_parts_run_side_by_side(device):
    report, _ = launches(LOOPS, device, threads=2)
    assert ('"lanes":[[' in report) == (device == "cpu")
    x = np.sin(np.arange(1000, dtype="f4"))
    got = [keel.Session(keel.parse(LOOPS), device, threads=2, lanes=lanes).run(x=x) for lanes in ("auto", "off")]
    assert all(keel.same(got[0][k], got[1][k]) for k in "cd")


def test_V8_equal_expressions_are_one(device):
    text = ("keel 1\nfn @f(x: f32[]) {\n  a = exp(x)\n  b = exp(x)\n  return sin(a), cos(b)\n}\n"
            "entry f = @f (x) -> (a, b)\n")
    counts = [launches(text, device, passes=passes)[0].count('"op":"exp"') for passes in ("fold", "cse")]
    assert counts == [2, 1]


def test_V9_says_what_building_costs():
    f = keel.function(lambda x: x + 1)
    f(keel.array(1.)), f(keel.array(2.)), f(keel.array([1.]))
    first, second = f.traces()
    assert first["trace_ms"] > 0 and first["plan_ms"] > 0 and first["calls"] == 2 and first["reason"] == "first call"
    assert second["reason"].startswith("argument x was f32[], now f32[1]")


def test_V10_traced_equals_eager(tf, regular):
    a_regular_function, arguments = regular
    a_function_that_uses_a_graph = tf.function(a_regular_function)
    orig_value = a_regular_function(*arguments).numpy()
    tf_function_value = a_function_that_uses_a_graph(*arguments).numpy()
    assert orig_value == tf_function_value
    assert repr(orig_value) == repr(tf_function_value) == "array([[12.]], dtype=float32)"


def test_V11_no_session_no_placeholder(tf):
    w = tf.Variable(3)
    f = tf.function(lambda x: x * w)
    assert f(tf.constant(2)).numpy() == 6
    w.assign(5)
    assert f(tf.constant(2)).numpy() == 10 and f.trace_count == 1


def test_V12_run_functions_eagerly(tf):
    seen = []
    f = tf.function(lambda x: seen.append(tf.executing_eagerly()) or x + 1)
    tf.config.run_functions_eagerly(True)
    assert f(tf.constant(1)).numpy() == 2 and tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(False)
    assert f(tf.constant(1)).numpy() == 2 and seen == [True, False]


def test_V13_graphs_by_default_in_1_eager_in_2(tf, tf1):
    assert tf.executing_eagerly() and not (tf.constant(1) + 1).symbolic
    assert not tf1.executing_eagerly() and (tf1.constant(1) + 1).symbolic


def test_V14_old_files_stay_readable():
    """tests/data keeps files in their original form."""
    module = keel.load(Path(__file__).resolve().parents[1] / "data/digits.keel")
    logits = keel.Session(module, entry="mlp").run(images=np.zeros((2, 64), "u1"))["logits"]
    assert logits.shape == (2, 10) and np.isfinite(logits.numpy()).all()
    with pytest.raises(keel.InvalidError, match="version 2 of the text form; this reader supports version 1"):
        keel.parse("keel 2\n")


def test_V15_program_eagerly_run_as_graph():
    def code(x):
        return keel.softmax(keel.tanh(x) * 3)
    x = keel.random.normal((4, 5), key=3)
    assert keel.same(code(x), keel.function(code)(x))
