"""The driver fails at each of its calls, in turn: an error that names the call, no crash, no leak; afterwards everything works again, or,
if the device is lost, other devices do. Also drivers that lack something."""
import gc
import gc
import json

import keel_abi
import numpy as np
import pytest
from device_program import INDEX, X, DeviceProgram
from vulkan_build import BARE, PLUGIN, reasons

import keel

OOM, LOST = -2, -4


def new_program():
    return DeviceProgram("vulkan", PLUGIN)


def each_call_fails(driver, code, check):
    """The program with the first, second ... call failing, until none fails: check(function, error, program)."""
    assert new_program().run() is None
    gc.collect()
    gc.collect()  # contexts of other tests
    alive = driver.alive()
    for number in range(1, 1000):
        driver.fail("", number, code)
        program = new_program()
        error, function = program.run(), driver.fired()
        if function:
            check(function, error, program)
        driver.fail()
        del program
        gc.collect()
        assert driver.alive() == alive, f"call {number}, {function}: objects are left"
        if not function:
            return
    raise AssertionError("calls fail for ever")


def test_out_of_memory_at_each_call(driver):
    seen = {}

    def check(function, error, program):
        driver.fail()
        seen[function] = seen.get(function, 0) + 1
        if error:  # a driver may fail where Keel can do without
            assert f"{function} gave -2 (out of memory)" in error, error
            assert error.startswith("OOM"), error
        program.check_cpu()
        again = program.run()
        if again:  # encoded work is gone
            assert function == "vkEndCommandBuffer" and "lost earlier" in again, (function, error, again)
    each_call_fails(driver, OOM, check)
    assert {"vkCreateDevice", "vkAllocateMemory", "vkQueueSubmit2", "vkCreateComputePipelines", "vkEndCommandBuffer", "vkMapMemory",
            "vkCreateQueryPool"} <= seen.keys()  # a device that is fast enough needs no wait
    assert sum(seen.values()) > 60


def test_device_lost_at_each_call(driver):
    named = []

    def check(function, error, program):
        assert error and "UNAVAILABLE" in error, (function, error)
        optional = function == "vkEnumerateDeviceExtensionProperties"  # the call after it fails
        assert optional or f"{function} gave -4 (device lost)" in error or "lost earlier" in error, (function, error)
        if "; it ran " in error and ("add" in error or "gather" in error):
            named.append(function)
        program.check_cpu()
        if function not in ("vkCreateDevice", "vkEnumeratePhysicalDevices", "vkEnumerateDeviceExtensionProperties"):
            again = program.run()
            assert again and ("device lost" in again or "lost earlier" in again), (function, again)
    each_call_fails(driver, LOST, check)
    assert len(named) > 5


def test_a_lost_device_names_its_ops(driver, context):
    """Those of the batch that is submitted: add may still be in the open batch, and then it is submitted first."""
    there = context.array(X).to("vulkan").wait()
    index = context.array(INDEX).to("vulkan").wait()
    gather, add = context.bind("vulkan", "gather"), context.bind("vulkan", "add")
    y, = add.arrays(there, there)
    driver.fail("vkQueueSubmit2", 1, LOST)
    with pytest.raises(keel_abi.KeelError, match="vkQueueSubmit2 gave -4 .device lost.*it ran (add|gather|add, gather)( |$)") as e:
        gather.arrays(y, index)[0].numpy()
    assert e.value.code == "UNAVAILABLE"
    driver.fail()
    with pytest.raises(keel_abi.KeelError, match="the device was lost earlier: vkQueueSubmit2 gave -4 .*it ran (add|gather|add, gather);"):
        context.array(X).to("vulkan").wait()
    np.testing.assert_array_equal(context.apply("cpu", "add", X, X), 2 * X)


def test_instances_that_fail(in_child):
    for function, code, said in [("vkCreateInstance", -1, "vkCreateInstance gave -1"), ("vkCreateInstance", -9, "found no driver"),
                                 ("vkEnumeratePhysicalDevices", 1, "vkEnumeratePhysicalDevices gave -1")]:
        fail = f"{function}:1:{-1 if code > 0 else code}"
        out, _ = in_child("print(keel.report('plugins'))", load=BARE, DRIVER_FAIL=fail)
        assert said in reasons(out), reasons(out)


NEEDED = ["shaderInt64", "bufferDeviceAddress", "timelineSemaphore", "scalarBlockLayout", "synchronization2", "maintenance4"]


@pytest.mark.parametrize("hidden, said", [(name, f"lacks the feature {name}") for name in NEEDED] + [
    ("compute", "has no compute queue"), ("1.3", "has Vulkan 1.2; expected 1.3 or newer"), ("device", "found no driver with a device")])
def test_what_a_driver_must_have_is_named(in_child, hidden, said):
    out, _ = in_child("print(keel.report('plugins'))", load=BARE, DRIVER_HIDE=hidden)
    assert said in reasons(out), reasons(out)


OPTIONAL = ["shaderFloat64", "shaderFloat16", "shaderInt16", "shaderInt8", "storageBuffer8BitAccess", "storageBuffer16BitAccess"]


@pytest.mark.parametrize("hidden", OPTIONAL + [",".join(OPTIONAL)])
def test_what_a_driver_may_lack(in_child, hidden):
    """f32 works; no message of the validation layer: nothing uses a feature that is not enabled."""
    out, err = in_child("import subset\nsubset.run()\n", DRIVER_HIDE=hidden, KEEL_VULKAN_VALIDATE="1")
    assert out.startswith("bits ") and "keel-vulkan:" not in err, err


def test_a_dtype_that_the_device_lacks_is_an_error_or_goes_to_the_fallback(in_child):
    code = """
with keel.device("vulkan"):
    try: keel.reduce_sum(keel.array(np.ones((2, 3))), [0]).numpy()
    except keel.Error as e: print("error", type(e).__name__, "reduce_sum" in str(e))
module = keel.function(lambda a: keel.reduce_sum(a, [0])).concrete(keel.array(np.ones((2, 3))))
print(next(iter(keel.Session(module, "vulkan", fallback="cpu").run(a=np.ones((2, 3))).values())).numpy())
"""
    out, err = in_child(code, DRIVER_HIDE="shaderFloat64", KEEL_VULKAN_VALIDATE="1")
    assert "error UnimplementedError True" in out and "[2. 2. 2.]" in out, out + err
    assert "keel-vulkan:" not in err


def test_doctor_says_what_is_missing():
    import os
    import subprocess

    from vulkan_build import BUILD
    run = subprocess.run([BUILD / "bin" / "keel", "doctor"], capture_output=True, text=True, timeout=60,
                         env=os.environ | {"KEEL_PLUGIN_PATH": str(PLUGIN.parent), "DRIVER_HIDE": "bufferDeviceAddress"})
    assert "lacks the feature bufferDeviceAddress" in run.stdout + run.stderr, run.stdout


DEVICES = "print(keel.report('devices'), keel.report('plugins'), sep='\\n')"


def test_devices_by_index_uuid_and_name(in_child):
    def listed(**environment):
        out, _ = in_child(DEVICES, load=BARE, **environment)
        devices, plugins = out.strip().split("\n")
        return [d for d in json.loads(devices) if d["name"].startswith("vulkan")], reasons(plugins)
    device, = listed()[0]
    word, uuid = device["description"].split()[0], device["uuid"]
    for wanted in ("0", word, word.upper(), uuid, uuid[:8], uuid.replace("-", "").upper(), f"none such,{word}", f"0,{word}"):
        found, why = listed(KEEL_VULKAN_DEVICES=wanted)
        assert [d["uuid"] for d in found] == [uuid], (wanted, why)
    for wanted in ("1", "none such", "fffffff", ",", "uuid"):
        found, why = listed(KEEL_VULKAN_DEVICES=wanted)
        assert found == [] and f"KEEL_VULKAN_DEVICES='{wanted}' selects no device" in why and device["description"] in why


@pytest.mark.parametrize("where", ["prepare", "run"])
def test_exceptions_become_errors(in_child, where):
    """The first one throws bad_alloc."""
    out, _ = in_child("""
module = keel.function(lambda x: x + x).concrete(keel.array(np.ones(3, np.float32)))
for _ in range(3):
    try: print(next(iter(keel.Session(module, "vulkan").run(x=np.ones(3, np.float32)).values())).numpy())
    except keel.Error as e: print(e.code.name, "no memory left in the process" in str(e))
""", KEEL_VULKAN_PLANT=where)
    assert out.splitlines() == ["OOM True", "[2. 2. 2.]", "[2. 2. 2.]"]


def test_arrays_larger_than_the_memory(vulkan):
    """On paper: sizes beyond 32 bits reach the driver or are refused, and nothing is truncated."""
    memory, = [d["memory"] for d in json.loads(keel.report("devices")) if d["name"] == "vulkan:0"]
    x = keel.array(np.ones((1, 4), np.float32))
    for rows in (2**30, 2**31 + 1, 2**36 + 1):  # 2**32 + 4 elements would be 4 if truncated
        if rows * 16 <= memory:
            continue
        with pytest.raises(keel.Error) as e:
            keel.broadcast_to(x, dims=[rows, 4]).numpy()
        assert e.value.code.name in ("OOM", "UNIMPLEMENTED"), e.value
        np.testing.assert_array_equal((x + x).numpy(), np.full((1, 4), 2))
