"""Loads libkeel and makes calls of it: a failure becomes a KeelError. The library is $KEEL_LIB, else that of the build folder
$KEEL_BUILD, else of build/release.
"""
import ctypes as C
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KEEL_BUILD", ROOT / "build" / "release"))
LIBRARY = os.environ.get("KEEL_LIB", str(BUILD / "lib" / "libkeel.so"))
CODES = {1: "CANCELLED", 2: "UNKNOWN", 3: "INVALID", 5: "NOT_FOUND", 6: "EXISTS", 8: "OOM", 9: "PRECONDITION",
         11: "RANGE", 12: "UNIMPLEMENTED", 13: "INTERNAL", 14: "UNAVAILABLE"}


class KeelError(Exception):
    def __init__(self, rc, error):
        self.code = CODES.get(rc, str(rc))
        self.message, self.op, self.node, self.plugin, self.hint = (
            lib().keel_error_text(error, part).decode() if error else "" for part in range(5))
        super().__init__(f"{self.code}: {self.message} [op {self.op!r} node {self.node!r} plugin {self.plugin!r}] "
                         f"hint: {self.hint}")


_library = None


def lib():
    global _library
    if _library is None:
        _library = C.CDLL(LIBRARY)
        for name in ("version", "error_text", "text_data", "array_device", "device_name"):
            getattr(_library, "keel_" + name).restype = C.c_char_p
        _library.keel_array_retain.restype = C.c_void_p
    return _library


def call(name, *args):
    """A function whose last argument is keel_error**."""
    error = C.c_void_p()
    rc = getattr(lib(), name)(*args, C.byref(error))
    if rc != 0:
        failure = KeelError(rc, error)
        lib().keel_error_free(error)
        raise failure


class Handle:
    """Owns one object of libkeel; `keep` are Python objects that it references."""
    free = _as_parameter_ = None

    def __init__(self, pointer, *keep):
        self._as_parameter_, self.keep = pointer, keep

    def __del__(self):
        if self.free and self._as_parameter_:
            getattr(lib(), self.free)(self._as_parameter_)
            self._as_parameter_ = None

    def make(self, kind, name, *args):
        out = C.c_void_p()
        call(name, self, *args, C.byref(out))
        return kind(out, self)

    def text(self, name, *args):
        out = C.c_void_p()
        call(name, self, *args, C.byref(out))
        result = lib().keel_text_data(out, None).decode()
        lib().keel_text_free(out)
        return result
