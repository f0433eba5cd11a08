"""--isa limits the device cpu to a class of processor; `keel devices` lists the classes and caches. The oracle is /proc/cpuinfo."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import command

FLAGS = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[1].split())
NEEDED = {"sse4": set(), "avx2": {"avx2", "fma", "bmi2"}, "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, "amx": {"amx_tile"}}
HERE = [name for i, name in enumerate(NEEDED) if all(NEEDED[n] <= FLAGS for n in list(NEEDED)[:i + 1])]
ADD = "keel 1\nfn @main(a: f32[64, 512], b: f32[512, 512]) {\n  p = matmul(a, b)\n  return p\n}\nentry main = @main (a, b) -> (p)\n"


def keel(*words, code=0, **env):
    done = subprocess.run([command(), *words], env=os.environ | {"KEEL_CPU_TUNED": ""} | env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    return done


def cpu(*words, **env):
    return next(d for d in json.loads(keel("devices", "--json", *words, **env).stdout)["devices"] if d["name"] == "cpu:0")


def test_devices_lists_classes_and_caches():
    found = cpu()
    assert found["capabilities"].startswith(f"classes {', '.join(HERE)};")
    cache = Path("/sys/devices/system/cpu/cpu0/cache/index0/size")
    assert not cache.exists() or f"L1 {cache.read_text().strip()}" in found["capabilities"]
    assert found["capabilities"] in keel("devices").stdout


@pytest.mark.parametrize("isa", NEEDED)
def test_class_holds_or_is_refused(tmp_path, isa):
    (tmp_path / "g.keelt").write_text(ADD)
    words = ["plan", str(tmp_path / "g.keelt"), "-d", "cpu", "--isa", isa]
    if isa in HERE:
        assert f"({min(isa, 'avx512', key=list(NEEDED).index)})" in keel(*words, KEEL_CPU_ISA="amx").stdout  # the flag wins
        assert f"class {HERE[-1]}" + (f", limited by KEEL_CPU_ISA to {isa}" if isa != HERE[-1] else "") + ":" in cpu("--isa", isa)["description"]
    else:
        error = keel(*words, code=4).stderr
        assert f"--isa {isa}: this machine's processor has the classes {', '.join(HERE)}" in error
        assert f"hint: choose from {', '.join(HERE)}, or leave --isa out" in error


def test_compare_takes_the_class(tmp_path):
    (tmp_path / "g.keelt").write_text(ADD)
    keel("compare", str(tmp_path / "g.keelt"), "-d", "reference,cpu", "--isa", "sse4", "--atol", "1e-3")


def test_no_such_class():
    error = keel("devices", "--isa", "avx3", code=2).stderr
    assert "--isa avx3: no such class of processor; there are sse4, avx2, avx512, amx" in error and ", ".join(HERE) in error


def test_without_the_device():
    error = keel("devices", "--isa", "avx2", code=4, KEEL_PLUGINS_SKIP="cpu").stderr
    assert "--isa avx2: it is an option of the device cpu, which is not here" in error and "keel doctor" in error


def test_variable_set_by_a_program():
    """From Python: the variable counts until the first use of a device."""
    code = ("import keel, os\nos.environ['KEEL_CPU_ISA'] = 'sse4'\nkeel.add(1.0, 2.0)\n"
            "os.environ['KEEL_CPU_ISA'] = 'avx2'\nprint(keel.report('devices:cpu'))\n")
    package = str(Path(os.environ.get("KEEL_BUILD", "build/release")).resolve() / "python")
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": package}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert f"class {HERE[-1]}, limited by KEEL_CPU_ISA to sse4" in done.stdout
