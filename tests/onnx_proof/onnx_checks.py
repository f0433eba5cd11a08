"""One graph on Keel's devices, compared with the oracles' results: `failure(context, graph, values, oracles)`."""
import re
import tempfile
from pathlib import Path

import numpy as np
from keel_abi import KeelError
from onnx_oracles import agree, model_of

# Refusals on purpose: an operator or "", code and words of the message.
REFUSED = [
    ("", "UNIMPLEMENTED", "size arithmetic has an operand below"),
    # A size that only a run knows is not 1, as a symbol is not.
    *[(op, code, "size[0-9]") for op in ("NonZero", "Compress", "Unique", "NonMaxSuppression") for code in ("INVALID", "UNIMPLEMENTED")],
]


def results_of(graph):
    return [name for node in graph.nodes for name in node.output if name]


def as_model(graph, dims_of=np.shape):
    return model_of(graph.nodes, graph.inputs, graph.constants, results_of(graph), graph.opset, dims_of)


def open_dims(array):
    """A symbol in place of each size other than 1, one for all dims of a size."""
    return [n if n == 1 else f"n{n}" for n in array.shape]


def imported(context, graph, dims_of=np.shape):
    with tempfile.TemporaryDirectory(prefix="keel-") as folder:
        path = Path(folder) / "m.onnx"
        path.write_bytes(as_model(graph, dims_of).SerializeToString())
        return context.import_file(path, fixed=graph.inputs)


def run_keel(module, device, graph):
    return module.session(device).prepare().run(*[graph.inputs[p["name"]] for p in module.info()["entries"][0]["params"]])


def modules(context, graph):
    """The imported graph with numbers as sizes, and with symbols, if the importer can do without numbers."""
    yield "", imported(context, graph)
    if any(n != 1 for x in graph.inputs.values() for n in x.shape):
        try:
            module = imported(context, graph, open_dims)
        except KeelError:
            return
        yield "open sizes, ", module


def refused_on_purpose(error, graph):
    there = {n.op_type for n in graph.nodes} | {""}
    return any(op in there and code == error.code and re.search(words, error.message) for op, code, words in REFUSED)


def failure(context, graph, values, oracles, devices):
    """The fault, or None."""
    slacks, how = oracles.slacks(graph, values), ""
    try:
        for how, module in modules(context, graph):
            for device in devices:
                if wrong := difference(graph, values, run_keel(module, device, graph), slacks, oracles):
                    return f"{how}{device}: {wrong}"
    except KeelError as error:
        if not refused_on_purpose(error, graph):
            return f"{how}error: {error.code}: {re.sub('/[^ ]*[.]onnx: ', '', error.message)}"
    return None


def difference(graph, values, results, slacks, oracles):
    """How the results differ from the oracles', or None."""
    got = dict(zip(results_of(graph), results, strict=True))
    for node in graph.nodes:
        own = [n for n in node.output if n]
        result = lambda values: [values[n] for n in own]  # noqa: E731
        wrong = agree(node.op_type, result(values), result(got), result(slacks))
        if wrong and node.name in oracles.others and not agree(node.op_type, oracles.others[node.name], result(got), result(slacks)):
            wrong = ""
        if wrong:
            return f"{node.op_type} {node.name}: {wrong}"
    return None
