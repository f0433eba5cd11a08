"""ONNX's own suite against keel.onnx.backend, on both devices: all tests pass except those in ../conformance/excluded.txt, which
must be refused as unimplemented: a wrong answer or another error fails here. Tests listed because of rounding must be close to
the exact answer. ../conformance/test_onnx_light.py covers the suite's "real" models, with other weights."""
import sys
import types
import unittest
import warnings
from pathlib import Path

import keel
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import onnx_cases  # noqa: E402

onnx = pytest.importorskip("onnx")
from keel.onnx import backend  # noqa: E402
from onnx.backend.test import BackendTest  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

UNITS = 2  # in the last place: tolerance for an answer with each step rounded to f16; in f32, of the largest element


def interface(device):
    """A backend that skips only unimplemented tests: the suite calls is_compatible, which otherwise accepts any error as a
    reason."""
    def prepare(model, _="CPU", **options):
        return backend.prepare(model, device, **options)

    def is_compatible(model, device="CPU", **options):
        try:
            prepare(model, device, **options)
        except keel.UnimplementedError:
            return False
        return True
    return types.SimpleNamespace(prepare=prepare, is_compatible=is_compatible, supports_device=backend.supports_device)


class Suite(BackendTest):
    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        """ONNX's own takes the length of a sequence's elements, which may be scalars."""
        assert [len(x) if isinstance(x, list) else -1 for x in outputs] == [len(x) if isinstance(x, list) else -1 for x in ref_outputs]
        flat = [onnx_cases.flat_values(x) for x in (ref_outputs, outputs)]
        super().assert_similar_outputs(*flat, rtol, atol, model_dir)


def must_pass(test):
    def run(self):
        try:
            test(self)
        except unittest.SkipTest as skipped:
            pytest.fail(f"skipped: {skipped}")
    return run


def must_fail(test, reason):
    def run(self):
        try:
            test(self)
        except keel.UnimplementedError:
            return pytest.xfail(reason)
        except unittest.SkipTest as skipped:  # the result of is_compatible(); there are other skips
            assert str(skipped).startswith("Not compatible with backend"), skipped
            return pytest.xfail(reason)
        pytest.fail("is listed in excluded.txt, and passes")
    return run


def must_round(name, device):
    """The exact answer is that of ONNX's own evaluator in float64: the expected values are as far from it as Keel's."""
    def run(self):
        model, sets, *tolerance = onnx_cases.node_case(name)
        plain = onnx_cases.node_case(name.removesuffix("_expanded"))[0]
        names, alike = [i.name for i in plain.graph.input], True
        for inputs, expected in sets:
            wide = [x.astype(np.float64) if x.dtype in (np.float16, np.float32) else x for x in inputs]
            got = backend.prepare(model, device).run(list(inputs))
            for have, want, exact in zip(got, expected, ReferenceEvaluator(plain).run(None, dict(zip(names, wide))), strict=True):
                assert (have.dtype, have.shape) == (want.dtype, want.shape)
                size = np.abs(exact) if have.dtype == np.float16 else np.abs(exact).max()
                assert (np.abs(have - exact) <= UNITS * np.spacing(size.astype(have.dtype))).all()
                alike &= np.allclose(have, want, *tolerance)
        assert not alike, "is listed in excluded.txt for its rounding, and agrees with ONNX"
    return run


def must_draw(name, device):
    """Numbers of another generator: only shapes and dtypes agree with ONNX's."""
    def run(self):
        model, sets, *_ = onnx_cases.node_case(name)
        for inputs, expected in sets:
            for have, want in zip(backend.prepare(model, device).run(list(inputs)), expected, strict=True):
                assert (have.dtype, have.shape) == (want.dtype, want.shape)
    return run


CHECKS = {"rounding": must_round, "random": must_draw}  # by the first word of the reason


def checked(cases, device):
    for title, case in cases.items():
        tests = {name[:-len("_cpu")]: test for name, test in vars(case).items() if name.endswith("_cpu")}
        found = {}
        for name, test in tests.items():
            reason = onnx_cases.excluded(name, device)
            check = CHECKS.get(reason.split()[0]) if reason else None
            found[name] = check(name, device) if check else must_fail(test, reason) if reason else must_pass(test)
        if "Real" not in title:
            yield f"{title}_{device}", type(f"{title}_{device}", (unittest.TestCase,), found)


with warnings.catch_warnings():  # overflows on purpose, while onnx generates its cases
    warnings.simplefilter("ignore", RuntimeWarning)
    for each in onnx_cases.DEVICES:
        globals().update(checked(Suite(interface(each), __name__).test_cases, each))
