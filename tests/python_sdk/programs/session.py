"""Sessions feed and fetch: the first program of a Chinese article."""
import keel.compat.v1 as tf
import numpy as np

# -- Z3
x = tf.placeholder(tf.float32, shape=(1024, 1024))  # use symbolic placeholder for data
y = tf.matmul(x, x)
try:
    with tf.Session() as sess:  # using tf.Session within its active context
        print(sess.run(y))  # ERROR: will fail because x was not fed.
except Exception as e:
    print(getattr(e, "message", e))
#> You must feed a value for placeholder tensor 'placeholder' with dtype float and shape [1024,1024]
#! default names are lower-case here; TensorFlow adds where the node is, and 2.21 fails while it does

# -- Z4
with tf.Session() as sess:
    rand_array = np.random.rand(1024, 1024)
    print(sess.run(y, feed_dict={x: rand_array}))  # Will succeed.
#> [[2...]
#>  ...
#>  [2...]]
try:
    tf.Session().run(y, feed_dict={x: np.zeros((3, 3))})
except ValueError as e:
    print(e)
#> Cannot feed value of shape (3, 3) for Tensor placeholder:0, which has shape (1024, 1024)
#! default names are lower-case here
