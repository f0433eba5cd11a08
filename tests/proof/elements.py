"""Elements of arrays: drawn, written as graph text, compared.

Kinds of draws: "plain": numbers on which few ops fail; "special": with special values that an identity may break; "tame": without
the largest ones, which overflow a sum in one order and not in another; "same": one number.
"""
import re
import zlib

import ml_dtypes
import numpy as np
from operands import DTYPES, operand

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOAT_NUMBERS = ["0.0", "-0.0", "1.0", "-1.0", "2.0", "0.5", "3.0", "8.0", "4.0", "0.25", "inf", "-inf", "nan", "1e38", "1e-38",
                 "16777216.0", "-2.0"]
MOST = 1e3  # of tame numbers


def numpy_dtype(dtype):
    return BF16 if dtype == "bf16" else np.dtype(DTYPES[dtype])


def is_float(dtype):
    return dtype in ("f16", "bf16", "f32", "f64")


def numbers(dtype):
    """Literals, mostly neutral elements of ops."""
    if is_float(dtype):
        tame = [n for n in FLOAT_NUMBERS if "e" not in n] if dtype == "f16" else FLOAT_NUMBERS
        return [n for n in tame if dtype != "f16" or n != "16777216.0"]
    if dtype == "bool":
        return ["true", "false"]
    info = np.iinfo(DTYPES[dtype])
    return ["0", "1", "2", "3", "7", str(info.max)] + (["-1", str(info.min)] if info.min else [])


def elements(dtype, dims, random, kind):
    if kind == "same":
        return np.full(dims, parsed(dtype, str(random.choice(numbers(dtype)))), numpy_dtype(dtype))
    if kind in ("special", "tame") or dtype == "bool":
        made = operand(dtype, dims, random, True)
        made = made.view(BF16) if dtype == "bf16" else made
        if kind == "tame" and is_float(dtype):
            made[np.abs(made) > MOST] = np.inf
        return made
    if is_float(dtype):
        return (random.integers(-16, 17, dims) / 8 if kind == "round" else random.standard_normal(dims)).astype(numpy_dtype(dtype))
    least = 0 if kind == "index" or dtype[0] == "u" else -2
    return np.asarray(random.integers(least, 4, dims)).astype(numpy_dtype(dtype))


def parsed(dtype, literal):
    if dtype == "bool":
        return literal == "true"
    return float(literal) if is_float(dtype) else int(literal)


def spelled(array):
    """All elements, in graph text format."""
    def one(v):
        if array.dtype == bool:
            return "true" if v else "false"
        return str(int(v)) if array.dtype.kind in "iu" else repr(float(v))
    return "[" + ", ".join(one(v) for v in array.reshape(-1)) + "]"


def is_tame(graph):
    """Whether the graph has no large literals."""
    text = " ".join([v for _, v in graph.constants.values()] + [i for n in graph.nodes() for i in n.ins])
    return not any(MOST < abs(float(n)) < np.inf for n in re.findall(r"(?<!\w)-?[\d.]+(?:e[-+]?\d+)?", text))


def inputs(graph, seed, kind, sizes):
    """An array for each parameter, by its name and independent of the other parameters."""
    made = []
    for name, t in graph.main.params.items():
        random = np.random.default_rng([seed, zlib.crc32(name.encode())])
        made.append(elements(t.dtype, t.sized(sizes), random, "index" if name.startswith("i") and kind == "plain" else kind))
    return made
