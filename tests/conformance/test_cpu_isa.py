"""KEEL_CPU_ISA: limits the instruction set of loops, machine code and oneDNN."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FLAGS = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[1].split())
CLASSES = {"sse4": set(), "avx2": {"avx2", "fma", "bmi2"}, "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, "amx": {"amx_tile"}}
ONEDNN = {"sse4": "SSE4.1", "avx2": "AVX2", "avx512": "AVX-512", "amx": "AMX"}
PROBE = """
import json, sys
sys.path[:0] = {paths!r}
import keel_abi, numpy as np
from regions import as_call
from test_cpu_while import PROGRAMS
context = keel_abi.Context()
text, inputs = PROGRAMS["wrap"]
plan = context.parse(text).session("cpu").prepare()
x = np.ones((64, 512), np.float32)
as_call(context, lambda g, a, b: g.node("matmul", a, b), [x], [x.T.copy()]).run(x)
found = [d["description"] for d in context.report("devices") if d["name"] == "cpu:0"]
print("FOUND", json.dumps([found[0], [s["impl"] for s in plan.report(*inputs)["launches"]]]))
"""


def machine():
    classes = list(CLASSES)
    return classes[next((i for i, c in enumerate(classes) if not CLASSES[c] <= FLAGS), len(classes)) - 1]


def classes_here():
    """The classes of this machine, lowest first."""
    return list(CLASSES)[:list(CLASSES).index(machine()) + 1]


def run(isa):
    code = PROBE.format(paths=[str(HERE), str(HERE.parent / "python")])
    inherited = {k: v for k, v in os.environ.items() if k != "ONEDNN_MAX_CPU_ISA"}  # which would limit oneDNN further
    return subprocess.run([sys.executable, "-c", code], env={**inherited, "KEEL_CPU_ISA": isa, "ONEDNN_VERBOSE": "2"},
                          capture_output=True, text=True, timeout=120)


def call_in_each_class(module, function):
    """Calls a function of a module of this folder in a process for each class of this machine. -> the output of each"""
    code = f"import sys; sys.path[:0] = {[str(HERE), str(HERE.parent / 'python')]!r}; import {module}; {module}.{function}()"
    outputs = {}
    for isa in classes_here():
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "KEEL_CPU_ISA": isa}, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{isa}: {done.stderr}"
        outputs[isa] = done.stdout
    return outputs


@pytest.mark.parametrize("isa", ["", *CLASSES])
def test_code_is_held_to_a_class(isa):
    out = run(isa)
    assert out.returncode == 0, out.stderr
    used = min(isa or machine(), machine(), key=list(CLASSES).index)
    description, impls = json.loads(re.search(r"^FOUND (.*)$", out.stdout, re.M)[1])
    held = f", limited by KEEL_CPU_ISA to {used}" if used != machine() else ""
    assert f"class {machine()}{held}:" in description
    assert (impls == ["loop over scalars"]) == (used != "sse4")
    assert ONEDNN[used] in re.search(r"info,cpu,isa:(.*)", out.stdout)[1]


def test_no_such_class():
    out = run("avx3")
    assert out.returncode != 0
    assert 'KEEL_CPU_ISA is "avx3"' in out.stderr and "expected one of sse4, avx2, avx512, amx" in out.stderr
