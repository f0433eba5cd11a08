"""Node tests of ONNX, imported, written as ONNX again and run by ONNX Runtime, give ONNX's results."""
import numpy as np
import onnx
import pytest
from keel_abi import KeelError
from onnx_cases import assert_similar, excluded, folder_case, light_models, lines, node_case, node_cases, onnxruntime_run, tiny_models
from onnx_export import WIDE, retyped, through_keel

NAMES = [line[0] for line in lines("node_tests.txt")]
# What cannot be written, by the beginning of a test's name: words of the error.
REFUSED = {
    "test_nonmaxsuppression": "assert: ONNX has no such effect",  # of a threshold that is fed
    "test_ai_onnx_ml_tree_ensemble_single_tree": "tree_ensemble: of f64",
    "test_training_dropout_zero": "random: ONNX has no generator",
    "test_pow_types_int32_int32": "pow: an integer power",
    "test_pow_types_int64_int64": "pow: an integer power",
}


def check(context, name):
    model, sets, rtol, atol = node_case(name)
    refused = next((words for start, words in REFUSED.items() if name.startswith(start)), None)
    for inputs, expected in sets:
        if refused:
            with pytest.raises(KeelError, match=refused):
                through_keel(context, model, inputs)
            continue
        got = [retyped(*pair) for pair in zip(through_keel(context, model, inputs), expected)]
        if any(want.dtype.name == "bfloat16" for want in expected):
            rtol = atol = WIDE
        assert_similar(expected, got, rtol, atol, name)


@pytest.mark.parametrize("name", NAMES)
def test_node(context, name):
    check(context, name)




def has_strings(model):
    """They are written as bytes, so the model takes and gives other types."""
    return any(v.type.tensor_type.elem_type == onnx.TensorProto.STRING for v in (*model.graph.input, *model.graph.output))


OTHERS = sorted(name for name, case in node_cases().items()
                if name not in set(NAMES) and not excluded(name, "reference") and not has_strings(case.model))


@pytest.mark.parametrize("name", OTHERS)
def test_other_node(context, name):
    check(context, name)


def test_tiny_models(context, tmp_path):
    for name, folder in tiny_models(tmp_path).items():
        model, sets, rtol, atol = folder_case(folder)
        for inputs, expected in sets:
            assert_similar(expected, through_keel(context, model, inputs), rtol, max(atol, 1e-4), name)


@pytest.mark.parametrize("name", sorted(light_models()))
def test_light(context, name):
    model = onnx.load(light_models()[name])
    first = next(i for i in model.graph.input if i.name not in {w.name for w in model.graph.initializer})
    shape = [d.dim_value for d in first.type.tensor_type.shape.dim]
    x = np.random.default_rng(0).normal(size=shape).astype("f4")
    assert_similar(onnxruntime_run(model, [x]), through_keel(context, model, [x]), 1e-3, 1e-4, name)
