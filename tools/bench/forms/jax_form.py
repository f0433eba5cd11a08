"""The models in JAX's own ops, compiled by jit; weights are arguments, so that they are not copied into the code."""
import os

import numpy as np
from forms.onnx_form import Given, weights_of


def ops():
    import jax
    import jax.numpy as jnp
    from jax import lax, nn

    class JaxForm:
        add, mul, matmul = jnp.add, jnp.multiply, jnp.matmul
        relu, relu6 = nn.relu, nn.relu6

        def dense(x, w, b):
            return x @ w + b

        def conv(x, w, stride, groups):
            pad = w.shape[-1] // 2
            return lax.conv_general_dilated(x, w, (stride,) * 2, ((pad, pad),) * 2, feature_group_count=groups)

        def batch_norm(x, scale, bias, mean, variance):
            factor = scale * lax.rsqrt(variance + 1e-5)
            return x * factor[:, None, None] + (bias - mean * factor)[:, None, None]

        def max_pool(x):
            window = ((0, 0), (0, 0), (1, 1), (1, 1))
            return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), window)

        def global_pool(x):
            return x.mean((2, 3))

        def softmax(x):
            return nn.softmax(x)

        def layer_norm(x, scale, bias, epsilon):
            centred = x - x.mean(-1, keepdims=True)
            return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + epsilon) * scale + bias

        def gelu(x):
            return nn.gelu(x, approximate=False)

        def gelu_tanh(x):
            return nn.gelu(x, approximate=True)

        def attention(q, k, v, heads, causal):
            shape = q.shape
            q, k, v = (x.reshape(*shape[:2], heads, -1) for x in (q, k, v))
            return nn.dot_product_attention(q, k, v, is_causal=causal).reshape(shape)

        def embed(table, ids):
            return table[ids]

        def scores(x, table):
            return x @ table.T
    return jax, JaxForm


def prepare(model, path, inputs, threads):
    """-> what runs the model once and waits for the answer."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])  # XLA takes a thread for each core it may use
    os.environ["JAX_PLATFORMS"] = "cpu"
    jax, form = ops()
    run = jax.jit(lambda weights, *xs: model(form, Given(weights), *xs))
    weights = [jax.numpy.asarray(w) for w in weights_of(path)]
    xs = [jax.numpy.asarray(np.asarray(x)) for x in inputs]
    return lambda: run(weights, *xs).block_until_ready()
