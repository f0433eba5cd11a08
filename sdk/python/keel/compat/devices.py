"""Devices by TensorFlow's names: "/gpu:0", "/device:CPU:0", "/job:localhost/replica:0/task:0/device:GPU:1"."""
import contextlib
import json
import re

from .. import _keel
from ..errors import Code, Error, UnimplementedError

_FORM = re.compile(r"/?(?:job:(?P<job>\w+)/)?(?:replica:\d+/)?(?:task:\d+/)?(?:device:)?(?P<kind>[a-zA-Z_]\w*)"
                   r"(?::(?P<index>\d+|\*))?")
_GPUS = ("cuda", "vulkan")  # Keel's device kinds for "gpu", in order of preference


def _is_gpu(device):
    """device: a row of the report "devices"."""
    return device["plugin"] in _GPUS and not device.get("software", False)


def _gpu_kind():
    """The first kind with a GPU; else the first one, whose error names it. Opens no device of other kinds."""
    for kind in _GPUS:
        with contextlib.suppress(Error):
            if _is_gpu(json.loads(_keel.report(f"devices:{kind}"))[0]):  # GPUs come before software
                return kind
    return _GPUS[0]


def keel_name(spec):
    """"/ gpu:0" becomes "cuda:0"; Keel's own names are accepted. Raises ValueError for a malformed name."""
    text = re.sub(r"\s+", "", spec)
    match = _FORM.fullmatch(text)
    if not match:
        raise ValueError(f"Malformed device specification '{spec}': expected a name such as '/cpu:0', '/device:GPU:0', 'cuda:1'")
    if match["job"] not in (None, "localhost"):
        raise UnimplementedError(f"device '{spec}': clusters are not supported", Code.UNIMPLEMENTED)
    kind, index = match["kind"].lower(), match["index"]
    if kind == "gpu":
        kind = _gpu_kind()
    return f"{kind}:{0 if index in (None, '*') else int(index)}"


def devices_of(kind=None):
    """("/device:CPU:0", "CPU") for each device of Keel, or of one kind ("CPU", "GPU")."""
    found = []
    for device in json.loads(_keel.report("devices")):
        ours, index = device["name"].split(":")
        theirs = "GPU" if _is_gpu(device) else ours.upper()
        found.append((f"/device:{theirs}:{index}", theirs))
    return [each for each in found if kind in (None, each[1])]
