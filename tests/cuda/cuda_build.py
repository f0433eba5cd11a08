"""Paths of the build, and what several tests of this folder use. conftest.py puts this folder on the import path."""
import json
import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("KEEL_BUILD", HERE.parents[1] / "build" / "release"))
PLUGIN = BUILD / "lib" / "keel" / "plugins" / "keel-cuda.so"
FAKE = Path(os.environ.get("KEEL_CUDA_FAKES", BUILD / "tests" / "cuda")) / "keel-fakecuda.so"
OLD = FAKE.with_name("keel-fakecuda-old.so")
COMPILER = FAKE.with_name("keel-fakenvrtc.so")
BLAS = FAKE.with_name("keel-fakecublaslt.so")
FAKED = {"KEEL_CUDA_LIBRARY": str(FAKE), "KEEL_CUDA_NVRTC": str(COMPILER), "KEEL_CUDA_CUBLASLT": str(BLAS), "KEEL_CUDA_CACHE": "0"}
BARE = f"import keel\nkeel.load_plugin({str(PLUGIN)!r})\n"
LOAD = f"""
import json, keel, numpy as np
keel.load_plugin({str(PLUGIN)!r})
assert "cuda:0" in keel.devices(), keel.report("plugins")
"""


def reasons(report):
    return " ".join(each.get("reason", "") for each in json.loads(report) if "keel-cuda" in each.get("path", ""))
