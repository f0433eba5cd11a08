"""The example programs K1 to K11 in Python, named by their ids; see tests/rows/README.md.

Generated data of the same shape replace MNIST, with fewer rows to save time; tools/bench measures the figures.
"""
import keel
import numpy as np
import pytest
from rows_common import tf, tf1  # noqa: F401

pytestmark = pytest.mark.usefixtures("device")


def test_K1_four_steps(tf1):
    g = tf1.Graph()
    with g.as_default():
        a = tf1.constant(3)
        b = tf1.constant(5)
        c = a + b
    sess = tf1.Session(graph=g)
    assert repr(sess.run(c)) == "np.int32(8)"
    assert keel.Session(g).run(c).item() == 8


def test_K2_values_between_can_be_seen():
    g = keel.Graph()
    with g.as_default():
        x = keel.placeholder(keel.i32, name="x")
        z = (x + 1) * 2
    got = keel.Session(g).run({node.name: node.name for node in g.nodes()} | {"z": z}, {x: 3})
    assert {name: t.item() for name, t in got.items()} == {"add": 4, "mul": 8, "z": 8}


def test_K3_three_plus_five(tf):
    a = tf.constant(3)
    b = tf.constant(5)
    c = a + b
    assert [t.numpy() for t in (a, b, c)] == [3, 5, 8]


def test_K4_names_of_operations_and_tensors(tf1):
    tf1.constant(3, name='const')
    g = tf1.get_default_graph()
    tensor, operation = g.get_tensor_by_name('const:0'), g.get_operation_by_name('const')
    assert tf1.Session().run(tensor) == 3 and (operation.name, operation.type) == ("const", "constant")
    assert str(tensor) == 'Tensor("const:0", shape=(), dtype=int32)'
    with pytest.raises(KeyError, match="refers to an Operation not in the graph"):
        g.get_operation_by_name('Const')  # case counts
    with pytest.raises(KeyError, match="refers to a Tensor which does not exist"):
        g.get_tensor_by_name('const:1')
    graph = keel.Graph()
    with graph.as_default():
        keel.constant(1), keel.constant(2, name="Const"), keel.constant(3)
    assert [v.name for v in graph.values()] == ["const", "Const", "const_1"] and graph.node("const").op == "constant"
    assert keel.Session(graph).run(graph.value("const_1:0")).item() == 3


def test_K5_eager_names_have_no_effect(tf):
    a, b = tf.constant(3, name='const'), tf.constant(5, name='const')
    assert (a.numpy(), b.numpy()) == (3, 5)


def mnist(rows, sizes=(28, 28)):
    return (np.arange(rows * sizes[0] * sizes[1]) % 251).astype(np.uint8).reshape(rows, *sizes)


def test_K6_mnist_becomes_rows(tf, device):
    count = 60000 if device == "cpu" else 600
    train_xs = mnist(count)
    train_xs = train_xs.reshape([-1, 784])
    train_xs = train_xs.astype(np.float32)
    rows = tf.constant(train_xs)
    assert rows.shape == (count, 784) and rows.dtype == tf.float32
    assert tf.reduce_sum(rows[count - 1]).numpy() == train_xs[-1].sum(dtype="f8")


def generate_w_b(tf, in_, out):
    w_init = tf.random.normal([in_, out])
    w = tf.Variable(w_init, dtype=tf.float32)
    b_init = tf.zeros(out)
    b = tf.Variable(b_init, dtype=tf.float32)
    return w, b


def test_K7_generate_w_b(tf):
    w, b = generate_w_b(tf, 784, 128)
    assert (w.shape, b.shape, w.dtype, b.dtype) == ((784, 128), (128,), tf.float32, tf.float32)
    assert not b.numpy().any() and abs(w.numpy().mean()) < 0.016 and abs(w.numpy().var() - 1) < 0.023  # 5 deviations


def layers(tf):
    return [generate_w_b(tf, *sizes) for sizes in ((784, 128), (128, 128), (128, 128), (128, 10))]


def mlp(tf, layer, weights):
    (w1, b1), (w2, b2), (w3, b3), (w4, b4) = weights
    z1 = tf.matmul(layer, w1) + b1
    a1 = tf.nn.relu(z1)
    z2 = tf.matmul(a1, w2) + b2
    a2 = tf.nn.relu(z2)
    z3 = tf.matmul(a2, w3) + b3
    a3 = tf.nn.relu(z3)
    return tf.matmul(a3, w4) + b4


def assert_is_mlp(got, x, weights):
    for k, (w, b) in enumerate(weights):
        x = x.astype("f8") @ w.numpy() + b.numpy()
        x = np.maximum(x, 0) if k < 3 else x
    np.testing.assert_allclose(got.numpy(), x, rtol=1e-4, atol=1e-5 * np.abs(x).max())


def test_K8_mlp_eager(tf):
    train_xs, weights = mnist(16).reshape([-1, 784]).astype(np.float32) / 255, layers(tf)
    for _ in range(10):
        logits = mlp(tf, train_xs, weights)
    assert_is_mlp(logits, train_xs, weights)


def test_K9_mlp_pruned_and_mlp_returned(tf):
    train_xs, weights = mnist(16).reshape([-1, 784]).astype(np.float32) / 255, layers(tf)

    @tf.function
    def graph_execution(layer):
        mlp(tf, layer, weights)

    @tf.function
    def graph_returned(layer):
        return mlp(tf, layer, weights)
    assert graph_execution(train_xs) is None  # and is pruned completely
    assert_is_mlp(graph_returned(train_xs), train_xs, weights)
    needed = [keel.Session(f.concrete(train_xs)).prepare()._report() for f in (graph_execution, graph_returned)]
    assert '"needed_nodes":0' in needed[0] and '"needed_nodes":19' in needed[1]  # 11 computing nodes, 8 reads
    assert graph_execution.trace_count == 1


def test_K10_eager_then_graph(tf):
    def step(x):
        return tf.nn.relu(x - 1.)
    x = tf.constant([0., 3.])
    assert step(x).numpy().tolist() == tf.function(step)(x).numpy().tolist() == [0, 2]


def test_K11_the_default_graph(tf1):
    first = tf1.get_default_graph()
    assert tf1.get_default_graph() is first
    g = tf1.Graph()
    with g.as_default():
        assert tf1.get_default_graph() is g and keel.default_graph() is g
    assert tf1.get_default_graph() is first
    with pytest.raises(keel.PreconditionError, match="there is no default graph: this thread runs eagerly"):
        keel.default_graph()
