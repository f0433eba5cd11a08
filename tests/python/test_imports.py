"""Imports of ONNX files that must fail, or are restricted: weights outside the file, unknown operators, ops that a device lacks.
ONNX's own package writes the files."""
import os

import numpy as np
import onnx
import pytest
from keel_abi import BUILD, Context, KeelError, call
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = np.arange(6, dtype="f4").reshape(2, 3)


def save(path, nodes, constants=(), shape=("b", 2), opset=17):
    value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, "g", [value("x", shape)], [value("y", None)], list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    path.write_bytes(model.SerializeToString())
    return path


def outside(location, offset=None, length=None, dims=(2, 3)):
    """A weight with external data."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, text in (("location", location), ("offset", offset), ("length", length)):
        if text is not None:
            tensor.external_data.add(key=key, value=str(text))
    return tensor


@pytest.fixture
def folder(tmp_path):
    inner = tmp_path / "model"
    inner.mkdir()
    (inner / "w.bin").write_bytes(b"\0" * 5 + WEIGHTS.tobytes())
    (tmp_path / "secret.bin").write_bytes(WEIGHTS.tobytes())
    os.symlink(tmp_path / "secret.bin", inner / "link.bin")
    return inner


def product(folder, tensor):
    return save(folder / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor])


@pytest.mark.parametrize("offset", [5, "5"])
def test_weights_beside_the_model_at_any_offset(context, device, folder, offset):
    path = product(folder, outside("w.bin", offset, 24))
    x = np.array([[1, 2]], "f4")
    np.testing.assert_array_equal(context.import_file(path).session(device).prepare().run(x)[0], x @ WEIGHTS)


@pytest.mark.parametrize("tensor, words", [
    (outside("absent.bin"), ["absent.bin"]),
    (outside("../secret.bin"), ["../secret.bin", ".."]),
    (outside("a/../../secret.bin"), [".."]),
    (outside("link.bin"), ["link.bin", "folder"]),
    (outside("/etc/passwd"), ["/etc/passwd", "relative"]),
    (outside(""), ["relative"]),
    (outside("w.bin", 6), ["w.bin"]),
    (outside("w.bin", 2**63), ["w.bin"]),
    (outside("w.bin", 2**64 - 8), []),
    (outside("w.bin", -1), ["-1"]),
    (outside("w.bin", "five"), ["five"]),
    (outside("w.bin", 5, 20), ["20", "24"]),
    (outside("w.bin", 0, None, (2**40, 2**40)), []),
], ids=lambda value: None)
def test_weights_that_may_not_or_cannot_be_read(context, folder, tensor, words):
    with pytest.raises(KeelError) as caught:
        context.import_file(product(folder, tensor))
    assert caught.value.code in ("INVALID", "NOT_FOUND", "OOM", "UNAVAILABLE")
    for word in ["w", *words]:
        assert word in caught.value.message


def test_all_unknown_operators_are_named_at_once(context, tmp_path):
    nodes = [helper.make_node("NoSuchOp", ["x"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("OtherOp", ["b"], ["c"], domain="some.vendor"), helper.make_node("NoSuchOp", ["c"], ["y"])]
    with pytest.raises(KeelError) as caught:
        context.import_file(save(tmp_path / "m.onnx", nodes))
    assert caught.value.code == "UNIMPLEMENTED" and caught.value.plugin == "onnx"
    assert "NoSuchOp" in caught.value.message and "OtherOp" in caught.value.message
    assert "Relu" not in caught.value.message


@pytest.mark.parametrize("opset", [-1, 0, 29, 99])
def test_opsets_out_of_range_are_named(context, tmp_path, opset):
    with pytest.raises(KeelError) as caught:
        context.import_file(save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], opset=opset))
    assert str(opset) in caught.value.message


def test_all_ops_that_a_device_lacks_are_named_at_once():
    library = BUILD / "examples/keel-hello.so"
    if not library.is_file():
        pytest.skip("the example plugin is not built")
    context = Context(plugins=False)
    call("keel_plugin_load", context, str(library).encode())
    module = context.parse("keel 1\nfn @main(x: f32[2]) -> f32[2] {\n  a = exp(x)\n  b = add(a, x)\n  y = softplus(b)\n"
                           "  return y\n}\nentry main = @main (x) -> (y)\n")
    with pytest.raises(KeelError) as caught:
        module.session("hello").prepare()
    assert caught.value.code == "UNIMPLEMENTED"
    for op in ("exp (T=f32)", "log1p (T=f32)", "maximum (T=f32)"):
        assert op in caught.value.message
    assert "add" not in caught.value.message and "softplus" not in caught.value.message


def test_an_onnx_model_is_written_by_a_plugin_or_not_at_all(tmp_path):
    module = Context(plugins=False).parse("keel 1\nfn @main(x: f32[2]) -> f32[2] {\n  y = exp(x)\n  return y\n}\nentry main = @main (x) -> (y)\n")
    with pytest.raises(KeelError, match="m.onnx: no plugin writes ONNX models") as caught:
        module.save(tmp_path / "m.onnx")
    assert (caught.value.code, caught.value.hint) == ("NOT_FOUND", "`keel doctor` shows the plugins found")
    assert list(tmp_path.iterdir()) == []
    module.save(tmp_path / "m.keel")
