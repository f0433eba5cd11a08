"""External test cases, and how Keel runs their ONNX models.

A case is (model, [(inputs, expected)], rtol, atol); three functions find cases: node tests of the installed onnx package, folders
of models with vectors, the package's light models. Start with `run_model`, the backend: import, prepare, run on a device.
"""
import functools
import json
import re
import tarfile
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from keel_abi import KeelError
from onnx import numpy_helper
from tested_devices import DEVICES  # noqa: F401 (for the tests)

HERE = Path(__file__).resolve().parent


def lines(name):
    text = (HERE / name).read_text().splitlines()
    return [line.split() for line in text if line and not line.startswith("#")]


@functools.cache
def _exclusions():
    return [(re.compile(pattern), device, " ".join(reason)) for pattern, device, *reason in lines("excluded.txt")]


def excluded(name, device):
    """The reason in the list why Keel does not pass this ONNX test; None for tests that must pass."""
    for pattern, where, reason in _exclusions():
        if where in ("*", device) and pattern.fullmatch(name):
            return reason
    return None


@functools.cache
def node_cases():
    from onnx.backend.test.loader import load_model_tests
    with warnings.catch_warnings():  # overflows on purpose, while onnx generates its cases
        warnings.simplefilter("ignore", RuntimeWarning)
        return {case.name: case for case in load_model_tests(kind="node")}


def node_case(name):
    case = node_cases()[name]
    return case.model, [(as_arrays(i), flat_values(as_arrays(o))) for i, o in case.data_sets], case.rtol, case.atol


def as_arrays(values):
    """A sequence is a list of arrays, an absent optional is None."""
    def one(v):
        if v is None or isinstance(v, list):
            return v if v is None else as_arrays(v)
        return numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else np.asarray(v)
    return [one(v) for v in values]


def flat_values(values):
    """As Keel's results: the elements of a sequence one by one, nothing for an absent optional."""
    return [x for v in values if v is not None for x in (v if isinstance(v, list) else [v])]


def flat_feeds(model, feeds):
    """The arrays of Keel's parameters by name, and the import options with lengths and shapes of sequences."""
    optional = {i.name for i in model.graph.input if i.type.WhichOneof("value") == "optional_type"}
    arrays, options = {}, {}
    for name, value in feeds.items():
        if value is None:
            options[f"length.{name}"] = "none"
        elif isinstance(value, list):
            options[f"length.{name}"] = str(len(value))
            for k, x in enumerate(value):
                arrays[f"{name}_{k}"] = x
                options[f"shape.{name}_{k}"] = ",".join(map(str, x.shape))
        else:
            arrays[name] = value
            options.update({f"length.{name}": "1"} if name in optional else {})
    return arrays, options


def read_tensor(path):
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def folder_case(folder):
    """NAME/model.onnx with test_data_set_K/{input,output}_N.pb and perhaps data.json for tolerances."""
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        count = [len(list(data.glob(kind + "_*.pb"))) for kind in ("input", "output")]
        sets.append(([read_tensor(data / f"input_{k}.pb") for k in range(count[0])],
                     [read_tensor(data / f"output_{k}.pb") for k in range(count[1])]))
    extra = folder / "data.json"
    tolerance = json.loads(extra.read_text()) if extra.exists() else {}
    model = onnx.load(folder / "model.onnx")
    return model, sets, tolerance.get("rtol", 1e-3), tolerance.get("atol", 1e-7)


def tiny_models(target):
    """Unpacks the small models into a folder; returns their folders by name."""
    with tarfile.open(HERE.parent / "data" / "tiny.tar.xz") as archive:
        archive.extractall(target)
    return {path.parent.name: path.parent for path in Path(target).rglob("model.onnx")}


def light_models():
    """The nine classic image models of the onnx package, by name; constant weights."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return {path.stem[len("light_"):]: path for path in sorted(folder.glob("*.onnx"))}


def fed_inputs(model, count=None):
    """Names of the graph's inputs that a test feeds: old models list their weights as inputs, too."""
    weights = {i.name for i in model.graph.initializer}
    found = [i.name for i in model.graph.input if i.name not in weights]
    return found if count is None else [i.name for i in model.graph.input[:count]]


def run_model(context, device, model, inputs, **options):
    """Imports an ONNX model (a ModelProto or a path), runs it on the device, returns its outputs."""
    proto = model if isinstance(model, onnx.ModelProto) else onnx.load(model, load_external_data=False)
    feeds, sizes = flat_feeds(proto, dict(zip(fed_inputs(proto, len(inputs)), inputs)))
    with tempfile.TemporaryDirectory(prefix="keel-") as folder:
        path = model
        if isinstance(model, onnx.ModelProto):
            path = Path(folder) / "model.onnx"
            path.write_bytes(proto.SerializeToString())
        module = context.import_file(path, fixed=feeds, **sizes)
    wanted = [p["name"] for p in module.info()["entries"][0]["params"]]
    return module.session(device, **options).prepare().run(*[feeds[name] for name in wanted])


def assert_refused(context, model, inputs, code, words):
    """The model is refused with this code, in a message that has these words."""
    with pytest.raises(KeelError) as caught:
        run_model(context, "reference", model, [np.asarray(x) for x in inputs])
    assert caught.value.code == code, caught.value.message
    for word in words:
        assert word in caught.value.message


def onnxruntime_run(model, inputs, threads=1, optimised=True):
    """Runs the model with ONNX Runtime."""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = model.SerializeToString() if isinstance(model, onnx.ModelProto) else str(model)
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], inputs)))


def in_doubles(model, single=("Conv", "GlobalMaxPool")):
    """The model with f64 instead of f32, except for operators that ONNX Runtime implements only in f32: the result without
    rounding errors of sums."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    f32, f64 = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
    del wide.graph.value_info[:]
    for tensor in wide.graph.initializer:
        if tensor.data_type == f32:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in (*wide.graph.input, *wide.graph.output):
        if value.type.tensor_type.elem_type == f32:
            value.type.tensor_type.elem_type = f64
    nodes = list(wide.graph.node)
    del wide.graph.node[:]
    for node in nodes:
        before, after = [], []
        for attr in node.attribute:
            if node.op_type == "Cast" and attr.name == "to" and attr.i == f32:
                attr.i = f64
        if node.op_type in single:
            for k, name in enumerate(node.input):
                node.input[k] = f"{name}/narrow/{node.output[0]}"
                before.append(onnx.helper.make_node("Cast", [name], [node.input[k]], to=f32))
            name, node.output[0] = node.output[0], node.output[0] + "/narrow"
            after.append(onnx.helper.make_node("Cast", [node.output[0]], [name], to=f64))
        wide.graph.node.extend([*before, node, *after])
    return wide


def assert_similar(expected, got, rtol, atol, what=""):
    """Same number of outputs, shapes, dtypes; values within tolerance, NaN equal to NaN."""
    assert len(expected) == len(got), f"{what}: {len(got)} outputs, expected {len(expected)}"
    for k, (want, have) in enumerate(zip(expected, got)):
        assert want.shape == have.shape, f"{what}: output {k} has shape {have.shape}, expected {want.shape}"
        assert want.dtype == have.dtype, f"{what}: output {k} is {have.dtype}, expected {want.dtype}"
        wide = np.float64 if want.dtype.kind == "V" or want.dtype.kind == "f" else want.dtype
        np.testing.assert_allclose(have.astype(wide), want.astype(wide), rtol, atol, err_msg=f"{what}: output {k}")
