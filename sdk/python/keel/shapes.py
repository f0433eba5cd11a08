"""Shape functions composed of ops."""
import operator

from . import _keel
from ._keel import ops
from .errors import Code, InvalidError, PreconditionError, RangeError


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


def arange(start, stop=None, step=1, dtype=None, limit=None):
    """start, start + step, ... up to stop (exclusive), as range(). dtype: i32 for integers, else f32. limit: the most
    numbers there may be, an int or a keel.Dim; a traced function needs it if start, stop or step is a tensor, because only
    a run knows the size of the result. Raises RangeError beyond the limit, PreconditionError without one in such a trace."""
    if stop is None:
        start, stop = 0, start
    ends = [_keel.array(v) if isinstance(v, (_keel.Tensor, _keel.Variable)) else v for v in (start, stop, step)]
    if any(isinstance(v, _keel.Tensor) and v.symbolic for v in ends):
        return _limited(ends, dtype, limit)
    start, stop, step = (v.item() if isinstance(v, _keel.Tensor) else v for v in ends)
    if not step:
        raise InvalidError("arange: the step is 0")
    if any(isinstance(v, _keel.Dim) for v in (start, stop, step)):
        return _counted(start, stop, step, dtype)
    whole = all(isinstance(v, int) for v in (start, stop, step))
    count = int(max(0, _steps(start, stop, step, whole)))
    if isinstance(limit, int) and count > limit:
        raise RangeError(f"arange: there are {count} numbers, but limit is {limit}", Code.RANGE)
    dtype = dtype or (_keel.i32 if whole else _keel.f32)
    ends = [start, start + step * (count - 1)] if count else []
    _keel.array(ends, dtype)  # raises for numbers that the dtype has not
    return _keel.array(_numbers(start, step, count, whole and all(-2**30 <= v < 2**30 for v in (*ends, step))), dtype)


def _steps(start, stop, step, whole):
    """The number of steps from start to stop, rounded up, as numpy.arange() counts them. Numbers or tensors."""
    return -((start - stop) // step) if whole else -((start - stop) / step // 1)


def _limited(ends, dtype, limit):
    """arange() of tensors of a trace."""
    if limit is None:
        raise PreconditionError("arange: start, stop or step is a tensor of a trace, which has no value yet", Code.PRECONDITION,
                                hint="pass limit=N, the most numbers there may be: an int or a keel.Dim")
    ends = [ops.dim(v) if isinstance(v, _keel.Dim) else _keel.array(v) for v in ends]
    whole = all(v.dtype.kind != "f" for v in ends)
    start, stop, step = (ops.cast(ops.reshape(v, []), "i64" if whole else "f64") for v in ends)
    count = ops.cast(ops.maximum(_steps(start, stop, step, whole), 0), "i64")
    numbers = start + step * ops.iota([limit], dtype=start.dtype)
    return ops.trim(numbers, count).astype(dtype or (_keel.i32 if whole else _keel.f32))


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
