"""The models in TensorFlow's own ops, as one tf.function (plain, frozen or by XLA); images are channels last, as its CPU ops require."""
import os

import numpy as np
from forms.onnx_form import Given, weights_of


def ops():
    import tensorflow as tf
    nn = tf.nn

    class TfForm:
        add, mul, matmul = tf.add, tf.multiply, tf.matmul
        relu, relu6, softmax = nn.relu, nn.relu6, nn.softmax

        def dense(x, w, b):
            flat = tf.matmul(tf.reshape(x, (-1, w.shape[0])), w)
            return tf.reshape(nn.bias_add(flat, b), (*x.shape[:-1], w.shape[1]))

        def conv(x, w, stride, groups):
            pad = w.shape[0] // 2
            x = tf.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0))) if pad else x
            if groups > 1:
                w = tf.transpose(w, (0, 1, 3, 2))
                return nn.depthwise_conv2d(x, w, (1, stride, stride, 1), "VALID")
            return nn.conv2d(x, w, stride, "VALID")

        def batch_norm(x, scale, bias, mean, variance):
            return nn.batch_normalization(x, mean, variance, bias, scale, 1e-5)

        def max_pool(x):
            return nn.max_pool2d(tf.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), 3, 2, "VALID")  # after relu the minimum is 0

        def global_pool(x):
            return tf.reduce_mean(x, (1, 2))

        def layer_norm(x, scale, bias, epsilon):
            mean, variance = nn.moments(x, -1, keepdims=True)
            return nn.batch_normalization(x, mean, variance, bias, scale, epsilon)

        def gelu(x):
            return nn.gelu(x, approximate=False)

        def gelu_tanh(x):
            return nn.gelu(x, approximate=True)

        def attention(q, k, v, heads, causal):
            shape = q.shape
            q, k, v = (tf.transpose(tf.reshape(x, (*shape[:2], heads, -1)), (0, 2, 1, 3)) for x in (q, k, v))
            score = tf.matmul(q, k, transpose_b=True) / 8
            if causal:
                score += np.triu(np.full((shape[1],) * 2, -1e9, np.float32), 1)
            return tf.reshape(tf.transpose(tf.matmul(nn.softmax(score), v), (0, 2, 1, 3)), shape)

        def embed(table, ids):
            return tf.gather(table, ids)

        def scores(x, table):
            flat = tf.matmul(tf.reshape(x, (-1, table.shape[1])), table, transpose_b=True)
            return tf.reshape(flat, (*x.shape[:-1], table.shape[0]))
    return tf, TfForm


def frozen(tf, call, xs):
    """The graph with its weights as constants, so that TensorFlow folds and fuses them."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in xs]
    function = convert_variables_to_constants_v2(tf.function(call).get_concrete_function(*specs))
    return lambda: function(*xs)[0]


def prepare(model, path, inputs, threads, how="function"):
    """-> a function that runs the model once and returns a tensor. how: "function", "frozen" (with oneDNN) or "xla"."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"], os.environ["CUDA_VISIBLE_DEVICES"] = "3", ""
    if how == "frozen":
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
    tf, form = ops()
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    hold = tf.Variable if how == "frozen" else tf.constant
    weights = [hold(w.transpose(2, 3, 1, 0) if w.ndim == 4 else w) for w in weights_of(path)]
    xs = [tf.constant(np.transpose(x, (0, 2, 3, 1)) if np.ndim(x) == 4 else x) for x in inputs]

    def call(*tensors):
        return model(form, Given(weights), *tensors)
    if how == "frozen":
        return frozen(tf, call, xs)
    run = tf.function(call, jit_compile=how == "xla").get_concrete_function(*xs)
    return lambda: run(*xs)
