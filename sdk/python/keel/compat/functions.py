"""TensorFlow functions without a single corresponding op. Arguments and results are tensors; shapes are lists or tensors."""
from .. import _keel, control, random, shapes
from .._keel import ops
from ..convert.iteration import Range
from ..errors import Code, InvalidError, PreconditionError
from ..variable import _BINARY


def plain(value):
    """The value with graph objects (Variables, assignments) replaced by their tensors, also in lists."""
    if hasattr(value, "_as_tensor"):
        return value._as_tensor()
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


def ints(shape):
    """A shape or a list of axes as a list of numbers, from a number, a list, or a tensor with a value."""
    if isinstance(shape, _keel.Tensor):
        return shape.tolist() if shape.ndim else [shape.item()]
    if isinstance(shape, (int, _keel.Dim)):
        return [shape]
    return [int(d) if isinstance(d, _keel.Tensor) else d for d in shape]


def tensor(value, dtype=None, shape=None):
    """tf.constant: one number fills the shape; other values are reshaped to it."""
    made = _keel.array(value, dtype)
    if shape is None:
        return made
    dims = ints(shape)
    if made.size == 1:
        return ops.broadcast_to(ops.reshape(made, [1] * len(dims)), dims)
    return ops.reshape(made, dims)


def descending(direction):
    if direction not in ("ASCENDING", "DESCENDING"):
        raise InvalidError(f"direction is {direction!r}; expected 'ASCENDING' or 'DESCENDING'")
    return direction == "DESCENDING"


def floats(x, y):
    """Both as tensors of one dtype, whole numbers as f64, for true division."""
    x = _keel.array(x, getattr(y, "dtype", None)) if isinstance(x, (int, float)) else _keel.array(x)
    y = _keel.array(y, x.dtype) if isinstance(y, (int, float)) else _keel.array(y)
    return [ops.cast(each, _keel.f64) if each.dtype.kind != "f" else each for each in (x, y)]


def range_of(start, limit=None, delta=1, dtype=None):
    """tf.range. With symbolic ends it returns a Counter for `for` loops: only the run knows its length."""
    ends = [end for end in (start, limit, delta) if end is not None]
    if any(isinstance(end, _keel.Tensor) and end.symbolic for end in ends):
        return Counter(*((0, start, delta) if limit is None else (start, limit, delta)))
    return shapes.arange(start, limit, delta, dtype)


class Counter(Range):
    """tf.range(n) of a traced tensor, for loops. Not a tensor, since sizes of tensors cannot depend on values."""

    def _refuse(self, *_, **__):
        raise PreconditionError("tf.range of a tensor of a traced function has a size that only the run knows; it is not a tensor",
                                Code.PRECONDITION, hint="loop with `for i in tf.range(n):`, which becomes a loop of the graph; "
                                "or pass a number or a size: tf.range(x.shape[0])")

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        self._refuse()


for _name in ("array", "iter", "len", "getitem", *(r + name for name in _BINARY for r in ("", "r"))):
    setattr(Counter, f"__{_name}__", Counter._refuse)


def divide(x, y):
    return ops.div(*floats(x, y))


def floordiv(x, y):
    return _keel.array(x) // y


def cast(x, dtype):
    return ops.cast(_keel.array(x), dtype)


def shape(input, out_type=_keel.i32):
    sizes = _keel.array(input).shape
    if all(isinstance(d, int) for d in sizes) and not _keel.writes():
        return _keel.array(list(sizes), out_type)
    return shapes.stack([ops.dim(d, out_type) for d in sizes]) if sizes else _keel.array([], out_type)


def size(input, out_type=_keel.i32):
    return ops.dim(_keel.array(input).size, out_type)


def rank(input):
    return _keel.array(_keel.array(input).ndim)


def expand_dims(input, axis):
    x = _keel.array(input)
    place = axis + x.ndim + 1 if axis < 0 else axis
    return ops.reshape(x, [*x.shape[:place], 1, *x.shape[place:]])


def squeeze(input, axis=None):
    x = _keel.array(input)
    gone = [k for k, d in enumerate(x.shape) if d == 1] if axis is None else [k % x.ndim for k in ints(axis)]
    for k in gone:
        if x.shape[k] != 1:
            raise InvalidError(f"squeeze: dim {k} has the size {x.shape[k]}, expected 1")
    return ops.reshape(x, [d for k, d in enumerate(x.shape) if k not in gone])


def split(value, num_or_size_splits, axis=0):
    x = _keel.array(value)
    if isinstance(num_or_size_splits, int):
        n, left = divmod(x.shape[axis], num_or_size_splits)
        if left:
            raise InvalidError(f"split: {x.shape[axis]} entries cannot be split into {num_or_size_splits} equal parts")
        num_or_size_splits = [n] * num_or_size_splits
    return list(ops.split(x, num_or_size_splits, axis))


def unstack(value, num=None, axis=0):
    return [squeeze(part, axis) for part in split(value, _keel.array(value).shape[axis], axis)]


def pad(tensor, paddings, constant_values=0):
    rows = paddings.tolist() if isinstance(paddings, _keel.Tensor) else [ints(row) for row in paddings]
    x = _keel.array(tensor)
    return ops.pad(x, _keel.array(constant_values, x.dtype), [lo for lo, _ in rows], [hi for _, hi in rows])


def one_hot(indices, depth, on_value=1, off_value=0, axis=-1, dtype=_keel.f32):
    made = ops.one_hot(_keel.array(indices), depth, axis, dtype)
    return made if (on_value, off_value) == (1, 0) else made * (on_value - off_value) + off_value


def softmax_cross_entropy(labels, logits, axis=-1):
    return ops.neg(ops.reduce_sum(_keel.array(labels) * ops.log_softmax(logits, axis), [axis]))


def reduce_all(input_tensor, axis=None, keepdims=False):
    return ops.reduce_min(ops.cast(_keel.array(input_tensor), _keel.u8), axis, keepdims) != 0


def reduce_any(input_tensor, axis=None, keepdims=False):
    return ops.reduce_max(ops.cast(_keel.array(input_tensor), _keel.u8), axis, keepdims) != 0


def reduce_logsumexp(input_tensor, axis=None):
    x = _keel.array(input_tensor)
    return ops.log_sum_exp(ops.reshape(x, [-1]) if axis is None else x, -1 if axis is None else axis)


def cond(pred, true_fn=None, false_fn=None):
    return control.cond(pred, lambda: plain(true_fn()), lambda: plain(false_fn()))


def switch_case(branch_index, branch_fns):
    return control.switch(branch_index, [lambda branch=branch: plain(branch()) for branch in branch_fns])


def while_loop(cond, body, loop_vars):
    def again(*carry):
        made = plain(body(*carry))
        return tuple(made) if isinstance(made, (list, tuple)) else (made,)
    return type(loop_vars)(control.while_loop(tuple(loop_vars), cond, again))


def print_values(*inputs, output_stream=None, summarize=3, sep=" "):
    """tf.print: one line of texts and tensors when the program reaches this point, to stderr or sys.stdout."""
    from sys import stdout
    format = sep.join(each.replace("{", "{{").replace("}", "}}") if isinstance(each, str) else "{}" for each in inputs)
    values = [each for each in inputs if not isinstance(each, str)]
    _keel.print(format or "{}", *values, stream="out" if output_stream is stdout else "err", edge=summarize)


def check(ok, message, *values):
    _keel.assert_(ok, message or "", *values)


def asserting(what, compare):
    """tf.debugging.assert_equal and the like."""
    def check_all(x, y, message=None, summarize=None):
        _keel.assert_(reduce_all(compare(x, y)), f"{message + ': ' if message else ''}{what} does not hold", x, y)
    return check_all


_seeded = {}  # generators of calls with an explicit seed


def generator(seed):
    return random._default if seed is None else _seeded.setdefault(seed, random.Generator(seed))


def random_uniform(shape, minval=0, maxval=None, dtype=_keel.f32, seed=None):
    if maxval is None:
        if _keel.array(0, dtype).dtype.kind != "f":
            raise ValueError(f"Must specify maxval for integer dtype {dtype}")
        maxval = 1
    return generator(seed).uniform(ints(shape), minval, maxval, dtype)


def random_normal(shape, mean=0.0, stddev=1.0, dtype=_keel.f32, seed=None):
    return generator(seed).normal(ints(shape), mean, stddev, dtype)


def random_truncated_normal(shape, mean=0.0, stddev=1.0, dtype=_keel.f32, seed=None):
    return generator(seed).truncated_normal(ints(shape), mean=mean, stddev=stddev, dtype=dtype)


def random_categorical(logits, num_samples, dtype=_keel.i64, seed=None):
    """[rows, num_samples] of logits [rows, classes]."""
    drawn = generator(seed).categorical(logits, [num_samples])
    return cast(ops.transpose(drawn), dtype)


def random_shuffle(value, seed=None):
    return generator(seed).shuffle(value)


def top_k(input, k):
    """The k largest elements of each row, and their indices."""
    values, places = ops.top_k(input, k)
    return values, cast(places, _keel.i32)


def set_seed(seed):
    """Restarts the global generator, and the generators of calls with a seed."""
    _seeded.clear()
    random.seed(seed)
