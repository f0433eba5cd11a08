"""Eager execution in TensorFlow 1: the other programs of a Chinese article."""
import keel.compat.v1 as tf

tf.enable_eager_execution()  # must enable eager mode immedately after importing

# -- Z7
w = tf.Variable([[1.0]])
with tf.GradientTape() as tape:
    loss = w * w

grad = tape.gradient(loss, w)
print(grad)  # => tf.Tensor([[ 2.]], shape=(1, 1), dtype=float32)
#> tf.Tensor([[2.]], shape=(1, 1), dtype=float32)

# -- Z8
print(tf.executing_eagerly())  # outputing True
#> True

# -- Z15
a = tf.constant([[1, 2],
                 [3, 4]])
print(a)  # creat an usual Tensor object with numpy.ndarray
#> tf.Tensor(
#> [[1 2]
#>  [3 4]], shape=(2, 2), dtype=int32)

b = tf.add(a, 1)  # creat another Tensor object by broadcast adding 1
print(b)
#> tf.Tensor(
#> [[2 3]
#>  [4 5]], shape=(2, 2), dtype=int32)

import numpy as np

c = np.multiply(a, b)
print(type(c), c)
#> <class 'numpy.ndarray'> [[ 2  6]
#>  [12 20]]

# -- Z16
try:
    tf.placeholder(tf.float32, shape=(2, 2))
except RuntimeError as e:
    print(f"{type(e).__name__}: {e}")
#> RuntimeError: tf.placeholder() is not compatible with eager execution.
