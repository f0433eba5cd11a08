"""Keel as a backend of ONNX: the interface onnx.backend.base.Backend, used by ONNX's test suite.

    import keel.onnx.backend as backend
    outputs = backend.prepare(model, "CPU").run([x])        # model: an onnx.ModelProto; outputs: NumPy arrays
    globals().update(onnx.backend.test.BackendTest(backend, __name__).test_cases)

Requires the package onnx. Device names are ONNX's ("CPU", "CUDA:1") or Keel's ("reference").
"""
import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from .. import _keel
from ..errors import Error, PreconditionError
from ..session import Session
from ..strings import decode, encode, holds_strings
from . import from_onnx


def _array(value):
    """An array that Keel takes: the bytes of strings."""
    return encode(value) if holds_strings(value) else np.asarray(value)


def _element_type(array):
    return onnx.TensorProto.STRING if holds_strings(array) else onnx.helper.np_dtype_to_tensor_dtype(array.dtype)


class KeelRep(BackendRep):
    """A prepared model; any number of threads may call run()."""

    def __init__(self, model, device, options):
        self._model, self._device, self._options = model, device.lower(), options
        weights = {tensor.name for tensor in model.graph.initializer}  # old models list them among the inputs
        self._inputs = [i.name for i in model.graph.input]
        self._fed = [name for name in self._inputs if name not in weights]
        self._kinds = {i.name: i.type.WhichOneof("value") for i in model.graph.input}
        self._outputs = namedtupledict("Outputs", [o.name for o in model.graph.output])
        self._session = None
        try:
            self._session = self._imported({}, {})
        except PreconditionError:  # some sizes and lengths are inputs, known only in run()
            pass

    def _imported(self, fixed, sizes):
        return Session(from_onnx(self._model, fixed, **{**sizes, **self._options}), self._device)

    def _imported_for(self, feeds, sizes):
        fixed = {}
        while True:
            try:
                return self._imported(fixed, sizes)
            except PreconditionError as error:
                more = {name: value for name, value in feeds.items() if f"'{name}'" in error.message and name not in fixed}
                if not more:
                    raise
                fixed.update(more)

    def run(self, inputs, **_):
        """inputs: an array, a list in the order of the model's inputs, or a dict; a sequence is a list of arrays, an absent
        optional None. Returns a named tuple of the same."""
        feeds, sizes = self._flat(self._by_name(inputs))
        session = self._session or self._imported_for(feeds, sizes)
        wanted = {name for name, *_ in session.parameters}
        results = session.run(feeds={name: value for name, value in feeds.items() if name in wanted})
        return self._outputs(*(self._output(session.module, results, o.name) for o in self._model.graph.output))

    def _flat(self, feeds):
        """Arrays by the names of Keel's parameters, and the options that give lengths and shapes of sequences."""
        arrays, sizes = {}, {}
        for name, value in feeds.items():
            kind = self._kinds.get(name)
            if value is None:
                sizes[f"length.{name}"] = "none"
            elif kind in ("sequence_type", "optional_type") and isinstance(value, (list, tuple)):
                sizes[f"length.{name}"] = str(len(value))
                for k, element in enumerate(map(_array, value)):
                    arrays[f"{name}_{k}"] = element
                    sizes[f"shape.{name}_{k}"] = ",".join(map(str, element.shape))
            else:
                arrays[name] = _array(value)
                sizes.update({f"length.{name}": "1"} if kind == "optional_type" else {})
        return arrays, sizes

    @staticmethod
    def _output(module, results, name):
        metadata = module.info()["metadata"]
        lengths = dict(line.split("\t") for line in metadata.get("onnx.sequence_outputs", "").splitlines())
        strings = metadata.get("onnx.string_outputs", "").splitlines()

        def read(full):
            return decode(results[full].numpy()) if full in strings else results[full].numpy()
        if name not in lengths:
            return read(name)
        return None if lengths[name] == "none" else [read(f"{name}_{k}") for k in range(int(lengths[name]))]

    def _by_name(self, inputs):
        if isinstance(inputs, dict):
            return inputs
        values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        names = self._fed if len(values) <= len(self._fed) else self._inputs
        if len(values) > len(names):
            raise ValueError(f"{len(values)} inputs for a model of {len(names)}: {', '.join(names)}")
        return dict(zip(names, values))


class KeelBackend(Backend):
    """Implements onnx.backend.base.Backend."""

    @classmethod
    def is_compatible(cls, model, device="CPU", **options):
        """Whether the model can be imported."""
        try:
            cls.prepare(model, device, **options)
        except Error:
            return False
        return True

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        """A KeelRep. Raises the errors of keel.from_onnx() and keel.Session. options: of the import."""
        return KeelRep(model, device, options)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, opset_version=None, **options):
        """The outputs of a single operator on these arrays."""
        helper = onnx.helper
        values = dict(zip((name for name in node.input if name), inputs))
        types = [helper.make_tensor_value_info(name, _element_type(value), value.shape) for name, value in values.items()]
        made = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        version = opset_version or onnx.defs.onnx_opset_version()
        model = helper.make_model(helper.make_graph([node], "node", types, made),
                                  opset_imports=[helper.make_opsetid(node.domain, version)])
        return cls.prepare(model, device, **options).run(values)

    @classmethod
    def supports_device(cls, device):
        name = device.lower()
        return (name if ":" in name else name + ":0") in _keel.devices()


prepare = KeelBackend.prepare
run_model = KeelBackend.run_model
run_node = KeelBackend.run_node
supports_device = KeelBackend.supports_device
is_compatible = KeelBackend.is_compatible
