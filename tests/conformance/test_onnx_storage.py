"""ONNX models with 4- and 8-bit floats and 2- and 4-bit integers: QuantizeLinear and DequantizeLinear per tensor, along an axis
and in blocks, against ONNX's reference; stored tensors, whole and malformed; numbers of int32_data and uint64_data of all dtypes."""
import numpy as np
import onnx
import pytest
from keel_types import pack, storage_dtype
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_cases import DEVICES, assert_refused, onnxruntime_run, run_model

TYPES = {"i4": TensorProto.INT4, "u4": TensorProto.UINT4, "i2": TensorProto.INT2, "u2": TensorProto.UINT2,
         "f8e4m3fn": TensorProto.FLOAT8E4M3FN, "f8e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ, "f8e5m2": TensorProto.FLOAT8E5M2,
         "f8e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ, "f4e2m1": TensorProto.FLOAT4E2M1}
SHAPE = (3, 7, 4)
FORMS = {"tensor": ((), {}), "axis": ((7,), {"axis": 1}), "blocks": ((3, 4, 4), {"axis": 1, "block_size": 2})}


def model(nodes, inputs, result, initializers=()):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
                              [helper.make_tensor_value_info(*result)], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)


def parts(name, form):
    rng = np.random.default_rng(7)
    shape, attrs = FORMS[form]
    scale = rng.uniform(0.5, 2, shape).astype(np.float32)
    zero = np.zeros(shape, np.float32) if name[0] == "f" else rng.integers(0, 2, shape)
    x = (rng.normal(size=SHAPE) * 6).astype(np.float32)
    return x, scale, zero.astype(storage_dtype(name)), attrs


def stored(name, array):
    return numpy_helper.from_array(array, name)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TYPES)
def test_quantised(context, device, name, form):
    x, scale, zero, attrs = parts(name, form)
    proto = model([helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"], **attrs)],
                  [("x", TensorProto.FLOAT, SHAPE)], ("y", TYPES[name], SHAPE), [stored("scale", scale), stored("zero", zero)])
    want, = ReferenceEvaluator(proto).run(None, {"x": x})
    got, = run_model(context, device, proto, [x])
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TYPES)
def test_dequantised_weights(context, device, name, form):
    x, scale, zero, attrs = parts(name, form)
    weights = np.clip(x, 0 if name[0] == "u" else -2, 1).astype(storage_dtype(name))
    proto = model([helper.make_node("DequantizeLinear", ["w", "scale", "zero"], ["y"], **attrs),
                   helper.make_node("Add", ["x", "y"], ["z"])], [("x", TensorProto.FLOAT, SHAPE)],
                  ("z", TensorProto.FLOAT, SHAPE), [stored("w", weights), stored("scale", scale), stored("zero", zero)])
    want, = ReferenceEvaluator(proto).run(None, {"x": x})
    got, = run_model(context, device, proto, [x])
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def constant(name, data_type, dims, raw=None, int32_data=None):
    tensor = TensorProto(name=name, data_type=data_type, dims=dims)
    if raw is not None:
        tensor.raw_data = raw
    tensor.int32_data.extend(int32_data or [])
    return tensor


def casting(tensor, dims):
    return model([helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)], [], ("y", TensorProto.FLOAT, dims), [tensor])


@pytest.mark.parametrize("size", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("name", TYPES)
def test_stored_raw_and_typed(context, name, size):
    x = (np.arange(size) % 2).astype(storage_dtype(name))
    for fields in ({"raw": pack(x).tobytes()}, {"int32_data": pack(x).tolist()}):
        got, = run_model(context, "reference", casting(constant("w", TYPES[name], [size], **fields), [size]), [])
        np.testing.assert_array_equal(got, x.astype(np.float32))


# What a number of int32_data or uint64_data may be: one of the dtype, the bits of a float, a byte of packed integers.
RANGES = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-2**15, 2**15 - 1), "UINT16": (0, 2**16 - 1), "INT32": (-2**31, 2**31 - 1),
          "UINT32": (0, 2**32 - 1), "FLOAT16": (0, 2**16 - 1), "BFLOAT16": (0, 2**16 - 1), "FLOAT8E4M3FN": (0, 255),
          "FLOAT8E5M2FNUZ": (0, 255), "FLOAT4E2M1": (0, 255), "INT4": (-128, 255), "UINT4": (-128, 255), "INT2": (-128, 255), "UINT2": (-128, 255)}
PACKED = {"FLOAT4E2M1": 2, "INT4": 2, "UINT4": 2, "INT2": 4, "UINT2": 4}  # elements in a byte


def listed(name, numbers):
    tensor = TensorProto(name="w", data_type=TensorProto.DataType.Value(name), dims=[len(numbers) * PACKED.get(name, 1)])
    getattr(tensor, field_of(name)).extend(numbers)
    return tensor


def field_of(name):
    return "uint64_data" if name == "UINT32" else "int32_data"


@pytest.mark.parametrize("name", RANGES)
def test_listed_numbers_from_end_to_end(context, name):
    tensor = listed(name, [*RANGES[name], 1])
    got, = run_model(context, "reference", casting(tensor, list(tensor.dims)), [])
    np.testing.assert_array_equal(got, numpy_helper.to_array(tensor).astype(np.float32))


@pytest.mark.parametrize("name, beyond", [(name, end) for name, (low, high) in RANGES.items() for end in (low - 1, high + 1)
                                          if -2**31 <= end < 2**31 and name != "UINT32" or end == 2**32])
def test_listed_numbers_outside_of_the_dtype_are_refused(context, name, beyond):
    """ONNX Runtime refuses the bits of floats, and takes the low byte of others."""
    tensor, (low, high) = listed(name, [1, beyond]), RANGES[name]
    assert_refused(context, casting(tensor, list(tensor.dims)), [], "INVALID",
                   [f"tensor 'w' has {beyond} at index 1 of {field_of(name)}; expected numbers from {low} to {high}, as its element type is {name}"])


def test_listed_numbers_of_64_bits_for_32(context):
    tensor = listed("UINT32", [2**64 - 1])
    assert_refused(context, casting(tensor, [1]), [], "INVALID", [f"tensor 'w' has {2**64 - 1} at index 0 of uint64_data"])


def test_listed_bools_are_true_unless_0(context):
    tensor = listed("BOOL", [0, 1, 2, 256, -1])
    proto = casting(tensor, [5])
    got, = run_model(context, "reference", proto, [])
    np.testing.assert_array_equal(got, [0, 1, 1, 1, 1])
    proto.opset_import[0].version = 24  # as ONNX Runtime takes it
    np.testing.assert_array_equal(got, *onnxruntime_run(proto, []))


def test_listed_numbers_with_more_bits_than_protobuf_keeps(context, tmp_path):
    """An int32 of protobuf is the low half of what is written."""
    written = casting(listed("INT8", [-1, 5]), [2]).SerializeToString()
    usual, other = b"\xff" * 9 + b"\x01", b"\xff\xff\xff\xff\x8f\x80\x80\x80\x80\x00"
    assert written.count(usual) == 1
    path = tmp_path / "m.onnx"
    path.write_bytes(written.replace(usual, other))
    want = numpy_helper.to_array(onnx.load(path).graph.initializer[0])
    np.testing.assert_array_equal(*run_model(context, "reference", path, []), want.astype(np.float32))


def test_malformed_tensors_are_refused(context):
    for data_type, dims, raw, expected in ((TensorProto.INT4, [3], b"\x01", 2), (TensorProto.INT4, [3], b"\x01\x02\x03", 2),
                                           (TensorProto.UINT2, [5], b"\x01", 2), (TensorProto.FLOAT8E5M2, [2], b"\x01", 2)):
        proto = casting(constant("w", data_type, dims, raw=raw), dims)
        assert_refused(context, proto, [], "INVALID", [f"tensor 'w' has {len(raw)} bytes of data; expected {expected} from its dims"])


def test_other_operators_refuse_them(context):
    proto = model([helper.make_node("Transpose", ["w"], ["y"])], [], ("y", TensorProto.INT4, [2, 2]),
                  [stored("w", np.zeros((2, 2), storage_dtype("i4")))])
    assert_refused(context, proto, [], "INVALID", ["transpose", "is i4 but must be one of"])
