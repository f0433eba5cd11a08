"""ONNX's own suite against keel.onnx.backend, on both devices: what ../conformance/excluded.txt does not list passes,
and what it lists fails. Its "real" models are left to ../conformance/test_onnx_light.py, which gives them weights."""
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


def on_reference(model, _, **options):
    return backend.prepare(model, "reference", **options)


BACKENDS = {"cpu": backend, "reference": types.SimpleNamespace(prepare=on_reference, supports_device=lambda name: name == "CPU")}


def must_pass(test):
    def run(self):
        try:
            test(self)
        except unittest.SkipTest as skipped:
            pytest.fail(f"skipped: {skipped}")
    return run


def must_fail(test, reason):
    def run(self):
        with pytest.raises((keel.UnimplementedError, AssertionError, unittest.SkipTest)):
            test(self)
        pytest.xfail(reason)
    return run


def checked(cases, device):
    for title, case in cases.items():
        tests = {name[:-len("_cpu")]: test for name, test in vars(case).items() if name.endswith("_cpu")}
        found = {}
        for name, test in tests.items():
            reason = onnx_cases.excluded(name, device)
            found[name] = must_fail(test, reason) if reason else must_pass(test)
        if "Real" not in title:
            yield f"{title}_{device}", type(f"{title}_{device}", (unittest.TestCase,), found)


with warnings.catch_warnings():  # overflows on purpose, while onnx makes its cases
    warnings.simplefilter("ignore", RuntimeWarning)
    for each, interface in BACKENDS.items():
        globals().update(checked(BackendTest(interface, __name__).test_cases, each))
