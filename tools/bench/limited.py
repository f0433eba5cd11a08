"""Peers limited to AVX2, as Keel is with KEEL_CPU_ISA=avx2: figures of that class on a host that has AVX-512.

peers.use() calls environment() where KEEL_CPU_ISA=avx2 is set. oneDNN, PyTorch, XLA, TensorFlow, NumPy and the C library have switches.
ONNX Runtime has none: it runs from a copy (build/peers-avx2) whose cpuid instructions are breakpoints that cpuid_avx2.c answers.
It needs objdump and a C compiler. llama.cpp (decoder.py) is compiled for the processor; for AVX2 it needs a build of its own, once:
CMAKE_ARGS="-DGGML_NATIVE=OFF" build/peers/bin/python -m pip install --no-deps --no-binary llama-cpp-python --target build/peers-avx2 PACKAGE
(that of decoder_llama.py; without the processor's own, ggml takes AVX2, FMA and F16C). Processors differ in more than vectors (caches, memory), so a table says "limited to AVX2".
"""
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
COPY = HERE.parents[1] / "build" / "peers-avx2"
TRAP = COPY / "cpuid_avx2.so"
CPUID, BREAKPOINT = b"\x0f\xa2", b"\xcc\x90"
SWITCHES = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
            "XLA_FLAGS": "--xla_cpu_max_isa=AVX2", "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL",
            "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,-AVX512DQ"}


def cpuid_places(library):
    """-> the file offsets of its cpuid instructions; of a library that is mapped without gaps."""
    lines = subprocess.run(["objdump", "-d", library], capture_output=True, text=True, check=True).stdout.splitlines()
    return [int(line.split(":")[0], 16) for line in lines if line.endswith("cpuid")]


def without_cpuid(library):
    """Writes a breakpoint over each cpuid instruction of the file `library`."""
    code = bytearray(library.read_bytes())
    for at in cpuid_places(library):
        if code[at:at + 2] != CPUID:
            raise OSError(f"{library}: no cpuid at {at:#x} of the file: it is mapped with gaps")
        code[at:at + 2] = BREAKPOINT
    library.unlink()  # it may be a link to the peers' own file
    library.write_bytes(code)


def make(package):
    """package: ONNX Runtime's folder. Makes COPY, unless it is newer."""
    if TRAP.exists() and TRAP.stat().st_mtime > (package / "__init__.py").stat().st_mtime:
        return
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(package, COPY / package.name, copy_function=os.link)
    for library in (COPY / package.name / "capi").glob("onnxruntime_pybind11_state*.so"):
        without_cpuid(library)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", TRAP, HERE / "cpuid_avx2.c"], check=True)


def environment(packages):
    """packages: the peers' folder of packages. -> the variables that limit all peers."""
    make(packages / "onnxruntime")
    path = os.pathsep.join(filter(None, [str(COPY), os.environ.get("PYTHONPATH")]))
    return SWITCHES | {"LD_PRELOAD": str(TRAP), "PYTHONPATH": path}
