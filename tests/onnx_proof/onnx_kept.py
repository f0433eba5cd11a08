"""Graphs that once failed, as text: kept/*.json with the model, the arrays of its inputs, the expected results, and the fault."""
import json
from pathlib import Path

from google.protobuf import json_format
from onnx import ModelProto, TensorProto, numpy_helper
from onnx_checks import as_model, results_of
from onnx_draw import Graph
from onnx_oracles import Oracles

FOLDER = Path(__file__).resolve().parent / "kept"


def all_kept():
    return sorted(FOLDER.glob("*.json"))


def as_json(arrays):
    return {k: json_format.MessageToDict(numpy_helper.from_array(v, k)) for k, v in arrays.items()}


def from_json(arrays):
    return {k: numpy_helper.to_array(json_format.ParseDict(v, TensorProto())) for k, v in arrays.items()}


def keep(graph, values, wrong, folder=FOLDER, oracles=None):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"seed{graph.seed}.json"
    text = {"seed": graph.seed, "fault": wrong, "inputs": as_json(graph.inputs), "expected": as_json({n: values[n] for n in results_of(graph)}),
            "model": json_format.MessageToDict(as_model(graph))}
    path.write_text(json.dumps(text, indent=1) + "\n")
    return path


def load(path):
    """The graph, its values, and the oracles; ONNX Runtime serves for tolerances."""
    text = json.loads(path.read_text())
    model = json_format.ParseDict(text["model"], ModelProto())
    graph = Graph(text["seed"], model.opset_import[0].version, from_json(text["inputs"]),
                  {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}, list(model.graph.node))
    values = graph.inputs | graph.constants | from_json(text["expected"])
    oracles = Oracles()
    oracles.chosen = {n.name: "runtime" for n in graph.nodes}
    return graph, values, oracles
