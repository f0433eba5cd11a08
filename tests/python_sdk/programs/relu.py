"""Converting Python functions to graphs: a part of a Thai guide."""
import keel.compat.v2 as tf


# -- T6
def simple_relu(x):
    if tf.greater(x, 0):
        return x
    else:
        return 0


# `tf_simple_relu` is a TensorFlow `Function` that wraps `simple_relu`.
tf_simple_relu = tf.function(simple_relu)

print("First branch, with graph:", tf_simple_relu(tf.constant(1)).numpy())
#> First branch, with graph: 1
print("Second branch, with graph:", tf_simple_relu(tf.constant(-1)).numpy())
#> Second branch, with graph: 0

# -- T7
# This is the graph-generating output of AutoGraph.
print(tf.autograph.to_code(simple_relu))
#> ...simple_relu(x)...tf.greater...
#! the code is another, and shorter, here

# -- T8
# This is the graph itself.
print(tf_simple_relu.get_concrete_function(tf.constant(1)).graph.as_graph_def())
#> keel 1
#> ...
#>   v0 = greater(x, 0) : bool[]
#> ...cond(v0, x)...i32(0)...
#! graphs are text of Keel's here
