"""The example programs T1 to T15 in Python, named by their ids; see tests/rows/README.md."""
import keel
import pytest
from rows_common import SIGNATURES, regular, run, tf  # noqa: F401

pytestmark = pytest.mark.usefixtures("device")


def test_T1_saved_graphs_run_without_their_source(tmp_path, device):
    (tmp_path / "source.py").write_text("import keel\nf = keel.function(lambda x: {'y': x * 2 + 1})\n"
                                        "keel.save('m.keel', f=f.concrete(keel.f32[2]))\n")
    run("import os, sys; os.chdir(sys.argv[1]); sys.path.insert(0, '.'); import source", tmp_path, device=device)
    (tmp_path / "source.py").unlink()
    out = run("import keel, sys; print(keel.Session(sys.argv[1]).run('y', {'x': [5., 6.]}))", tmp_path / "m.keel", device=device)
    assert out == "[11. 13.]\n"


def test_T2_a_network_of_two_layers_can_be_seen():
    """The example's figure, as nodes with their edges: two dense layers."""
    g = keel.Graph()
    with g.as_default():
        x = keel.placeholder(keel.f32, [None, 4], "x")
        for k, (rows, columns) in enumerate(((4, 3), (3, 2))):
            with keel.name_scope(f"layer{k}"):
                x = keel.relu(keel.matmul(x, keel.constant(keel.zeros((rows, columns)), name="w")))
    assert [(n.name, n.inputs) for n in g.nodes()] == [
        ("layer0/matmul", ["x", "layer0/w"]), ("layer0/relu", ["layer0/matmul"]),
        ("layer1/matmul", ["layer0/relu", "layer1/w"]), ("layer1/relu", ["layer1/matmul"])]


def test_T3_folded_once_and_split(device):
    text = ("keel 1\nfn @f(x: f32[1000]) {\n  z = reduce_sum(x)\n  k = f32(2.0) * f32(3.0)\n  a = scan(z, x){carry=1}\n"
            "    body(s, v) { t = tanh(s + v)\n      yield t }\n  y = reduce_sum(x)\n"
            "  b = scan(y, x){carry=1, reverse=true}\n"
            "    body(s, v) { t = sin(s + v)\n      yield t }\n  return a * k, b\n}\nentry f = @f (x) -> (c, d)\n")
    report = keel.Session(keel.parse(text), device, threads=2).prepare()._report()
    assert '"node":"z"' in report and '"node":"k"' not in report and '"node":"y"' not in report
    assert ('"lanes":[[' in report) == (device == "cpu")


def test_T4_a_regular_function_twice(tf, regular):
    a_regular_function, arguments = regular
    orig_value = a_regular_function(*arguments).numpy()
    tf_function_value = tf.function(a_regular_function)(*arguments).numpy()
    assert orig_value == tf_function_value == 12


def test_T5_the_outer_function_traces_the_inner(tf, regular):
    inner_function, _ = regular

    @tf.function
    def outer_function(x):
        y = tf.constant([[2.0], [3.0]])
        b = tf.constant(4.0)

        return inner_function(x, y, b)
    assert repr(outer_function(tf.constant([[1.0, 2.0]])).numpy()) == "array([[12.]], dtype=float32)"


@pytest.fixture
def simple_relu(tf):
    def simple_relu(x):
        if tf.greater(x, 0):
            return x
        else:
            return 0
    return simple_relu


def test_T6_simple_relu(tf, simple_relu, capsys):
    tf_simple_relu = tf.function(simple_relu)
    print("First branch, with graph:", tf_simple_relu(tf.constant(1)).numpy())
    print("Second branch, with graph:", tf_simple_relu(tf.constant(-1)).numpy())
    assert capsys.readouterr().out == "First branch, with graph: 1\nSecond branch, with graph: 0\n"
    assert tf_simple_relu(tf.constant(1.5)).numpy() == 1.5 and tf_simple_relu(tf.constant(-1.5)).numpy() == 0


def test_T7_the_converted_code_can_be_read(tf, simple_relu):
    code = tf.autograph.to_code(simple_relu)
    assert "simple_relu(x)" in code and "tf.greater" in code and "nonlocal" not in code
    compile(code, "converted", "exec")


GRAPH_OF_A_BRANCH = """keel 1

fn @simple_relu(x: i32[]) -> i32[] {
  v0 = greater(x, 0) : bool[]
  v1 = cond(v0, x)
    then(p0) {
      yield p0
    }
    else(p0) {
      yield i32(0)
    } : i32[]
  return v1
}

entry simple_relu = @simple_relu (x) -> (_)
"""


def test_T8_the_graph_of_a_branch(tf):
    @tf.function
    def simple_relu(x):
        return tf.cond(tf.greater(x, 0), lambda: x, lambda: 0)
    concrete = simple_relu.get_concrete_function(tf.constant(1))
    assert concrete.graph.as_graph_def() == simple_relu.concrete(keel.i32[()]).text() == GRAPH_OF_A_BRANCH
    assert concrete(tf.constant(7)).numpy() == 7
    with pytest.raises(TypeError, match=r"is concrete for \['i32\[\]'\], not \['f32\[\]'\]"):
        concrete(tf.constant(7.))


def test_T8_the_graph_of_an_if(tf, simple_relu):
    text = tf.function(simple_relu).get_concrete_function(tf.constant(1)).graph.as_graph_def()
    assert "v0 = greater(x, 0) : bool[]" in text and "cond(v0, x)" in text and "i32(0)" in text
    assert text.startswith("keel 1\n")


@pytest.fixture
def my_relu(tf):
    @tf.function
    def my_relu(x):
        return tf.maximum(0., x)
    return my_relu


THREE = ("tf.Tensor(5.5, shape=(), dtype=float32)\ntf.Tensor([1. 0.], shape=(2,), dtype=float32)\n"
         "tf.Tensor([3. 0.], shape=(2,), dtype=float32)\n")


def test_T9_my_relu_on_three_signatures(tf, my_relu, capsys):
    print(my_relu(tf.constant(5.5)))
    print(my_relu([1, -1]))
    print(my_relu(tf.constant([3., -3.])))
    assert capsys.readouterr().out == THREE and my_relu.trace_count == 3


def test_T10_no_new_graphs(tf, my_relu, capsys):
    my_relu(tf.constant(5.5)), my_relu([1, -1]), my_relu(tf.constant([3., -3.]))
    print(my_relu(tf.constant(-2.5)))
    print(my_relu(tf.constant([-1., 1.])))
    assert capsys.readouterr().out == ("tf.Tensor(0.0, shape=(), dtype=float32)\n"
                                       "tf.Tensor([0. 1.], shape=(2,), dtype=float32)\n")
    assert my_relu.trace_count == my_relu.experimental_get_tracing_count() == 3


def test_T11_concrete_signatures(tf, my_relu, capsys):
    my_relu(tf.constant(5.5)), my_relu([1, -1]), my_relu(tf.constant([3., -3.]))
    print(my_relu.pretty_printed_concrete_signatures())
    assert capsys.readouterr().out == SIGNATURES


@pytest.fixture
def mse(tf):
    """get_MSE of the example, with its output, and the example's numbers."""
    @tf.function
    def get_MSE(y_true, y_pred):
        print("Calculating MSE!")
        sq_diff = tf.pow(y_true - y_pred, 2)
        return tf.reduce_mean(sq_diff)
    return lambda: get_MSE(tf.constant([1, 0, 4, 4, 7]), tf.constant([3, 6, 3, 0, 6]))


def test_T12_mse_of_integers(mse):
    assert repr(mse()) == "<tf.Tensor: shape=(), dtype=int32, numpy=11>"


def test_T13_mse_run_eagerly(tf, mse):
    tf.config.run_functions_eagerly(True)
    assert repr(mse()) == "<tf.Tensor: shape=(), dtype=int32, numpy=11>"
    tf.config.run_functions_eagerly(False)
    assert repr(mse()) == "<tf.Tensor: shape=(), dtype=int32, numpy=11>"


def test_T14_python_prints_while_tracing(mse, capsys):
    for _ in range(3):
        mse()
    assert capsys.readouterr().out == "Calculating MSE!\n"


def test_T15_and_each_time_when_run_eagerly(tf, mse, capsys):
    tf.config.run_functions_eagerly(True)
    for _ in range(3):
        mse()
    tf.config.run_functions_eagerly(False)
    assert capsys.readouterr().out == "Calculating MSE!\n" * 3
