"""Host time of the plugin vulkan beside its limits: recorded plans, launches, eager ops, small runs from host memory, and the start.

Usage: times.py [NAME...] [--rounds 9] [--json FILE]    KEEL_BUILD: the build folder
  NAME: plans eager small start (default: all)

plans, eager: bench_device on the driver of tests/vulkan, which executes nothing (DRIVER_IDLE), in processor time of the calling thread.
small: x + y of 1,000 f32 from host memory to host memory, eager and as a session; copies by the host and, with KEEL_VULKAN_STAGING=1,
by the device, in turn. start: `keel run -d vulkan` of an add of 1,000 f32, with a warm cache, minus a process that only creates an
instance, in turn; wall time, and processor time of all threads. Exit code 1: a limit is missed.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("KEEL_BUILD", ROOT / "build" / "release"))
PLUGIN = BUILD / "lib" / "keel" / "plugins" / "keel-vulkan.so"
DRIVER = BUILD / "tests" / "vulkan" / "keel-vulkan-driver.so"
sys.path[:0] = [str(ROOT / "tools" / "bench"), str(BUILD / "python")]
from host import host  # noqa: E402

IDLE = {"BENCH_DEVICE": "vulkan", "BENCH_PLUGIN": str(PLUGIN), "KEEL_VULKAN_LIBRARY": str(DRIVER), "DRIVER_IDLE": "1"}
ADD = """keel 1
fn @main(x: f32[1000], y: f32[1000]) -> f32[1000] {
  z = add(x, y)
  return z
}
entry main = @main (x, y) -> (_)
"""


def run(*command, **environment):
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, env=os.environ | environment)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()}")
    return done.stdout


def bench_device(part, **environment):
    """-> nanoseconds by the name of the figure."""
    lines = run(BUILD / "bin" / "bench_device", part, **IDLE, **environment).splitlines()
    return {line.split(" ns ")[0].rsplit(None, 1)[0]: float(line.split(" ns ")[0].rsplit(None, 1)[1]) for line in lines}


def plans(rounds):
    empty, recorded, each = [], [], []
    for _ in range(rounds):
        empty.append(float(run(BUILD / "bin" / "bench_submit").split(" ns ")[0].split()[-1]))
        recorded.append(bench_device("plan of 200 launches")["plan of 200 launches"] - empty[-1])
        few, many = (bench_device(name, KEEL_VULKAN_NO_RECORDINGS="1")[name] for name in ("plan of 20 launches", "plan of 200 launches"))
        each.append((many - few) / 180)
    yield "an empty submission of the driver", empty, "ns", None
    yield "a run of a recorded plan of 200 launches, beyond that", recorded, "ns", 5000
    yield "each launch without a recording", each, "ns", 1000


def eager(rounds):
    name = "C: add, two arrays of 8 f32"
    yield "eager add until the flush", [bench_device(name)[name] for _ in range(rounds)], "ns", 2000


def small_side(calls=2000):
    """In a process of its own: median wall time and processor time of the calling thread, in microseconds, and submissions."""
    import ctypes

    import keel
    import numpy as np
    keel.load_plugin(str(PLUGIN))
    driver, x = ctypes.CDLL(str(DRIVER)), np.ones(1000, np.float32)
    driver.driver_calls.restype = ctypes.c_uint64
    session = keel.Session(keel.function(lambda a, b: a + b).concrete(keel.array(x), keel.array(x)), "vulkan")

    def op():
        with keel.device("vulkan"):
            return (keel.array(x) + keel.array(x)).numpy()

    def plan():
        return session.run(a=x, b=x)
    for body in (op, plan):
        times = []
        for i in range(calls):
            if i == calls // 10:
                before = driver.driver_calls(b"vkQueueSubmit2")
            start = time.perf_counter(), time.thread_time()
            body()
            times.append((1e6 * (time.perf_counter() - start[0]), 1e6 * (time.thread_time() - start[1])))
        submissions = (driver.driver_calls(b"vkQueueSubmit2") - before) / (calls - calls // 10)
        print(*(statistics.median(each) for each in zip(*times[calls // 10:], strict=True)), submissions)


def small(rounds):
    sides = {"host": {}, "device": {"KEEL_VULKAN_STAGING": "1"}}
    got = {(side, what): [] for what in ("eager add", "session") for side in sides}
    for _ in range(rounds):
        for side, environment in sides.items():
            out = run(sys.executable, __file__, "--small-side", KEEL_VULKAN_LIBRARY=str(DRIVER), **environment).splitlines()
            for what, line in zip(("eager add", "session"), out, strict=True):
                got[side, what].append([float(number) for number in line.split()])
    for (side, what), rows in got.items():
        wall, _, submissions = zip(*rows, strict=True)
        name = f"{what} from host to host, copies by the {side}, {statistics.median(submissions):g} submissions"
        yield name, wall, "us", None


def start(rounds):
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "add.keelt"
        graph.write_text(ADD)
        commands = [[BUILD / "bin" / "bench_submit", "instance"],
                    [BUILD / "bin" / "keel", "run", graph, "-d", "vulkan", "-i", "x=randn(1)", "-i", "y=randn(2)"]]

        def spent(command):
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            run(*command, KEEL_PLUGIN_PATH=str(PLUGIN.parent))
            wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            return 1e3 * wall, 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        spent(commands[1])  # fills the cache
        rows = [[spent(command) for command in commands] for _ in range(rounds)]
    yield "a process that creates an instance", [a[0] for a, _ in rows], "ms", None
    yield "keel run -d vulkan beyond that, wall time", [b[0] - a[0] for a, b in rows], "ms", 60
    yield "keel run -d vulkan beyond that, processor time", [b[1] - a[1] for a, b in rows], "ms", 60


PARTS = {"plans": plans, "eager": eager, "small": small, "start": start}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", help="a file for all figures")
    parser.add_argument("--small-side", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.small_side:
        return small_side()
    if unknown := set(args.names) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; expected some of {' '.join(PARTS)}")
    figures, missed = [], False
    for part in args.names or PARTS:
        for name, values, unit, limit in PARTS[part](args.rounds):
            ordered = sorted(values)
            median, low, high = statistics.median(ordered), ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
            late = limit is not None and median > limit
            missed |= late
            figures.append({"name": name, "unit": unit, "median": median, "low": low, "high": high, "limit": limit})
            print(f"{name:72} {median:9.1f} {unit} {low:9.1f} {high:9.1f}" + (f"  limit {limit}" if limit else "") + (", missed" if late else ""),
                  flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps({"schema": "keel.vulkan-times/1", "host": host(), "figures": figures}, indent=1) + "\n")
    return missed


if __name__ == "__main__":
    sys.exit(main())
