"""tools/bench: statistics by known values, models by NumPy, tables that say what was not measured."""
import sys
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).resolve().parents[2] / "tools" / "bench"
sys.path[:0] = [str(BENCH), str(BENCH / "ops")]
onnx = pytest.importorskip("onnx", reason="models are written as ONNX files")
from cases import CASES  # noqa: E402
from figures import interval, markdown  # noqa: E402
from forms import onnx_form  # noqa: E402
from models import WORKLOADS, mlp  # noqa: E402


def test_interval_of_the_median():
    # Order statistics of binomial(n, 1/2): ranks 4 and 12 of 15 cover 96.5 %, 2 and 8 of 9 cover 96.1 %.
    assert interval(list(range(15, 0, -1))) == (4, 12) and interval(range(1, 10)) == (2, 8)
    assert interval([3.0]) == (3.0, 3.0)


def test_tables_say_what_is_not_measured():
    row = {"what": "thing", "ms": {"keel": 2.0, "torch": 0.0015}, "ratio": 1.5, "ratio_low": 1.25, "ratio_high": 2,
           "peak_bytes": {"keel": 3e6}}
    text = markdown([row], ["keel", "onnxruntime", "torch"])
    assert "| thing | 2 ms | not measured | 1.5 µs | 1.50 [1.25, 2.00] |" in text
    assert "| thing | 3 MB | not measured |" in text


def test_all_forms_get_the_same_weights(tmp_path, context, device):
    x = np.random.default_rng(1).standard_normal((3, 784)).astype(np.float32)
    path = onnx_form.write(mlp, [x], tmp_path / "mlp.onnx", free_rows=True)
    weights, y = onnx_form.weights_of(path), x
    assert [w.shape for w in weights[::2]] == [(784, 128), (128, 128), (128, 128), (128, 10)]
    for w, b in zip(weights[::2], weights[1::2]):
        y = np.maximum(y, 0) if y is not x else y
        y = y @ w + b
    got, = context.import_file(path).session(device).prepare().run(x)
    np.testing.assert_allclose(got, y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["chain", "power", "one"])
def test_small_models_compute_what_they_say(tmp_path, context, name):
    model, inputs, _ = WORKLOADS[name]
    path = onnx_form.write(model, inputs(), tmp_path / "m.onnx")
    given = inputs()
    if name == "power":
        wanted = given[0]
        for _ in range(100):
            wanted = wanted @ given[0]
    else:
        wanted, b = given
        for _ in range(100 if name == "chain" else 1):
            wanted = np.float32(np.float32(wanted * b) + b) if name == "chain" else wanted + b
    got, = context.import_file(path).session("reference").prepare().run(*given)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize("family", ["attention", "cast", "expand", "pad", "pool", "slice", "transpose"])
def test_cases_of_ops_are_sound(family):
    cases = [c for c in CASES.values() if c.family == family]
    assert cases
    for case in cases:
        inferred = onnx.shape_inference.infer_shapes(case.model(), check_type=True, strict_mode=True)
        assert inferred.graph.output[0].type.tensor_type.elem_type, case.name
