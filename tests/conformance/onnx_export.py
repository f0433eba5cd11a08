"""How tests write a module as an ONNX model, check it and run it."""
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx_cases import fed_inputs, flat_feeds

WIDE = 2.0 ** -7  # of results in bf16: ONNX's reference rounds within an operator, too


def exported(module, folder):
    """The module as a checked onnx.ModelProto."""
    path = Path(folder) / "exported.onnx"
    module.save(path)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return model


def run_onnx(model, feeds):
    """Results of ONNX Runtime, or of ONNX's reference where it lacks an operator for a dtype."""
    import onnxruntime as ort
    from onnx.reference import ReferenceEvaluator
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        got = session.run(None, feeds)
    except Exception as error:  # ONNX Runtime has no public classes for its errors
        missing = "NOT_IMPLEMENTED", "INVALID_GRAPH", "not supported now", "Numpy"  # the last: a dtype that NumPy lacks
        if not any(word in str(error) for word in missing):
            raise
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            got = ReferenceEvaluator(model).run(None, feeds)
    return [np.asarray(value) for value in got]


def retyped(got, want):
    """ONNX Runtime returns 8-bit floats as bytes."""
    if got.dtype == np.uint8 and want.dtype != np.uint8 and want.dtype.itemsize == 1 and want.dtype.kind == "V":
        return got.view(want.dtype)
    return got


def through_keel(context, model, inputs):
    """Imports an ONNX model, writes it again, and runs that; its results. Raises KeelError where it cannot be written."""
    names = fed_inputs(model)
    names = names if len(names) == len(inputs) else fed_inputs(model, len(inputs))
    feeds, sizes = flat_feeds(model, dict(zip(names, inputs)))
    with tempfile.TemporaryDirectory(prefix="keel-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        module = context.import_file(path, fixed=feeds, **sizes)
        again = exported(module, folder)
        names = [p["name"] for p in module.info()["entries"][0]["params"]]
    return run_onnx(again, {i.name: feeds[name] for i, name in zip(again.graph.input, names)})
