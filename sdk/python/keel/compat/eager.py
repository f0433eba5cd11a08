"""tf.function, tf.GradientTape and tf.Variable of TensorFlow 2, and tf.data.

How to read it: each class is Keel's, with TensorFlow's parameters and method names.
"""
import inspect

from .. import _keel, tape as _tape
from ..errors import Code, InvalidError
from ..function import function as _traced
from ..signature import Spec
from .graphs import GraphDef
from .functions import ints
from .printing import shape_text, value_repr


class TensorSpec:
    """tf.TensorSpec: a dtype and a shape, with None for any size."""

    def __init__(self, shape, dtype=_keel.f32, name=None):
        self.shape, self.dtype, self.name = tuple(shape), dtype, name

    def spec(self, prefix):
        """The type as a Keel Spec; each None becomes a symbol."""
        return Spec(self.dtype, tuple(f"{prefix}_{k}" if d is None else d for k, d in enumerate(self.shape)))

    def __repr__(self):
        return f"TensorSpec(shape={shape_text(self.shape)}, dtype=tf.{self.dtype.numpy_name}, name={self.name!r})"


class ConcreteFunction:
    """One graph of a function. Tensor arguments must have the types of its creation; other arguments are fixed."""

    def __init__(self, function, args, keywords, any_size=False):
        self._function, self._types = function, None if any_size else _types((args, keywords))
        self.graph = FunctionGraph(function.concrete(*args, **keywords))
        made = inspect.signature(function).bind(*args, **keywords)
        made.apply_defaults()
        self._fixed = {name: value for name, value in made.arguments.items() if not _types(value)}

    def __call__(self, *args, **keywords):
        args, keywords = self._completed(args, keywords)
        types = _types((args, keywords))
        if self._types not in (None, types):
            raise TypeError(f"the function is concrete for {self._types}, not {types}")
        return self._function(*args, **keywords)

    def _completed(self, args, keywords):
        """Fills in omitted arguments with the fixed ones, as TensorFlow does."""
        names = list(inspect.signature(self._function).parameters)
        given = {**dict(zip(names, args)), **keywords}
        for name, value in self._fixed.items():
            if name in given and not _types(given[name]) and given[name] != value:
                raise TypeError(f"the function is concrete for {name}={value!r}, not {given[name]!r}")
        if all(name in given for name in names):
            return args, keywords
        rest = [name for name in names if name not in self._fixed]
        if len(args) > len(rest) or any(name in keywords for name in rest[:len(args)]):
            return args, keywords
        return (), {**self._fixed, **dict(zip(rest, args)), **keywords}


class FunctionGraph:
    def __init__(self, module):
        self.module = module

    def as_graph_def(self):
        """The graph as text; the number after `keel` in its first line is the format's version."""
        return GraphDef(self.module.text())


def _types(arguments):
    return [_keel.asarray(leaf).type for leaf in _keel.leaves(arguments) if hasattr(leaf, "dtype")]


def _open(made, args, keywords):
    """The error for types with unknown sizes, with the call to use instead as its hint."""
    given = inspect.signature(made).bind_partial(*args, **keywords).arguments
    types = {name: value for name, value in given.items() if isinstance(value, TensorSpec) or hasattr(value, "dtype")}
    specs = ", ".join(f"tf.TensorSpec({shape_text(tuple(v.shape))}, tf.{v.dtype.numpy_name})" for v in types.values())
    called = ", ".join(f"{name}={name if name in types else repr(value)}" for name, value in given.items())
    name = made.__name__ if made.__name__.isidentifier() else "f"
    code = name if len(types) == len(given) else f"lambda {', '.join(types)}: {name}({called})"
    return InvalidError(f"get_concrete_function: a TensorSpec of {name} has sizes without a number", Code.INVALID,
                        hint=f"tf.function({code}, input_signature=[{specs}]).get_concrete_function() is for all sizes; or give "
                             "numbers here")


def _concrete(made, signature=None):
    """made.get_concrete_function: from examples and fully sized TensorSpecs; without arguments from the input_signature."""
    def example(leaf):
        return leaf.spec("d").example() if isinstance(leaf, TensorSpec) else leaf

    def get(*args, **keywords):
        if any(isinstance(leaf, TensorSpec) and None in leaf.shape for leaf in _keel.leaves((args, keywords))):
            raise _open(made, args, keywords)
        declared = signature is not None and not args and not keywords
        if declared:  # for any sizes
            args = [_keel.ops.fill(_keel.array(0, s.dtype), tuple(d or 2 for d in s.shape)) for s in signature]
        return ConcreteFunction(made, *_keel.map_leaves((args, keywords), example), declared)
    return get


def function(func=None, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False, **_):
    """tf.function: keel.function, with a new trace per shape unless reduce_retracing; autograph: converts `if` and loops
    on tensors."""
    if func is None:
        return lambda code: function(code, input_signature, autograph, jit_compile, reduce_retracing)
    options = {} if reduce_retracing else {"any_after": "never"}
    if input_signature is not None:
        names = list(inspect.signature(func).parameters)
        names = names[len(names) == len(input_signature) + 1:]  # of a method: without self
        options = {"signature": [spec.spec(name) for name, spec in zip(names, input_signature)]}
    if not autograph:
        options["convert"] = False
    made = _traced(func, **options)
    made.dressed = lambda each: _dressed(each, func, input_signature)  # applies to bound methods, too
    return made.dressed(made)


def _dressed(made, func, input_signature):
    """Adds TensorFlow's attributes."""
    made.python_function = func
    made.get_concrete_function = _concrete(made, input_signature)
    made.pretty_printed_concrete_signatures = lambda verbose=True: made.signatures().rstrip("\n")
    made.experimental_get_tracing_count = lambda: made.trace_count
    return made


def to_code(entity, recursive=True, **_):
    """tf.autograph.to_code: the converted source of the function."""
    from .. import convert
    return convert.to_code(getattr(entity, "python_function", entity))


def do_not_convert(func):
    """tf.autograph.experimental.do_not_convert: a decorator."""
    from .. import convert
    return convert.skip(func)


class GradientTape(_tape.Tape):
    """tf.GradientTape."""

    def watch(self, tensor):
        for leaf in _keel.leaves(tensor):
            super().watch(leaf)

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients="none"):
        return super().gradient(target, sources, output_gradients, unconnected_gradients == "zero")


class Variable(_keel.Variable):
    """tf.Variable. name: in files and graphs."""

    def __init__(self, initial_value, trainable=True, validate_shape=True, caching_device=None, name=None,
                 variable_def=None, dtype=None, **_):
        initial = initial_value() if callable(initial_value) and not hasattr(initial_value, "dtype") else initial_value
        super().__init__(initial, name=name or "", trainable=trainable, dtype=dtype)

    def assign(self, value, **_):
        super().assign(value)
        return self

    def assign_add(self, delta, **_):
        super().assign_add(delta)
        return self

    def assign_sub(self, delta, **_):
        super().assign_sub(delta)
        return self

    def read_value(self):
        return self.value()

    def __repr__(self):
        facts = f"shape={shape_text(self.shape)} dtype={self.dtype.numpy_name}"
        return f"<tf.Variable '{self.name or 'Variable'}:0' {facts}, {value_repr(self.value())}>"

    __str__ = __repr__


def _arrays(value):
    if type(value) is tuple:
        return tuple(map(_arrays, value))
    return {key: _arrays(each) for key, each in value.items()} if isinstance(value, dict) else _keel.asarray(value)


class Dataset:
    """tf.data.Dataset of in-memory arrays: from_tensor_slices(x).shuffle(n).batch(32).repeat(2)."""

    def __init__(self, data, **how):
        self._data, self._how = data, how

    @classmethod
    def from_tensor_slices(cls, tensors):
        """Entries along the first dim of all arrays in tuples and dicts; lists are arrays."""
        return cls(_arrays(tensors))

    def _and(self, **more):
        return Dataset(self._data, **{**self._how, **more})

    def batch(self, batch_size, drop_remainder=False):
        return self._and(batch=batch_size, drop_last=drop_remainder)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True):
        return self._and(shuffle=seed or 0)

    def repeat(self, count=1):
        return self._and(epochs=count)

    def _slices(self):
        from .. import data
        return data.from_slices(self._data, **self._how)

    def __iter__(self):
        return iter(self._slices())

    def __len__(self):
        return len(self._slices())
