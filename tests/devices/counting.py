"""The devices of this folder from Python: loading them and reading their counts (counts.h)."""
import contextlib
import ctypes as C
import functools
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KEEL_BUILD", ROOT / "build" / "release"))
LACKS_WRAP, LACKS_DOWNLOADS = 1, 2  # null.h
ALIVE = ("segments", "queues", "recordings", "wrapped")  # current numbers, not set to 0
FREE = ("queries",)  # reads of a counter: no call into the driver, no wait


def plugin(name):
    return BUILD / "tests" / "devices" / f"keel-{name}.so"


@functools.cache
def door(name):
    opened = C.CDLL(str(plugin(name)))
    opened.device_count_name.restype = C.c_char_p
    opened.device_count_of.restype = C.c_uint64
    return opened


def counts(name):
    """Every count that is not 0."""
    opened, found = door(name), {}
    i = 0
    while key := opened.device_count_name(i):
        found[key.decode()] = opened.device_count_of(i)
        i += 1
    return {key: n for key, n in found.items() if n}


@contextlib.contextmanager
def counted(name):
    """with counted("null") as seen: ... -- afterwards `seen` contains the counts of the block."""
    seen = {}
    door(name).device_reset()
    yield seen
    seen.update((key, n) for key, n in counts(name).items() if key not in ALIVE + FREE)
