"""The example programs Z1 to Z18 in Python, named by their ids; see tests/rows/README.md."""
import array
import subprocess

import keel
import numpy as np
import pytest
from rows_common import BUILD, on_hostile, run, tf, tf1  # noqa: F401

pytestmark = pytest.mark.usefixtures("device")


def chain():
    g = keel.Graph()
    with g.as_default():
        x = keel.placeholder(keel.i32, name="x")
        y = keel.named(x + 1, "y")
        keel.named(y * 2, "z")
    return g


def test_Z1_a_session_feeds_and_fetches():
    session = keel.Session(chain())
    assert {k: v.item() for k, v in session.run({"z": "z", "y": "y:0"}, {"x": 3}).items()} == {"z": 8, "y": 4}
    assert session.run("z", {"y": 10}).item() == 20  # a fed value cuts the graph


def test_Z2_four_ways_to_start_a_session(tf1):
    a, b = tf1.constant(3), tf1.constant(5)
    c = a + b
    with tf1.device("/device:CPU:0"):
        d = c * 2
    session = tf1.InteractiveSession()
    assert c.eval() == 8
    session.close()
    with tf1.Session() as session:
        assert session.run(c) == 8 and session.run(d) == 16
    assert '"cpu:0"' in tf1.get_default_graph().as_graph_def() or keel.Session(tf1.get_default_graph()).device == "cpu"
    cluster = tf1.train.ClusterSpec({"worker": ["127.0.0.1:7001", "127.0.0.1:7002"]})
    assert cluster.num_tasks("worker") == 2 and cluster.task_address("worker", 1) == "127.0.0.1:7002"
    for start in (lambda: tf1.Session(config=tf1.ConfigProto(cluster_def=cluster)),
                  lambda: tf1.Session("grpc://127.0.0.1:7001"),
                  lambda: tf1.train.Server(cluster, job_name="worker", task_index=0)):
        with pytest.raises(keel.UnimplementedError, match="clusters are not supported"):
            start()
    with pytest.raises(ValueError, match="expected an address 'host:port'"):
        tf1.train.ClusterSpec({"worker": ["nowhere"]})


def documents_matmul(tf1, size):
    x = tf1.placeholder(tf1.float32, shape=(size, size))
    return x, tf1.matmul(x, x)


def test_Z3_says_what_was_not_fed(tf1):
    _, y = documents_matmul(tf1, 1024)
    with tf1.Session() as sess, pytest.raises(tf1.errors.InvalidArgumentError) as caught:
        sess.run(y)
    assert str(caught.value) == ("You must feed a value for placeholder tensor 'placeholder' with dtype float and "
                                 "shape [1024,1024]")


def test_Z4_feeds_are_cast(tf1):
    x, y = documents_matmul(tf1, 64)
    with tf1.Session() as sess:
        rand_array = np.random.default_rng(1).random((64, 64))
        got = sess.run(y, feed_dict={x: rand_array})
        assert rand_array.dtype == np.float64 and got.dtype == np.float32
        np.testing.assert_allclose(got, rand_array @ rand_array, rtol=1e-5)
        with pytest.raises(ValueError) as caught:
            sess.run(y, feed_dict={x: np.zeros((3, 3))})
    assert str(caught.value) == "Cannot feed value of shape (3, 3) for Tensor placeholder:0, which has shape (64, 64)"


def test_Z5_other_libraries_may_be_used_while_building(tf1):
    class Series:  # like pandas objects: with __array__
        def __array__(self, dtype=None, copy=None):
            return np.array([3., 4.], "f4")
    total = tf1.constant(np.array([1., 2.], "f4")) + tf1.constant(Series()) + tf1.constant(array.array("f", [5., 6.]))
    with tf1.Session() as sess:
        assert sess.run(total).tolist() == [9, 12]


def test_Z6_plain_if(tf):
    x = tf.constant([3])
    assert ("more" if x > 2 else "less") == "more" and int(x) + float(x) == 6.0
    with pytest.raises(keel.PreconditionError, match="keel.cond"):
        tf.function(lambda x: x.numpy())(x)


def documents_tape(tf):
    w = tf.Variable([[1.0]])
    with tf.GradientTape() as tape:
        loss = w * w
    return tape.gradient(loss, w)


def test_Z7_tape_of_a_square(tf, tf1):
    tf1.enable_eager_execution()
    for module in (tf, tf1):
        assert str(documents_tape(module)) == "tf.Tensor([[2.]], shape=(1, 1), dtype=float32)"


def test_Z8_eager_from_the_start(tf, tf1):
    assert tf.executing_eagerly() and keel.executing_eagerly() and not tf1.executing_eagerly()
    tf1.enable_eager_execution()
    assert tf1.executing_eagerly()
    with tf1.Graph().as_default():
        assert not tf1.executing_eagerly()


def test_Z9_stateful_and_stateless_ops_run_eagerly(tf):
    v = tf.Variable([1, 2])
    v.assign_add([10, 10])
    assert v.numpy().tolist() == [11, 12] and (v + 1).numpy().tolist() == [12, 13] and tf.add(2, 3).numpy() == 5


def test_Z10_data_of_ndarrays_and_slices(tf):
    x = tf.constant(np.arange(6).reshape(3, 2))
    assert x.numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    data = tf.data.Dataset.from_tensor_slices((np.arange(6).reshape(3, 2), [7, 8, 9]))
    assert [(row.numpy().tolist(), int(k)) for row, k in data] == [([0, 1], 7), ([2, 3], 8), ([4, 5], 9)]
    assert [rows.shape for rows, _ in data.batch(2)] == [(2, 2), (1, 2)]
    assert len(data.batch(2, drop_remainder=True)) == 1


def test_Z11_devices_by_name(tf1):
    from keel.compat.devices import keel_name
    names = ("/cpu:0", "/device:CPU:0", "cpu", "/ gpu:0", "gpu:1", "/device:GPU:0", "cuda:0", "reference:0")
    assert [keel_name(name) for name in names] == [
        "cpu:0", "cpu:0", "cpu:0", "cuda:0", "cuda:1", "cuda:0", "cuda:0", "reference:0"]
    for wrong in ("/gpu:x", "", "/device:", "gpu 0 1:"):
        with pytest.raises(ValueError, match="Malformed device specification"):
            keel_name(wrong)
    graph = tf1.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf1.float32, [2])
        with tf1.device("/device:REFERENCE:0"):
            y = tf1.add(x, 1., name="y")
        tf1.add(y, 1., name="z")
    if keel.Session(graph).device != "reference":
        assert 'y = add(placeholder, 1.0) @"reference:0"' in graph.as_graph_def()
    assert tf1.Session(graph=graph).run("z:0", {x: [1, 2]}).tolist() == [3, 4]
    if "cuda:0" not in keel.devices():
        with pytest.raises(keel.DeviceError, match='no device "cuda:0"; available devices: cpu:0'):
            tf1.device("/gpu:0").__enter__()


RUN_SAVED = "import sys, keel; print(keel.Session(sys.argv[1], entry='f').run(x=[5., 6.]))"


@pytest.fixture
def saved(tmp_path):
    keel.save(tmp_path / "m.keel", f=keel.function(lambda x: {"y": x * 2 + 1}).concrete(keel.f32[2]))
    return tmp_path / "m.keel"


def test_Z12_an_eager_model_runs_as_a_graph(saved, device):
    assert keel.Session(saved).run("y", {"x": [5., 6.]}).tolist() == [11, 13]
    assert run(RUN_SAVED, saved, device=device) == "{'y': Tensor f32[2]: [11. 13.]}\n"


def test_Z12_an_exported_model_runs_by_the_command(saved, device):
    if not (BUILD / "bin/keel").exists():
        pytest.skip("the command is not beside this libkeel")
    done = subprocess.run([BUILD / "bin/keel", "run", saved, "-i", "x=5,6", "-d", device], capture_output=True, text=True, check=True)
    assert done.stdout == "y: f32[2]\n[11, 13]\n"


def test_Z13_tensors_may_be_elsewhere():
    out = on_hostile("import keel, numpy as np\nx = keel.array(np.arange(3.)).to('hostile:0')\n"
                     "print(repr(x.device), x.numpy(), repr(x.to('').device), type(x.numpy()).__name__)")
    assert out == "'hostile:0' [0. 1. 2.] '' ndarray\n"


def test_Z14_ndarrays_and_tensors_mixed(tf):
    n, t = np.array([[1, 2], [3, 4]], "i4"), tf.constant([[1, 2], [3, 4]])
    assert isinstance(tf.add(n, t), tf.Tensor) and isinstance(np.add(n, t), np.ndarray)
    assert isinstance(t.numpy(), np.ndarray)
    assert tf.add(n, t).numpy().tolist() == np.add(n, t).tolist() == [[2, 4], [6, 8]]
    assert np.shares_memory(np.from_dlpack(t), t.numpy()) and np.shares_memory(keel.from_dlpack(n).numpy(), n)


def test_Z15_add_and_multiply(tf1, capsys):
    tf1.enable_eager_execution()
    print(tf1.executing_eagerly())
    a = tf1.constant([[1, 2],
                      [3, 4]])
    print(a)
    b = tf1.add(a, 1)
    print(b)
    c = np.multiply(a, b)
    print(type(c), c)
    assert capsys.readouterr().out == """True
tf.Tensor(
[[1 2]
 [3 4]], shape=(2, 2), dtype=int32)
tf.Tensor(
[[2 3]
 [4 5]], shape=(2, 2), dtype=int32)
<class 'numpy.ndarray'> [[ 2  6]
 [12 20]]
"""


def test_Z16_placeholders_are_not_eager(tf1):
    tf1.enable_eager_execution()
    with pytest.raises(RuntimeError) as caught:
        tf1.placeholder(tf1.float32, shape=(2, 2))
    assert str(caught.value) == "tf.placeholder() is not compatible with eager execution."
    with pytest.raises(keel.PreconditionError, match=r"^keel.placeholder\(\) is not compatible with eager execution."):
        keel.placeholder(keel.f32, (2, 2))


def test_Z17_an_eager_checkpoint_in_a_session(tf, tf1, tmp_path):
    eager = tf.Variable([1., 2.], name="w")
    eager.assign_add([1., 1.])
    path = tf1.train.Saver([eager]).save(None, tmp_path / "eager.ckpt")
    w = tf1.Variable(tf1.zeros([2]), name="w")
    y = w * 10.
    with tf1.Session() as sess:
        saver = tf1.train.Saver()
        saver.restore(sess, path)  # instead of the initializer
        assert sess.run(y).tolist() == [20, 30]
        with pytest.raises(tf1.errors.NotFoundError):
            saver.restore(sess, tmp_path / "no.ckpt")
        assert sess.run(y).tolist() == [20, 30]


def test_Z18_one_excludes_the_other_includes(tf):
    w = tf.Variable([[1.0]])
    with tf.GradientTape(persistent=True) as tape:
        seen = w * w
        with keel.no_record():
            hidden = w * w
        with tape.stop_recording():
            hidden = hidden + w * w
    assert tape.gradient(hidden, w) is None and tape.gradient(seen, w).numpy().tolist() == [[2]]
