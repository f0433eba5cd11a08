"""Rows of detection, signals, newer opsets, and the domains ai.onnx.ml and com.microsoft."""
import numpy as np
from onnx_draw import HALF, LONG, NUMBERS, SINGLE, WIDE, Row, finite
from rows_layers import HALVES
from rows_products import BYTES, full_bytes, scale, window, zero

ML, MICROSOFT = "ai.onnx.ml", "com.microsoft"


def qlinear_conv(d, dtype):
    image, given = window(d, 2)
    c, o = d.int(1, 3), d.int(1, 3)
    x, w = full_bytes(d, dtype, (max(d.size(), 1), c, *image)), full_bytes(d, dtype, (o, c, *given["kernel_shape"]))
    bias = [d.add(d.random.integers(-300, 300, o).astype(np.int32), True)] if d.chance(0.5) else []
    weights = [d.const(0, dtype)] if dtype.kind == "i" else [zero(d, dtype)]
    return [x, scale(d), zero(d, dtype), w, scale(d), *weights, scale(d), zero(d, dtype), *bias], given


def roi_align(d, dtype):
    n, c, h, w = (d.int(1, 4) for _ in range(4))
    count = d.int(0 if d.zeros else 1, 3)
    low = d.random.uniform(0, 2, (count, 2))
    rois = d.add(np.concatenate([low, low + d.random.uniform(0.5, 3, (count, 2))], 1).astype(dtype))
    attributes = {"output_height": d.int(1, 3), "output_width": d.int(1, 3), "sampling_ratio": d.int(1, 2)} | d.optional(
        mode=d.pick(["avg", "max"]), spatial_scale=0.5, coordinate_transformation_mode=d.pick(["half_pixel", "output_half_pixel"]))
    if d.opset < 16:
        attributes.pop("coordinate_transformation_mode", None)
    return [d.tensor(dtype, shape=(n, c, h, w), kind="plain"), rois, d.add(d.random.integers(0, n, count))], attributes


def suppression(d, dtype):
    batch, n, classes = d.int(1, 2), d.int(1, 5), d.int(1, 2)
    low = d.random.uniform(0, 2, (batch, n, 2))
    boxes = np.concatenate([low, low + d.random.uniform(0.5, 2, (batch, n, 2))], -1).astype(np.float32)
    limits = [d.const(d.int(0, 3)), d.const([0.5], np.float32), d.const([0.3], np.float32)][:d.int(1, 3)]
    scores = d.random.permutation(batch * n * classes).reshape(batch, classes, n) / (batch * n * classes)
    return [d.add(boxes), d.add(scores.astype(np.float32)), *limits], d.optional(center_point_box=d.int(0, 1))


def unpool(d, dtype):
    n, c, h, w = (d.int(1, 3) for _ in range(4))
    places = np.stack([d.random.permutation(4 * h * w)[:h * w].reshape(h, w) for _ in range(n * c)]).reshape(n, c, h, w)
    index = places + np.arange(n * c).reshape(n, c, 1, 1) * 4 * h * w
    return [d.tensor(dtype, shape=(n, c, h, w)), d.add(index.astype(np.int64))], {"kernel_shape": [2, 2], "strides": [2, 2]}


def stft(d, dtype):
    n, length, step = d.int(1, 2), d.int(2, 6), d.int(1, 3)
    x = d.tensor(dtype, shape=(n, length + d.int(0, 6), 1), kind="plain")
    wide = [d.new(dtype, (length,), "plain")] if d.chance(0.5) else ["", d.const(length)]
    return [x, d.const(step), *wide], {"onesided": d.int(0, 1)}


def deform(d, dtype):
    n, c, o = d.int(1, 2), d.int(1, 2), d.int(1, 2)
    kernel, image = [d.int(1, 2), d.int(1, 2)], [d.int(3, 5), d.int(3, 5)]
    out = [i - k + 1 for i, k in zip(image, kernel)]
    cells = kernel[0] * kernel[1]
    mask = [d.new(dtype, (n, cells, *out), "plain")] if d.chance(0.5) else []
    bias = [d.new(dtype, (o,), "plain")] if d.chance(0.5) else [""] if mask else []
    return [d.tensor(dtype, shape=(n, c, *image), kind="plain"), d.new(dtype, (o, c, *kernel), "plain"),
            d.new(dtype, (n, 2 * cells, *out), "unit"), *bias, *mask], {"kernel_shape": kernel}


def mel(d, dtype):
    return [d.const(d.int(2, 5)), d.const(d.pick([16, 32])), d.const(8192), d.const(100.0, np.float32), d.const(4000.0, np.float32)], {}


def tensor_scatter(d, dtype):
    batch, steps, more, wide = d.int(1, 2), d.int(3, 6), d.int(1, 2), d.int(1, 3)
    past = d.tensor(dtype, shape=(batch, 2, steps, wide))
    return [past, d.tensor(dtype, shape=(batch, 2, more, wide)), d.add(d.random.integers(0, steps - more + 1, batch))], d.optional(axis=-2)


def drop(d, dtype):
    x = d.tensor(dtype)
    return [x, *([d.const(0.3, np.float32)] if d.chance(0.5) else [])], {}


def features(attributes):
    def make(d, dtype):
        x = d.tensor(dtype, least=2, most=2, fits=lambda v: v.size > 0 and finite(v))
        return [x], attributes(d, d.shape(x)[1])
    return make


def floats(d, n):
    return [float(np.float32(v)) for v in d.random.uniform(-2, 2, n)]


def extractor(d, dtype):
    x = d.tensor(dtype, least=2, most=2, fits=lambda v: v.size > 0)
    return [x, d.add(d.random.integers(0, d.shape(x)[1], d.int(1, 3)))], {}


def regressor(d, n):
    targets = d.int(1, 2)
    return {"coefficients": floats(d, n * targets), "targets": targets} | d.optional(intercepts=floats(d, targets))


def alone(d, dtype):
    return [d.tensor(dtype, least=1, fits=finite)], {}


def biased(d, dtype):
    x = d.tensor(dtype, least=1, fits=lambda v: v.size > 0 and finite(v))
    return [x, d.new(dtype, d.shape(x)[-1:], "plain")], {}


def fused_matmul(d, dtype):
    m, k, n = (d.int(1, 4) for _ in range(3))
    ta, tb = d.int(0, 1), d.int(0, 1)
    x, y = d.tensor(dtype, shape=(k, m) if ta else (m, k), fits=finite), d.tensor(dtype, shape=(n, k) if tb else (k, n), fits=finite)
    return [x, y], {"transA": ta, "transB": tb} | d.optional(alpha=0.5)


def skip_norm(simple):
    def make(d, dtype):
        x = d.tensor(dtype, shape=(d.int(1, 2), d.int(1, 3), d.int(1, 4)), kind="plain")
        wide = d.shape(x)[-1:]
        more = [d.new(dtype, wide, "plain") for _ in range(1 if simple else 2)]
        bias = [d.new(dtype, wide, "plain")] if d.chance(0.4) else []
        return [x, d.tensor(dtype, shape=d.shape(x), kind="plain"), *more, *bias], d.optional(epsilon=1e-3)
    return make


ROWS = [
    Row("QLinearConv", BYTES, qlinear_conv), Row("RoiAlign", WIDE, roi_align), Row("NonMaxSuppression", [SINGLE], suppression),
    Row("MaxUnpool", [SINGLE], unpool), Row("STFT", WIDE, stft, 17), Row("DeformConv", WIDE, deform, 19), Row("MelWeightMatrix", [SINGLE], mel, 17),
    Row("TensorScatter", [*HALVES, *NUMBERS[4:]], tensor_scatter, 24), Row("Dropout", HALVES, drop),
    Row("Binarizer", WIDE, features(lambda d, n: d.optional(threshold=0.5)), domain=ML),
    Row("Scaler", [*WIDE, LONG, np.dtype("i")], features(lambda d, n: {"offset": floats(d, n), "scale": floats(d, n)}), domain=ML),
    Row("Normalizer", [SINGLE], features(lambda d, n: {"norm": d.pick(["L1", "L2", "MAX"])}), domain=ML),
    Row("LinearRegressor", [SINGLE], features(regressor), domain=ML), Row("ArrayFeatureExtractor", [*WIDE, LONG, np.dtype("i")], extractor, domain=ML),
    Row("Imputer", [SINGLE], features(lambda d, n: {"imputed_value_floats": floats(d, n), "replaced_value_float": 0.0}), domain=ML),
    *[Row(op, [SINGLE], alone, domain=MICROSOFT) for op in ("Gelu", "QuickGelu")], Row("BiasGelu", [SINGLE], biased, domain=MICROSOFT),
    Row("FastGelu", [SINGLE, HALF], biased, domain=MICROSOFT), Row("FusedMatMul", WIDE, fused_matmul, domain=MICROSOFT),
    Row("SkipLayerNormalization", [SINGLE], skip_norm(False), domain=MICROSOFT),
    Row("SkipSimplifiedLayerNormalization", [SINGLE], skip_norm(True), domain=MICROSOFT),
]
