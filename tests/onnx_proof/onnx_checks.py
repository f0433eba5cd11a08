"""One graph on Keel's devices, compared with the oracles' results: `failure(context, graph, values, oracles)`."""
import re
import tempfile
from pathlib import Path

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


def as_model(graph):
    return model_of(graph.nodes, graph.inputs, graph.constants, results_of(graph), graph.opset)


def run_keel(context, device, graph):
    with tempfile.TemporaryDirectory(prefix="keel-") as folder:
        path = Path(folder) / "m.onnx"
        path.write_bytes(as_model(graph).SerializeToString())
        module = context.import_file(path, fixed=graph.inputs)
        plan = module.session(device).prepare()
        return plan.run(*[graph.inputs[p["name"]] for p in module.info()["entries"][0]["params"]])


def refused_on_purpose(error, graph):
    there = {n.op_type for n in graph.nodes} | {""}
    return any(op in there and code == error.code and re.search(words, error.message) for op, code, words in REFUSED)


def failure(context, graph, values, oracles, devices):
    """The fault, or None."""
    names, slacks = results_of(graph), oracles.slacks(graph, values)
    for device in devices:
        try:
            got = dict(zip(names, run_keel(context, device, graph), strict=True))
        except KeelError as error:
            if refused_on_purpose(error, graph):
                return None
            return f"{device}: {error.code}: {re.sub('/[^ ]*[.]onnx: ', '', error.message)}"
        for node in graph.nodes:
            own = [n for n in node.output if n]
            result = lambda values: [values[n] for n in own]  # noqa: E731
            wrong = agree(node.op_type, result(values), result(got), result(slacks))
            if wrong and node.name in oracles.others and not agree(node.op_type, oracles.others[node.name], result(got), result(slacks)):
                wrong = ""
            if wrong:
                return f"{device}: {node.op_type} {node.name}: {wrong}"
    return None
