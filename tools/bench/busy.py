"""Measures workloads on a loaded machine: with all threads, with one thread, and in ONNX Runtime with all threads.

Usage: busy.py [NAME...] [--loads quiet,busy1,...] [--rounds 7] [--threads N] [--limit 2.5] [--model FILE --input SHAPE]
               [--json FILE]
  NAME: a workload of WORKS below (default: all); with --model also `model`, an .onnx file with one f32 input
  --loads: quiet; busyN: N processes that are always busy; partN: N processes that are busy 4 ms of every 7; again: a second
           Keel process that repeats the same workload; quotaN: all sides share N percent of a core
           (needs root); coresN: after the start, all sides are restricted to N cores. Default: quiet, one process, one and two
           per core, again

busy.py starts the load itself. Each side is a separate process; the sides alternate within each round because a loaded
machine does not repeat its behaviour. A line has the median run of each side, and the median over the rounds of two ratios of
Keel with all threads to Keel with one: by the median of a round, and by its mean, which includes rare long runs.
Exit code 1: a ratio of medians is above --limit.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests" / "python")]

import limits  # noqa: E402
import numpy as np  # noqa: E402
from figures import time_text  # noqa: E402
from host import host  # noqa: E402
from models import WORKLOADS  # noqa: E402
from worker import Worker, failure  # noqa: E402

SPAN, MOST = 0.25, 400  # s and runs, of one turn
BUSY = "while True: pass"
PART = """
import time
while True:
    end = time.perf_counter() + 0.004
    while time.perf_counter() < end: pass
    time.sleep(0.003)
"""


# ---- workloads: name: (title, inputs, build(graph, *values)); the last `fixed` inputs are constants

def normal(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def conv(g, x, w):
    return g.node("conv", x, w, lo=[1, 1], hi=[1, 1])


def weights_gradient(channels):
    def build(g, dy, x):
        return g.node("conv_grad_w", dy, x, dims=[*channels, 3, 3], stride=[1, 1], dil=[1, 1], lo=[1, 1])
    return build


LAUNCHES = {
    "sum": ("reduce_sum of 64x64x64", [(64, 64, 64)], lambda g, x: g.node("reduce_sum", x, axes=[0, 1, 2])),
    "add": ("add of a million", [(1_000_000,), (1_000_000,)], lambda g, x, y: g.node("add", x, y)),
    "tanh": ("tanh of 65,536", [(65_536,)], lambda g, x: g.node("tanh", x)),
    "softmax": ("softmax of 512x512", [(512, 512)], lambda g, x: g.node("softmax", x, axis=1)),
    "product": ("product 256x256x256", [(256, 256), (256, 256)], lambda g, x, y: g.node("matmul", x, y)),
    "large_product": ("product 1024x1024x1024", [(1024, 1024)] * 2, lambda g, x, y: g.node("matmul", x, y)),
    "deep_product": ("product 8x4608x64", [(8, 4608), (4608, 64)], lambda g, x, y: g.node("matmul", x, y)),
    "conv": ("conv 3x3, 1x64x56x56 to 64", [(1, 64, 56, 56), (64, 64, 3, 3)], conv),
    "conv_grad_w": ("its gradient, 8x32x32x32", [(8, 32, 32, 32)] * 2, weights_gradient((32, 32))),
    "large_conv_grad_w": ("the same of 512 to 1,024, 8x14x14", [(8, 1024, 14, 14), (8, 512, 14, 14)], weights_gradient((1024, 512))),
}
MODELS = ["mobilenet", "resnet50", "mlp1"]
WORKS = [*LAUNCHES, *MODELS]


class Launch:
    """A plan of one op."""

    def __init__(self, name, threads):
        import keel_abi as k
        _, shapes, build = LAUNCHES[name]
        inputs = [normal(*s) for s in shapes]
        module = k.Context(threads=threads).module()
        graph = module.graph("main")
        graph.result("y", build(graph, *[graph.param(f"x{i}", np.float32, s) for i, s in enumerate(shapes)]))
        module.entry("main", graph)
        plan = module.session("cpu").prepare()
        self.once = lambda: plan.run(*inputs)


class KeelModel:
    def __init__(self, path, inputs, threads):
        from forms import keel_form
        keel = keel_form.package()
        plan = keel.Session(keel.import_file(path), "cpu", threads=threads).prepare()
        arrays = [keel.array(x) for x in inputs]
        self.once = lambda: plan(*arrays)


class OrtModel:
    def __init__(self, path, inputs, threads):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        feeds = {i.name: x for i, x in zip(session.get_inputs(), inputs)}
        self.once = lambda: session.run(None, feeds)


def serve(connection, side, name, path, inputs, threads):
    """Sends a ready message; then, per received number of seconds, the times of the runs that fit; 0: runs until terminated."""
    try:
        if path is None:
            runner = Launch(name, threads)
        else:
            runner = (OrtModel if side == "onnxruntime" else KeelModel)(path, inputs, threads)
        for _ in range(5):
            runner.once()
        connection.send("ready")
        while (span := connection.recv()) is not None:
            while span == 0:
                runner.once()
            times, stop = [], time.perf_counter() + span
            while len(times) < 3 or (len(times) < MOST and time.perf_counter() < stop):
                start = time.perf_counter()
                runner.once()
                times.append(time.perf_counter() - start)
            connection.send(times)
    except Exception as e:  # the parent reports it
        connection.send(failure(side, e))


@contextlib.contextmanager
def load(kind, begin, pids):
    """Applies the load or limit `name` for the duration of the block."""
    name, count = kind.rstrip("0123456789"), int("".join(c for c in kind if c.isdigit()) or 0)
    if name in ("quota", "cores"):
        with limits.quota(count / 100, pids) if name == "quota" else limits.cores(count, pids):
            yield
        return
    code = {"busy": BUSY, "part": PART}.get(name)
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count if code else 0)]
    other = begin() if kind == "again" else None
    if other is not None:
        other.connection.send(0)
    time.sleep(0.3)
    try:
        yield
    finally:
        for p in [*processes, *([other.process] if other else [])]:
            p.kill()
        for p in processes:
            p.wait()


def measure(name, what, path, inputs, args):
    """The rows of one workload, one per load."""
    rows, sides = [], {"keel": args.threads, "one_thread": 1}
    if path is not None:
        sides["onnxruntime"] = args.threads

    def begin(side="keel"):
        worker = Worker(serve, side, name, path, inputs, sides[side])
        worker.first  # noqa: B018  ready, or raises the reason
        return worker
    workers = {side: begin(side) for side in sides}
    for kind in args.loads:
        turns = {side: [] for side in sides}
        with load(kind, begin, [w.process.pid for w in workers.values()]):
            for i in range(args.rounds):
                for side in [*sides][i % len(sides):] + [*sides][:i % len(sides)]:
                    turns[side].append(workers[side].ask(SPAN))
        row = {"work": name, "what": what, "load": kind,
               "ms": {s: 1e3 * statistics.median(t for turn in all for t in turn) for s, all in turns.items()},
               "worst_ms": 1e3 * max(t for turn in turns["keel"] for t in turn)}
        for key, middle in (("ratio", statistics.median), ("ratio_of_means", statistics.mean)):
            row[key] = statistics.median(middle(a) / middle(b) for a, b in zip(turns["keel"], turns["one_thread"]))
        rows.append(row)
        cells = "  ".join(f"{time_text(row['ms'][s]):>8}" for s in sides)
        print(f"{what:36} {kind:7} {cells:30}  worst {time_text(row['worst_ms']):>8}  ratio {row['ratio']:.2f}, of means "
              f"{row['ratio_of_means']:.2f}{'   MISSED' if row['ratio'] > args.limit else ''}", flush=True)
    for worker in workers.values():
        worker.stop()
    return rows


def parse():
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--loads", type=lambda s: s.split(","),
                        default=["quiet", "busy1", f"busy{cores}", f"busy{2 * cores}", "again"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=cores)
    parser.add_argument("--limit", type=float, default=2.5)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--input", help="the shape of its input: 1x3x48x192")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    known = [*WORKS, *(["model"] if args.model else [])]
    if unknown := set(args.names) - set(known):
        parser.error(f"unknown name: {', '.join(sorted(unknown))}; the names are {', '.join(known)}")
    args.names = args.names or known
    return args


def main():
    args, rows = parse(), []
    print(f"{'work':36} {'load':7} {'all threads, one, ONNX Runtime':30}")
    with tempfile.TemporaryDirectory(prefix="keel-busy-") as folder:
        for name in args.names:
            if name in LAUNCHES:
                rows += measure(name, LAUNCHES[name][0], None, None, args)
                continue
            path, what = args.model, args.model and args.model.name
            if name == "model":
                inputs = [normal(*map(int, args.input.split("x")))]
            else:
                from forms import onnx_form
                model, make, what = WORKLOADS[name]
                inputs = make()
                path = onnx_form.write(model, inputs, Path(folder) / f"{name}.onnx")
            rows += measure(name, what, path, inputs, args)
    if args.json:
        args.json.write_text(json.dumps({"schema": "keel.busy-bench/1", "threads": args.threads, "host": host(), "rounds": args.rounds,
                                         "results": rows}, indent=1))
    return 0 if all(r["ratio"] <= args.limit for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
