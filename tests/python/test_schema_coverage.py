"""The small graph files of tests/data, which the damage sweep uses, cover every field of the schema and every attribute type, so
the sweep reaches every part of the reader. The report lists where each is used."""
import json
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import keel_abi

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "tests/data").glob("*.keelt"))
LINES = {"node_files", "node_lines"}  # set by programs, not by text: kernel/language/graph/file_test.cc adds some to the samples
ATTR_KINDS = set(map(int, re.findall(r"^  KEEL_ATTR_\w+ = ([1-9]\d*)", (ROOT / "abi/keel_base.h").read_text(), re.M)))


def structure(context, sample, folder):
    """The structure part of the sample's file, read by flatc, an independent reader."""
    file, part = folder / (sample.stem + ".keel"), folder / (sample.stem + ".bin")
    context.parse(sample.read_text()).save(str(file))
    data = file.read_bytes()
    part.write_bytes(data[4:4 + struct.unpack("<I", data[:4])[0]])
    subprocess.run(["flatc", "--json", "--strict-json", "--raw-binary", "-o", str(folder),
                    str(ROOT / "abi/graph.fbs"), "--", str(part)], check=True)
    return json.loads(part.with_suffix(".json").read_text())


@pytest.mark.skipif(not shutil.which("flatc"), reason="flatc is not installed")
def test_samples_use_every_field_and_attribute_kind(tmp_path, capsys):
    context = keel_abi.Context()
    context.add_ops("foreign", (ROOT / "tests/data/foreign.ops").read_text())
    fields = set(re.findall(r"^  (\w+):", (ROOT / "abi/graph.fbs").read_text(), re.M))
    assert len(SAMPLES) >= 6 and len(fields) > 40
    used, kinds = {}, set()
    for sample in SAMPLES:
        part = structure(context, sample, tmp_path)
        kinds |= set(part.get("attr_kinds", []))
        for field, value in part.items():
            if value != []:
                used.setdefault(field, []).append(sample.stem)
    with capsys.disabled():
        print(f" [{len(used)} of {len(fields)} fields, {len(kinds)} of {len(ATTR_KINDS)} attribute kinds] ", end="")
    assert fields - used.keys() == LINES
    assert ATTR_KINDS - kinds == set()
