"""A step of SGD on an MLP, in the fastest form of each side. begin(side, numbers, threads) -> step() -> the loss."""
import os

from forms import keel_form

WIDTHS = (784, 128, 128, 128, 10)
RATE = 0.05


def torch_step(data, threads, compiled):
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(threads)
    x, labels = torch.tensor(data[0]), torch.tensor(data[1]).long()
    params = [torch.tensor(p.T.copy() if p.ndim == 2 else p, requires_grad=True) for p in data[2:]]

    def loss_of():
        h = x
        for k in range(0, len(params), 2):
            h = F.linear(h, params[k], params[k + 1])
            h = F.relu(h) if k + 2 < len(params) else h
        return F.cross_entropy(h, labels)
    forward = torch.compile(loss_of) if compiled else loss_of

    def step():
        loss = forward()
        with torch.no_grad():
            torch._foreach_add_(params, torch.autograd.grad(loss, params), alpha=-RATE)
        return loss.detach()
    return step


def jax_update(rate):
    """-> a compiled step: (params, x, labels) -> (params, loss). It takes the memory of params."""
    import jax
    import jax.numpy as jnp

    def loss_of(params, x, labels):
        for k in range(0, len(params), 2):
            x = x @ params[k] + params[k + 1]
            x = jax.nn.relu(x) if k + 2 < len(params) else x
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1))

    def update(params, x, labels):
        loss, grads = jax.value_and_grad(loss_of)(params, x, labels)
        return [p - rate * g for p, g in zip(params, grads)], loss
    return jax.jit(update, donate_argnums=0)


def jax_step(data, threads):
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax.numpy as jnp
    update = jax_update(RATE)
    x, labels, *params = (jnp.asarray(a) for a in data)

    def step():
        nonlocal params
        params, loss = update(params, x, labels)
        return loss
    return step


def tf_step(data, threads, how):
    os.environ["TF_CPP_MIN_LOG_LEVEL"], os.environ["CUDA_VISIBLE_DEVICES"] = "3", ""
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    x, labels = tf.constant(data[0]), tf.constant(data[1])
    params = [tf.Variable(p) for p in data[2:]]

    def step():
        with tf.GradientTape() as tape:
            h = x
            for k in range(0, len(params), 2):
                h = h @ params[k] + params[k + 1]
                h = tf.nn.relu(h) if k + 2 < len(params) else h
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=h))
        for p, g in zip(params, tape.gradient(loss, params)):
            p.assign_sub(RATE * g)
        return loss
    return step if how == "eager" else tf.function(step, jit_compile=how == "xla")


# side: its step
KEEL = {
    "keel_python_graph": lambda data, threads: keel_form.train_step(data, threads, "graph", RATE),
    "keel_python_eager": lambda data, threads: keel_form.train_step(data, threads, "eager", RATE),
}
PEERS = {
    "torch": lambda data, threads: torch_step(data, threads, False),
    "torch_compiled": lambda data, threads: torch_step(data, threads, True),
    "jax": jax_step,
    "tensorflow": lambda data, threads: tf_step(data, threads, "eager"),
    "tensorflow_graph": lambda data, threads: tf_step(data, threads, "graph"),
    "tensorflow_xla": lambda data, threads: tf_step(data, threads, "xla"),
}


def begin(side, data, threads):
    return (KEEL | PEERS)[side](data, threads)
