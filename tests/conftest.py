"""Sweeps: of the tests named here, whose cases are many and alike, each run takes a sample, the same for one seed. All cases:
KEEL_SWEEP=1 (tools/sweep); another sample: KEEL_SEED=N."""
import os
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
SWEEP = bool(os.environ.get("KEEL_SWEEP"))
SEED = os.environ.get("KEEL_SEED", "0")
# A file, or a test in it -> one case of how many is run.
SAMPLED = {
    "python_sdk/test_py_onnx_backend.py": 8,  # the same cases, by another door, are whole in conformance/
    "python_sdk/test_py_convert_random.py": 4,
    "proof/test_proof.py::test_graphs": 3,
    "proof/test_proof.py::test_fragments": 3,
}


def stays(item):
    path = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
    of = SAMPLED.get(path) or SAMPLED.get(f"{path}::{getattr(item, 'originalname', '')}")
    case = f"{SEED} {item.nodeid[item.nodeid.index('::'):]}"
    return not of or zlib.crc32(case.encode()) % of == 0


def pytest_collection_modifyitems(config, items):
    left_out = [] if SWEEP else [item for item in items if not stays(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        out = set(left_out)
        items[:] = [item for item in items if item not in out]
