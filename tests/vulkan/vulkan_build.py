"""Paths of the build, and what several tests of this folder use. conftest.py puts this folder on the import path."""
import json
import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("KEEL_BUILD", HERE.parents[1] / "build" / "release"))
PLUGIN = BUILD / "lib" / "keel" / "plugins" / "keel-vulkan.so"
DRIVER = BUILD / "tests" / "vulkan" / "keel-vulkan-driver.so"
BARE = f"import keel\nkeel.load_plugin({str(PLUGIN)!r})\n"
LOAD = f"""
import json, keel, numpy as np
keel.load_plugin({str(PLUGIN)!r})
if "vulkan:0" not in keel.devices(): print(keel.report("plugins")); raise SystemExit
"""


def reasons(report):
    return " ".join(each.get("reason", "") for each in json.loads(report) if "keel-vulkan" in each.get("path", ""))


def is_on(switch):
    return os.environ.get(switch, "0") not in ("", "0")
