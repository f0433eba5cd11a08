"""NonZero, Compress and Unique in models whose sizes only a run knows; onnx.reference is the oracle."""
import numpy as np
import onnx
import pytest
from keel_abi import KeelError
from onnx.reference import ReferenceEvaluator
from onnx_cases import DEVICES, assert_similar

SIZES = (1, 2, 7, 40, 0)


def model(text):
    return onnx.parser.parse_model('<ir_version: 9, opset_import: ["": 18]> ' + text)


def numbers(*dims):
    return np.random.default_rng(sum(dims)).integers(-2, 3, dims).astype("f4")


CHAIN = """agraph (float[n, 3] x) => (int64[2, m] places, float[m] found, float[k, 3] rows, int64[1] count) {
  zero = Constant <value = float {0.0}> ()
  axes = Constant <value_ints = [1]> ()
  places = NonZero (x)
  turned = Transpose <perm = [1, 0]> (places)
  found = GatherND (x, turned)
  sums = ReduceSum <keepdims = 0> (x, axes)
  keep = Greater (sums, zero)
  rows = Compress <axis = 0> (x, keep)
  count = Shape (found)
}"""
UNIQUE = """agraph (float[n] x) => (float[m] y, int64[m] first, int64[n] places, int64[m] counts) {
  y, first, places, counts = Unique <sorted = SORTED> (x)
}"""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("text, dims", [(CHAIN, (3,)), (UNIQUE.replace("SORTED", "0"), ()), (UNIQUE.replace("SORTED", "1"), ())],
                         ids=["chain", "unsorted", "sorted"])
def test_one_plan_serves_all_sizes(context, device, tmp_path, text, dims):
    proto = model(text)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    plan = context.import_file(tmp_path / "m.onnx").session(device).prepare()
    oracle = ReferenceEvaluator(proto)
    for n in (*SIZES, 7):
        x = numbers(n, *dims)
        if n or dims:  # the oracle's Unique has no empty operand
            assert_similar(oracle.run(None, {"x": x}), plan.run(x), 0, 0, f"n = {n}")
        else:
            assert [y.shape for y in plan.run(x)] == [(0,)] * 4


@pytest.mark.parametrize("text, words", [
    ("agraph (float[n, 3] x) => (float[m, 3] y) { y = Unique <axis = 0> (x) }", "attribute axis for an operand of 2 dims"),
    ("agraph (float x) => (int64[k, m] y) { y = NonZero (x) }", "its operand has no dims")])
def test_refusals(context, tmp_path, text, words):
    (tmp_path / "m.onnx").write_bytes(model(text).SerializeToString())
    with pytest.raises(KeelError, match=words):
        context.import_file(tmp_path / "m.onnx")
