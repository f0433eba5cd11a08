"""A step of SGD on a small convolution net, written idiomatically for each side. begin(side, batch, threads, device) -> step() -> the loss."""
import os
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / "tests" / "python")]
SHAPES = {"c1": (32, 3, 3, 3), "b1": (32, 1, 1), "c2": (32, 32, 3, 3), "b2": (32, 1, 1), "c3": (64, 32, 3, 3), "b3": (64, 1, 1),
          "w4": (64 * 8 * 8, 128), "b4": (128,), "w5": (128, 10), "b5": (10,)}
RATE = 0.01


def numbers(batch):
    rng = np.random.default_rng(3)
    weights = {n: np.asarray(rng.standard_normal(s) * (0 if n[0] == "b" else np.prod(s[1:] if n[0] == "c" else s[:1]) ** -0.5),
                             np.float32) for n, s in SHAPES.items()}
    return weights, rng.standard_normal((batch, 3, 32, 32)).astype(np.float32), rng.integers(0, 10, batch).astype(np.int32)


def keel_side(batch, threads, device):
    import keel_abi
    context = keel_abi.Context()
    weights, x, labels = numbers(batch)
    module = context.module()
    g = module.graph("step")
    image, label = g.param("x", np.float32, x.shape), g.param("labels", np.int32, labels.shape)
    w = {n: g.param(n, np.float32, s) for n, s in SHAPES.items()}

    def conv(v, k):
        return g.node("relu", g.node("add", g.node("conv", v, w[f"c{k}"], lo=[1, 1], hi=[1, 1]), w[f"b{k}"]))

    def pool(v):
        return g.node("max_pool", v, window=[2, 2], stride=[2, 2])
    v = pool(conv(pool(conv(conv(image, 1), 2)), 3))
    v = g.node("reshape", v, to=[batch, -1])
    v = g.node("relu", g.node("add", g.node("matmul", v, w["w4"]), w["b4"]))
    v = g.node("add", g.node("matmul", v, w["w5"]), w["b5"])
    loss = g.node("reduce_mean", g.node("cross_entropy", v, label))
    rate = g.constant(np.float32(RATE))
    g.result("loss", loss)
    for n, d in zip(SHAPES, g.gradient([loss], list(w.values())), strict=True):
        g.result(f"next_{n}", g.node("sub", w[n], g.node("mul", d, rate)))
    module.entry("step", g)
    plan = module.session(device, threads=threads).prepare()
    state = {"w": [context.array(weights[n]) for n in SHAPES]}
    fed = [context.array(x), context.array(labels)]

    def step():
        loss, *state["w"] = plan.run_arrays(*fed, *state["w"])
        return float(loss.numpy())
    return step


def torch_side(batch, threads, compiled=False, last=False):
    """last: channels last, of images and of windows."""
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(threads)
    weights, x, labels = numbers(batch)

    def tensor(v):
        v = torch.tensor(v)
        return v.contiguous(memory_format=torch.channels_last) if last and v.ndim == 4 else v
    w = {n: tensor(v).requires_grad_() for n, v in weights.items()}
    x, labels = tensor(x), torch.tensor(labels.astype(np.int64))

    def forward(x, labels, w):
        v = F.relu(F.conv2d(x, w["c1"], w["b1"].reshape(-1), padding=1))
        v = F.max_pool2d(F.relu(F.conv2d(v, w["c2"], w["b2"].reshape(-1), padding=1)), 2)
        v = F.max_pool2d(F.relu(F.conv2d(v, w["c3"], w["b3"].reshape(-1), padding=1)), 2)
        v = F.relu(v.reshape(batch, -1) @ w["w4"] + w["b4"])
        return F.cross_entropy(v @ w["w5"] + w["b5"], labels)
    run = torch.compile(forward) if compiled else forward

    def step():
        loss = run(x, labels, w)
        loss.backward()
        with torch.no_grad():
            for v in w.values():
                v -= RATE * v.grad
                v.grad = None
        return loss.item()
    return step


def jax_side(batch, threads, last=False):
    """last: channels last, of images and of windows."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    weights, x, labels = numbers(batch)
    if last:
        x, weights = to_last(x, weights)
    images = ("NHWC", "HWIO", "NHWC") if last else ("NCHW", "OIHW", "NCHW")
    window = (1, 2, 2, 1) if last else (1, 1, 2, 2)

    def loss_of(w):
        def conv(v, k):
            v = jax.lax.conv_general_dilated(v, w[f"c{k}"], (1, 1), "SAME", dimension_numbers=images)
            return jax.nn.relu(v + w[f"b{k}"])

        def pool(v):
            return jax.lax.reduce_window(v, -jnp.inf, jax.lax.max, window, window, "VALID")
        v = pool(conv(pool(conv(conv(x, 1), 2)), 3)).reshape(batch, -1)
        v = jax.nn.relu(v @ w["w4"] + w["b4"]) @ w["w5"] + w["b5"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(v), labels[:, None], 1))

    @jax.jit
    def update(w):
        loss, d = jax.value_and_grad(loss_of)(w)
        return loss, {n: w[n] - RATE * d[n] for n in w}
    state = {"w": {n: jnp.asarray(v) for n, v in weights.items()}}

    def step():
        loss, state["w"] = update(state["w"])
        return float(loss)
    return step


def to_last(x, weights):
    """Images, windows, biases and the dense weights that follow, channels last."""
    order = np.arange(64 * 8 * 8).reshape(64, 8, 8).transpose(1, 2, 0).reshape(-1)
    turned = {n: np.ascontiguousarray(v.transpose(2, 3, 1, 0)) if n[0] == "c" else v.reshape(-1) if v.ndim == 3 else v[order] if n == "w4" else v
              for n, v in weights.items()}
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)), turned


def tf_side(batch, threads, xla=False):
    """Channels last, the only layout of TensorFlow's CPU convolutions."""
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "1"}
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    weights, x, labels = numbers(batch)
    x, weights = to_last(x, weights)
    w, image, label = {n: tf.Variable(v) for n, v in weights.items()}, tf.constant(x), tf.constant(labels)

    @tf.function(jit_compile=xla)
    def update():
        with tf.GradientTape() as tape:
            v = tf.nn.relu(tf.nn.conv2d(image, w["c1"], 1, "SAME") + w["b1"])
            v = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(v, w["c2"], 1, "SAME") + w["b2"]), 2, 2, "VALID")
            v = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(v, w["c3"], 1, "SAME") + w["b3"]), 2, 2, "VALID")
            v = tf.nn.relu(tf.reshape(v, (batch, -1)) @ w["w4"] + w["b4"]) @ w["w5"] + w["b5"]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, v))
        for v, d in zip(w.values(), tape.gradient(loss, list(w.values())), strict=True):
            v.assign_sub(RATE * d)
        return loss
    return lambda: float(update())


# side: (begin function, required module)
SIDES = {
    "keel": (keel_side, None),
    "torch": (lambda b, t, d: torch_side(b, t), "torch"),
    "torch_last": (lambda b, t, d: torch_side(b, t, last=True), "torch"),
    "torch_compiled": (lambda b, t, d: torch_side(b, t, compiled=True), "torch"),
    "torch_compiled_last": (lambda b, t, d: torch_side(b, t, compiled=True, last=True), "torch"),
    "jax": (lambda b, t, d: jax_side(b, t), "jax"),
    "jax_last": (lambda b, t, d: jax_side(b, t, last=True), "jax"),
    "tensorflow": (lambda b, t, d: tf_side(b, t), "tensorflow"),
    "tensorflow_xla": (lambda b, t, d: tf_side(b, t, xla=True), "tensorflow"),
}


def begin(side, batch, threads, device):
    return SIDES[side][0](batch, threads, device)
