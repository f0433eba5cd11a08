"""The table of TensorFlow's functions: their names and parameters, and the corresponding functions of Keel.

How to read it: UNARY and BINARY are ops with the same operands under other names; FUNCTIONS has the rest, each under
all its names, "a.b" for b in the namespace a. make() wraps them for a module: see v1.py, v2.py.
"""
import difflib
import functools
import sys
import types

from .. import _keel, shapes
from .._keel import ops
from . import functions as f
from . import linalg

UNARY = {  # parameter x
    **{name: name for name in ("abs acos asin atan ceil cos erf exp floor identity log log1p round rsqrt sign sin sqrt "
                               "square stop_gradient tan tanh sigmoid reciprocal logical_not").split()},
    "negative": "neg", "nn.relu": "relu", "nn.gelu": "gelu", "nn.silu": "silu", "nn.swish": "silu",
    "nn.softplus": "softplus", "math.softplus": "softplus", "nn.sigmoid": "sigmoid", "nn.tanh": "tanh",
    "math.is_nan": "is_nan", "math.is_inf": "is_inf", "math.is_finite": "is_finite", "bitwise.invert": "bit_not"}
BINARY = {  # parameters x, y
    **{name: name for name in ("add equal greater greater_equal less less_equal logical_and logical_or maximum minimum "
                               "not_equal pow").split()},
    "subtract": "sub", "multiply": "mul", "math.floormod": "mod", "truncatediv": "div", "truncatemod": "rem",
    "math.logical_xor": "logical_xor", "bitwise.bitwise_and": "bit_and", "bitwise.bitwise_or": "bit_or",
    "bitwise.bitwise_xor": "bit_xor", "bitwise.left_shift": "shift_left", "bitwise.right_shift": "shift_right"}
REDUCTIONS = ("reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum")
DTYPES = {"bool": _keel.bool_, "bfloat16": _keel.bf16, "half": _keel.f16, "double": _keel.f64, **{
    t.numpy_name: t for t in vars(_keel).values() if isinstance(t, _keel.DType) and t not in (_keel.bool_, _keel.bf16)}}
INSTEAD = {  # replacements of missing names
    "tf.keras": "keel.Variable, keel.optim and keel.data define and train models (with `import keel`)",
    "tf.recompute_grad": "keel.custom_gradient(f, backward) does it if backward recomputes f under a keel.Tape"}


def _unary(op):
    return lambda x: op(x)


def _binary(op):
    return lambda x, y: op(x, y)


def _reduction(op):
    return lambda input_tensor, axis=None, keepdims=False: op(input_tensor, axis, keepdims)


FUNCTIONS = {
    "convert_to_tensor": lambda value, dtype=None: f.tensor(value, dtype),
    "matmul linalg.matmul": lambda a, b, transpose_a=False, transpose_b=False: (
        ops.matmul(a, b, transpose_a, transpose_b)),
    "divide truediv math.divide math.truediv": f.divide,
    "floordiv math.floordiv": f.floordiv,
    "cast": f.cast,
    "shape": f.shape, "size": f.size, "rank": f.rank,
    "reshape": lambda tensor, shape: ops.reshape(tensor, f.ints(shape)),
    "transpose": lambda a, perm=None: ops.transpose(a, None if perm is None else f.ints(perm)),
    "expand_dims": f.expand_dims, "squeeze": f.squeeze, "split": f.split, "unstack": f.unstack, "pad": f.pad,
    "concat": lambda values, axis=0: ops.concat(values, axis),
    "stack": lambda values, axis=0: shapes.stack(values, axis),
    "tile": lambda input, multiples: ops.tile(input, f.ints(multiples)),
    "reverse": lambda tensor, axis: ops.reverse(tensor, f.ints(axis)),
    "broadcast_to": lambda input, shape: ops.broadcast_to(input, f.ints(shape)),
    "zeros": lambda shape, dtype=_keel.f32: shapes.zeros(f.ints(shape), dtype),
    "ones": lambda shape, dtype=_keel.f32: shapes.ones(f.ints(shape), dtype),
    "fill": lambda dims, value: shapes.full(f.ints(dims), value),
    "zeros_like": lambda input: shapes.zeros_like(_keel.array(input)),
    "ones_like": lambda input: shapes.ones_like(_keel.array(input)),
    "eye linalg.eye": lambda num_rows, num_columns=None, dtype=_keel.f32: ops.eye(num_rows, num_columns, dtype),
    "range": f.range_of,
    "one_hot": f.one_hot,
    "gather": lambda params, indices, axis=0: ops.gather(params, indices, axis or 0),
    "gather_nd": lambda params, indices, batch_dims=0: ops.gather_nd(params, indices, batch_dims),
    "where": lambda condition, x, y: ops.select(condition, x, y),
    "clip_by_value": lambda t, clip_value_min, clip_value_max: ops.clamp(t, clip_value_min, clip_value_max),
    "argmax math.argmax": lambda input, axis=None, output_type=_keel.i64: (
        f.cast(ops.arg_max(input, axis or 0), output_type)),
    "argmin math.argmin": lambda input, axis=None, output_type=_keel.i64: (
        f.cast(ops.arg_min(input, axis or 0), output_type)),
    "cumsum math.cumsum": lambda x, axis=0, exclusive=False, reverse=False: ops.cumsum(x, axis, exclusive, reverse),
    "atan2 math.atan2": lambda y, x: ops.atan2(y, x),
    "linspace": lambda start, stop, num: ops.linspace(start, stop, num),
    "roll": lambda input, shift, axis: ops.roll(input, shift, axis),
    "sort": lambda values, axis=-1, direction="ASCENDING": ops.sort(values, axis, f.descending(direction))[0],
    "argsort": lambda values, axis=-1, direction="ASCENDING": (
        f.cast(ops.argsort(values, axis, f.descending(direction)), _keel.i32)),
    "math.reduce_variance": _reduction(ops.reduce_var), "math.reduce_std": _reduction(ops.reduce_std),
    "reduce_all math.reduce_all": f.reduce_all, "reduce_any math.reduce_any": f.reduce_any,
    "reduce_logsumexp math.reduce_logsumexp": f.reduce_logsumexp,
    "nn.softmax": lambda logits, axis=-1: ops.softmax(logits, -1 if axis is None else axis),
    "nn.log_softmax": lambda logits, axis=-1: ops.log_softmax(logits, -1 if axis is None else axis),
    "nn.leaky_relu": lambda features, alpha=0.2: ops.leaky_relu(features, alpha),
    "nn.bias_add": lambda value, bias: ops.add(value, bias),
    "nn.softmax_cross_entropy_with_logits nn.softmax_cross_entropy_with_logits_v2": f.softmax_cross_entropy,
    "nn.sparse_softmax_cross_entropy_with_logits": lambda labels, logits: ops.cross_entropy(logits, labels),
    "cond": f.cond, "switch_case": f.switch_case, "while_loop": f.while_loop,
    "print": f.print_values,
    "debugging.Assert Assert": lambda condition, data, summarize=None: f.check(condition, "assertion failed", *data),
    "debugging.assert_equal": f.asserting("x == y", ops.equal), "debugging.assert_less": f.asserting("x < y", ops.less),
    "debugging.assert_greater": f.asserting("x > y", ops.greater),
    "debugging.assert_positive": lambda x, message=None: f.asserting("x > 0", ops.greater)(x, 0, message),
    "random.uniform": f.random_uniform, "random.normal": f.random_normal,
    "random.truncated_normal": f.random_truncated_normal, "random.categorical": f.random_categorical, "random.shuffle": f.random_shuffle,
    "linalg.cholesky cholesky": lambda input: ops.cholesky(input),
    "linalg.inv matrix_inverse": lambda input, adjoint=False: ops.inv(linalg.adjoint(input, adjoint)),
    "linalg.det matrix_determinant": lambda input: ops.det(input),
    "linalg.solve matrix_solve": lambda matrix, rhs, adjoint=False: ops.solve(matrix, rhs, adjoint),
    "linalg.triangular_solve matrix_triangular_solve": lambda matrix, rhs, lower=True, adjoint=False: (
        ops.triangular_solve(matrix, rhs, lower, adjoint)),
    "linalg.eigh self_adjoint_eig": lambda tensor: ops.eigh(tensor),
    "linalg.qr qr": linalg.qr, "linalg.svd svd": linalg.svd, "linalg.band_part": linalg.band_part,
    "einsum linalg.einsum": lambda equation, *inputs: _keel.einsum(equation, *inputs),
    "math.cumprod": lambda x, axis=0, exclusive=False, reverse=False: ops.cumprod(x, axis, exclusive, reverse),
    "math.top_k nn.top_k": lambda input, k=1, sorted=True: f.top_k(input, k),
}


def _all():
    """{name: function}, names without a namespace are in math, too."""
    rows = {name: _unary(getattr(ops, op)) for name, op in UNARY.items()}
    rows |= {name: _binary(getattr(ops, op)) for name, op in BINARY.items()}
    rows |= {name: _reduction(getattr(ops, name)) for name in REDUCTIONS}
    rows |= {f"math.{name}": made for name, made in rows.items() if "." not in name}
    return rows | {name: made for names, made in FUNCTIONS.items() for name in names.split()}


class _Namespace(types.SimpleNamespace):
    """tf.nn and the like."""

    def __getattr__(self, name):
        raise AttributeError(_advice(self.__dict__["_name"], name, [n for n in self.__dict__ if n[0] != "_"]))


def _advice(space, name, known):
    """The message for a missing name, with a replacement if there is one."""
    full, close = f"{space}.{name}", difflib.get_close_matches(name, known, 1, 0.7)
    message = f"keel.compat has no {full}"
    if full in INSTEAD:
        return f"{message}: {INSTEAD[full]}"
    if callable(getattr(sys.modules[__package__.rpartition(".")[0]], name, None)) and not name.startswith("_"):
        return f"{message}, but Keel has keel.{name}: `import keel` as well, and see help(keel.{name})"
    if close:
        return f"{message}: do you mean {space}.{close[0]}?"
    return (f"{message}: use keel's ops (help(keel)) or a listed name (keel.compat.names), which cover graphs, "
            "sessions, functions and gradients")


def make(wrap, more=()):
    """The names of a module: wrap(function) for each function, in namespaces for dotted names, and dtypes."""
    out = {**DTYPES, "dtypes": types.SimpleNamespace(**DTYPES)}
    for name, made in (_all() | dict(more)).items():
        space, _, last = name.rpartition(".")
        wrapped = functools.update_wrapper(wrap(made), made)
        wrapped.__doc__ = f"tf.{name}; name= is accepted, too. {made.__doc__ or ''}"
        wrapped.__name__ = wrapped.__qualname__ = last
        if space:
            setattr(out.setdefault(space, _Namespace(_name=f"tf.{space}")), last, wrapped)
        else:
            out[last] = wrapped
    return out


def missing(module):
    """A module's __getattr__: raises AttributeError with advice."""
    def get(name):
        raise AttributeError(f"{module} has no '{name}'. " + _advice("tf", name, [n for n in _all() if "." not in n]))
    return get
