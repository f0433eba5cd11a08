"""Operands with special values that an identity may break, and comparison of results."""
import re

import numpy as np

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 2.0**24 + 2, 3.4e38, -3.4e38, 0.5, 6e-8]
DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bool": np.bool_, "i8": np.int8, "i16": np.int16,
          "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}


def floats(count, dtype, random, special):
    values = random.standard_normal(count)
    if special:
        where = random.random(count) < 0.6
        values[where] = random.choice(SPECIAL, where.sum())
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def integers(count, dtype, random):
    info = np.iinfo(dtype)
    edges = np.array([0, 1, info.max, info.min, info.max - 1, 3, 7], dtype)
    return np.where(random.random(count) < 0.5, random.choice(edges, count),
                    random.integers(info.min, info.max, count, dtype, endpoint=True))


def operand(kind, dims, random, special):
    """`kind` as in graph text: "f32"; bf16 is returned as bits (uint16)."""
    count = int(np.prod(dims))
    if kind == "bool":
        return (random.random(count) < 0.5).reshape(dims)
    if kind == "bf16":
        wide = floats(count, np.float32, random, special)
        return (wide.view(np.uint32) >> 16).astype(np.uint16).reshape(dims)
    if kind.startswith("f"):
        return floats(count, DTYPES[kind], random, special).reshape(dims)
    return integers(count, DTYPES[kind], random).reshape(dims)


def parameters(text):
    """Returns (dtype, dims as written) of each parameter of @main."""
    head = re.search(r"fn @main\((.*?)\) (?:->|\{)", text)[1]
    return [(kind, [d.strip() for d in dims.split(",") if d.strip()])
            for kind, dims in re.findall(r": (\w+)\[(.*?)\]", head)]


def operands(text, random, special, size):
    """One array for each parameter of @main; symbols have this size."""
    return [operand(kind, [int(d) if d.isdigit() else size for d in dims], random, special)
            for kind, dims in parameters(text)]


def holds_floats(array):
    """Also converts bf16, which is an ml_dtypes array."""
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def same_bits(a, b):
    """Equal shape and dtype, and equal bit by bit, or both NaN."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    equal = a.reshape(-1).view(f"V{a.itemsize}") == b.reshape(-1).view(f"V{a.itemsize}")
    if holds_floats(a):
        with np.errstate(all="ignore"):
            equal |= np.isnan(a.astype(np.float64)).reshape(-1) & np.isnan(b.astype(np.float64)).reshape(-1)
    return bool(equal.all())
