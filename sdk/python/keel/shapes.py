"""Shape functions composed of ops."""
import operator

from . import _keel
from ._keel import ops
from .errors import InvalidError


def sizes(shape):
    """A shape argument as a tuple of ints and keel.Dims."""
    one = isinstance(shape, (int, _keel.Dim)) or getattr(shape, "ndim", 1) == 0  # NumPy scalars, too
    return (shape,) if one else tuple(shape)


def full(shape, value, dtype=None):
    """`value` everywhere; shape: ints and keel.Dims. dtype: default: that of the value."""
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
    """Tensors of one shape and dtype stacked along a new dim. Raises ShapeError if the shapes differ."""
    tensors = [_keel.array(v) for v in values]
    place = axis + tensors[0].ndim + 1 if axis < 0 else axis
    return ops.concat([t[(slice(None),) * place + (None,)] for t in tensors], axis=place)


def arange(start, stop=None, step=1, dtype=None):
    """start, start + step, ... up to stop (exclusive), as range(). dtype: i32 for integers, else f32."""
    if stop is None:
        start, stop = 0, start
    start, stop, step = (v.item() if isinstance(v, (_keel.Tensor, _keel.Variable)) else v for v in (start, stop, step))
    if not step:
        raise InvalidError("arange: the step is 0")
    if any(isinstance(v, _keel.Dim) for v in (start, stop, step)):
        return _counted(start, stop, step, dtype)
    count = int(max(0, -((start - stop) // step)))
    whole = all(isinstance(v, int) for v in (start, stop, step))
    dtype = dtype or (_keel.i32 if whole else _keel.f32)
    ends = [start, start + step * (count - 1)] if count else []
    _keel.array(ends, dtype)  # raises for numbers that the dtype has not
    return _keel.array(_numbers(start, step, count, whole and all(-2**30 <= v < 2**30 for v in (*ends, step))), dtype)


def _numbers(start, step, count, small):
    """The numbers of arange(), without NumPy slower."""
    try:
        import numpy
    except ImportError:
        return [start + step * i for i in range(count)]
    return numpy.arange(start, start + step * count, step, "i4") if small else start + step * numpy.arange(count)


def _counted(start, stop, step, dtype):
    """arange() of symbolic sizes."""
    if any(isinstance(v, (float, _keel.SizeFloat)) for v in (start, stop, step)):
        return arange(*(float(v) for v in (start, stop, step)), dtype=dtype)
    step = int(step)
    whole = stop - start if step > 0 else start - stop
    count = _keel.dim_max((whole + (abs(step) - 1)) // abs(step), 0)
    t = ops.iota([count], dtype=_keel.i32)
    t = t if step == 1 else t * step
    t = t if isinstance(start, int) and start == 0 else t + start
    return t if dtype is None else t.astype(dtype)


def _compared(op, number):
    def compare(a, b):
        if isinstance(b, (float, _keel.SizeFloat)):
            return number(float(a), float(b))
        if not isinstance(b, (int, _keel.Dim)):
            return NotImplemented
        return op(*(ops.dim(v) if isinstance(v, _keel.Dim) else v for v in (a, b)))
    return compare


for _name, _op in {"lt": ops.less, "le": ops.less_equal, "gt": ops.greater, "ge": ops.greater_equal}.items():
    setattr(_keel.Dim, f"__{_name}__", _compared(_op, getattr(operator, _name)))  # a bool[] of the trace, since only the run knows the size
