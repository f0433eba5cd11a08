"""Classifies files, or compares sentences, with trained models that the command `keel`
converts and runs: all files on the first device found, the first file on the others. Called by tools/demo.

Usage: demo_main.py [FILE...]                     without files: six of different types
       demo_main.py --sentences TEXT TEXT [...]   similarities of sentences
"""
import argparse
import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
from demo_models import (SENTENCE_VECTOR, file_features, file_model, long_enough, sentence_features,
                         sentence_model, similarities, top_classes)

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("KEEL_BUILD", ROOT / "build" / "release"))
KEEL = BUILD / "bin" / "keel"


def keel(*arguments, show=True):
    """Runs the command `keel`; -> its output."""
    if show:
        print("$ keel " + " ".join(map(str, arguments)), flush=True)
    done = subprocess.run([str(KEEL), *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"keel {arguments[0]} failed ({done.returncode}):\n{done.stderr}{done.stdout}")
    return done.stdout


def devices():
    found = json.loads(keel("devices", "--json", show=False))["devices"]
    return [d["name"] for d in found if d["usable"]]


def convert(model, folder):
    """Converts the model to a Keel file and inspects it."""
    target = Path(folder) / "model.keel"
    print(keel("convert", model, target), end="")
    print(keel("inspect", target))
    return target


def run(model, device, inputs, folder):
    """-> results by name. `inputs`: arrays by name."""
    given, results = Path(folder) / "in.npz", Path(folder) / "out.npz"
    np.savez(given, **inputs)
    keel("run", model, "-d", device, "-i", f"@{given}", "-o", f"@{results}")
    with np.load(results) as archive:
        return dict(archive)


def picture(path):
    """A small PNG: a gradient of 64 by 64 pixels."""
    rows = b"".join(b"\0" + bytes(v for x in range(64) for v in (4 * x, 4 * y, 128)) for y in range(64))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return path


def packed(path):
    path.write_bytes(gzip.compress(Path(__file__).read_bytes(), mtime=0))
    return path


def six_files(folder):
    """Files of six types: three from the tree, two made here, and the command itself."""
    folder = Path(folder)
    return [ROOT / "README.md", ROOT / "cli" / "main.cc", Path(__file__), picture(folder / "gradient.png"), KEEL,
            packed(folder / "demo_main.py.gz")]


def show_types(files, folder):
    model, config = file_model()
    files = [Path(f) for f in files or six_files(folder)]
    for path in files:
        if not path.is_file() or not os.access(path, os.R_OK):
            sys.exit(f"cannot read {path}: expected a file")
    features = [file_features(f, config) for f in files]
    judged = [(f, x) for f, x in zip(files, features) if long_enough(x, config)]
    for path in [f for f, x in zip(files, features) if not long_enough(x, config)]:
        print(f"{path}: too short for the model ({config['min_file_size_for_dl']} bytes are needed)")
    if not judged:
        return
    converted = convert(model, folder)
    for number, device in enumerate(devices()):
        here = judged if number == 0 else judged[:1]  # slower devices only confirm the answer
        results = run(converted, device, {"bytes": np.stack([x for _, x in here])}, folder)
        for (path, _), row in zip(here, results["target_label"]):
            top = ", ".join(f"{name} {p:.4f}" for name, p in top_classes(row, config))
            print(f"{device:12} {path.name:20} {top}")
        print()


def show_similarities(sentences, folder):
    ids, mask = sentence_features(sentences)
    converted = convert(sentence_model(), folder)
    for i, text in enumerate(sentences):
        print(f"[{i}] {text}")
    for device in devices():
        results = run(converted, device, {"input_ids": ids, "attention_mask": mask}, folder)
        print(device)
        for row in similarities(results[SENTENCE_VECTOR]):
            print("  " + " ".join(f"{v:7.4f}" for v in row))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--sentences", nargs="+", metavar="TEXT")
    args = parser.parse_args()
    if not KEEL.exists():
        sys.exit(f"{KEEL} is not built; run tools/demo, or set KEEL_BUILD to a build folder")
    with tempfile.TemporaryDirectory(prefix="keel-demo-") as folder:
        if args.sentences:
            show_similarities(args.sentences, folder)
        else:
            show_types(args.files, folder)


if __name__ == "__main__":
    main()
