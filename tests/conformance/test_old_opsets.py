"""Older forms of ONNX operators: attributes that later became operands, the matrix view of Softmax, `spatial` of
BatchNormalization, Upsample, and other version-specific importer rules. Oracle: ONNX Runtime.

A case is the operator, its opset, operands, attributes; the name states the older form. `kinds` are the dtypes of the results if
they differ from the first operand's.
"""
import numpy as np
import pytest
from keel_abi import KeelError
from onnx import TensorProto, helper
from onnx_cases import DEVICES, assert_similar, onnxruntime_run, run_model

F, L = np.float32, np.int64
X = np.random.default_rng(5).standard_normal((2, 3, 4, 5)).astype(F)
SMALL, POSITIVE = X[0, :, :, 0].copy(), np.abs(X) + F(0.5)
ROW = np.array([-2, 0.5, 3], F)


def scales(*values):
    return np.array(values, F)


def ints(*values):
    return np.array(values, L)


CASES = [
    ("Clip", 7, [X], {"min": -0.5, "max": 0.25}),
    ("Clip", 9, [X], {"max": 0.25}),
    ("Clip", 10, [X], {"min": 0.0}),
    ("Clip", 7, [X], {}),
    ("Clip", 11, [X, F(-0.5), F(0.25)], {}),
    ("Squeeze", 11, [X[:1, :, :1]], {"axes": [0, 2]}),
    ("Squeeze", 11, [X[:1, :, :1]], {"axes": [-2]}),
    ("Squeeze", 7, [X[:1, :, :1]], {}),
    ("Unsqueeze", 11, [SMALL], {"axes": [0, 3]}),
    ("Unsqueeze", 11, [SMALL], {"axes": [-1, 1]}),
    ("Unsqueeze", 7, [SMALL], {"axes": [1]}),
    *[(op, opset, [POSITIVE], attributes)
      for op in ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                 "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
      for opset in (7, 11, *([] if op == "ReduceSum" else [13]))
      for attributes in ({}, {"axes": [1, 3]}, {"axes": [0], "keepdims": 0}, {"keepdims": 0})],
    ("ReduceSum", 11, [POSITIVE], {"axes": [-1, -3], "keepdims": 0}),
    ("ReduceMean", 17, [POSITIVE], {"axes": [-1]}),
    ("Slice", 9, [X], {"starts": [0, 1], "ends": [2, 3]}),
    ("Slice", 7, [X], {"starts": [1, -3], "ends": [9, -1], "axes": [3, 2]}),
    ("Slice", 9, [X], {"starts": [2], "ends": [2 ** 31 - 1], "axes": [1]}),
    ("Slice", 9, [X], {"starts": [3], "ends": [1], "axes": [2]}),
    ("Split", 11, [X], {"axis": 3, "split": [1, 4]}, 2),
    ("Split", 7, [X], {"axis": 2}, 2),
    ("Split", 11, [X], {"axis": -2, "split": [1, 0, 3]}, 3),
    ("Split", 13, [X, ints(2, 3)], {"axis": 3}, 2),
    ("Pad", 10, [SMALL], {"pads": [1, 0, 2, 3], "value": 1.5}),
    ("Pad", 7, [SMALL], {"pads": [0, 1, 0, 1]}),
    ("Pad", 10, [SMALL], {"pads": [1, 2, 1, 0], "mode": "reflect"}),
    ("Pad", 10, [SMALL], {"pads": [1, 2, 1, 0], "mode": "edge"}),
    ("Pad", 10, [SMALL], {"pads": [-1, 0, 1, -2], "value": 7.0}),
    ("TopK", 7, [X], {"k": 2}, 2),
    ("TopK", 9, [X], {"axis": 1, "k": 3}, 2),
    ("TopK", 10, [X, ints(2)], {"axis": 2}, 2),
    *[(op, opset, [X], attributes) for op in ("Softmax", "LogSoftmax", "Hardmax") for opset in (7, 11)
      for attributes in ({}, {"axis": 0}, {"axis": 2}, {"axis": 3})],
    *[(op, 11, [X], {"axis": -2}) for op in ("Softmax", "LogSoftmax", "Hardmax")],
    ("Dropout", 7, [X], {"ratio": 0.3}),
    ("Dropout", 10, [X], {}),
    ("Dropout", 12, [X], {"seed": 3}),
    ("BatchNormalization", 7, [X, ROW, ROW, ROW, POSITIVE[0, :, 0, 0]], {"spatial": 1, "epsilon": 0.01}),
    ("BatchNormalization", 8, [X, ROW, ROW, ROW, POSITIVE[0, :, 0, 0]], {}),
    ("BatchNormalization", 9, [X, ROW, ROW, ROW, POSITIVE[0, :, 0, 0]], {"momentum": 0.5}),
    ("Upsample", 7, [X], {"scales": [1.0, 1.0, 2.0, 3.0]}),
    ("Upsample", 7, [X], {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "linear"}),
    ("Upsample", 9, [X, scales(1, 1, 2, 1.5)], {}),
    ("Upsample", 9, [X, scales(1, 1, 2, 2)], {"mode": "linear"}),
    ("Resize", 10, [X, scales(1, 1, 2, 3)], {}),
    ("Resize", 10, [X, scales(1, 1, 0.5, 2)], {"mode": "nearest"}),
    ("Resize", 10, [X, scales(1, 1, 2, 0.6)], {"mode": "linear"}),
    ("Gemm", 7, [SMALL, SMALL.T.copy(), ROW], {"alpha": 0.5, "beta": 2.0}),
    ("Gemm", 9, [SMALL, SMALL, ROW.reshape(3, 1)], {"transB": 1}),
    ("Gemm", 7, [SMALL, SMALL, np.ones((), F)], {"transA": 1}),
    ("Flatten", 7, [X], {"axis": 2}),
    ("Flatten", 9, [X], {"axis": 0}),
    ("Flatten", 11, [X], {"axis": -1}),
    ("DepthToSpace", 7, [X[:, :2].repeat(2, 1)], {"blocksize": 2}),
    ("SpaceToDepth", 7, [X[..., :4].copy()], {"blocksize": 2}),
    ("ArgMax", 7, [X], {"axis": 1}, 1, [L]),
    ("ArgMin", 11, [X], {"axis": -1, "keepdims": 0}, 1, [L]),
    ("MaxPool", 7, [X], {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}),
    ("MaxPool", 8, [X], {"kernel_shape": [2, 3], "strides": [2, 1], "storage_order": 0}, 2, [F, L]),
    ("AveragePool", 7, [X], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ("AveragePool", 10, [X], {"kernel_shape": [3, 2], "ceil_mode": 1, "strides": [2, 2]}),
    ("Scatter", 9, [SMALL, ints([0, 2, 1], [1, 0, 2]), X[1, :2, :3, 0].copy()], {"axis": 0}),
    ("Sum", 7, [X, X * 2, X], {}),
    ("Sum", 8, [X, X[0, :1, :, :1].copy(), X], {}),
    ("Max", 7, [X, -X], {}),
    ("Min", 8, [X, np.zeros((4, 1), F)], {}),
    ("Mean", 8, [X, np.zeros((4, 1), F)], {}),
    ("PRelu", 7, [X, ROW.reshape(3, 1, 1)], {}),
    ("Cast", 7, [X], {"to": TensorProto.INT64}, 1, [L]),
    ("Equal", 7, [ints(1, 2, 3), ints(1, 0, 3)], {}, 1, [np.bool_]),
    ("OneHot", 9, [ints(0, 2, 1), np.array([3], F), scales(0, 1)], {}, 1, [F]),
    ("EyeLike", 9, [SMALL], {"k": 1}),
    ("Tile", 7, [SMALL, ints(2, 1)], {}),
    ("Expand", 8, [SMALL, ints(2, 1, 4)], {}),
    ("MeanVarianceNormalization", 9, [X], {}),
    ("InstanceNormalization", 7, [X, ROW, ROW], {"epsilon": 0.01}),
]


def tensor_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def model_of(op, opset, inputs, attributes, outputs=1, kinds=None):
    kinds = kinds or ([F, L] if op == "TopK" else [inputs[0].dtype] * outputs)
    names = [f"x{i}" for i in range(len(inputs))]
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attributes)], "old",
        [helper.make_tensor_value_info(n, tensor_type(x.dtype), x.shape) for n, x in zip(names, inputs)],
        [helper.make_tensor_value_info(n, tensor_type(k), None) for n, k in zip(results, kinds)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)


def name_of(case):
    told = "-".join(f"{k}={v}".replace(" ", "") for k, v in case[3].items())
    return f"{case[0]}-{case[1]}-{told}-{len(case[2])}"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_as_onnx_runtime(context, device, case):
    inputs = [np.ascontiguousarray(x) if np.ndim(x) else np.asarray(x) for x in case[2]]
    model = model_of(case[0], case[1], inputs, *case[3:])
    expected = onnxruntime_run(model, inputs)
    assert_similar(expected, run_model(context, device, model, inputs), 1e-5, 1e-6, name_of(case))


@pytest.mark.parametrize("case, words", [
    (("BatchNormalization", 7, [X, X[0], X[0], X[0], POSITIVE[0]], {"spatial": 0}), ["spatial"]),
    (("Slice", 9, [X], {"starts": [0, 1], "ends": [2]}), ["Slice", "starts", "ends"]),
    (("Split", 11, [X], {"axis": 3, "split": [1, 9]}, 2), ["split", "10", "5"]),
    (("TopK", 9, [X], {}, 2), ["TopK", "k"]),
    (("Concat", 7, [X, X], {}), ["Concat", "axis"]),
    (("DepthToSpace", 7, [X], {}), ["DepthToSpace", "blocksize"]),
    (("LRN", 7, [X], {}), ["LRN", "size"]),
    (("Upsample", 7, [X], {"scales": [1.0, 2.0]}), ["Upsample", "scale", "4 axes"]),
    (("Clip", 7, [X], {"minimum": 1.0}), ["Clip", "minimum"]),
    (("Clip", 29, [X], {}), ["opset 29", "supported are 1 to", "version_converter"]),
], ids=lambda v: f"{v[0]}-{v[1]}" if isinstance(v, tuple) else "")
def test_what_cannot_be_is_named(context, case, words):
    with pytest.raises(KeelError) as caught:
        run_model(context, "reference", model_of(case[0], case[1], case[2], *case[3:]), case[2])
    message = caught.value.message
    for word in words:
        assert word in message
    assert message.count("'y0'") + message.count('"y0"') <= 1, "the node is named once"
