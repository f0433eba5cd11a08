"""Latency of a call from Python: an op on scalars, a graph of one node, 100 products of 10x10 as code and as a graph.

Usage: calls.py [NAME...] [--sides keel,torch,...] [--rounds 15] [--json FILE]
  NAME: add one power_eager power_graph (default: all)

All sides run idiomatic code on one thread; answers are compared first. Each side is a separate process; the sides
alternate within each round. Figures are medians; the ratio to the best peer has its 95 % interval. NumPy, which has neither graphs
nor gradients, is shown for scale.
"""
import argparse
import json
import os
import sys
import timeit
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
import peers  # noqa: E402

if __name__ == "__main__":
    peers.use()

import numpy as np  # noqa: E402
from bench import SPAN, refuse_unknown, rounds_of, row_of, start_sides  # noqa: E402
from figures import show, summary  # noqa: E402
from host import host  # noqa: E402
from worker import Worker, failure  # noqa: E402

# name: (title, limit in ms)
ROWS = {"add": ("add of two f32 scalars, eager", 80e-6),
        "one": ("call of a graph of one node", 120e-6),
        "power_eager": ("100 products 10x10 i32, eager", 12e-3),
        "power_graph": ("100 products 10x10 i32, graph", 6e-3)}
MATRIX = np.random.default_rng(3).integers(-1, 2, (10, 10)).astype(np.int32)


def power_of(matmul, eye):
    def power(x):
        result = eye
        for _ in range(100):
            result = matmul(x, result)
        return result
    return power


def keel_calls():
    from forms import keel_form
    keel = keel_form.package()
    x, m = keel.array(1.5), keel.array(MATRIX)
    power = power_of(keel.matmul, keel.eye(10, dtype=keel.i32))

    def plan(code, example):
        return keel.Session(keel.function(code).concrete(example), threads=1).prepare()
    one, graph = plan(lambda x: x + 1, x), plan(power, m)
    return {"add": (keel.add, x, x), "one": (one, x), "power_eager": (power, m), "power_graph": (graph, m)}


def keel_function_calls():
    """The same as traced functions, including the trace lookup of each call."""
    from forms import keel_form
    keel = keel_form.package()
    x, m = keel.array(1.5), keel.array(MATRIX)
    one, graph = keel.function(lambda x: x + 1), keel.function(power_of(keel.matmul, keel.eye(10, dtype=keel.i32)))
    return {"one": (one, x), "power_graph": (graph, m)}


def numpy_calls():
    x = np.float32(1.5)
    power = power_of(np.matmul, np.eye(10, dtype=np.int32))
    return {"add": (np.add, x, x), "power_eager": (power, MATRIX)}


def torch_calls():
    import torch
    torch.set_num_threads(1)
    x, m = torch.tensor(1.5), torch.tensor(MATRIX)
    power = power_of(torch.matmul, torch.eye(10, dtype=torch.int32))
    one, graph = torch.compile(lambda x: x + 1), torch.compile(power)
    return {"add": (torch.add, x, x), "one": (one, x), "power_eager": (power, m), "power_graph": (graph, m)}


def jax_calls():
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    x, m = jnp.float32(1.5), jnp.asarray(MATRIX)
    power = power_of(jnp.matmul, jnp.eye(10, dtype=jnp.int32))
    one, graph = jax.jit(lambda x: x + 1), jax.jit(power)
    return {"add": (jnp.add, x, x), "one": (one, x), "power_eager": (power, m), "power_graph": (graph, m)}


def tf_calls():
    os.environ["TF_CPP_MIN_LOG_LEVEL"], os.environ["CUDA_VISIBLE_DEVICES"] = "3", ""
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    x, m = tf.constant(1.5), tf.constant(MATRIX)
    power = power_of(tf.matmul, tf.eye(10, dtype=tf.int32))
    one, graph = tf.function(lambda x: x + 1), tf.function(power)
    return {"add": (tf.add, x, x), "one": (one, x), "power_eager": (power, m), "power_graph": (graph, m)}


# side: (calls and arguments, required module)
SIDES = {"keel": (keel_calls, None), "keel_function": (keel_function_calls, None), "numpy": (numpy_calls, None),
         "torch": (torch_calls, "torch"), "jax": (jax_calls, "jax"), "tensorflow": (tf_calls, "tensorflow")}


def serve(connection, side, name):
    """Sends the answer; then, per received number of calls, the seconds of one call."""
    try:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
        calls = SIDES[side][0]()
        if name not in calls:
            raise RuntimeError("has none")
        call, *given = calls[name]
        names = {f"x{k}": x for k, x in enumerate(given)}
        timer = timeit.Timer(f"call({', '.join(names)})", globals={"call": call, **names})  # no overhead around the call
        connection.send(np.asarray(call(*given)))
        while (runs := connection.recv()) is not None:
            timer.timeit(1)
            connection.send(timer.timeit(runs) / runs)
    except Exception as e:  # the parent reports it
        connection.send(failure(side, e))


def compare(name, args):
    what, limit = ROWS[name]
    workers, missing = start_sides(args.sides, SIDES, lambda side: Worker(serve, side, name))
    try:
        answers = {side: worker.first for side, worker in workers.items()}
        for side, answer in answers.items():
            np.testing.assert_array_equal(answer, next(iter(answers.values())), side)
        runs = {n: max(1, min(1_000_000, int(SPAN / w.ask(10)))) for n, w in workers.items()}
        times = rounds_of(workers, args.rounds, runs)
    finally:
        for worker in workers.values():
            worker.stop()
    row = row_of(name, what, {n: t for n, t in times.items() if n not in ("numpy", "keel_function")}, limit_ms=limit, missing=missing)
    row["ms"] |= {n: 1e3 * sorted(t)[len(t) // 2] for n, t in times.items() if n not in row["ms"]}
    return {**row, "met": "keel" not in row["ms"] or row["ms"]["keel"] <= limit}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ROWS))
    parser.add_argument("--sides", type=lambda s: s.split(","), default=list(SIDES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", help="a file for all figures")
    args = parser.parse_args()
    refuse_unknown(parser, (args.names, ROWS), (args.sides, SIDES))
    report = {"schema": "keel.calls-bench/2", "threads": 1, "host": host(), "results": []}
    rows = report["results"]
    print(summary(report), flush=True)
    for name in args.names or ROWS:
        rows.append(compare(name, args))
        print(show(rows[-1]), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(report, indent=1) + "\n")
    return 0 if all(r.get("ratio", 0) <= 1 and r["met"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
