"""What the plugin reports: devices, and why there are none."""
import json
import os
from pathlib import Path

import pytest
from cuda_build import BARE, FAKE, OLD, PLUGIN, reasons

import keel

STUB = next((p for p in (Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64/stubs/libcuda.so",) if p.exists()), None)
REPORT = "print(keel.report('plugins'))"
CHILD = """
import os
read, write = os.pipe()
if not os.fork():
    try: said = work()
    except keel.Error as e: said = str(e)
    os.write(write, str(said).encode()); os._exit(0)
os.wait()
print(os.read(read, 1000).decode())
"""


def test_devices_have_a_name_a_uuid_and_capabilities(fake):
    info, = [d for d in json.loads(keel.report("devices")) if d["name"] == "cuda:0"]
    assert (info["description"], info["uuid"]) == ("Fake GPU A", "a0010203-0405-0607-0809-0a0b0c0d0e0f")
    assert info["capabilities"] == "compute 9.0, 2 multiprocessors, driver of CUDA 13.0"


@pytest.mark.parametrize("environment, said", [
    ({"KEEL_CUDA_LIBRARY": "/none/libcuda.so.1"}, "no NVIDIA driver: /none/libcuda.so.1"),
    ({"KEEL_CUDA_LIBRARY": "libm.so.6"}, "libm.so.6 has no cuInit: it is no CUDA driver"),
    ({"KEEL_CUDA_LIBRARY": str(OLD)}, f"{OLD} has no cuCtxEnablePeerAccess; expected a driver for CUDA 13.0 or newer (580)"),
    ({"FAKECUDA_VERSION": "12080"}, "the driver supports CUDA 12.8; expected 13.0 or newer: install driver 580 or newer"),
    ({"FAKECUDA_INIT": "34"}, f"{FAKE} is the stub of a CUDA toolkit, not a driver; remove the folder stubs from the library path"),
    ({"FAKECUDA_INIT": "100"}, "the driver (CUDA 13.0) finds no device"),
    ({"FAKECUDA_DEVICES": "0", "CUDA_VISIBLE_DEVICES": ""}, "the driver (CUDA 13.0) finds no device (CUDA_VISIBLE_DEVICES='')"),
    ({"FAKECUDA_INIT": "3"}, "cuInit gave 3: CUDA was used in this process before fork()"),
    ({"FAKECUDA_INIT": "804"}, "cuInit gave 804; check that the kernel module nvidia is loaded"),
    ({"FAKECUDA_FAIL": "cuDeviceGetCount:1:1"}, "cuDeviceGetCount gave CUDA_ERROR_INVALID_VALUE (1)"),
    ({"FAKECUDA_FAIL": "cuDeviceGet:1:1"}, "cuDeviceGet gave CUDA_ERROR_INVALID_VALUE (1)"),
    ({"FAKECUDA_FAIL": "cuDeviceGetUuid:1:1"}, "the driver does not describe device 0"),
    ({"KEEL_CUDA_DEVICES": "5,H100"}, "KEEL_CUDA_DEVICES='5,H100' selects no device; expected indices, UUIDs or parts of names of: 0: Fake GPU A, UUID a0010203"),
], ids=str)
def test_the_reason_why_there_is_no_device(in_child, environment, said):
    out, _ = in_child(REPORT, load=BARE, **environment)
    assert said in reasons(out)


@pytest.mark.skipif(not STUB, reason="this machine has no stub of a CUDA toolkit")
def test_the_stub_of_a_real_toolkit_is_no_driver(in_child):
    out, _ = in_child(REPORT, load=BARE, KEEL_CUDA_LIBRARY=str(STUB))
    assert "is the stub of a CUDA toolkit, not a driver" in reasons(out)


def test_naming_the_device_without_a_driver_is_an_error_with_the_reason(in_child):
    out, _ = in_child("""
try:
    with keel.device("cuda"): keel.array([1.0]) + 1.0
except keel.Error as e: print(e)
""", load=BARE, KEEL_CUDA_LIBRARY="/none/libcuda.so.1")
    assert "no NVIDIA driver: /none/libcuda.so.1" in out


@pytest.mark.parametrize("chosen, want", [("1", ["B"]), ("2,0", ["C", "A"]), ("a1010203", ["B"]), ("a2010203-0405,gpu a", ["C", "A"]), ("", ["A", "B", "C"])])
def test_devices_are_chosen_by_index_uuid_or_name(in_child, chosen, want):
    out, _ = in_child("print([d['description'][-1] for d in json.loads(keel.report('devices')) if d['name'].startswith('cuda')])",
                      FAKECUDA_DEVICES="3", KEEL_CUDA_DEVICES=chosen)
    assert out == f"{want}\n"


def test_a_device_is_named_by_a_part_of_its_name_or_uuid(in_child):
    out, _ = in_child("""
for text in ("cuda", "cuda:1", "cuda:gpu b", "cuda:a1010203"):
    with keel.device(text): print((keel.array([1.0]) + 1.0).device)
""", FAKECUDA_DEVICES="2")
    assert out.split() == ["cuda:0", "cuda:1", "cuda:1", "cuda:1"]


def test_no_library_is_loaded_until_a_device_is_named_or_all_are_listed(in_child):
    code = """
def loaded(): return "FAKE" in open("/proc/self/maps").read()
print(loaded(), keel.report("devices:cpu") != "", loaded())
{}
print(loaded())
"""
    for use in ("keel.devices()", "keel.device('cuda')"):
        out, _ = in_child(code.replace("FAKE", FAKE.name.removesuffix(".1")).format(use), load=f"import keel\n{BARE}" if "device(" in use else "import keel\n")
        assert out.split()[-1] == "True", out


def test_a_forked_child_gets_an_error(in_child):
    out, _ = in_child("""
with keel.device("cuda"): y = keel.array([1.0, 2.0]) + 1.0
def work():
    with keel.device("cuda"): return (keel.array([1.0]) + 1.0).numpy()
""" + CHILD + "print(y.numpy())")
    assert "cuda:0 was opened before fork(): a child process cannot use it" in out and "[2. 3.]" in out


def test_a_child_forked_after_cuda_was_used_elsewhere_is_told_so(in_child):
    """The parent used the driver without Keel."""
    out, _ = in_child(f"""
import ctypes
ctypes.CDLL({str(FAKE)!r}).cuInit(0)
def work():
    import keel
    keel.load_plugin({str(PLUGIN)!r})
    return keel.report("plugins")
""" + CHILD.replace("except keel.Error", "except Exception"), load="")
    assert "CUDA was used in this process before fork(); start workers with exec" in out
