"""The nine light models of ONNX with reproducible weights agree with ONNX Runtime, run in the same test.

The reference device is slow by design (some models take half a minute), so the models run in their own processes, one per core;
the slowest start first.
"""
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from light_weights import image, reseeded
from onnx_cases import DEVICES, assert_similar, light_models, onnxruntime_run

SLOWEST_FIRST = ("vgg19", "resnet50", "densenet121", "inception_v2", "inception_v1", "zfnet512", "bvlc_alexnet",
                 "squeezenet", "shufflenet")


def run_one(name, device):
    """In a separate process: returns outputs of the device and of ONNX Runtime, both with one thread."""
    import keel_abi
    model = reseeded(light_models()[name])
    x = image(model)
    with tempfile.TemporaryDirectory(prefix="keel-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        del model
        module = keel_abi.Context(threads=1).import_file(path)
        got = module.session(device).prepare().run(x)
        return [np.array(y) for y in got], onnxruntime_run(path, [x])


@pytest.fixture(scope="module")
def results(request):
    """Cases selected by ../conftest.py, which takes a sample."""
    asked = {(i.callspec.params["name"], i.callspec.params["device"]) for i in request.session.items
             if i.path == request.path and hasattr(i, "callspec")}
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("spawn")) as pool:
        yield {(name, device): pool.submit(run_one, name, device) for device in DEVICES for name in SLOWEST_FIRST
               if (name, device) in asked}


def test_list_is_whole():
    assert sorted(SLOWEST_FIRST) == sorted(light_models())


@pytest.mark.parametrize("device", DEVICES[::-1])
@pytest.mark.parametrize("name", SLOWEST_FIRST[::-1])
def test_light(results, name, device):
    got, expected = results[name, device].result()
    assert len(np.unique(expected[0])) >= 800, "the weights leave too few distinct outputs to test anything"
    assert_similar(expected, got, 1e-3, 1e-7, name)
