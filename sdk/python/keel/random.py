"""Random numbers from keys or generators of keys; equal keys give equal bits on every device and in every SDK.

    keel.random.seed(42)                                     # optional: the default is 0
    w = keel.random.normal((784, 128), stddev=0.05)          # from the global generator: new numbers each time
    i = keel.random.uniform((5,), 0, 10, "i32", key=7)       # from a key, an int or a u64[]: equal numbers each time
    mine = keel.random.Generator(seed=3); mine.normal((2, 2))

Numbers depend on key and index only (the op `random`; Philox-4x32-10, Salmon et al. 2011). A generator is a variable
with a counter: in a traced function, and in a keel.Graph, each run advances it and draws new numbers. With a number as
key a function returns the same numbers in each run; pass the key as a tensor to change them.
"""
import operator
import struct
import sys
import threading
import types

from . import _keel
from ._keel import ops
from .errors import Code, InvalidError, RangeError
from .shapes import sizes


def _whole(what, number):
    number = operator.index(number)
    if not 0 <= number < 2**64:
        raise InvalidError(f"the {what} is {number}, expected 0 to 2**64 - 1")
    return number


def _u64(number):
    """u64[], of any int below 2**64."""
    return _keel.array(memoryview(struct.pack("Q", number)).cast("Q", shape=()))


def _mixed(z):
    """Decorrelates adjacent seeds (the finalizer of SplitMix64; Steele, Lea, Flood 2014)."""
    mask = 2**64 - 1
    z = (_whole("seed", z) + 0x9e3779b97f4a7c15) & mask
    z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & mask
    z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & mask
    return z ^ (z >> 31)


class Generator:
    """A stream of keys. Thread-safe; the assignment of keys to concurrent threads is unspecified. seed: 0 to 2**64 - 1."""

    def __init__(self, seed=0):
        self._lock = threading.Lock()
        self._first, self._state = _mixed(seed), None

    def _counter(self):  # created at first use, so that an import opens no device
        if self._state is None:
            self._state = _keel.new_variable(_u64(self._first))
        return self._state

    def seed(self, seed):
        """Restarts with the numbers of Generator(seed); takes effect immediately, also during a trace."""
        with self._lock:
            self._first = _mixed(seed)
            if self._state is not None:
                _keel.assign_now(self._state, _u64(self._first))

    def key(self):
        """u64[], a different one each time."""
        with self._lock:
            state = self._counter()
            now = state.value()
            state.assign_add(1)
            graph = _keel.written_graph()
            if graph is not None:
                graph.each_run.append(graph._last_node())
        return now

    def uniform(self, shape, low=0, high=1, dtype=_keel.f32):
        """As uniform(), with a new key."""
        return uniform(shape, low, high, dtype, self.key())

    def normal(self, shape, mean=0, stddev=1, dtype=_keel.f32):
        """As normal(), with a new key."""
        return normal(shape, mean, stddev, dtype, self.key())

    def truncated_normal(self, shape, low=-2, high=2, mean=0, stddev=1, dtype=_keel.f32):
        """As truncated_normal(), with a new key."""
        return truncated_normal(shape, low, high, mean, stddev, dtype, self.key())

    def bits(self, shape):
        """As bits(), with a new key."""
        return bits(shape, self.key())

    def categorical(self, logits, shape=()):
        """As categorical(), with a new key."""
        return categorical(logits, shape, self.key())

    def shuffle(self, x, axis=0):
        """As shuffle(), with a new key."""
        return shuffle(x, axis, self.key())


def _key(key):
    if key is None:
        return _default.key()
    return _u64(_whole("key", key)) if isinstance(key, int) else key


def uniform(shape, low=0, high=1, dtype=_keel.f32, key=None):
    """Numbers in [low, high) (whole ones for integer dtypes; low and high are numbers, or tensors of the dtype), from a
    key or the global generator. Raises DTypeError for bounds that the dtype cannot hold, RangeError for an empty
    interval of numbers."""
    first, last = (_keel.array(bound, dtype) for bound in (low, high))
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and not low <= high - (first.dtype.kind == "i"):
        raise RangeError(f"keel.random.uniform: there is no {first.dtype} in [{low}, {high})", Code.RANGE,
                         hint="low is the first bound; high is exclusive")
    return ops.random_uniform(_key(key), first, last, sizes(shape))


def normal(shape, mean=0, stddev=1, dtype=_keel.f32, key=None):
    """Normal numbers of a floating dtype, from a key or the global generator. Raises InvalidError for other dtypes."""
    return _scaled(ops.random(_key(key), sizes(shape), kind="normal", dtype=dtype), mean, stddev)


def _scaled(x, mean, stddev):
    plain = isinstance(mean, (int, float)) and isinstance(stddev, (int, float)) and (mean, stddev) == (0, 1)
    return x if plain else x * stddev + mean


def truncated_normal(shape, low=-2, high=2, mean=0, stddev=1, dtype=_keel.f32, key=None):
    """Normal numbers of a floating dtype that are within mean + low * stddev and mean + high * stddev, from a key or the
    global generator. low and high may be infinite; an interval beyond 7 or -7 has few different numbers. Raises
    InvalidError for other dtypes, RangeError if low > high."""
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and not low <= high:
        raise RangeError(f"keel.random.truncated_normal: there is no number in [{low}, {high}]", Code.RANGE,
                         hint="low is the first bound, in standard deviations from the mean")
    bounds = (_keel.array(bound, dtype) for bound in (low, high))
    return _scaled(ops.truncated_normal(_key(key), *bounds, sizes(shape)), mean, stddev)


def bits(shape, key=None):
    """u32 of 32 random bits each, from a key or the global generator."""
    return ops.cast(ops.random(_key(key), sizes(shape), dtype=_keel.f64) * 2.**32, _keel.u32)


def categorical(logits, shape=(), key=None):
    """Indices along the last dim of logits (i64), drawn with the probabilities softmax(logits): an independent one for each
    row and each index of shape, whose dims come first; from a key or the global generator."""
    return ops.categorical(_key(key), logits, sizes(shape))


def shuffle(x, axis=0, key=None):
    """The slices of x along axis in a random order, from a key or the global generator; keel.random.shuffle(keel.arange(n))
    is a permutation of n numbers."""
    return ops.shuffle(_key(key), x, axis=axis)


def seed(seed):
    """Restarts the global generator."""
    _default.seed(seed)


_default = Generator()


class _Module(types.ModuleType):
    """A callable module: keel.random(key, dims) is the op, as for all other ops."""

    def __call__(self, key, dims, kind="uniform", dtype="f32"):
        return ops.random(key, dims, kind, dtype)


sys.modules[__name__].__class__ = _Module
__doc__ += f"\nkeel.random(key, dims, kind, dtype):\n{ops.random.__doc__}"
