"""The hostile device from Python: loading it, its settings and counters (control.h), seeds for tests. LACKING is a second plugin,
the same device without the ops in LACKS; each has its own settings and counters."""
import ctypes as C
import functools
import os
import zlib

import keel_abi

PLUGIN = keel_abi.BUILD / "tests" / "hostile" / "keel-hostile.so"
LACKING = keel_abi.BUILD / "tests" / "hostile" / "lacking" / "keel-lacking.so"
LACKS = ("exp", "tanh", "reduce_max")
COPIED = ("dim", "fill", "broadcast_to", "slice", "split", "concat", "pad")  # lacked too: the kernel copies
SEEDS = 20


@functools.cache
def door(plugin):
    opened = C.CDLL(str(plugin))
    opened.hostile_get.restype = C.c_uint64
    return opened


def put(plugin=PLUGIN, **settings):
    for name, value in settings.items():
        door(plugin).hostile_set(name.encode(), C.c_uint64(value))


def get(name, plugin=PLUGIN):
    return door(plugin).hostile_get(name.encode())


def fail(function="", n=0, code=13):
    door(PLUGIN).hostile_fail(function.encode(), C.c_uint64(n), code)


def seeds_of(name):
    """KEEL_HOSTILE_SEEDS=20: all of them; else one, derived from the test's name, so that a suite covers all 20."""
    wanted = int(os.environ.get("KEEL_HOSTILE_SEEDS", "1"))
    if wanted >= SEEDS:
        return range(1, SEEDS + 1)
    first = zlib.crc32(name.encode()) % SEEDS
    return [(first + k) % SEEDS + 1 for k in range(wanted)]


def context(seed):
    """A context with the hostile devices of that seed, and all built plugins."""
    put(seed=seed)
    made = keel_abi.Context()
    made.load_plugin(PLUGIN)
    return made
