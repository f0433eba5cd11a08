"""Trained models of other families (zoo.py) against ONNX Runtime: speech, music, text in images, detection, and quantised ones.

Every result has a bound relative to its largest number; every model runs with several sizes, also none where it can.
"""
import zlib

import numpy as np
import onnx
import pytest
from onnx_cases import DEVICES, onnxruntime_run, run_model
from zoo import BOUND, MODELS, detector, file_of

CASES = [(name, sizes) for name, model in MODELS.items() for sizes in model.sizes]


def run_keel(context, device, path, feeds, options):
    """Results of a model that may need values of its inputs at import, or sizes."""
    module = context.import_file(path, fixed=feeds, **options)
    return module.session(device).prepare().run(*[feeds[p["name"]] for p in module.info()["entries"][0]["params"]])


def assert_bounded(want, got, bounds):
    assert len(want) == len(got) == len(bounds)
    for k, (a, b, bound) in enumerate(zip(want, got, bounds)):
        assert a.shape == b.shape and a.dtype == b.dtype, f"result {k}: {b.dtype}{b.shape}, wanted {a.dtype}{a.shape}"
        scale = max(np.abs(a).max(), 1) if a.size else 1
        np.testing.assert_allclose(b, a, rtol=0, atol=bound * scale, err_msg=f"result {k}")


def drawn(name, sizes):
    return MODELS[name].feeds(np.random.default_rng(zlib.crc32(f"{name} {sizes}".encode())), *sizes)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name, sizes", CASES, ids=str)
def test_results_are_onnx_runtimes(context, device, name, sizes):
    model = MODELS[name]
    path, feeds = file_of(model), drawn(name, sizes)
    want = onnxruntime_run(path, [feeds[i.name] for i in onnx.load(path).graph.input if i.name in feeds])
    assert_bounded(want, run_keel(context, device, path, feeds, model.options(*sizes)), model.bounds)


def moved_by_a_rounding(model, x, boxes):
    """How far ONNX Runtime's boxes move if all cells of the image are rounded the other way: the oracle is no better than that."""
    moved = np.zeros_like(boxes)
    for seed in range(3):
        signs = np.random.default_rng(seed).choice([np.float32(-1), np.float32(1)], x.shape)
        moved = np.maximum(moved, np.abs(onnxruntime_run(model, [x + signs * np.spacing(x)])[0] - boxes))
    return moved


def test_boxes_of_a_page(context):
    """The same boxes are selected, in the same order. In f64 one edge of 40,420, a mean of distant places with like weights, is 1e-5 of
    the largest number away from the results with either kind of products, where others are 2e-6 away."""
    model, x = detector(), drawn("page", MODELS["page"].sizes[0])["image"]
    boxes, selected = onnxruntime_run(model, [x])
    got = run_model(context, "cpu", model, [x])
    assert len(selected) > 3, "the page has too few boxes to test anything"
    assert got[0].shape == boxes.shape and got[0].dtype == boxes.dtype
    excess = np.abs(got[0] - boxes) - BOUND * np.abs(boxes).max() - moved_by_a_rounding(model, x, boxes)
    assert excess.max() <= 0, f"box {np.unravel_index(excess.argmax(), boxes.shape)} is {excess.max()} too far"
    assert np.array_equal(got[1], selected)


@pytest.mark.parametrize("name, operators", [("text direction", ["Conv"]), ("text", ["MatMul"]), ("voice, frames", ["Conv"])])
def test_quantised_by_onnx_runtime(context, tmp_path, name, operators):
    """Weights of 8 bits, activations quantised in the run. A sum next to the middle between two integers may be rounded the other
    way, and the step that follows is as wide as a 255th of the largest activation: hence the wider bound."""
    from onnxruntime.quantization import quantize_dynamic
    path, sizes = tmp_path / "quantised.onnx", MODELS[name].sizes[-1]
    quantize_dynamic(file_of(MODELS[name]), path, op_types_to_quantize=operators)
    feeds = drawn(name, sizes)
    want = onnxruntime_run(path, [feeds[i.name] for i in onnx.load(path).graph.input if i.name in feeds], optimised=False)
    assert_bounded(want, run_keel(context, "cpu", path, feeds, {}), [2e-2] * len(want))
