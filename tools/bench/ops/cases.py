"""The cases of ops.py: one op of ONNX, one shape, and the same computed by torch.

How to read it: `case` builds one; the functions below it, one per family, fill CASES. Inputs are passed with
each run; constants, such as weights, are known when a runtime prepares the op.
"""
import zlib

import numpy as np
import onnx
from onnx import helper, numpy_helper

CASES = {}
OPSET = 23


def normal(*shape, dtype=np.float32):
    return lambda random: random.standard_normal(shape).astype(dtype)


def positive(*shape):
    return lambda random: np.abs(random.standard_normal(shape)).astype(np.float32) + np.float32(0.1)


def integers(*shape, below=100, dtype=np.int64):
    return lambda random: random.integers(0, below, shape).astype(dtype)


def values(array):
    return lambda random: np.asarray(array)


class Case:
    opsets = {"": OPSET}

    def __init__(self, family, label, op, inputs, torch, constants, first, attrs):
        self.family, self.label, self.op, self.torch, self.attrs = family, label, op, torch, attrs
        self.makers, self.constants_first = (inputs, constants), first

    @property
    def name(self):
        return f"{self.family} {self.label}"

    def arrays(self):
        """-> inputs, constants; identical in each process."""
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        return tuple([make(random) for make in makers] for makers in self.makers)

    def ordered(self, inputs, constants):
        return [*constants, *inputs] if self.constants_first else [*inputs, *constants]

    def nodes(self):
        names = [f"x{i}" for i in range(len(self.makers[0]))], [f"c{i}" for i in range(len(self.makers[1]))]
        return [helper.make_node(self.op, self.ordered(*names), ["y"] + ["i"] * (self.op == "TopK"), **self.attrs)]

    def model(self):
        """Of the nodes, which read x0 ... and c0 ... and write y."""
        inputs, constants = self.arrays()
        graph = helper.make_graph(
            self.nodes(), "case",
            [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for i, x in enumerate(inputs)],
            [helper.make_empty_tensor_value_info("y")], [numpy_helper.from_array(c, f"c{i}") for i, c in enumerate(constants)])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in self.opsets.items()], ir_version=10)


def add(made):
    assert made.name not in CASES, made.name
    CASES[made.name] = made


def case(family, label, op, inputs, torch, constants=(), constants_first=False, **attrs):
    add(Case(family, label, op, inputs, torch, constants, constants_first, attrs))


def text(*shape):
    return "x".join(map(str, shape))


def matmuls():
    for m, k, n in ((10, 10, 10), (64, 64, 64), (127, 129, 131), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024),
                    (1, 784, 128), (1, 768, 3072), (1, 2048, 1000), (8, 768, 768), (128, 768, 768), (128, 768, 3072),
                    (128, 3072, 768), (1024, 768, 3072), (60000, 784, 128), (60000, 128, 10), (128, 768, 50257)):
        case("matmul", f"{text(m, k, n)} weights", "MatMul", [normal(m, k)], lambda t, x, w: x @ w, [normal(k, n)])
    for a, b in (((10, 10), (10, 10)), ((512, 512), (512, 512)), ((12, 128, 64), (12, 64, 128)),
                 ((12, 128, 128), (12, 128, 64)), ((96, 128, 64), (96, 64, 128)), ((12, 512, 64), (12, 64, 512))):
        case("matmul", f"{text(*a)} by {text(*b)}", "MatMul", [normal(*a), normal(*b)], lambda t, x, y: x @ y)
    for n in (10, 64, 256):
        some = integers(n, n, dtype=np.int32)
        case("matmul", f"i32 {text(n, n, n)}", "MatMul", [some, some], lambda t, x, y: x @ y)
    case("matmul", "f64 256x256x256", "MatMul", [normal(256, 256, dtype=np.float64)] * 2, lambda t, x, y: x @ y)
    for m, k, n in ((1, 784, 128), (128, 768, 768), (60000, 784, 128)):
        case("gemm", f"{text(m, k, n)} bias", "Gemm", [normal(m, k)], lambda t, x, w, b: t.addmm(b, x, w),
             [normal(k, n), normal(n)])


def conv(n, c, size, out, kernel, stride=1, groups=1):
    pad = kernel // 2
    kind = "depthwise" if groups == c > 1 else "groups" if groups > 1 else "plain"
    case("conv", f"{text(n, c, size, size)} to {out}, {kernel}x{kernel}/{stride} {kind}", "Conv",
         [normal(n, c, size, size)],
         lambda t, x, w, b: t.nn.functional.conv2d(x, w, b, stride, pad, 1, groups),
         [normal(out, c // groups, kernel, kernel), normal(out)],
         kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups)


def convs():
    for row in ((1, 3, 8, 8, 3), (1, 3, 224, 64, 7, 2), (1, 3, 224, 32, 3, 2), (1, 64, 56, 64, 1), (1, 64, 56, 64, 3),
                (1, 256, 56, 64, 1), (1, 64, 56, 256, 1), (1, 256, 56, 512, 1, 2), (1, 128, 28, 128, 3),
                (1, 512, 28, 128, 1), (1, 256, 14, 256, 3), (1, 1024, 14, 256, 1), (1, 256, 28, 256, 3, 2),
                (1, 512, 7, 512, 3), (1, 2048, 7, 512, 1), (1, 512, 7, 2048, 1), (8, 64, 56, 64, 3),
                (8, 512, 7, 512, 3), (8, 256, 56, 64, 1), (1, 24, 56, 144, 1), (1, 320, 7, 1280, 1),
                (1, 32, 112, 32, 3, 1, 32), (1, 144, 56, 144, 3, 2, 144), (1, 144, 56, 144, 3, 1, 144),
                (1, 960, 7, 960, 3, 1, 960), (1, 256, 14, 256, 3, 1, 32)):
        conv(*row)


def norms():
    for shape, axis in (((1, 1000), -1), ((12, 128, 128), -1), ((96, 128, 128), -1), ((12, 512, 512), -1),
                        ((128, 50257), -1), ((1000, 64), 0), ((1, 21, 64, 64), 1)):
        case("softmax", f"{text(*shape)} axis {axis}", "Softmax", [normal(*shape)],
             lambda t, x, axis=axis: t.softmax(x, axis), axis=axis)
    case("softmax", "128x1000 log", "LogSoftmax", [normal(128, 1000)], lambda t, x: t.log_softmax(x, -1), axis=-1)
    for shape in ((1, 768), (128, 768), (1024, 768), (4096, 1024)):
        case("norm", f"layer {text(*shape)}", "LayerNormalization", [normal(*shape)],
             lambda t, x, w, b: t.nn.functional.layer_norm(x, x.shape[-1:], w, b, 1e-5),
             [normal(shape[-1]), normal(shape[-1])], axis=-1, epsilon=1e-5)
    case("norm", "rms 128x768", "RMSNormalization", [normal(128, 768)],
         lambda t, x, w: t.nn.functional.rms_norm(x, x.shape[-1:], w, 1e-5), [normal(768)], axis=-1, epsilon=1e-5)
    for shape in ((1, 64, 112, 112), (1, 2048, 7, 7), (8, 256, 56, 56)):
        case("norm", f"batch {text(*shape)}", "BatchNormalization", [normal(*shape)],
             lambda t, x, s, b, m, v: t.nn.functional.batch_norm(x, m, v, s, b), [normal(shape[1])] * 3
             + [positive(shape[1])])


def units():
    def each(name, op, function, make=normal, **attrs):
        for n in (1000, 4_000_000) if name not in ("erf", "gelu", "relu") else (1000, 393_216, 4_000_000):
            case("unary", f"{name} {n}", op, [make(n)], lambda t, x: function(t, x), **attrs)
    each("relu", "Relu", lambda t, x: t.relu(x))
    each("gelu", "Gelu", lambda t, x: t.nn.functional.gelu(x))
    each("gelu_tanh", "Gelu", lambda t, x: t.nn.functional.gelu(x, approximate="tanh"), approximate="tanh")
    for name in ("erf", "exp", "tanh", "sigmoid", "neg", "abs", "floor", "sin"):
        each(name, name.capitalize(), lambda t, x, name=name: getattr(t, name)(x))
    for name in ("log", "sqrt"):
        each(name, name.capitalize(), lambda t, x, name=name: getattr(t, name)(x), positive)
    for n in (1000, 1_000_000):
        case("cast", f"f32 to i64 {n}", "Cast", [normal(n)], lambda t, x: x.to(t.int64), to=onnx.TensorProto.INT64)
        case("cast", f"i32 to f32 {n}", "Cast", [integers(n, dtype=np.int32)], lambda t, x: x.float(),
             to=onnx.TensorProto.FLOAT)
        case("cast", f"f32 to f16 {n}", "Cast", [normal(n)], lambda t, x: x.half(), to=onnx.TensorProto.FLOAT16)


def binaries():
    for op, function in (("Add", lambda t, x, y: x + y), ("Mul", lambda t, x, y: x * y), ("Div", lambda t, x, y: x / y),
                         ("Max", lambda t, x, y: t.maximum(x, y))):
        for n in (1, 1000, 100_000, 4_000_000):
            case("binary", f"{op.lower()} {n}", op, [normal(n), positive(n)], function)
    case("binary", "pow 1000000", "Pow", [positive(1_000_000), normal(1_000_000)], lambda t, x, y: x ** y)
    for a, b in (((128, 3072), (3072,)), ((1, 256, 56, 56), (256, 1, 1)), ((1000, 1000), (1000, 1)),
                 ((1000, 1), (1, 1000)), ((8, 12, 128, 128), (8, 1, 1, 128))):
        case("binary", f"add {text(*a)} with {text(*b)}", "Add", [normal(*a), normal(*b)], lambda t, x, y: x + y)
    case("binary", "add i64 1000000", "Add", [integers(1_000_000)] * 2, lambda t, x, y: x + y)
    case("binary", "add f64 1000000", "Add", [normal(1_000_000, dtype=np.float64)] * 2, lambda t, x, y: x + y)
    case("binary", "add f16 1000000", "Add", [normal(1_000_000, dtype=np.float16)] * 2, lambda t, x, y: x + y)
    case("binary", "greater 1000000", "Greater", [normal(1_000_000)] * 2, lambda t, x, y: x > y)
    case("binary", "where 1000000", "Where", [integers(1_000_000, below=2, dtype=bool)] + [normal(1_000_000)] * 2,
         lambda t, c, x, y: t.where(c, x, y))


def reductions():
    def each(op, shape, axes, function):
        case("reduce", f"{op} {text(*shape)} over {axes}", "Reduce" + op.capitalize(), [normal(*shape)],
             lambda t, x, _: function(t, x, axes), [values(np.array(axes, np.int64))], keepdims=0)

    def total(t, x, axes):
        return t.sum(x, axes)
    for shape, axes in (((1000,), (0,)), ((4_000_000,), (0,)), ((256, 256, 64), (0,)), ((256, 256, 64), (1,)),
                        ((256, 256, 64), (2,)), ((256, 256, 64), (0, 2)), ((2048, 2048), (0,)), ((2048, 2048), (1,))):
        each("sum", shape, axes, total)
    each("mean", (128, 768), (1,), lambda t, x, axes: t.mean(x, axes))
    each("mean", (1, 2048, 7, 7), (2, 3), lambda t, x, axes: t.mean(x, axes))
    each("max", (2048, 2048), (0,), lambda t, x, axes: t.amax(x, axes))
    each("max", (2048, 2048), (1,), lambda t, x, axes: t.amax(x, axes))
    each("prod", (1000, 1000), (1,), lambda t, x, axes: t.prod(x, axes[0]))
    case("reduce", "argmax 128x50257", "ArgMax", [normal(128, 50257)], lambda t, x: t.argmax(x, -1), axis=-1, keepdims=0)
    case("reduce", "cumsum 1000x1000", "CumSum", [normal(1000, 1000)], lambda t, x, a: t.cumsum(x, 1),
         [values(np.array(1, np.int64))])


def orders():
    def top(rows, n, k, function, name="topk {k} of"):
        case("sort", f"{name.format(k=k)} {text(rows, n)}", "TopK", [normal(rows, n)], function, [values(np.array([k], np.int64))])
    for rows, n, k in ((128, 1000, 5), (4096, 8, 2), (4096, 256, 32), (16, 50257, 50)):
        top(rows, n, k, lambda t, x, _, k=k: t.topk(x, k)[0])
    for rows, n in ((100_000, 10), (1000, 1000), (1, 1_000_000)):
        top(rows, n, n, lambda t, x, _: t.sort(x, -1, descending=True)[0], "all of")


def moves():
    for rows, width, count in ((50257, 768, 128), (1000, 64, 4096), (100_000, 1, 100_000)):
        case("gather", f"{count} rows of {text(rows, width)}", "Gather", [integers(count, below=rows)],
             lambda t, w, i: t.index_select(w, 0, i), [normal(rows, width)], constants_first=True, axis=0)
    case("gather", "axis 1 of 1000x1000", "Gather", [normal(1000, 1000)], lambda t, x, i: t.index_select(x, 1, i),
         [integers(500, below=1000)], axis=1)
    for shape, perm in (((2048, 2048), (1, 0)), ((1, 128, 12, 64), (0, 2, 1, 3)), ((1, 128, 12, 64), (0, 2, 3, 1)),
                        ((8, 128, 12, 64), (0, 2, 1, 3)), ((1, 64, 56, 56), (0, 2, 3, 1)), ((1, 56, 56, 64), (0, 3, 1, 2)),
                        ((64, 64, 64, 8), (3, 2, 1, 0)), ((10, 10), (1, 0))):
        case("transpose", f"{text(*shape)} by {text(*perm)}", "Transpose", [normal(*shape)],
             lambda t, x, perm=perm: x.permute(perm).contiguous(), perm=perm)
    for shape, axis in (((1000,), 0), ((1, 256, 56, 56), 1), ((1000, 1000), 1), ((128, 768), 0)):
        case("concat", f"two {text(*shape)} axis {axis}", "Concat", [normal(*shape)] * 2,
             lambda t, x, y, axis=axis: t.cat((x, y), axis), axis=axis)
    case("slice", "1000x1000 [::2, 1::3]", "Slice", [normal(1000, 1000)], lambda t, x, *_: x[::2, 1::3].contiguous(),
         [values(np.array(v, np.int64)) for v in ((0, 1), (1000, 1000), (0, 1), (2, 3))])
    case("pad", "1x64x56x56 by 1", "Pad", [normal(1, 64, 56, 56)], lambda t, x, p: t.nn.functional.pad(x, (1,) * 4),
         [values(np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64))])
    case("expand", "1000x1 to 1000x1000", "Expand", [normal(1000, 1)], lambda t, x, s: x.expand(1000, 1000).contiguous(),
         [values(np.array([1000, 1000], np.int64))])


def pools():
    case("pool", "max 1x64x112x112 3/2", "MaxPool", [normal(1, 64, 112, 112)],
         lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    case("pool", "max 8x64x112x112 3/2", "MaxPool", [normal(8, 64, 112, 112)],
         lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    case("pool", "average 1x256x28x28 2/2", "AveragePool", [normal(1, 256, 28, 28)],
         lambda t, x: t.nn.functional.avg_pool2d(x, 2), kernel_shape=[2, 2], strides=[2, 2])
    case("pool", "global 1x2048x7x7", "GlobalAveragePool", [normal(1, 2048, 7, 7)],
         lambda t, x: t.mean(x, (2, 3), keepdim=True))


def attentions():
    for shape in ((1, 12, 128, 64), (8, 12, 128, 64), (1, 12, 512, 64)):
        for causal in (0, 1):
            case("attention", f"{text(*shape)}{' causal' if causal else ''}", "Attention", [normal(*shape)] * 3,
                 lambda t, q, k, v, c=bool(causal): t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=c),
                 is_causal=causal)


for family in (matmuls, convs, norms, units, binaries, reductions, orders, moves, pools, attentions):
    family()
