"""libkeel can be loaded and unloaded repeatedly, as plugin hosts do."""
import subprocess
import sys

from keel_abi import BUILD

CODE = """
import ctypes, _ctypes, sys
for _ in range(3):
    keel, context = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
    assert keel.keel_context_new(None, 0, ctypes.byref(context), None) == 0
    keel.keel_context_free(context)
    _ctypes.dlclose(keel._handle)
"""


def test_three_times():
    done = subprocess.run([sys.executable, "-c", CODE, str(BUILD / "lib" / "libkeel.so")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
