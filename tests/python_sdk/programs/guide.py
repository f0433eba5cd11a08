"""Introduction to graphs and functions: a Thai guide, without the part in relu.py."""
import keel.compat.v2 as tf
import timeit


# -- T4
# Define a Python function.
def a_regular_function(x, y, b):
    x = tf.matmul(x, y)
    x = x + b
    return x


# `a_function_that_uses_a_graph` is a TensorFlow `Function`.
a_function_that_uses_a_graph = tf.function(a_regular_function)

# Make some tensors.
x1 = tf.constant([[1.0, 2.0]])
y1 = tf.constant([[2.0], [3.0]])
b1 = tf.constant(4.0)

orig_value = a_regular_function(x1, y1, b1).numpy()
# Call a `Function` like a Python function.
tf_function_value = a_function_that_uses_a_graph(x1, y1, b1).numpy()
assert(orig_value == tf_function_value)


# -- T5
def inner_function(x, y, b):
    x = tf.matmul(x, y)
    x = x + b
    return x


# Use the decorator to make `outer_function` a `Function`.
@tf.function
def outer_function(x):
    y = tf.constant([[2.0], [3.0]])
    b = tf.constant(4.0)

    return inner_function(x, y, b)


# Note that the callable will create a graph that
# includes `inner_function` as well as `outer_function`.
outer_function(tf.constant([[1.0, 2.0]])).numpy()
#> array([[12.]], dtype=float32)


# -- T9
@tf.function
def my_relu(x):
    return tf.maximum(0., x)


# `my_relu` creates new graphs as it observes more signatures.
print(my_relu(tf.constant(5.5)))
print(my_relu([1, -1]))
print(my_relu(tf.constant([3., -3.])))
#> tf.Tensor(5.5, shape=(), dtype=float32)
#> tf.Tensor([1. 0.], shape=(2,), dtype=float32)
#> tf.Tensor([3. 0.], shape=(2,), dtype=float32)

# -- T10
# These two calls do *not* create new graphs.
print(my_relu(tf.constant(-2.5)))  # Signature matches `tf.constant(5.5)`.
print(my_relu(tf.constant([-1., 1.])))  # Signature matches `tf.constant([3., -3.])`.
#> tf.Tensor(0.0, shape=(), dtype=float32)
#> tf.Tensor([0. 1.], shape=(2,), dtype=float32)

# -- T11
# There are three `ConcreteFunction`s (one for each graph) in `my_relu`.
# The `ConcreteFunction` also knows the return type and shape!
print(my_relu.pretty_printed_concrete_signatures())
#> my_relu(x)
#>   Args:
#>     x: float32 Tensor, shape=()
#>   Returns:
#>     float32 Tensor, shape=()
#>
#> my_relu(x=[1, -1])
#>   Returns:
#>     float32 Tensor, shape=(2,)
#>
#> my_relu(x)
#>   Args:
#>     x: float32 Tensor, shape=(2,)
#>   Returns:
#>     float32 Tensor, shape=(2,)
#! today's TensorFlow has another layout than that of the guide


# -- T12
@tf.function
def get_MSE(y_true, y_pred):
    sq_diff = tf.pow(y_true - y_pred, 2)
    return tf.reduce_mean(sq_diff)


y_true = tf.random.uniform([5], maxval=10, dtype=tf.int32)
y_pred = tf.random.uniform([5], maxval=10, dtype=tf.int32)
print(y_true)
print(y_pred)
#> tf.Tensor([...], shape=(5,), dtype=int32)
#> tf.Tensor([...], shape=(5,), dtype=int32)
y_true, y_pred = tf.constant([1, 0, 4, 4, 7]), tf.constant([3, 6, 3, 0, 6])  # from the guide
get_MSE(y_true, y_pred)
#> <tf.Tensor: shape=(), dtype=int32, numpy=11>

# -- T13
tf.config.run_functions_eagerly(True)
get_MSE(y_true, y_pred)
#> <tf.Tensor: shape=(), dtype=int32, numpy=11>
# Don't forget to set it back when you are done.
tf.config.run_functions_eagerly(False)


# -- T14
@tf.function
def get_MSE(y_true, y_pred):
    print("Calculating MSE!")
    sq_diff = tf.pow(y_true - y_pred, 2)
    return tf.reduce_mean(sq_diff)


error = get_MSE(y_true, y_pred)
error = get_MSE(y_true, y_pred)
error = get_MSE(y_true, y_pred)
#> Calculating MSE!

# -- T15
# Now, globally set everything to run eagerly to force eager execution.
tf.config.run_functions_eagerly(True)
# Observe what is printed below.
error = get_MSE(y_true, y_pred)
error = get_MSE(y_true, y_pred)
error = get_MSE(y_true, y_pred)
#> Calculating MSE!
#> Calculating MSE!
#> Calculating MSE!
tf.config.run_functions_eagerly(False)


# -- T17
def unused_return_eager(x):
    # Get index 1 will fail when `len(x) == 1`
    tf.gather(x, [1])  # unused
    return x


try:
    print(unused_return_eager(tf.constant([0.0])))
except tf.errors.InvalidArgumentError as e:
    # All operations are run during eager execution so an error is raised.
    print(f'{type(e).__name__}: {e}')
#> InvalidArgumentError: ...1 is not in [0, 1)...


# -- T18
@tf.function
def unused_return_graph(x):
    tf.gather(x, [1])  # unused
    return x


# Only needed operations are run during graph exection. The error is not raised.
print(unused_return_graph(tf.constant([0.0])))
#> tf.Tensor([0.], shape=(1,), dtype=float32)

# -- T20
x = tf.random.uniform(shape=[10, 10], minval=-1, maxval=2, dtype=tf.dtypes.int32)


def power(x, y):
    result = tf.eye(10, dtype=tf.dtypes.int32)
    for _ in range(y):
        result = tf.matmul(x, result)
    return result


print("Eager execution:", timeit.timeit(lambda: power(x, 100), number=100))
#> Eager execution: ...
power_as_graph = tf.function(power)
print("Graph execution:", timeit.timeit(lambda: power_as_graph(x, 100), number=100))
#> Graph execution: ...
bool((power(x, 100) == power_as_graph(x, 100)).numpy().all())
#> True


# -- T22
@tf.function
def a_function_with_python_side_effect(x):
    print("Tracing!")  # An eager-only side effect.
    return x * x + tf.constant(2)


# This is traced the first time.
print(a_function_with_python_side_effect(tf.constant(2)))
# The second time through, you won't see the side effect.
print(a_function_with_python_side_effect(tf.constant(3)))
#> Tracing!
#> tf.Tensor(6, shape=(), dtype=int32)
#> tf.Tensor(11, shape=(), dtype=int32)

# -- T23
# This retraces each time the Python argument changes,
# as a Python argument could be an epoch count or other
# hyperparameter.
print(a_function_with_python_side_effect(2))
print(a_function_with_python_side_effect(3))
#> Tracing!
#> tf.Tensor(6, shape=(), dtype=int32)
#> Tracing!
#> tf.Tensor(11, shape=(), dtype=int32)
