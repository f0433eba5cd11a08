"""What the plugin reports: devices, and why there are none."""
import json
import os
import subprocess

import pytest
from vulkan_build import BARE, BUILD, PLUGIN, reasons

import keel


def test_devices_have_a_name_a_uuid_and_capabilities(loaded):
    info, = [d for d in json.loads(keel.report("devices")) if d["name"] == "vulkan:0"]
    assert info["capabilities"].startswith("vulkan 1.") and "subgroups of " in info["capabilities"]
    assert len(info["uuid"]) == 36
    assert info["description"]


def test_keel_devices_marks_the_same_hardware(loaded):
    """The device null reports the UUID of the driver: another plugin for the same hardware."""
    uuid, = [d["uuid"] for d in json.loads(keel.report("devices")) if d["name"] == "vulkan:0"]
    env = os.environ | {"KEEL_PLUGIN_PATH": f"{PLUGIN.parent}:{BUILD / 'tests' / 'devices'}", "NULL_UUID": uuid.replace("-", "")}
    lines = subprocess.run([BUILD / "bin" / "keel", "devices"], capture_output=True, text=True, env=env, timeout=60).stdout.splitlines()
    text = {line.split()[0]: line for line in lines}
    assert "same hardware as null:0" in text["vulkan:0"] and "same hardware as vulkan:0" in text["null:0"], lines
    assert {name for name, line in text.items() if "same hardware" in line} == {"vulkan:0", "null:0"}


def test_a_device_is_named_by_a_part_of_its_description_or_uuid(loaded):
    info, = [d for d in json.loads(keel.report("devices")) if d["name"] == "vulkan:0"]
    word = max(info["description"].split(), key=len)
    for text in (word, word.upper(), word[:4], info["description"], info["uuid"], info["uuid"][:13], info["uuid"].upper()):
        with keel.device(f"vulkan:{text}"):
            assert str((keel.array([1.0]) + 1.0).device) == "vulkan:0", text
    for text in (word[:3], "none such", "1", "1234", ""):
        with pytest.raises(keel.DeviceError, match=f'no device "vulkan:{text}"; available devices: .*vulkan:0'):
            with keel.device(f"vulkan:{text}"):
                keel.array([1.0]) + 1.0


def test_the_command_takes_a_part_of_a_name_too(loaded, tmp_path):
    word = max(json.loads(keel.report("devices:vulkan"))[0]["description"].split(), key=len)
    (tmp_path / "f.keel").write_text("keel 1\nfn @main(x: f32[n]) -> y: f32[n] {\n  y = add(x, x)\n  return y\n}\nentry main = @main (x) -> (y)\n")
    env = os.environ | {"KEEL_PLUGIN_PATH": str(PLUGIN.parent)}

    def run(device):
        return subprocess.run([BUILD / "bin" / "keel", "run", tmp_path / "f.keel", "-d", device, "-i", "x=1,2"], capture_output=True, text=True,
                              env=env, timeout=60)
    assert "[2, 4]" in run(f"vulkan:{word}").stdout
    wrong = run("vulkan:none such")
    assert wrong.returncode == 4 and 'no device "vulkan:none such"; available devices: ' in wrong.stderr


def test_no_vulkan_device_is_the_default(loaded):
    y = keel.array([1.0, 2.0]) + 1.0
    assert not str(y.device).startswith("vulkan")


def test_the_driver_is_loaded_when_a_device_is_named_or_all_are_listed(in_child):
    code = """
def loaded(): return "libvulkan" in open("/proc/self/maps").read()
print(loaded(), keel.array([1.0]) + 1.0, keel.report("devices:cpu") != "", loaded())
{}
print(loaded())
"""
    for use in ("keel.devices()", "keel.report('devices')", "keel.device('vulkan')"):
        out, _ = in_child(code.format(use), load="import keel\n")
        assert out.split()[0] == "False" and out.split()[-2:] == ["False", "True"], out


def test_without_a_library_the_report_names_it(in_child):
    out, _ = in_child("print(keel.report('plugins'))", load=BARE, KEEL_VULKAN_LIBRARY="/none/libvulkan.so.1")
    assert "no Vulkan loader: /none/libvulkan.so.1" in reasons(out) and "install libvulkan1" in reasons(out)


def test_a_library_that_is_no_loader_is_named(in_child):
    out, _ = in_child("print(keel.report('plugins'))", load=BARE, KEEL_VULKAN_LIBRARY="libm.so.6")
    assert "libm.so.6 has no vkGetInstanceProcAddr" in reasons(out)


def test_without_a_driver_the_report_says_so(in_child):
    out, _ = in_child("print(keel.report('plugins'))", load=BARE, VK_ICD_FILENAMES="/none.json", VK_DRIVER_FILES="/none.json")
    assert "libvulkan found no driver" in reasons(out)


def test_naming_the_device_without_a_driver_is_an_error_with_the_reason(in_child):
    out, _ = in_child("""
try:
    with keel.device("vulkan"): keel.array([1.0]) + 1.0
except keel.Error as e: print(e)
""", load=BARE, VK_ICD_FILENAMES="/none.json", VK_DRIVER_FILES="/none.json")
    assert "libvulkan found no driver" in out


def test_a_forked_child_gets_an_error(in_child):
    out, _ = in_child("""
import os
with keel.device("vulkan"):
    x = keel.array(np.ones(4, np.float32)) + keel.array(np.ones(4, np.float32))
    x.numpy()
    read, write = os.pipe()
    if not os.fork():
        try: (x + x).numpy(); said = "no error"
        except keel.Error as e: said = str(e)
        os.write(write, said.encode()); os._exit(0)
    os.wait()
    print(os.read(read, 1000).decode())
    print((x + x).numpy())
""")
    assert "vulkan:0 was opened before fork()" in out
    assert "[4. 4. 4. 4.]" in out
