"""Twelve small models in the form that frameworks export (ResNet, ViT, BERT, GPT-2; opsets 17, 20, 23) give the outputs stored
with them, on every device."""
import pytest
from onnx_cases import DEVICES, assert_similar, folder_case, run_model, tiny_models

NAMES = [f"{kind}_{form}" for kind in ("bert", "gpt2", "resnet", "vit") for form in ("dyn20", "dyn23", "ts17")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return tiny_models(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_tiny(context, folders, name, device):
    model, sets, rtol, atol = folder_case(folders[name])
    assert sets
    for inputs, expected in sets:
        assert_similar(expected, run_model(context, device, model, inputs), rtol, atol, name)
