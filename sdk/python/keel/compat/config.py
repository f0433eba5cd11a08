"""tf.config."""
from types import SimpleNamespace

from .. import _keel
from .devices import devices_of

_eagerly = False


def run_functions_eagerly(run_eagerly):
    """True: all functions of the process run their code on numbers at each call."""
    global _eagerly
    _eagerly = bool(run_eagerly)
    _keel.run_eagerly(_eagerly)


experimental_run_functions_eagerly = run_functions_eagerly


def functions_run_eagerly():
    return _eagerly


def list_physical_devices(device_type=None):
    return [SimpleNamespace(name=name.replace("/device:", "/physical_device:"), device_type=kind)
            for name, kind in devices_of(device_type)]


def list_logical_devices(device_type=None):
    return [SimpleNamespace(name=name, device_type=kind) for name, kind in devices_of(device_type)]
