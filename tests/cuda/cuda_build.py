"""Paths of the build, and what several tests of this folder use. conftest.py puts this folder on the import path."""
import ctypes
import json
import os
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("KEEL_BUILD", HERE.parents[1] / "build" / "release"))
PLUGIN = BUILD / "lib" / "keel" / "plugins" / "keel-cuda.so"
# On a machine with a GPU its own libraries are used, and tests that look into the fake driver are skipped.
GPU = "KEEL_CUDA_GPU" in os.environ
FAKE = Path(os.environ.get("KEEL_CUDA_FAKES", BUILD / "tests" / "cuda")) / "keel-fakecuda.so" if not GPU else Path("libcuda.so.1")
OLD = FAKE.with_name("keel-fakecuda-old.so")
COMPILER = FAKE.with_name("keel-fakenvrtc.so")
BLAS = FAKE.with_name("keel-fakecublaslt.so")
DNN = FAKE.with_name("keel-fakecudnn.so")
FAKED = {"KEEL_CUDA_LIBRARY": str(FAKE), "KEEL_CUDA_NVRTC": str(COMPILER), "KEEL_CUDA_CUBLASLT": str(BLAS), "KEEL_CUDA_CUDNN": str(DNN),
         "KEEL_CUDA_CACHE": "0"}
if GPU:
    FAKED = {"KEEL_CUDA_CACHE": "1", "XDG_CACHE_HOME": tempfile.mkdtemp()}
BARE = f"import keel\nkeel.load_plugin({str(PLUGIN)!r})\n"
LOAD = f"""
import json, keel, numpy as np
keel.load_plugin({str(PLUGIN)!r})
assert "cuda:0" in keel.devices(), keel.report("plugins")
"""


def reasons(report):
    return " ".join(each.get("reason", "") for each in json.loads(report) if "keel-cuda" in each.get("path", ""))


def compiled():
    """The number of texts that the run-time compiler has compiled for this process; on a GPU, for the folder of the cache."""
    if GPU:
        return len(list(Path(FAKED["XDG_CACHE_HOME"]).glob("keel/*")))
    count = ctypes.CDLL(str(COMPILER)).fake_compiled
    count.restype = ctypes.c_uint64
    return count()
