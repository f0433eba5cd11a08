"""Small things on shapes that are no op of the catalogue, made of ops."""
from . import _keel
from ._keel import ops
from .errors import InvalidError


def sizes(shape):
    """A shape as programs give it, as a tuple of ints and keel.Dims."""
    return (shape,) if isinstance(shape, (int, _keel.Dim)) else tuple(shape)


def full(shape, value, dtype=None):
    """`value` everywhere; shape: ints and keel.Dims. dtype: that of the value by default."""
    return ops.fill(_keel.array(value, dtype), sizes(shape))


def zeros(shape, dtype=_keel.f32):
    """Zeros of a shape (ints and keel.Dims)."""
    return full(shape, False if dtype == "bool" else 0, dtype)


def ones(shape, dtype=_keel.f32):
    """Ones of a shape (ints and keel.Dims)."""
    return full(shape, True if dtype == "bool" else 1, dtype)


def zeros_like(x):
    """Zeros of the shape and dtype of x."""
    return zeros(x.shape, x.dtype)


def ones_like(x):
    """Ones of the shape and dtype of x."""
    return ones(x.shape, x.dtype)


def stack(values, axis=0):
    """Tensors of one shape and dtype along a new dim. Raises ShapeError where the shapes differ."""
    tensors = [_keel.array(v) for v in values]
    place = axis + tensors[0].ndim + 1 if axis < 0 else axis
    return ops.concat([t[(slice(None),) * place + (None,)] for t in tensors], axis=place)


def arange(start, stop=None, step=1, dtype=None):
    """start, start + step ... before stop, as range(). dtype: i32 for integers, else f32."""
    if stop is None:
        start, stop = 0, start
    if not step:
        raise InvalidError("arange: the step is 0")
    count = max(0, -((start - stop) // step))
    return _keel.array([start + step * i for i in range(int(count))] or [], dtype or (
        _keel.i32 if all(isinstance(v, int) for v in (start, stop, step)) else _keel.f32))


def _compared(op):
    def compare(a, b):
        return op(*(ops.dim(v) if isinstance(v, _keel.Dim) else v for v in (a, b)))
    return compare


for _name, _op in {"lt": ops.less, "le": ops.less_equal, "gt": ops.greater, "ge": ops.greater_equal}.items():
    setattr(_keel.Dim, f"__{_name}__", _compared(_op))  # a bool[] of the trace: only a run knows the size
