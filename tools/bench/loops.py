#!/usr/bin/env python3
"""Loops compared with JAX and TensorFlow: a while of 1,000 iterations over scalars, a scan of 100 steps of an LSTM cell.

    .venv/bin/python tools/bench/loops.py [--rounds 15] [--threads 1] [--json FILE]

All sides share one process and alternate; a figure is the median over the rounds of the best of several
calls from Python; answers are compared first. JAX is jit-compiled; TensorFlow runs a traced function, with and without XLA.
"""
import argparse
import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "python")]
import peers  # noqa: E402

if __name__ == "__main__":
    peers.use()
import numpy as np  # noqa: E402
from bench import row_of  # noqa: E402
from figures import show, summary  # noqa: E402
from host import host  # noqa: E402

STEPS, WIDTH, ITERATIONS = 100, 64, 1000

WHILE = """keel 1
fn @main(x: f32[], n: i32[]) -> f32[] {
  i, a = while(0, 0.0, x, n){carry=2}
    test(i, a, x, n) { t = less(i, n)
      yield t }
    body(i, a, x, n) { j = i + 1
      b = a * 0.5
      c = add(b, x)
      yield j, c }
  return a
}
"""
LSTM = """keel 1
%s
fn @main(x: f32[%d, 1, %d]) -> f32[1, %d] {
  h, c = scan(zero, zero, x){carry=2}
    body(h, c, x) {
      u = matmul(x, wx)
      v = matmul(h, wh)
      g = add(add(u, v), b)
      i, f, t, o = split(g){axis=1, sizes=[%d, %d, %d, %d]}
      m = mul(sigmoid(f), c)
      n = mul(sigmoid(i), tanh(t))
      d = add(m, n)
      k = mul(sigmoid(o), tanh(d))
      yield k, d
    }
  return h
}
"""


def weights():
    rng = np.random.default_rng(1)
    shapes = {"wx": (WIDTH, 4 * WIDTH), "wh": (WIDTH, 4 * WIDTH), "b": (4 * WIDTH,), "zero": (1, WIDTH)}
    w = {name: (rng.standard_normal(shape) / 8).astype(np.float32) for name, shape in shapes.items()}
    return {**w, "zero": np.zeros((1, WIDTH), np.float32)}


def keel_side(threads, device):
    from forms import keel_form
    keel = keel_form.package()
    consts = "\n".join(f'const {n}: f32[{", ".join(map(str, v.shape))}] = hex"{v.tobytes().hex()}"'
                       for n, v in weights().items())
    lstm = LSTM % (consts, STEPS, WIDTH, WIDTH, *[WIDTH] * 4)

    def side(text, *inputs):
        plan = keel.Session(keel.parse(text), device, threads=threads).prepare()
        arrays = [keel.array(x) for x in inputs]
        return lambda: np.asarray(plan(*arrays))
    return side(WHILE, np.float32(1), np.int32(ITERATIONS)), side(lstm, sequence())


def sequence():
    return np.random.default_rng(2).standard_normal((STEPS, 1, WIDTH)).astype(np.float32)


def jax_side():
    import jax
    import jax.numpy as jnp
    w = weights()

    @jax.jit
    def loop(x, n):
        return jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + x), (0, 0.0))[1]

    def cell(carry, x):
        h, c = carry
        i, f, t, o = jnp.split(x @ w["wx"] + h @ w["wh"] + w["b"], 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(t)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    @jax.jit
    def lstm(x):
        return jax.lax.scan(cell, (w["zero"], w["zero"]), x)[0][0]
    x, n, rows = jnp.float32(1), jnp.int32(ITERATIONS), jnp.asarray(sequence())
    return lambda: np.asarray(loop(x, n)), lambda: np.asarray(lstm(rows))


def tf_side(xla):
    import tensorflow as tf
    w = {name: tf.constant(v) for name, v in weights().items()}

    @tf.function(jit_compile=xla)
    def loop(x, n):
        return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * 0.5 + x), (0, 0.0))[1]

    @tf.function(jit_compile=xla)
    def lstm(x):
        def step(k, h, c):
            i, f, t, o = tf.split(x[k] @ w["wx"] + h @ w["wh"] + w["b"], 4, axis=1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(t)
            return k + 1, tf.sigmoid(o) * tf.tanh(c), c
        return tf.while_loop(lambda k, h, c: k < STEPS, step, (0, w["zero"], w["zero"]))[1]
    x, n, rows = tf.constant(1.0), tf.constant(ITERATIONS), tf.constant(sequence())
    return lambda: loop(x, n).numpy(), lambda: lstm(rows).numpy()


def best(call, seconds=0.05):
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--rounds", type=int, default=15)
    args.add_argument("--threads", type=int, default=1)
    args.add_argument("--device", default="cpu")
    args.add_argument("--json", help="a file for all figures")
    args = args.parse_args()
    if args.threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        os.environ["TF_NUM_INTRAOP_THREADS"] = os.environ["TF_NUM_INTEROP_THREADS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    report = {"schema": "keel.loops-bench/1", "threads": args.threads, "host": host(), "results": []}
    print(summary(report), flush=True)
    sides = {"keel": keel_side(args.threads, args.device)}
    for name, make in (("jax", jax_side), ("tensorflow", lambda: tf_side(False)), ("tensorflow_xla", lambda: tf_side(True))):
        try:
            sides[name] = make()
        except ImportError as e:
            print(f"{name}: not measured: {e}", file=sys.stderr)
    for k, what in enumerate((f"while, {ITERATIONS:,} iterations over scalars", f"scan, {STEPS} steps of an LSTM cell of {WIDTH}")):
        want = sides["keel"][k]()
        for name, side in sides.items():
            np.testing.assert_allclose(side[k](), want, rtol=1e-3, atol=1e-4, err_msg=name)
        times = {name: [] for name in sides}
        for _ in range(args.rounds):
            for name, side in sides.items():
                times[name].append(best(side[k]))
        variants = ["tensorflow", "tensorflow_xla"]  # the faster counts
        best_tf = min((n for n in variants if n in times), key=lambda n: sorted(times[n])[args.rounds // 2], default=None)
        kept = {"tensorflow" if n == best_tf else n: t for n, t in times.items() if n == best_tf or n not in variants}
        report["results"].append(row_of(what, what, kept, variants={"tensorflow": best_tf}))
        print(show(report["results"][-1]), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
