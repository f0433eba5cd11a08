"""Data split along the first dim, for loops over examples or batches.

    for x, y in keel.data.from_slices((images, labels), batch=128, shuffle=1, epochs=10): ...

Single-threaded; without copies unless shuffled: a batch of data in host memory is a view of it.
"""
from . import _keel
from .errors import InvalidError, ShapeError


class Slices:
    """Made by from_slices(): a reusable iterable of structures of tensors."""

    def __init__(self, data, batch, shuffle, drop_last, epochs):
        self._data, self._batch, self._shuffle, self._drop_last, self._epochs = data, batch, shuffle, drop_last, epochs
        self._size = _common_size(_keel.leaves(data))
        self._passes = 0  # started passes; each has its own order

    def __len__(self):
        """The number of iterations of a loop over all epochs."""
        return self._epochs * len(self._starts())

    def __iter__(self):
        for _ in range(self._epochs):
            self._passes += 1
            order = self._order(self._passes)
            for start in self._starts():
                yield _keel.map_leaves(self._data, lambda leaf: _picked(leaf, self._rows(order, start)))

    def _starts(self):
        step = self._batch or 1
        return range(0, self._size - self._size % step if self._drop_last else self._size, step)

    def _order(self, number):
        if self._shuffle is None:
            return None
        import numpy
        return numpy.random.default_rng((self._shuffle, number)).permutation(self._size)

    def _rows(self, order, start):
        if self._batch is None:
            return start if order is None else int(order[start])
        rows = slice(start, min(start + self._batch, self._size))
        return rows if order is None else order[rows]


def from_slices(data, batch=None, shuffle=None, drop_last=False, epochs=1):
    """Entries along the first dim of NumPy arrays, tensors and numbers in any structure, all with the same first size.

    batch: entries per step (the last batch may be smaller; drop_last drops it); None: single entries, without the dim.
    shuffle: a seed >= 0; the order differs per epoch, also in later loops over the same object, and depends only on the
    seed and the epoch's number. Returns an iterable of structures of tensors, with a len(). They share memory with the
    data, which must not be written meanwhile. One thread at a time. Raises ShapeError if first sizes differ,
    InvalidError for other arguments.
    """
    _whole("batch", batch, 1, optional=True)
    _whole("shuffle", shuffle, 0, optional=True)
    _whole("epochs", epochs, 1)
    return Slices(_keel.map_leaves(data, _sliceable), batch, shuffle, drop_last, epochs)


def _whole(name, value, least, optional=False):
    if optional and value is None:
        return
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < least:
        raise InvalidError(f"from_slices: {name} is {value!r}, expected a whole number of at least {least}",
                           hint="shuffle is a seed: shuffle=1" if name == "shuffle" else "")


def _sliceable(leaf):
    """An ndarray, so that slices are views; tensors on a device stay there."""
    tensor = leaf.value() if isinstance(leaf, _keel.Variable) else _keel.asarray(leaf)
    return tensor if tensor.device else tensor.numpy()


def _common_size(leaves):
    if not leaves:
        raise InvalidError("from_slices: there is nothing to split: got a structure without arrays")
    for leaf in leaves:
        if not leaf.ndim:
            raise ShapeError("from_slices: a scalar has no first dim to split",
                             hint="pass arrays with an entry for each example")
        if leaf.shape[0] != leaves[0].shape[0]:
            raise ShapeError(f"from_slices: the first sizes differ: {leaves[0].shape[0]} of shape {leaves[0].shape} "
                             f"and {leaf.shape[0]} of shape {leaf.shape}",
                             hint="pass arrays with an entry for each example")
    return leaves[0].shape[0]


def _picked(leaf, rows):
    if isinstance(leaf, _keel.Tensor) and not isinstance(rows, (int, slice)):
        return _keel.ops.gather(leaf, _keel.array(rows))
    return _keel.asarray(leaf[rows])
