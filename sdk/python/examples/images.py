"""Handwritten digits, 8 x 8 pixels: the data of scikit-learn, without an import of scikit-learn.

read() returns images f32[n, 64] in 0..1 and labels i32[n], as two pairs: for training, and a fifth for the test.
"""
import gzip
import sysconfig
from pathlib import Path

import numpy as np

FILE = Path(sysconfig.get_paths()["purelib"]) / "sklearn/datasets/data/digits.csv.gz"


def read(path=FILE):
    """path: text, or gzip of text; one image per line: 64 pixels of 0 to 16, and the digit."""
    if not path.is_file():
        raise SystemExit(f"{path}: no such file; install scikit-learn, or give --data FILE")
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.int32, ndmin=2)
    if rows.shape[1] != 65 or len(rows) < 100:
        raise SystemExit(f"{path}: expected at least 100 lines of 64 pixels and a digit, got shape {rows.shape}")
    rows = rows[np.random.default_rng(2).permutation(len(rows))]
    images, labels = (rows[:, :64] / 16).astype(np.float32), np.ascontiguousarray(rows[:, 64])
    test = len(rows) // 5
    return (images[test:], labels[test:]), (images[:test], labels[:test])
