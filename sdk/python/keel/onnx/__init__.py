"""ONNX models as Keel modules and back, through the plugin onnx, without the packages onnx and protobuf.

    model = keel.from_onnx("model.onnx")             # or the file's bytes, or an onnx.ModelProto
    y = model(x)                                     # positional inputs, or by the names of the model
    keel.save("model.keel", model)
    keel.onnx.save("f.onnx", f.concrete(x))

keel.onnx.backend is the interface for ONNX's tests and tools.
"""
import os

from .. import _keel
from ..errors import InvalidError
from ..session import import_file


def from_onnx(model, fixed=None, device=None, **options):
    """A callable keel.Module of an ONNX model, with the names of its inputs and outputs.

    model: a path; or bytes or an onnx.ModelProto, which go through a temporary file, so models with weights in separate
    files need a path. fixed: values of inputs by name, which become constants; required for inputs that are sizes.
    Strings are fed as they are; results that are strings hold their bytes, which keel.strings.decode() reads.
    device: of calls of the module (default: the current one). options: of the import, as **{"dim.batch": 4, "shape.x": "1,3,48,192",
    "length.s": 3}; the last is the number of elements of an input that is a sequence (an optional: 1 or "none").

    Raises NotFoundError for a missing file, InvalidError for a damaged file or another format, UnimplementedError with all
    unsupported operators, PreconditionError for inputs that must be fixed, DeviceError for an unknown device.
    """
    if device is not None:
        _keel.device(device)  # fails now rather than at the first call
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        module = _import_bytes(model, fixed, options)
    elif isinstance(model, (str, os.PathLike)):
        module = import_file(os.fspath(model), fixed, **options)
    else:
        raise TypeError(f"an ONNX model is a path, bytes or an onnx.ModelProto, not {type(model).__name__}")
    module.device = device
    return module


def save(path, module, entry=None):
    """Writes an entry of a keel.Module, such as f.concrete(x), as an ONNX model. entry: its name (default: the only one).

    Atomic. Variables become constants of their present values. Raises UnimplementedError with all ops that ONNX does not have,
    NotFoundError if the entry must be named.
    """
    path = os.fsdecode(path)
    if not isinstance(module, _keel.Module):
        raise TypeError(f"keel.onnx.save takes a path and a keel.Module, such as f.concrete(x); got {module!r}")
    if not path.endswith(".onnx"):
        raise InvalidError(f"{path}: the name of an ONNX model ends in .onnx")
    if entry is not None:
        whole, module = module, _keel.new_module()
        module._link(whole, entry, entry)
    module.save(path)


def _import_bytes(data, fixed, options):
    import tempfile  # imported here, to keep `import keel` fast
    with tempfile.TemporaryDirectory(prefix="keel-") as folder:  # the module keeps the file mapped
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(data)
        return import_file(path, fixed, **options)
