"""Models that torch exports in the test, by both of its exporters and with open sizes, against torch and ONNX Runtime: transformers
(encoder, decoder, both), attention, convolutions, recurrent layers (torch_models.py).

They are exported by a Python that has torch and onnxscript: this one or build/peers, which tools/bench/peers.py installs.
"""
import functools
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_cases import DEVICES, assert_similar, onnxruntime_run, run_model

HERE = Path(__file__).resolve().parent
PEERS = HERE.parents[1] / "build" / "peers"
# name -> bound of a result relative to the largest number
MODELS = {"translator": 1e-5, "decoder": 1e-5, "decoder of f16": 4e-3, "causal": 1e-5, "encoder": 1e-5, "attention": 1e-5, "images": 3e-5,
          "recurrent": 1e-5}
CASES = [(name, exporter) for name in MODELS for exporter in ("dynamo", "torchscript") if (name, exporter) != ("decoder of f16", "torchscript")]


@functools.cache
def python_with_torch():
    """The interpreter that exports, or None."""
    if all(importlib.util.find_spec(name) for name in ("torch", "onnxscript")):
        return sys.executable
    python = PEERS / "bin" / "python"
    there = python.exists() and all(any(PEERS.glob(f"lib/python*/site-packages/{name}")) for name in ("torch", "onnxscript"))
    return str(python) if there else None


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """The folder of all models and torch's results."""
    if not (python := python_with_torch()):
        pytest.skip("torch and onnxscript are in no Python here (python tools/bench/peers.py installs them into build/peers)")
    folder = tmp_path_factory.mktemp("torch")
    done = subprocess.run([python, HERE / "torch_models.py", folder, *MODELS], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def cases_of(folder, name, model):
    """(inputs, torch's results) for each size that the model's fixed sizes allow."""
    with np.load(folder / f"{name}.npz") as file:
        arrays = dict(file)
    for k in sorted({key.split()[0] for key in arrays}):
        inputs = [arrays[f"{k} x {i.name}"] for i in model.graph.input]
        dims = [[d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input]
        if all(wanted in (0, got) for shape, x in zip(dims, inputs) for wanted, got in zip(shape, x.shape, strict=True)):
            yield inputs, [arrays[key] for key in sorted(arrays) if key.startswith(f"{k} y ")]


def assert_bounded(want, got, bound, what):
    scale = max([1.0] + [float(np.abs(x).max()) for x in want if x.dtype.kind == "f" and x.size])
    assert_similar(want, got, 0, bound * scale, what)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name, exporter", CASES)
def test_results_are_torchs(context, exported, name, exporter, device):
    path, failed = (exported / f"{name}-{exporter}{end}" for end in (".onnx", ".txt"))
    assert not failed.exists(), failed.read_text()[-2000:]
    model, count = onnx.load(path), 0
    for inputs, want in cases_of(exported, name, model):
        got, what = run_model(context, device, model, inputs), f"inputs {[x.shape for x in inputs]}"
        assert_bounded(want, got, MODELS[name], f"torch, {what}")
        assert_bounded(onnxruntime_run(model, inputs), got, MODELS[name], f"ONNX Runtime, {what}")
        count += 1
    assert count > 1, "the open sizes were not tried"


@pytest.mark.parametrize("name", ["translator", "recurrent"])
def test_open_sizes_stay_open(context, exported, name):
    """One module, imported without sizes, runs with all of them."""
    path = exported / f"{name}-torchscript.onnx"
    module = context.import_file(path)
    session = module.session("cpu").prepare()
    for inputs, want in cases_of(exported, name, onnx.load(path)):
        assert_bounded(want, session.run(*inputs), MODELS[name], f"inputs {[x.shape for x in inputs]}")
