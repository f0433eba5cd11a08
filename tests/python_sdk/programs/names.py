"""Graphs, their names and sessions: the first programs of a Korean page."""
import keel.compat.v1 as tf

# -- K4
tf.constant(3, name='const')
#> <tf.Tensor 'const:0' shape=() dtype=int32>

# tensorflow version 1.x
g = tf.get_default_graph()
# call 'const:0' tensor
g.get_tensor_by_name('const:0')
#> <tf.Tensor 'const:0' shape=() dtype=int32>
# call 'const' operation
g.get_operation_by_name('const')
#> <tf.Operation 'const' type=constant>
#! ops have lower-case names here

# -- K1
# create new graph
g = tf.Graph()
# set graph to default graph
# add node, tensor to graph
with g.as_default():
    a = tf.constant(3)
    b = tf.constant(5)
    c = a + b
# create session with graph g
sess = tf.Session(graph=g)
# get result from tensor c
sess.run(c)
#> np.int32(8)
