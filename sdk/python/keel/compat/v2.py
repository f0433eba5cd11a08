"""TensorFlow 2's names: eager ops, tf.function, tf.GradientTape, for `import keel.compat.v2 as tf`.

How to read it: the functions come from the table of names.py; this file has the rest.
"""
import contextlib as _contextlib
from types import SimpleNamespace as _Space

from .. import Tensor, __version__, _keel, executing_eagerly  # noqa: F401
from . import config, devices as _devices, enable as _enable, errors  # noqa: F401
from . import functions as _functions, graphs as _graphs, names as _names
from .eager import Dataset, GradientTape, TensorSpec, Variable, do_not_convert, function, to_code
from .graphs import Graph, GraphDef  # noqa: F401

DType, newaxis = _keel.DType, None


def _wrapped(made):
    """Applies name= in a graph, and ignores it eagerly."""
    lifted = _graphs.lifted(made)

    def call(*args, name=None, **keywords):
        if _keel.written_graph() is None:
            return made(*args, **keywords)
        return lifted(*args, name=name, **keywords)
    return call


def _in_graphs(scope):
    """The scope in a graph; eagerly without effect."""
    return lambda *args: _contextlib.nullcontext() if _keel.written_graph() is None else scope(*args)


globals().update(_names.make(_wrapped, {"random.set_seed": _functions.set_seed}))
name_scope, control_dependencies = _in_graphs(_graphs.name_scope), _in_graphs(_graphs.control_dependencies)
autograph = _Space(to_code=to_code, experimental=_Space(do_not_convert=do_not_convert))
data = _Space(Dataset=Dataset)
_enable()


def constant(value, dtype=None, shape=None, name=None):
    """tf.constant; in a graph, a node of that name."""
    if _keel.written_graph() is not None:
        return _graphs.constant(value, dtype, shape, name)
    return _functions.tensor(value, dtype, shape)


def is_tensor(x):
    return isinstance(x, (Tensor, Variable))


def device(name):
    """with tf.device("/gpu:0"): ops run there; None: no change. Raises DeviceError for an unknown device."""
    if name is None:
        return _contextlib.nullcontext()
    return _keel.device(_devices.keel_name(name))


_missing = _names.missing(__name__)


def __getattr__(name):
    if name == "compat":
        from . import v1
        return _Space(v1=v1)
    return _missing(name)
