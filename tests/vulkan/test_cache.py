"""The pipeline cache on disk: written at exit, read by the next process, ignored when damaged or foreign."""
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from vulkan_build import DRIVER, LOAD, PLUGIN

RUN = f"""
import ctypes
with keel.device("vulkan"):
    x = keel.array(np.ones((4, 4), np.float32))
    np.testing.assert_array_equal((keel.matmul(x, x) + x).numpy(), np.full((4, 4), 5))
driver = ctypes.CDLL({str(DRIVER)!r})
driver.driver_cache_bytes.restype = ctypes.c_uint64
print("began with", driver.driver_cache_bytes())
"""

ON = {"KEEL_VULKAN_CACHE": "1", "MESA_SHADER_CACHE_DIR": str(Path.home() / ".cache")}  # Mesa's own cache is elsewhere


@pytest.fixture
def began_with(in_child, tmp_path):
    """Runs a program in a new process: the number of bytes that its cache began with."""
    def run(**environment):
        out, err = in_child(RUN, **(ON | {"XDG_CACHE_HOME": str(tmp_path / "xdg")} | environment))
        assert err == ""
        return int(re.search(r"began with (\d+)", out)[1])
    return run


@pytest.fixture
def file(began_with, tmp_path):
    """The file of a cache, after a cold and a warm start."""
    assert began_with() == 0
    file, = (tmp_path / "xdg" / "keel").iterdir()
    assert re.fullmatch(r"[0-9a-f]{16}\.code", file.name)
    assert began_with() == file.stat().st_size - 40 > 0
    return file


def test_modes(file):
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700 and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir()] == [file.name]


OPENS = f"""
import ctypes, os, pathlib
import keel_abi
file = pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "keel" / os.environ["FILE"]
good, X = file.read_bytes(), np.ones(4, np.float32)
driver = ctypes.CDLL({str(DRIVER)!r})
driver.driver_cache_bytes.restype = ctypes.c_uint64

def opens(name):
    context = keel_abi.Context()
    context.load_plugin({str(PLUGIN)!r})
    assert (context.apply("vulkan", "add", X, X) == 2).all()
    print(name, driver.driver_cache_bytes())
    del context

def case(name, data):
    file.write_bytes(data)
    opens(name)
    assert file.read_bytes() != data, name  # replaced

for at in (0, 7, 8, 15, 16, 23, 24, 31, 32, 39, 40, len(good) - 1):
    case(f"byte {{at}}", good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1:])
for size in (0, 1, 39, 40, 44):
    case(f"size {{size}}", good[:size])
case("longer", good + b"x")
os.truncate(file, (64 << 20) + 41)
opens("huge")
file.unlink(); file.symlink_to("none"); opens("link to nothing")
file.unlink(); os.mkfifo(file); opens("fifo")
file.unlink(); file.mkdir(); opens("folder")
file.rmdir(); file.write_bytes(good); opens("good")
"""


def test_a_damaged_or_foreign_file_is_ignored_and_replaced(in_child, file):
    """Each byte of the header counts: magic, hash and size of the key and of the data; and the bytes of the data."""
    out, _ = in_child(OPENS, **ON, XDG_CACHE_HOME=str(file.parents[1]), FILE=file.name)
    *bad, good = out.splitlines()
    assert len(bad) == 22 and [line for line in bad if not line.endswith(" 0")] == []
    assert good == f"good {file.stat().st_size - 40}"


def test_a_folder_that_cannot_be_written(began_with, tmp_path):
    """Root may write anywhere, so the folder is a file, or below one."""
    (tmp_path / "xdg").write_text("")
    assert began_with() == 0 and began_with(XDG_CACHE_HOME="/proc/none") == 0
    assert (tmp_path / "xdg").read_text() == ""


def test_off_and_places(began_with, tmp_path):
    assert began_with(KEEL_VULKAN_CACHE="0") == 0
    assert not (tmp_path / "xdg").exists()
    home = tmp_path / "home"
    home.mkdir()
    assert began_with(XDG_CACHE_HOME="", HOME=str(home)) == 0 < began_with(XDG_CACHE_HOME="relative", HOME=str(home))
    assert (home / ".cache" / "keel").is_dir()
    assert began_with(XDG_CACHE_HOME="", HOME="") == 0


def test_processes_at_once(began_with, tmp_path):
    env = os.environ | ON | {"PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": str(tmp_path / "xdg")}
    children = [subprocess.Popen([sys.executable, "-c", LOAD + RUN], env=env, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [child.wait(60) for child in children] == [0] * 4
    file, = (tmp_path / "xdg" / "keel").iterdir()
    assert began_with() == file.stat().st_size - 40
