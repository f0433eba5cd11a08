"""Registers of the embedded kernels, as ptxas reported them in the build: none spills, and each family stays within its budget, for
every architecture. A block has 256 threads (of a WIDE_KERNEL up to 1024): with 64 registers or fewer, 4 blocks fit a multiprocessor; with 128, two."""
import os
import re
import subprocess
from pathlib import Path

import pytest
from cuda_build import BUILD, HERE

LOGS = BUILD / "plugins" / "cuda"
KERNELS = HERE.parents[1] / "plugins" / "cuda" / "kernels"
NVCC = next((p for p in (Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / "nvcc",) if p.exists()), None)
ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
                   r".*?Used (\d+) registers", re.DOTALL)
# File -> the most registers of a thread. Tiles keep their sums in registers.
BUDGET = {"attention": 255, "attention_f32": 128, "blocks": 128, "conv": 184, "conv_mend": 96, "gemv": 128, "int8": 128, "matmul": 128}
ALL_OTHERS = 64
# Files with kernels that have a stack: the reduction of large arguments of sin and cos.
STACKS = {"elementwise_f16", "elementwise_bf16", "elementwise_f32", "elementwise_f64", "random"}


def entries(text):
    """(kernel, architecture, bytes of the stack, spilled bytes, registers) of each kernel in a log."""
    return [(e[0].removeprefix("keel_"), e[1], int(e[2]), int(e[3]) + int(e[4]), int(e[5])) for e in ENTRY.findall(text)]


def logs():
    made = {path.stem: path.read_text() for path in LOGS.glob("*.log")}
    if not made:
        pytest.skip("the build has no logs of nvcc: CMake found no CUDA toolkit")
    return made


def test_every_file_is_compiled_for_every_architecture_without_a_warning():
    cache = (BUILD / "CMakeCache.txt").read_text()
    wanted = set(re.search(r"^KEEL_CUDA_ARCHITECTURES:\w+=(.*)$", cache, re.MULTILINE)[1].split(";"))
    assert {path.stem for path in LOGS.glob("*.fatbin")} == set(logs())
    for file, text in logs().items():
        assert {architecture for _, architecture, *_ in entries(text)} == wanted, file
        assert "warning" not in text, file


def test_no_kernel_spills():
    assert [(file, e) for file, text in logs().items() for e in entries(text) if e[3]] == []


def test_arrays_are_in_registers():
    assert {file for file, text in logs().items() for e in entries(text) if e[2]} <= STACKS


def test_registers_are_within_the_budget():
    found = {file: max(e[4] for e in entries(text)) for file, text in logs().items()}
    assert {file: n for file, n in found.items() if n > BUDGET.get(file, ALL_OTHERS)} == {}, found


@pytest.mark.skipif(not NVCC, reason="this machine has no nvcc")
def test_a_kernel_with_too_few_registers_is_found(tmp_path):
    command = [NVCC, "-cubin", "-std=c++17", "-arch=sm_90", "-Xptxas", "-v", "-DLEAST_BLOCKS=8", f"-I{KERNELS}", KERNELS / "conv.cu", "-o", tmp_path / "conv.cubin"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = {kernel: (spilled, registers) for kernel, _, _, spilled, registers in entries(done.stderr)}
    assert found["conv_f32"][0] > 0 and found["conv_f32"][1] <= 32 and len(found) == 12
