"""Checks the include rules: plugins, sdk and cli never include kernel, and kernel includes nothing of them; plugins never
include each other; inside kernel includes point downward only; only kernel uses Abseil, only kernel/runtime/plugin uses dlopen.

Usage: check_includes.py    exit 1 and one line for each include that breaks a rule
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ["base", "language/values", "language/dims", "language/opset", "language/graph",
          "runtime/plugin", "runtime/rules", "runtime/device", "runtime/pass", "runtime/plan",
          "program/grad", "program/trace", "api"]  # kernel, bottom to top
SEARCH = ["", "sdk/cpp", "sdk/python/src"]  # search path of quoted includes, after the including folder
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
# area: other areas that it may include
ALLOWED = {
    "abi": set(),
    "kernel": {"abi"},
    "plugins": {"abi", "sdk"},
    "sdk": {"abi"},
    "cli": {"abi", "sdk"},
    "tests": {"abi", "sdk"},
    "tests/kernel": {"abi", "sdk", "kernel", "tests"},
    "tools": {"abi", "sdk", "kernel", "plugins", "tests/kernel"},
}
# header: additional folders that may include it
SHARED = {"plugins/cpu/threads/pool.h": ("tests/conformance/cpu_pool_test.cc",),  # a library without a plugin entry
          "plugins/cpu/threads/threads.h": ("tests/conformance/cpu_pool_test.cc",),
          "plugins/vulkan/spirv/kernel.h": ("tests/vulkan/",)}  # a library of its own
# system header: the folders that may include it
RESERVED = {
    "absl/": ("kernel/", "tests/kernel/", "tools/"),
    "dlfcn.h": ("kernel/runtime/plugin/", "plugins/", "tests/"),
    "flatbuffers/": ("kernel/language/graph/", "tests/kernel/"),
}


def sources():
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\n")
    suffixes = (".h", ".hpp", ".c", ".cc", ".inc", ".cu")
    return sorted({n for n in names if n.endswith(suffixes) and (ROOT / n).exists()})


def resolve(source, quote, text):
    """The file of this tree that an include refers to, or None."""
    if text.startswith("keel/"):  # the spelling of programs outside the tree
        for folder in ("abi", "sdk/cpp/keel"):
            if (ROOT / folder / text[5:]).exists():
                return f"{folder}/{text[5:]}"
    folders = [str(Path(source).parent)] if quote == '"' else []
    for folder in folders + SEARCH + ["abi"]:
        path = (ROOT / folder / text).resolve()
        if path.is_file() and path.is_relative_to(ROOT):
            return str(path.relative_to(ROOT))
    return None


def area(path):
    return "tests/kernel" if path.startswith("tests/kernel/") else path.split("/")[0]


def broken_rule(source, target):
    """The rule that forbids `source` to include `target` (both of this tree), or None."""
    here, there = area(source), area(target)
    if source.startswith(SHARED.get(target, ())):
        return None
    if here == "plugins" == there and source.split("/")[1] != target.split("/")[1]:
        return "a plugin includes another plugin"
    if here != there and there not in ALLOWED.get(here, set()):
        return f"{here} may not include {there}"
    if here == there == "kernel":
        mine, its = ("/".join(path.split("/")[1:-1]) for path in (source, target))
        for name in (mine, its):
            if name not in LAYERS:
                return f"kernel/{name} is no layer; the layers are {', '.join(LAYERS)}"
        if LAYERS.index(its) > LAYERS.index(mine):
            return f"kernel/{mine} lies below kernel/{its}: includes go downward only"
    return None


def reserved_rule(source, text):
    if area(source) == "abi" and source.endswith(".h") and text not in ("stddef.h", "stdint.h"):
        return "C headers of abi use stddef.h and stdint.h only"
    for prefix, folders in RESERVED.items():
        if text.startswith(prefix) and not source.startswith(folders):
            return f"{prefix} is for {', '.join(folders)} only"
    return None


def main():
    files, faults = sources(), []
    for source in files:
        for number, line in enumerate((ROOT / source).read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = resolve(source, *match.groups())
            fault = broken_rule(source, target) if target else reserved_rule(source, match.group(2))
            if fault:
                faults.append(f"{source}:{number}: {match.group(2)}: {fault}")
    print("\n".join(faults + [f"includes: {len(files)} files, {len(faults)} faults"]))
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
