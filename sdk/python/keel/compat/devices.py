"""Devices by TensorFlow's names: "/gpu:0", "/device:CPU:0", "/job:localhost/replica:0/task:0/device:GPU:1"."""
import re

from .. import _keel
from ..errors import Code, UnimplementedError

_FORM = re.compile(r"/?(?:job:(?P<job>\w+)/)?(?:replica:\d+/)?(?:task:\d+/)?(?:device:)?(?P<kind>[a-zA-Z_]\w*)"
                   r"(?::(?P<index>\d+|\*))?")
_GPUS = ("cuda", "vulkan")  # which kinds of Keel's devices "gpu" means, the first that is there


def keel_name(spec):
    """"/ gpu:0" is "cuda:0"; Keel's own names are taken too. Raises ValueError for what is no device's name."""
    text = re.sub(r"\s+", "", spec)
    match = _FORM.fullmatch(text)
    if not match:
        raise ValueError(f"Malformed device specification '{spec}': wanted one as '/cpu:0', '/device:GPU:0', 'cuda:1'")
    if match["job"] not in (None, "localhost"):
        raise UnimplementedError(f"device '{spec}': sessions over a cluster are not served yet", Code.UNIMPLEMENTED)
    kind, index = match["kind"].lower(), match["index"]
    if kind == "gpu":
        there = {name.split(":")[0] for name in _keel.devices()}
        kind = next((gpu for gpu in _GPUS if gpu in there), _GPUS[0])
    return f"{kind}:{0 if index in (None, '*') else int(index)}"


def devices_of(kind=None):
    """("/device:CPU:0", "CPU") for each device of Keel's, or those of a kind ("CPU", "GPU")."""
    found = []
    for name in _keel.devices():
        ours, index = (name.split(":") + ["0"])[:2]
        theirs = "GPU" if ours in _GPUS else ours.upper()
        found.append((f"/device:{theirs}:{index}", theirs))
    return [each for each in found if kind in (None, each[1])]
