"""Rows of products, convolutions, pooling and quantisation."""
import numpy as np
from onnx_draw import FLOATS, HALF, SINGLE, WIDE, Row, Skip, finite, is_float

BYTES = [np.dtype(np.uint8), np.dtype(np.int8)]


def matmul_dims(d):
    m, k, n = (d.size() for _ in range(3))
    batch = [] if d.chance(0.4) else list(d.dims(0, 2))
    other = [1 if d.chance(0.3) else b for b in batch][d.int(0, len(batch)):]
    x, y = [*batch, m, k], [*other, k, n]
    if d.chance(0.1):
        x = [k]
    elif d.chance(0.1):
        y = [k]
    return (x, y) if len(x) < 2 or len(y) < 2 or d.chance(0.7) else ([*other, m, k], [*batch, k, n])


def matmul(d, dtype):
    x, y = matmul_dims(d)
    return [d.tensor(dtype, shape=x), d.tensor(dtype, shape=y)], {}


def gemm(d, dtype):
    m, k, n = (d.size() for _ in range(3))
    ta, tb = d.int(0, 1), d.int(0, 1)
    kind = "any" if is_float(dtype) else "plain"  # alpha and beta are floats, which large integers overflow
    a, b = d.tensor(dtype, shape=(k, m) if ta else (m, k), kind=kind), d.tensor(dtype, shape=(n, k) if tb else (k, n), kind=kind)
    c = [d.tensor(dtype, shape=d.pick([(m, n), (1, n), (m, 1), (n,), (1,), (), (1, 1)]), kind=kind)] if d.chance(0.7) else []
    return [a, b, *c], {"transA": ta, "transB": tb} | (d.optional(alpha=0.5, beta=-1.5) if dtype.kind == "f" else {})


EQUATIONS = ["ij,jk->ik", "bij,bjk->bik", "ij->ji", "ii->i", "ij->", "i,j->ij", "bij,jk", "...ij,...jk->...ik", "ij,ij->i", "ijk,kl,jm->ilm", "ii", "...i->..."]


def einsum(d, dtype):
    equation = d.pick(EQUATIONS)
    sizes = {c: d.size() for c in "bijklm"}
    more = d.dims(1, 2)
    shapes = [[n for c in (term.replace("...", ".")) for n in (more if c == "." else [sizes[c]])] for term in equation.split("->")[0].split(",")]
    kind = "plain" if dtype == HALF else "any"  # large halves overflow in one order of products and not in another
    return [d.tensor(dtype, shape=s, kind=kind) for s in shapes], {"equation": equation}


def det(d, dtype):
    n = d.int(1, 3)
    return [d.tensor(dtype, shape=(*d.dims(0, 2), n, n), kind="plain")], {}


def window(d, rank, most=3):
    """Image sizes and attributes such that the window fits."""
    kernel, dilations = [d.int(1, most) for _ in range(rank)], [d.int(1, 2) for _ in range(rank)]
    given = {"kernel_shape": kernel} | d.optional(strides=[d.int(1, 3) for _ in range(rank)], dilations=dilations)
    reach = [(k - 1) * r + 1 for k, r in zip(kernel, given.get("dilations", [1] * rank))]
    image = [n + d.int(0, 4) for n in reach]
    how = d.int(0, 3)
    if how == 2 and max(given.get("dilations", [1])) > 1:
        how = 1  # both oracles leave dilations out of the padding of SAME
    if any(s > n for s, n in zip(given.get("strides", [1]), reach)) and how == 2:
        how = 1  # each runtime treats a negative padding in its own way
    if how == 1:
        given["pads"] = [d.int(0, k - 1) for k in (*kernel, *kernel)]
    elif how == 2:
        given["auto_pad"] = d.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    return image, given


def conv(rank_most=3):
    def make(d, dtype):
        rank = d.int(1, rank_most)
        image, given = window(d, rank)
        group, c, o = d.pick([1, 1, 2]), d.int(1, 3), d.int(1, 3)
        if group > 1:
            given["group"] = group
        x = d.tensor(dtype, shape=(d.size(), group * c, *image), fits=finite)
        w = d.tensor(dtype, shape=(group * o, c, *given["kernel_shape"]), fits=finite)
        if d.chance(0.3):
            given.pop("kernel_shape")
        return [x, w, *([d.tensor(dtype, shape=(group * o,))] if d.chance(0.5) else [])], given
    return make


def conv_transpose(d, dtype):
    rank = d.int(1, 2)
    image, given = window(d, rank, 2)
    group, c, o = d.pick([1, 1, 2]), d.int(1, 2), d.int(1, 2)
    strides = given.get("strides", [1] * rank)
    if d.chance(0.4) and "auto_pad" not in given:
        given["output_padding"] = [d.int(0, s - 1) for s in strides]
    x, w = (d.tensor(dtype, shape=s, fits=finite) for s in ((d.size(), group * c, *image), (group * c, o, *given["kernel_shape"])))
    return [x, w, *([d.tensor(dtype, shape=(group * o,))] if d.chance(0.5) else [])], given | ({"group": group} if group > 1 else {})


def pooled(*more, since=1):
    def make(d, dtype):
        rank = d.int(1, 3)
        image, given = window(d, rank)
        if "dilations" in given and d.opset < since:
            del given["dilations"]
        known = {"ceil_mode": d.int(0, 1), "count_include_pad": d.int(0, 1), "p": d.int(1, 3)}
        return [d.tensor(dtype, shape=(d.size(), max(d.size(), 1), *image), fits=finite)], given | d.optional(**{k: known[k] for k in more})
    return make


def global_pool(d, dtype):
    return [d.tensor(dtype, least=3, fits=lambda v: v.size > 0 and finite(v))], {}


def scale(d, shape=()):
    return d.add(np.asarray(np.round(d.random.uniform(0.02, 0.5, shape) * 64) / 64 + 1 / 64).astype(np.float32), d.chance(0.7))


def zero(d, dtype, shape=()):
    return d.add(d.array(dtype, shape, "small"), d.chance(0.7))


def full_bytes(d, dtype, shape):
    info = np.iinfo(dtype)
    return d.add(d.random.integers(info.min, info.max + 1, shape).astype(dtype), d.chance(0.4))


def matmul_integer(d, dtype):
    x, y = matmul_dims(d)
    if len(x) < 2 or len(y) < 2:
        raise Skip
    other = d.pick(BYTES)
    points = [zero(d, dtype), *([zero(d, other)] if d.chance(0.5) else [])] if d.chance(0.6) else []
    return [full_bytes(d, dtype, x), full_bytes(d, other, y), *points], {}


def conv_integer(d, dtype):
    image, given = window(d, 2)
    c, o = d.int(1, 3), d.int(1, 3)
    x, w = full_bytes(d, dtype, (d.size(), c, *image)), full_bytes(d, np.dtype(np.uint8), (o, c, *given["kernel_shape"]))
    return [x, w, *([zero(d, dtype)] if d.chance(0.6) else [])], given


def qlinear_matmul(d, dtype):
    x, y = matmul_dims(d)
    if len(x) < 2 or len(y) < 2:
        raise Skip
    one = lambda array: [array, scale(d), zero(d, dtype)]  # noqa: E731
    return [*one(full_bytes(d, dtype, x)), *one(full_bytes(d, dtype, y)), scale(d), zero(d, dtype)], {}


def quantise(d, dtype):
    kind = d.pick(BYTES)
    x = d.tensor(dtype, kind="plain", least=1)
    axis = d.axis(len(d.shape(x))) if d.chance(0.4) else None
    shape = () if axis is None else (d.shape(x)[axis],)
    return [x, scale(d, shape), *([zero(d, kind, shape)] if d.chance(0.8) else [])], {} if axis is None else {"axis": axis}


def dequantise(d, dtype):
    x = full_bytes(d, dtype, d.dims(1)) if dtype.itemsize == 1 else d.tensor(dtype, least=1, kind="plain")
    axis = d.axis(len(d.shape(x))) if d.chance(0.4) else None
    shape = () if axis is None else (d.shape(x)[axis],)
    points = [zero(d, dtype, shape)] if d.chance(0.8) and dtype.itemsize == 1 else []
    return [x, scale(d, shape), *points], {} if axis is None else {"axis": axis}


PRODUCTS = FLOATS + [np.dtype(x) for x in "ilIL"]
ROWS = [
    Row("MatMul", PRODUCTS, matmul), Row("Gemm", PRODUCTS, gemm), Row("Einsum", [*WIDE, HALF, np.dtype("i"), np.dtype("l")], einsum),
    Row("Det", WIDE, det), Row("Conv", [*WIDE, HALF], conv()), Row("ConvTranspose", [SINGLE], conv_transpose),
    Row("MaxPool", [*WIDE, HALF, *BYTES], pooled("ceil_mode")),
    Row("MaxPool", WIDE, pooled("ceil_mode"), results=2),
    Row("AveragePool", [SINGLE, HALF], pooled("ceil_mode", "count_include_pad", since=19)),
    Row("LpPool", [SINGLE], pooled("p", since=18)), *[Row(op, [SINGLE], global_pool) for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")],
    Row("MatMulInteger", BYTES, matmul_integer), Row("ConvInteger", BYTES[:1], conv_integer), Row("QLinearMatMul", BYTES, qlinear_matmul),
    Row("QuantizeLinear", [SINGLE], quantise), Row("DequantizeLinear", [*BYTES, np.dtype("i")], dequantise),
    Row("DynamicQuantizeLinear", [SINGLE], lambda d, dtype: ([d.tensor(dtype, kind="plain", fits=lambda v: v.size > 0)], {}), results=3),
]
