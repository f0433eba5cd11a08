"""The models in JAX's own ops, compiled by jit: weights as arguments and images channels first, or weights as constants of the
code and images channels last."""
import os

import numpy as np
from forms.onnx_form import Given, weights_of


def ops(last):
    """last: images have their channels last."""
    import jax
    import jax.numpy as jnp
    from jax import lax, nn

    class JaxForm:
        add, mul, matmul = jnp.add, jnp.multiply, jnp.matmul
        relu, relu6 = nn.relu, nn.relu6

        def dense(x, w, b):
            return x @ w + b

        def conv(x, w, stride, groups):
            pad = w.shape[0 if last else -1] // 2
            return lax.conv_general_dilated(x, w, (stride,) * 2, ((pad, pad),) * 2, feature_group_count=groups,
                                            dimension_numbers=("NHWC", "HWIO", "NHWC") if last else None)

        def batch_norm(x, scale, bias, mean, variance):
            factor = scale * lax.rsqrt(variance + 1e-5)
            parts = factor, bias - mean * factor
            factor, shift = parts if last else (p[:, None, None] for p in parts)
            return x * factor + shift

        def max_pool(x):
            window, stride, pad = ((1, k, k, 1) if last else (1, 1, k, k) for k in (3, 2, 1))
            return lax.reduce_window(x, -jnp.inf, lax.max, window, stride, [(p, p) if d != 1 else (0, 0) for p, d in zip(pad, window)])

        def global_pool(x):
            return x.mean((1, 2) if last else (2, 3))

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


def prepare(model, path, inputs, threads, constants=False):
    """-> a function that runs the model once and waits for the answer. constants: weights are compiled in, images channels last."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])  # XLA uses one thread per core of the affinity mask
    os.environ["JAX_PLATFORMS"] = "cpu"
    jax, form = ops(last=constants)
    weights, xs = ([np.asarray(a) for a in arrays] for arrays in (weights_of(path), inputs))
    if constants:
        weights = [w.transpose(2, 3, 1, 0) if w.ndim == 4 else w for w in weights]
        xs = [jax.numpy.asarray(x.transpose(0, 2, 3, 1) if x.ndim == 4 else x) for x in xs]
        run = jax.jit(lambda *xs: model(form, Given([jax.numpy.asarray(w) for w in weights]), *xs))
        return lambda: run(*xs).block_until_ready()
    run = jax.jit(lambda weights, *xs: model(form, Given(weights), *xs))
    weights, xs = ([jax.numpy.asarray(a) for a in arrays] for arrays in (weights, xs))
    return lambda: run(weights, *xs).block_until_ready()
