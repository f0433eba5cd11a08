"""The hostile device from Python: loading it, its settings and counts (control.h), seeds for tests."""
import ctypes as C
import os
import zlib

import keel_abi

PLUGIN = keel_abi.BUILD / "tests" / "hostile" / "keel-hostile.so"
SEEDS = 20
_door = None


def door():
    global _door
    if _door is None:
        _door = C.CDLL(str(PLUGIN))
        _door.hostile_get.restype = C.c_uint64
    return _door


def put(**settings):
    for name, value in settings.items():
        door().hostile_set(name.encode(), C.c_uint64(value))


def get(name):
    return door().hostile_get(name.encode())


def fail(function="", n=0, code=13):
    door().hostile_fail(function.encode(), C.c_uint64(n), code)


def seeds_of(name):
    """KEEL_HOSTILE_SEEDS=20: all of them; else one, by the test's name, so that a suite meets all 20."""
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
