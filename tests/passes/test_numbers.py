"""Passes do not change the results of graphs: bit by bit for exact passes; for close ones the error against float64 is at most
twice that of the original, with NaNs and infinities in the same places.

Everything runs on the reference device, including the bodies of calls that lowering passes outline for the device that accepts
all calls.
"""
import zlib

import numpy as np
import pytest
from optimizer import dump, optimize
from operands import operands, same_bits
from test_text import DEVICES, GROUPS, LISTED, cases, whole

SIZES = (3, 1, 0, 17)  # of symbols


def run(context, text, inputs):
    """Results, or the text of the failure."""
    import keel_abi
    try:
        plan = context.parse(text).session("reference", level=0).prepare()
        return [np.array(y) for y in plan.run(*inputs)]
    except keel_abi.KeelError as e:
        return str(e).splitlines()[0]


def same_outcome(expected, got):
    """Whether both ran; a failing run must still fail, because every node here is used."""
    assert isinstance(expected, str) == isinstance(got, str), (expected, got)
    return not isinstance(expected, str)


def both(tmp_path, name, constants, params, body):
    before, after = tmp_path / "before.keelt", tmp_path / "after.keelt"
    before.write_text(whole(constants, params, body))
    optimize(before, after, DEVICES.get(name, "reference").format(0), only=name)
    return dump(before), dump(after)


def each(*names):
    for name in names:
        for title, _, *rest in cases(name):
            yield pytest.param(name, *rest, id=f"{name}: {title}")


@pytest.mark.parametrize("name, constants, params, body, wanted", each("fold", "simplify", "inline", "loop", "transpose", *LISTED))
def test_exact(context, tmp_path, name, constants, params, body, wanted):
    before, after = both(tmp_path, name, constants, params, body)
    random = np.random.default_rng(zlib.crc32(body.encode()))
    for size in SIZES:
        inputs = operands(before, random, True, size)
        expected, got = run(context, before, inputs), run(context, after, inputs)
        if same_outcome(expected, got):
            assert all(same_bits(a, b) for a, b in zip(expected, got, strict=True)), (inputs, expected, got)


def error(got, truth):
    """The greatest relative error, in units of float32 rounding; no error where both are NaN."""
    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(truth), np.finfo(np.float32).tiny)
        found = np.abs(got.astype(np.float64) - truth) / scale * 2**24
    return float(np.nanmax(np.where(np.isfinite(truth), found, 0), initial=0))


@pytest.mark.parametrize("name, constants, params, body, wanted", each("nearby", "compose"))
def test_close(context, tmp_path, name, constants, params, body, wanted):
    before, after = both(tmp_path, name, constants, params, body)
    exact = before.replace("f32", "f64").replace("f16", "f64")
    random = np.random.default_rng(zlib.crc32(body.encode()))
    for size in SIZES:
        inputs = operands(before, random, False, size)
        wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs]
        expected, got, truth = (run(context, t, x) for t, x in ((before, inputs), (after, inputs), (exact, wide)))
        if not same_outcome(expected, got):
            continue
        for a, b, t in zip(expected, got, truth, strict=True):
            if a.dtype.kind == "f":
                assert error(b, t) <= 2 * error(a, t) + 8, (inputs, a, b, t)
            else:
                assert same_bits(a, b)


@pytest.mark.parametrize("name, constants, params, body, wanted", each("nearby", "compose"))
def test_close_keeps_what_is_no_number(context, tmp_path, name, constants, params, body, wanted):
    before, after = both(tmp_path, name, constants, params, body)
    random = np.random.default_rng(zlib.crc32(body.encode()))
    for _ in range(4):
        inputs = operands(before, random, True, 5)
        for x in inputs:
            if x.dtype.kind == "f":  # a moved scale shifts the limit of overflow
                x[np.abs(x) > 1e6] = np.inf
        expected, got = run(context, before, inputs), run(context, after, inputs)
        for a, b in zip(expected, got, strict=True) if same_outcome(expected, got) else ():
            if a.dtype.kind == "f":
                assert np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(np.isinf(a), np.isinf(b)), (inputs, a, b)
