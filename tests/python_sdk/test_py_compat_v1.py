"""keel.compat.v1: default graphs, names, variables, sessions, control dependencies, training, clusters."""
import gc
import weakref

import keel
import numpy as np
import pytest
from rows_common import tf1  # noqa: F401


@pytest.fixture
def tf(tf1, device):  # noqa: F811
    return tf1


def test_everything_is_added_to_the_default_graph(tf):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.add(tf.matmul(x, [[1.], [2.]]), 1, name="y")
    z = tf.add(tf.constant(1), 2) + 3  # from numbers alone, by an operator outside any scope
    graph = tf.get_default_graph()
    assert {"x", "matmul", "y", "const"} <= {op.name for op in graph.get_operations()}
    assert tf.add(1, 2, name="numbers").symbolic and graph.get_operation_by_name("numbers").type == "add"
    assert tf.range(3).symbolic and tf.Session().run(tf.range(3)).tolist() == [0, 1, 2]
    assert graph.get_operation_by_name("y").inputs[0].type == "f32[?, 1]"
    assert graph.get_operation_by_name("y").outputs[0].type == "f32[?, 1]"
    with tf.Session() as sess:
        assert sess.run(y, {x: [[1, 2], [3, 4]]}).tolist() == [[6], [12]] and sess.run(z) == 6
        got = sess.run({"a": ["y:0", z], "b": "y"}, feed_dict={"x:0": [[0, 0]]})
        assert got == {"a": [np.float32([[1]]), 6], "b": None}
    again = tf.Graph()
    with again.as_default():
        assert tf.get_default_graph() is again and not again.get_operations()
    tf.reset_default_graph()
    assert tf.get_default_graph() is not graph


def test_taken_names_get_a_number(tf):
    a, b = tf.constant(1, name="a"), tf.constant(2, name="a")
    c, d = tf.add(a, b, name="c"), tf.multiply(a, b, name="c")
    with tf.name_scope("layer"):
        e, f = tf.negative(d, name="c"), tf.constant(1, name="a")
        v = tf.Variable(1, name="v")
    p, q = tf.placeholder(tf.int32, [], name="p"), tf.placeholder(tf.int32, [], name="p")
    assert [tf.get_default_graph().name_of(t) for t in (a, b, c, d, e, f, p, q)] == [
        "a", "a_1", "c", "c_1", "layer/c", "layer/a", "p", "p_1"]
    assert v.name == "layer/v:0"


def test_operands_tell_the_graph(tf):
    g = tf.Graph()
    with g.as_default():
        a = tf.constant(3)
    b = tf.add(a, 4, name="b")
    assert tf.Session(graph=g).run(b) == 7 and g.get_operation_by_name("b").type == "add"
    with pytest.raises(ValueError, match="is not an element of this graph"):
        tf.Session(graph=tf.Graph()).run(b)


def test_results_are_arrays_of_their_own(tf):
    y = tf.constant([1., 2.]) * 2
    with tf.Session() as sess:
        got = sess.run(y)
        got[0] = 100
        assert sess.run(y).tolist() == [2, 4] and isinstance(sess.run(y)[0], np.float32)
        assert isinstance(sess.run(tf.reduce_sum(y)), np.float32)


@pytest.mark.parametrize("wrong, kind, said", [
    (lambda tf, s: s.run(None), TypeError, "Fetch argument None has invalid type NoneType"),
    (lambda tf, s: s.run("no"), KeyError, "not in the graph"),
    (lambda tf, s: s.run("no:0"), KeyError, "does not exist"),
    (lambda tf, s: s.run(tf.constant(1), {"no:0": 1}), LookupError, "no value 'no:0'"),
    (lambda tf, s: s.run(keel.array(1)), TypeError, "invalid type"),
    (lambda tf, s: tf.get_default_graph().get_tensor_by_name("x"), ValueError, "<op_name>:<output_index>"),
    (lambda tf, s: tf.get_default_graph().get_operation_by_name("x:0"), ValueError, "refers to a Tensor"),
    (lambda tf, s: tf.placeholder(tf.float32), ValueError, "give a shape"),
    (lambda tf, s: tf.Session(graph=keel.Graph()), TypeError, "graph must be a tf.Graph"),
    (lambda tf, s: tf.Variable(tf.placeholder(tf.float32, [None])), ValueError, "must have a shape"),
    (lambda tf, s: tf.train.Saver(), ValueError, "No variables to save"),
    (lambda tf, s: tf.train.GradientDescentOptimizer(1.).minimize(tf.constant(1.)), ValueError, "No gradients"),
    (lambda tf, s: tf.layers, AttributeError, "has no 'layers'")])
def test_wrong_uses_are_errors(tf, wrong, kind, said):
    with tf.Session() as sess, pytest.raises(kind, match=said):
        wrong(tf, sess)


def test_sessions_close_and_nest(tf):
    c = tf.constant(3)
    with tf.Session() as sess:
        assert c.eval() == 3 and tf.get_default_session() is sess
    with pytest.raises(RuntimeError, match="closed Session"):
        sess.run(c)
    other = tf.InteractiveSession()
    with tf.Session().as_default() as inner:
        assert tf.get_default_session() is inner
    assert tf.get_default_session() is other and c.eval(session=inner) == 3
    other.close(), other.close()
    assert tf.get_default_session() is None


def test_variables_must_be_initialised(tf):
    w = tf.Variable([[1., 2.]], name="w")
    unused = tf.Variable(tf.random_normal([3]), name="w")
    y = tf.matmul(w, [[10.], [1.]])
    assert [v.name for v in tf.global_variables()] == ["w:0", "w_1:0"] and unused.shape == (3,)
    with tf.Session() as sess:
        for needs in (y, w, [w, y]):
            with pytest.raises(tf.errors.FailedPreconditionError, match="Attempting to use uninitialized value w"):
                sess.run(needs)
        assert sess.run(tf.constant(1)) == 1 and sess.run(y + 1., {y: [[4.]]}) == 5
        sess.run(w.initializer)
        assert sess.run(y) == 12 and (sess.run("w:0") == [[1, 2]]).all() and w.eval().shape == (1, 2)
        with pytest.raises(tf.errors.FailedPreconditionError, match="w_1"):
            sess.run(unused + 1.)
        assert sess.run(tf.global_variables_initializer()) is None and len(set(sess.run(unused))) == 3


def test_assignments_run_where_they_are_fetched(tf):
    v = tf.Variable(1)
    twice = v * 2
    change = tf.assign(v, 5)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(twice) == 2 and sess.run(change) == 5 and sess.run(twice) == 10
        assert sess.run(v.assign_add(1)) == 6 and sess.run(tf.assign_sub(v, 2)) == 4
        change.run()
        assert sess.run(v + 0) == 5 and sess.run([v - 1, 1 + v, -v, v > 4]) == [4, 6, -5, True]


def test_assignments_in_branches_run_with_them(tf):
    v, x = tf.Variable(1.), tf.placeholder(tf.float32, [])
    new = tf.cond(x > 0., lambda: tf.assign(v, x), lambda: v.assign_sub(10.))
    after = v * 2.
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert [sess.run(new, {x: 7.}), sess.run(v), sess.run([new, after], {x: -1.})] == [7, 7, [-3, -6]]

    def twice():
        assert v.assign_add(1.).targets == []  # the branch's node fails
        return v * 10. + v
    read_there = tf.cond(x > 0., twice, lambda: v * 1.)
    with tf.Session() as sess:
        assert [sess.run(read_there, {x: at}) for at in (1., -1.)] == [-22, -2]


def test_control_dependencies_run_before(tf):
    count = tf.Variable(0)
    step = count.assign_add(1)
    with tf.control_dependencies([step]):
        after = tf.identity(count)
        derived = after * 10
    free = count * 100
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert [sess.run(after), sess.run(derived), sess.run(free), sess.run(tf.negative(after))] == [1, 20, 200, -3]
        sess.run(tf.group(step, step)), sess.run(tf.no_op())
        assert sess.run(count) == 4


def test_gradients_of_variables_and_tensors(tf):
    w, x = tf.Variable(3.), tf.placeholder(tf.float32, [])
    y = w * x + w * w
    dw, dx, none = tf.gradients(y, [w, x, tf.constant(1.)])
    both = tf.cond(x > 0., lambda: w * 2., lambda: w * 5.)
    slope, = tf.gradients(both, w)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run([dw, dx], {x: 10.}) == [16, 3] and none is None
        assert [sess.run(slope, {x: at}) for at in (1., -1.)] == [2, 5]
    before = w * 2.
    w.assign_add(1.)
    both_reads, = tf.gradients(before + w * 5., [w])
    with tf.Session() as sess:
        assert sess.run(both_reads) == 7
    with tf.Graph().as_default(), pytest.raises(keel.Error):
        tf.gradients(tf.constant(1), [x])
    assert tf.gradients([y, y], x, grad_ys=[tf.constant(1.), tf.constant(2.)])[0] is not None


def test_training_learns(tf):
    rng = np.random.default_rng(1)
    images = rng.random((60, 3), "f4")
    labels = (images[:, 0] > images[:, 1]).astype("i4")
    x, t = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32, [None])
    w, b = tf.Variable(tf.random_normal([3, 2], stddev=0.1), name="w"), tf.Variable(tf.zeros([2]), name="b")
    logits = tf.matmul(x, w) + b
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=logits))
    steps = tf.Variable(0, trainable=False)
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss, global_step=steps)
    right = tf.reduce_mean(tf.cast(tf.equal(tf.cast(tf.argmax(logits, 1), tf.int32), t), tf.float32))
    assert {v.name for v in tf.trainable_variables()} == {"w:0", "b:0"}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        losses = [sess.run([loss, train], {x: images, t: labels})[0] for _ in range(80)]
        assert losses[-1] < 0.4 < losses[0] and right.eval(feed_dict={x: images, t: labels}) > 0.9
        assert sess.run(steps) == 80


def test_one_step_of_descent_is_exact(tf):
    w = tf.Variable([1., 2.])
    train = tf.train.GradientDescentOptimizer(tf.constant(.5)).minimize(tf.reduce_sum(w * w))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        assert sess.run(w).tolist() == [0, 0]


def test_random_numbers_are_new_in_each_run(tf):
    tf.set_random_seed(3)
    x, y = tf.random_normal([4]), tf.random_uniform([4], maxval=10, dtype=tf.int32)
    with tf.Session() as sess:
        runs = [sess.run([x, y]) for _ in range(3)]
    assert len({tuple(r[0]) for r in runs}) == 3
    tf.reset_default_graph()
    tf.set_random_seed(3)
    x = tf.random_normal([4])
    assert (tf.Session().run(x) == runs[0][0]).all()


def test_savers_keep_variables_by_name(tf, tmp_path):
    a, b = tf.Variable([1., 2.], name="a"), tf.Variable(7, name="b")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(sess, str(tmp_path / "model"), global_step=3)
        assert path.endswith("model-3")
        sess.run([a.assign([0., 0.]), b.assign(0)])
        tf.train.Saver({"a": a}).restore(sess, path)
        assert sess.run(a).tolist() == [1, 2] and sess.run(b) == 0


def test_nodes_are_placed_by_tensorflows_names(tf):
    x = tf.placeholder(tf.float32, [])
    with tf.device("/job:localhost/replica:0/task:0/device:REFERENCE:0"):
        y = x + 1.
        with tf.device(None):
            z = tf.multiply(y, 2.)
    assert tf.Session().run(z, {x: 2}) == 6
    text = tf.get_default_graph().as_graph_def()
    assert 'mul(add, 2.0) :' in text
    assert ('add(placeholder, 1.0) @"reference:0"' in text) == (tf.Session().device != "reference")
    with pytest.raises(keel.UnimplementedError, match="clusters are not supported"):
        with tf.device("/job:worker/task:1/cpu:0"):
            pass


def test_eager_execution_begins_before_the_graph(tf):
    tf.constant(1)
    with pytest.raises(ValueError, match="must be called at program startup"):
        tf.enable_eager_execution()
    tf.reset_default_graph()
    tf.enable_eager_execution()
    v = tf.Variable(2.)
    tf.train.GradientDescentOptimizer(.25).minimize(lambda: v * v, var_list=[v])
    assert tf.add(1, 2).numpy() == 3 and v.numpy() == 1


def test_graphs_are_freed_with_all_they_hold(tf):
    def used():
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            w = tf.Variable(tf.zeros([2]))
            sess.run(tf.global_variables_initializer())
            sess.run(tf.gradients(tf.reduce_sum(w * w), w))
        return weakref.ref(graph), weakref.ref(sess)
    references = used()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_configs_are_heeded_or_refused(tf):
    config = tf.ConfigProto(allow_soft_placement=True, intra_op_parallelism_threads=1)
    config.gpu_options.allow_growth = True
    assert tf.Session(config=config).run(tf.constant(2)) == 2
    spec = tf.train.ClusterSpec({"ps": ["a:1"], "worker": {3: "b:2"}})
    assert spec.jobs == ["ps", "worker"] and spec.as_dict() == {"ps": ["a:1"], "worker": {3: "b:2"}}
    assert spec.job_tasks("ps") == ["a:1"]
    with pytest.raises(ValueError, match="No such job"):
        spec.num_tasks("chief")
