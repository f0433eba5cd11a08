#!/usr/bin/env python3
"""A step of SGD on a small convolution net beside PyTorch, JAX and TensorFlow.

    .venv/bin/python tools/bench/train_conv.py [--rounds 15] [--threads 2] [--batch 32]

Images 3x32x32; conv 3x3 to 32, relu, conv 3x3 to 32, relu, max pool 2x2; conv 3x3 to 64, relu, max pool 2x2; dense 128,
relu, dense 10; mean cross entropy; w - 0.01 dw. All sides are in one process and take turns; a figure is the median over
the rounds, each the best of several steps; the loss after the same steps is compared first.
"""
import argparse
import os
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "python")]
import peers  # noqa: E402

if __name__ == "__main__":
    peers.use()
import numpy as np  # noqa: E402
from loops import best, tell_ratio  # noqa: E402

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


def torch_side(batch, threads, compiled):
    import torch
    import torch.nn.functional as F
    torch.set_num_threads(threads)
    weights, x, labels = numbers(batch)
    w = {n: torch.tensor(v, requires_grad=True) for n, v in weights.items()}
    x, labels = torch.tensor(x), torch.tensor(labels.astype(np.int64))

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


def jax_side(batch):
    import jax
    import jax.numpy as jnp
    weights, x, labels = numbers(batch)

    def loss_of(w):
        def conv(v, k):
            v = jax.lax.conv_general_dilated(v, w[f"c{k}"], (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
            return jax.nn.relu(v + w[f"b{k}"])

        def pool(v):
            return jax.lax.reduce_window(v, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
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


def tf_side(batch, xla):
    import tensorflow as tf
    weights, x, labels = numbers(batch)
    # TensorFlow's CPU convolutions take channels last only
    w = {n: tf.Variable(np.ascontiguousarray(v.transpose(2, 3, 1, 0)) if n[0] == "c" else v.reshape(-1) if n in ("b1", "b2", "b3") else v)
         for n, v in weights.items()}
    order = np.arange(64 * 8 * 8).reshape(64, 8, 8).transpose(1, 2, 0).reshape(-1)
    w["w4"].assign(weights["w4"][order])
    image, label = tf.constant(np.ascontiguousarray(x.transpose(0, 2, 3, 1))), tf.constant(labels)

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


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--rounds", type=int, default=15)
    args.add_argument("--threads", type=int, default=2)
    args.add_argument("--batch", type=int, default=32)
    args.add_argument("--device", default="cpu")
    args = args.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    makers = {"Keel": lambda: keel_side(args.batch, args.threads, args.device),
              "PyTorch": lambda: torch_side(args.batch, args.threads, False),
              "PyTorch compiled": lambda: torch_side(args.batch, args.threads, True), "JAX": lambda: jax_side(args.batch),
              "TensorFlow": lambda: tf_side(args.batch, False), "TensorFlow XLA": lambda: tf_side(args.batch, True)}
    sides = {}
    for name, make in makers.items():
        try:
            sides[name] = make()
            losses = [sides[name]() for _ in range(5)]
        except Exception as e:  # a peer that is not there, or has no compiler
            sides.pop(name, None)
            print(f"{name}: not measured: {str(e).splitlines()[0] if str(e) else type(e).__name__}", file=sys.stderr)
            continue
        if name == "Keel":
            wanted = losses
        np.testing.assert_allclose(losses, wanted, rtol=1e-3, err_msg=name)
    times = {name: [] for name in sides}
    for _ in range(args.rounds):
        for name, side in sides.items():
            times[name].append(best(side, 0.2))
    medians = {name: statistics.median(t) for name, t in times.items()}
    print(", ".join(f"{name} {1e3 * t:.2f} ms" for name, t in medians.items()))
    tell_ratio(times, medians)


if __name__ == "__main__":
    main()
