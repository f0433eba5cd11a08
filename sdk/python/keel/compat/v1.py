"""TensorFlow 1's names: graphs and sessions, for `import keel.compat.v1 as tf`.

There is always a default graph, to which all functions add; ops run immediately only after
tf.enable_eager_execution(). How to read it: the functions come from the table of names.py; this file has the rest.
"""
from types import SimpleNamespace as _Space

from .. import Tensor, __version__, _keel  # noqa: F401
from . import enable as _enable, errors, functions as _functions, names as _names, train  # noqa: F401
from .eager import Dataset, GradientTape, Variable as _EagerVariable, function  # noqa: F401
from .graphs import (Graph, GraphDef, Operation, constant, control_dependencies, device,  # noqa: F401
                     disable_eager_execution, enable_eager_execution, executing_eagerly, get_default_graph, group,
                     is_eager, lifted, name_scope, placeholder, reset_default_graph)
from .sessions import ConfigProto, GPUOptions, InteractiveSession, Session, get_default_session  # noqa: F401
from .variables import (Variable as _GraphVariable, global_variables, global_variables_initializer,  # noqa: F401
                        gradients, trainable_variables, variables_initializer)

DType = _keel.DType
_table = _names.make(lifted, {"set_random_seed": _functions.set_seed})
globals().update(_table)
random_uniform, random_normal = _table["random"].uniform, _table["random"].normal
div, arg_max, arg_min, is_nan = _table["truncatediv"], _table["argmax"], _table["argmin"], _table["math"].is_nan
data = _Space(Dataset=Dataset)
initialize_all_variables = global_variables_initializer
logging = _Space(set_verbosity=lambda level: None, ERROR=40, WARN=30, INFO=20)
_enable()


class Variable(_GraphVariable):
    """tf.Variable: of the default graph; after tf.enable_eager_execution() an eager variable."""

    def __new__(cls, *args, **keywords):
        if is_eager():
            return _EagerVariable(*args, **keywords)
        return super().__new__(cls)


def assign(ref, value, **_):
    """tf.assign: an Operation, which a fetch runs; its value is the new value."""
    return ref.assign(value)


def assign_add(ref, value, **_):
    return ref.assign_add(value)


def assign_sub(ref, value, **_):
    return ref.assign_sub(value)


def no_op(name="no_op"):
    return group(name=name)


def disable_v2_behavior():
    """Does nothing: graphs are the default."""


def to_float(x):
    return _table["cast"](x, _keel.f32)


__getattr__ = _names.missing(__name__)
