"""Failures: keel.Error and its subclasses, one for each kind of failure that programs catch.

How to read it: the classes; then _make, which the extension calls for failures of libkeel.
"""
import enum
import re

from . import _keel

Code = enum.IntEnum("Code", _keel.codes)  # codes of the C API: Code.INVALID, Code.NOT_FOUND ...


class Error(Exception):
    """A failed call. code: a keel.Code; op, node, plugin: the failed part, or ""; hint: how to fix it."""

    def __init__(self, message, code=Code.UNKNOWN, op="", node="", plugin="", hint=""):
        super().__init__(message, code, op, node, plugin, hint)
        self.message, self.code, self.op, self.node, self.plugin, self.hint = message, code, op, node, plugin, hint

    def __str__(self):
        return self.message + (f"\n  hint: {self.hint}" if self.hint else "")


class InvalidError(Error, ValueError):
    """Malformed input: text, a file, an attribute, arguments that do not fit a signature."""


class ShapeError(InvalidError):
    """Dims that do not fit each other or the op."""


class DTypeError(InvalidError, TypeError):
    """A dtype that the op does not support, or that differs from the other operands'."""


class DeviceError(Error, RuntimeError):
    """A device or a library that cannot be used here."""


class NotFoundError(Error, LookupError):
    """No such file, entry, value or op."""


class ExistsError(Error, ValueError):
    """The name is already in use."""


class OutOfMemoryError(Error, MemoryError):
    """Memory or a stated limit is exhausted."""


class PreconditionError(Error, RuntimeError):
    """A requirement is missing, such as a value of a traced tensor."""


class RangeError(Error, IndexError):
    """Data out of range: an index, a division by zero."""


class UnimplementedError(Error, NotImplementedError):
    """Not supported by any device or plugin in use."""


class CancelledError(Error, RuntimeError):
    """The run was stopped, by keel.cancel() or its time limit."""


class InternalError(Error, RuntimeError):
    """A defect of Keel or of a plugin; please report it."""


_CLASSES = {
    Code.INVALID: InvalidError, Code.NOT_FOUND: NotFoundError, Code.EXISTS: ExistsError, Code.OOM: OutOfMemoryError,
    Code.PRECONDITION: PreconditionError, Code.RANGE: RangeError, Code.UNIMPLEMENTED: UnimplementedError,
    Code.CANCELLED: CancelledError, Code.INTERNAL: InternalError, Code.UNAVAILABLE: DeviceError}
_SAID = {"Cannot feed value of shape": ShapeError, 'feed ".*": got dtype': DTypeError}
_FAULTS = {"shape": ShapeError, "dtype": DTypeError}
named = {}  # replacements of these classes: keel.compat.errors


def _in_python(text):
    """C++ names in a message as Python's: keel::cast(x, KEEL_F32) becomes keel.cast(x, keel.f32)."""
    text = re.sub(r"\[\{([^{}]*)\}\]", r"[\1]", text)
    text = re.sub(r"\bcast\((\w+)\)\{to=(\w+)\}", r"keel.cast(\1, keel.\2)", text)
    for said, spelled in (("keel::", "keel."), ("keel_context_cancel(context, 0)", "keel.cancel(False)"),
                          ("keel_context_cancel", "keel.cancel")):
        text = text.replace(said, spelled)
    return re.sub(r"\bKEEL_([A-Z]+\d+)\b", lambda m: "keel." + m.group(1).lower(), text)


def _make(code, fault, message, op, node, plugin, hint):
    known = Code(code) if code in list(Code) else Code.UNKNOWN
    kind = _FAULTS.get(fault) or _CLASSES.get(known, Error)
    if kind is NotFoundError and re.match("(no |several )?devices? ", message):
        kind = DeviceError
    if kind is InvalidError:
        kind = next((cls for said, cls in _SAID.items() if re.match(said, message)), kind)
    return named.get(kind, kind)(_in_python(message), known, op, node, plugin, _in_python(hint))
