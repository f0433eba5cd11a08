"""Host time of eager ops from Python on a device that does nothing (tests/devices/null). bench_device is the same from C.

Usage: device.py [--rounds 15]    KEEL_BUILD: the build folder

Processor time, so that other processes disturb little.
"""
import argparse
import contextlib
import os
import statistics
import sys
import time
import timeit
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KEEL_BUILD", ROOT / "build" / "release"))
sys.path[:0] = [str(ROOT / "tests" / "devices"), str(BUILD / "python")]
import counting  # noqa: E402
import keel  # noqa: E402
import numpy as np  # noqa: E402

CALLS = 20_000  # in a round
# (title, statement, limit in ns)
ROWS = [("Python: x + x", "x + x", 1000), ("Python: keel.add(x, x)", "add(x, x)", 1000), ("Python: x + 1.0", "x + 1.0", None)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    keel.load_plugin(str(counting.plugin("null")))
    counting.door("null").null_compute(0)
    x = keel.array(np.ones(8, np.float32)).to("null")
    missed = False
    for where in ("null", None):
        for title, statement, limit in ROWS:
            timer = timeit.Timer(statement, timer=time.process_time, globals={"x": x, "add": keel.add})
            with keel.device(where) if where else contextlib.nullcontext():
                timer.timeit(CALLS)
                ns = statistics.median(1e9 * timer.timeit(CALLS) / CALLS for _ in range(rounds))
            late = limit is not None and ns > limit
            missed |= late
            place = "in keel.device" if where else "without a scope"
            print(f"{title:24} {place:16} {ns:9.1f} ns" + (f"  limit {limit}" if limit else "") + (", missed" if late else ""))
    return missed


if __name__ == "__main__":
    sys.exit(main())
