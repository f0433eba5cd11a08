"""Graph execution and eager execution: the programs of a Vietnamese article."""
import keel.compat.v2 as tf

# -- V1
x = [[2.]]
m = tf.matmul(x, x)
print("hello, {}".format(m))  # => "hello, [[4.]]"
#> hello, [[4.]]


# -- V10
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
print(orig_value, tf_function_value)
#> [[12.]] [[12.]]

# -- V12
tf.config.run_functions_eagerly(True)
a_function_that_uses_a_graph(x1, y1, b1)
#> <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[12.]], dtype=float32)>
tf.config.run_functions_eagerly(False)
