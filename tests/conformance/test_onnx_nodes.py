"""Every node test of ONNX in node_tests.txt passes on every device; inputs and outputs are ONNX's own."""
import pytest
from onnx_cases import DEVICES, assert_similar, excluded, lines, node_case, run_model

NAMES = [line[0] for line in lines("node_tests.txt")]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_node(context, name, device):
    model, sets, rtol, atol = node_case(name)
    for inputs, expected in sets:
        assert_similar(expected, run_model(context, device, model, inputs), rtol, atol, name)


def test_list_is_whole():
    assert len(NAMES) == len(set(NAMES)) == 330
    assert [name for name in NAMES for device in DEVICES if excluded(name, device)] == []
