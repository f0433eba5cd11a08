"""ONNX models as Keel modules, by the importer plugin; neither the package onnx nor protobuf is needed.

    model = keel.from_onnx("model.onnx")             # or the file's bytes, or an onnx.ModelProto
    y = model(x)                                     # inputs by place or by name, as the model calls them
    keel.save("model.keel", model)

keel.onnx.backend is what ONNX's own tests and tools call.
"""
import os

from .. import _keel
from ..session import import_file


def from_onnx(model, fixed=None, device=None, **options):
    """A keel.Module of an ONNX model, whose inputs and outputs keep their names; see keel.Module for how it is called.

    model: a path; or bytes or an onnx.ModelProto, which go through a temporary file, so weights in files beside
    the model want a path. fixed: values of inputs by name, which become constants: sizes that the model takes as
    inputs have to be given so. device: where calls of the module run (default: the one in use then).

    Raises NotFoundError for a file that is not there, InvalidError for one that is no ONNX model or damaged,
    UnimplementedError with every operator that the importer does not have, PreconditionError for inputs to fix,
    DeviceError for a device that is not there.
    """
    if device is not None:
        _keel.device(device)  # an error now, not at the first call
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


def _import_bytes(data, fixed, options):
    import tempfile  # here, for importing keel is to be quick
    with tempfile.TemporaryDirectory(prefix="keel-") as folder:  # the module keeps the file mapped
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(data)
        return import_file(path, fixed, **options)
