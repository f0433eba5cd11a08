"""The composites that compose builds, run on cpu by their own kernels, against their parts on the reference: the same numbers,
with NaN and infinities in the same places."""
import zlib

import numpy as np
import pytest
from operands import operands
from test_numbers import both, each, run

RTOL = {"float16": 2e-3, "float32": 1e-4}  # f16: the parts round four times, the composite once

CASES = [case for case in each("compose") if case.values[-1] != "same"]


def on_cpu(context, text, inputs):
    return [np.array(y) for y in context.parse(text).session("cpu", level=0).prepare().run(*inputs)]


@pytest.mark.parametrize("special", [False, True], ids=["numbers", "special"])
@pytest.mark.parametrize("name, constants, params, body, wanted", CASES)
def test_on_cpu(context, tmp_path, name, constants, params, body, wanted, special):
    before, after = both(tmp_path, name, constants, params, body)
    random = np.random.default_rng(zlib.crc32(body.encode()))
    for size in (5, 1, 17, 5, 5):
        inputs = operands(before, random, special, size)
        for x in inputs:
            if x.dtype.kind == "f":  # a moved scale shifts the limit of overflow
                x[np.abs(x) > 1e6] = np.inf
        expected, got = run(context, before, inputs), on_cpu(context, after, inputs)
        for a, b in zip(expected, got, strict=True):
            if "causal=true" in after:  # cpu skips masked elements, where 0 * inf would be NaN
                b = np.where(np.isnan(a), a, b)
            assert np.array_equal(np.isnan(a), np.isnan(b)), (inputs, a, b)
            scale = np.abs(np.where(np.isfinite(a), a, 0)).max(initial=0)
            rtol = RTOL.get(a.dtype.name, 1e-9)
            np.testing.assert_allclose(b, a, rtol=rtol, atol=max(1e-5, rtol if a.dtype == np.float16 else 0) * scale)


def test_rows_that_a_mask_hides(context, tmp_path):
    """Most rows are masked completely: their weights are 0 for any q."""
    params = "(q: f32[2, 60, 4], k: f32[2, 5, 4], v: f32[2, 5, 6], mask: f32[60, 5])"
    body = """{
  w = softmax(matmul(q, k){tb=true} * 0.5 + mask)
  return matmul(select(is_nan(w), 0.0, w), v)
}"""
    before, after = both(tmp_path, "compose", "", params, body)
    assert "zero_nan=true" in after
    inputs = operands(before, np.random.default_rng(3), False, 1)
    inputs[3][:] = -np.inf
    inputs[3][::7, 1:] = 0
    inputs[0][0, 7] = np.nan
    expected, got = run(context, before, inputs)[0], on_cpu(context, after, inputs)[0]
    assert (got[0, 1:7] == 0).all() and (got[0, 7] == 0).all() and np.abs(got[0, 14]).min() > 0
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
