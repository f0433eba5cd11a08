"""tf.errors: TensorFlow's error classes. While compat is enabled, errors of libkeel are instances of both Keel's and
TensorFlow's class, under TensorFlow's name.
"""
from .. import errors as _errors


class OpError(_errors.Error):
    """The base class."""


def _subclass(name):
    return type(name, (OpError,), {"__module__": __name__, "__doc__": f"tf.errors.{name}."})


_NAMES = {  # TensorFlow's: Keel's
    "InvalidArgumentError": ("InvalidError", "ShapeError", "DTypeError", "RangeError"),
    "NotFoundError": ("NotFoundError",), "AlreadyExistsError": ("ExistsError",),
    "FailedPreconditionError": ("PreconditionError",), "ResourceExhaustedError": ("OutOfMemoryError",),
    "UnimplementedError": ("UnimplementedError",), "CancelledError": ("CancelledError",),
    "InternalError": ("InternalError",), "UnavailableError": ("DeviceError",)}
globals().update((name, _subclass(name)) for name in _NAMES)


def _both(name, ours):
    return type(name, (ours, globals()[name]), {"__module__": __name__})


_IN_PLACE_OF = {getattr(_errors, each): _both(name, getattr(_errors, each))
                for name, kinds in _NAMES.items() for each in kinds}


def of(kind, message, code=_errors.Code.INVALID):
    """An error of one of Keel's classes, as libkeel reports it."""
    return _IN_PLACE_OF[kind](message, code)


def enable(on):
    _errors.named = _IN_PLACE_OF if on else {}
