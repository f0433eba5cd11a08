"""The example programs T16 to T26 in Python, named by their ids; see tests/rows/README.md."""
import keel
import numpy as np
import pytest
from rows_common import run, tf  # noqa: F401

pytestmark = pytest.mark.usefixtures("device")

EFFECTS = """import keel.compat.v2 as tf
v = tf.Variable(0)
@tf.function
def f(x):
    tf.gather(x, [1])  # pruned: it would fail
    tf.print("x is", x, output_stream=__import__("sys").stdout)
    tf.debugging.Assert(tf.reduce_max(x) < 9, ["too large"])
    v.assign_add(1)
    return x * 2
print(f(tf.constant([3])).numpy(), v.numpy(), flush=True)
try:
    f(tf.constant([9]))
except tf.errors.InvalidArgumentError as e:
    print("assertion failed" in str(e), v.numpy())
"""


def test_T16_only_observable_effects_run(device):
    assert run(EFFECTS.replace('["too large"]', "[x]"), device=device) == "x is [3]\n[6] 1\nx is [9]\nTrue 1\n"


def unused_return(tf):
    def unused_return_eager(x):
        # Get index 1 will fail when `len(x) == 1`
        tf.gather(x, [1])  # unused
        return x
    return unused_return_eager


def test_T17_an_eager_gather_out_of_range_fails(tf):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        x = tf.constant([0.0])
        unused_return(tf)(x)
        if (x + 0.0).device:  # a device with memory of its own: the index is compared later, and a read result raises
            tf.gather(x, [1]).numpy()
    assert type(caught.value).__name__ == "InvalidArgumentError" and "index 1 is not in [0, 1)" in str(caught.value)
    assert isinstance(caught.value, keel.RangeError) and isinstance(caught.value, IndexError)


def test_T18_an_unused_gather_is_pruned(tf):
    unused_return_graph = tf.function(unused_return(tf))
    assert str(unused_return_graph(tf.constant([0.0]))) == "tf.Tensor([0.], shape=(1,), dtype=float32)"
    strict = keel.Session(unused_return_graph.concrete(keel.f32[1]), strict="1").prepare()
    with pytest.raises(keel.RangeError):
        strict([0.0])


def test_T19_says_what_to_mend(tf):
    scale = tf.constant([2., 3.])
    f = keel.function(lambda x, n: x * scale + n, name="f")
    for n in range(5):
        f(tf.constant([1., 1.]), n)
    said = f.explain()
    for part in ("1. f(x: f32[2]) -> f32[2], 1 calls\n", "why: first call\n", "why: argument n was i64 0, now i64 1\n",
                 "captures", "most calls are traced: pass tensors in place of numbers"):
        assert part in said, said


def power(tf):
    def power(x, y):
        result = tf.eye(len(x), dtype=tf.dtypes.int32)
        for _ in range(y):
            result = tf.matmul(x, result)
        return result
    return power


def test_T20_power_wraps(tf):
    x = tf.constant([[1, 1], [1, 0]])
    for f in (power(tf), tf.function(power(tf))):
        assert f(x, 60).numpy().tolist() == [[764848393, 1820529360], [1820529360, -1055680967]]
    x = tf.random.uniform(shape=[10, 10], minval=-1, maxval=2, dtype=tf.dtypes.int32)
    wanted = np.linalg.matrix_power(x.numpy().astype(object), 100) % 2**32
    for f in (power(tf), tf.function(power(tf))):
        assert (f(x, 100).numpy().astype("u4") == wanted).all()


def test_T21_building_has_a_cost_of_its_own(tf):
    f = tf.function(power(tf))
    x = tf.constant(np.ones((10, 10), "i4"))
    for _ in range(3):
        f(x, 100)
    trace, = f.traces()
    assert trace["trace_ms"] > 0 and trace["plan_ms"] > 0 and trace["calls"] == 3


@pytest.fixture
def with_side_effect(tf):
    @tf.function
    def a_function_with_python_side_effect(x):
        print("Tracing!")  # An eager-only side effect.
        return x * x + tf.constant(2)
    return a_function_with_python_side_effect


def test_T22_tensors_do_not_retrace(tf, with_side_effect, capsys):
    print(with_side_effect(tf.constant(2)))
    print(with_side_effect(tf.constant(3)))
    assert capsys.readouterr().out == ("Tracing!\ntf.Tensor(6, shape=(), dtype=int32)\n"
                                       "tf.Tensor(11, shape=(), dtype=int32)\n")


def test_T23_python_numbers_do(with_side_effect, capsys):
    print(with_side_effect(2))
    print(with_side_effect(3))
    assert capsys.readouterr().out == ("Tracing!\ntf.Tensor(6, shape=(), dtype=int32)\n"
                                       "Tracing!\ntf.Tensor(11, shape=(), dtype=int32)\n")


def test_T24_new_numbers_are_new_graphs(tf):
    f = tf.function(lambda x: tf.constant(x))
    for x in (2, 3, 2, 2.0, True, 1):
        f(x)
    assert f.trace_count == 5  # 2.0 is not 2, and True is not 1
    assert [f(x).dtype for x in (2.0, 2, True, 1)] == [tf.float32, tf.int32, tf.bool, tf.int32]


def test_T25_random_and_eye(tf):
    five = tf.random.uniform([5], maxval=10, dtype=tf.int32)
    hundred = tf.random.uniform(shape=[10, 10], minval=-1, maxval=2, dtype=tf.dtypes.int32)
    assert (five.shape, five.dtype, hundred.shape, hundred.dtype) == ((5,), tf.int32, (10, 10), tf.int32)
    assert all(0 <= v < 10 for v in five.tolist()) and set(hundred.numpy().ravel()) == {-1, 0, 1}
    tf.random.set_seed(1)
    first, second = (tf.random.uniform([5], maxval=10, dtype=tf.int32) for _ in range(2))
    tf.random.set_seed(1)
    assert keel.same(tf.random.uniform([5], maxval=10, dtype=tf.int32), first) and not keel.same(first, second)
    keyed = [tf.random.normal([3], seed=5) for _ in range(2)]
    tf.random.set_seed(1)
    assert keel.same(tf.random.normal([3], seed=5), keyed[0]) and not keel.same(*keyed)
    assert (tf.eye(10, dtype=tf.dtypes.int32).numpy() == np.eye(10, dtype="i4")).all()
    with pytest.raises(ValueError, match="Must specify maxval for integer dtype"):
        tf.random.uniform([5], dtype=tf.int32)


def test_T26_signatures_avoid_retracing(tf):
    f = tf.function(lambda x: x + 1, input_signature=[tf.TensorSpec([None], tf.float32)])
    assert [f(tf.zeros(n)).shape for n in range(1, 6)] == [(n,) for n in range(1, 6)] and f.trace_count == 1
    with pytest.raises(keel.InvalidError):
        f(tf.zeros([2, 2]))
