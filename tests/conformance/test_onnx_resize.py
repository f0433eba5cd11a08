"""Resize along axes of symbolic size, whose places and weights the run computes, against ONNX Runtime."""
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import DEVICES, assert_similar, onnxruntime_run

F = np.float32
MODES = [{"mode": "nearest", "nearest_mode": way} for way in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")] + [
    {"mode": "linear"}, {"mode": "cubic"}, {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1}]
COORDINATES = ["half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners", "asymmetric"]


def resize(last, shape=("n", 2, "h", "w"), **attributes):
    """A Resize of x whose scales are `last`, or whose sizes are the dims of another input, `like`."""
    scales = last is not None
    operand = [numpy_helper.from_array(np.array(last, F), "scales")] if scales else []
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    nodes = [helper.make_node("Resize", ["x", "", "scales"] if scales else ["x", "", "", "sizes"], ["y"], **attributes)]
    if not scales:
        inputs.append(helper.make_tensor_value_info("like", TensorProto.FLOAT, ["n", 2, "a", "b"]))
        nodes.insert(0, helper.make_node("Shape", ["like"], ["sizes"]))
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], operand)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def agrees(context, tmp_path, device, model, cases):
    """One module for all sizes."""
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    session = context.import_file(tmp_path / "m.onnx").session(device).prepare()
    for feeds in cases:
        assert_similar(onnxruntime_run(model, feeds), session.run(*feeds), 1e-5, 1e-5, str([x.shape for x in feeds]))


def image(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(F)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: "-".join(map(str, mode.values())))
def test_sizes_of_another_value(context, tmp_path, device, mode, coordinates):
    sizes = [((5, 6), (9, 3)), ((4, 4), (4, 1)), ((1, 2), (3, 5)), ((3, 7), (3, 14))]
    cases = [[image(1, 2, *size), image(1, 2, *to)] for size, to in sizes]
    agrees(context, tmp_path, device, resize(None, coordinate_transformation_mode=coordinates, **mode), cases)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scales", [[1, 1, 2, 3], [1, 1, 0.5, 1.75], [1, 1, 1, 0.25]], ids=str)
@pytest.mark.parametrize("mode", MODES[:6:2], ids=lambda mode: mode["mode"])
def test_scales(context, tmp_path, device, mode, scales):
    agrees(context, tmp_path, device, resize(scales, **mode), [[image(2, 2, 4, 8)], [image(1, 2, 6, 5)]])


def test_no_images(context, tmp_path):
    (tmp_path / "m.onnx").write_bytes(resize(None, mode="linear").SerializeToString())
    session = context.import_file(tmp_path / "m.onnx").session("cpu").prepare()
    for shape in [(0, 2, 3, 4), (1, 2, 0, 4)]:
        assert session.run(image(*shape), image(*shape[:3], 7))[0].shape == (*shape[:3], 7)


@pytest.mark.parametrize("last, attributes, words", [
    ([1, 1, 1.3, 1], {"mode": "linear"}, ["axis 2", "scale 1.3", "--dim"]), (None, {"mode": "linear", "antialias": 1}, ["antialias", "--dim"])])
def test_refused(context, tmp_path, last, attributes, words):
    (tmp_path / "m.onnx").write_bytes(resize(last, **attributes).SerializeToString())
    with pytest.raises(Exception, match="UNIMPLEMENTED") as caught:
        context.import_file(tmp_path / "m.onnx")
    assert all(word in str(caught.value) for word in words), caught.value
