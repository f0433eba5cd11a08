"""-d auto: the cpu where there is no GPU: a driver of cuda is missing, lavapipe is a software device. The order of the devices:
tests/abi/auto_device_test.cc."""
import json


def test_commands_name_the_device_that_was_chosen(keel, graph):
    file, options = graph(), ["-d", "auto", "-i", "x=1,2"]
    device = json.loads(keel("plan", file, "--json", *options).out)["device"]
    assert device.split(":")[0] in ("cuda", "vulkan", "cpu")
    assert f"device {device}, ready" in keel("run", "-v", file, *options).err
    assert json.loads(keel("bench", file, "--json", "-n", "1", *options).out)["device"] == device
    assert keel("run", file, *options).out == keel("run", file, "-d", device, "-i", "x=1,2").out
