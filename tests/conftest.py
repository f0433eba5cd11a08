"""Sweeps: tests with many similar or slow cases, sampled in each run, the same for one seed. All cases: KEEL_SWEEP=1
(tools/sweep); another sample: KEEL_SEED=N. And the library of Vulkan that counts calls, for tests/vulkan."""
import gc
import os
import zlib
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Any test may be the first of its process to count devices, after which the library of Vulkan is not chosen again.
DRIVER = Path(os.environ.get("KEEL_BUILD", HERE.parent / "build" / "release")) / "tests" / "vulkan" / "keel-vulkan-driver.so"
if DRIVER.exists():
    os.environ["KEEL_VULKAN_LIBRARY"] = str(DRIVER)
# A file, or a test in it -> one case out of how many runs.
SAMPLED = {
    "conformance/test_cpu_parts.py::test_convolutions_of_few_channels_in_parts": 3,
    "conformance/test_cpu_parts.py::test_gradients_of_convolutions_in_parts": 3,
    "conformance/test_cpu_parts.py::test_products_of_few_rows_in_parts": 3,
    "conformance/test_cpu_reduced.py::test_bits": 4,
    "conformance/test_onnx_export.py::test_light": 9,
    "conformance/test_onnx_export.py::test_node": 3,
    "conformance/test_onnx_export.py::test_other_node": 40,
    "conformance/test_onnx_light.py::test_light": 3,
    "passes/test_models.py::test_light": 3,
    "passes/test_numbers.py::test_exact": 3,
    "proof/test_proof.py::test_fragments": 3,
    "proof/test_proof.py::test_graphs": 3,
    "python_sdk/test_py_convert_random.py": 4,
    "python_sdk/test_py_onnx_backend.py": 8,  # conformance/ runs the same cases in full through another interface
}


def sweep_of(item):
    """The line above that matches an item, or None."""
    path = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
    return next((k for k in (path, f"{path}::{getattr(item, 'originalname', '')}") if k in SAMPLED), None)


def turn(item):
    case = f"{os.environ.get('KEEL_SEED', '0')} {item.nodeid[item.nodeid.index('::'):]}"
    return zlib.crc32(case.encode())


def pytest_collection_modifyitems(config, items):
    sweeps = defaultdict(list)
    for item in () if os.environ.get("KEEL_SWEEP") else items:
        if sweep := sweep_of(item):
            sweeps[sweep].append(item)
    out = {i for sweep, cases in sweeps.items() for i in sorted(cases, key=turn)[-(-len(cases) // SAMPLED[sweep]):]}
    if out:
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]


def pytest_collection_finish(session):
    """Tests and their modules are never garbage: a full collection that looks at all of them takes 0.3 s, and many tests make one."""
    gc.collect()
    gc.freeze()
