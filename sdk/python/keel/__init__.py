"""Keel runs tensor programs: eager ops on tensors, functions that are traced into graphs, gradients, sessions.

    import keel
    x = keel.array([[1., 2.], [3., 4.]])            # f32; whole numbers are i32
    print(keel.matmul(x, x) + 1)                    # runs immediately; literals take the tensor's dtype

help(keel.matmul) documents an op; keel.devices() lists the devices.
"""
import sys as _sys

from ._keel import (DType, Dim, Eagerly, Module, Plan, Tensor, Variable, __version__, array, asarray, assert_, bf16,
                    bool_, cancel, device, devices, executing_eagerly, f4e2m1, f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f16,
                    f32, f64, i2, i4, i8, i16, i32, i64, load_plugin, no_record, parse, print, report, run_eagerly, same, u2, u4,
                    u8, u16, u32, u64)
from ._keel.ops import *  # noqa: F401,F403  one function for each op of the catalogue
from ._keel import einsum  # by an equation; that of ops has labels
from . import data, optim, strings  # noqa: F401
from . import methods as _methods  # noqa: F401  of tensors
from . import variable as _variable  # noqa: F401  operators
from . import elsewhere as _elsewhere
from . import convert
from .control import cond, scan, switch, while_loop
from .custom import custom_gradient
from .entry import Entry
from .errors import (CancelledError, Code, DeviceError, DTypeError, Error, ExistsError, InternalError, InvalidError,
                     NotFoundError, OutOfMemoryError, PreconditionError, RangeError, ShapeError, UnimplementedError)
from .foreign import from_dlpack
from .function import Function, function
from .graph import Graph, Node, constant, default_graph, name_scope, named, placeholder
from .progress import progress
from .random import Generator  # keel.random is now the module, which is callable as the op
from .selection import compress, nonzero, unique, where
from .session import (Session, default_session, evaluate, import_file, join, load, load_checkpoint, save,
                      save_checkpoint)
from .shapes import arange, full, ones, ones_like, stack, zeros, zeros_like
from .signature import Spec
from .tape import Tape, grad, jacobian, value_and_grad
from .display import explain
from .onnx import from_onnx
from .timeline import profile, span
from . import module as _module  # noqa: F401  calls and drawings


def __getattr__(name):
    raise _elsewhere.of_package(_sys.modules[__name__], name)
