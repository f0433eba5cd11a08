"""The programs of cuda/run.py: each written once, as a function of the ops `f` of a runtime (runtimes.py) and of arrays on the GPU.

Amounts are of the least work: bytes of memory that must be read or written once, and operations of products.
"""
from dataclasses import dataclass

ROWS = 8192


@dataclass(frozen=True)
class Program:
    code: object  # of f and the arrays
    operands: tuple  # of (shape, dtype, scale); scale of integers: their number
    bytes: int = 0
    operations: int = 0
    jit: bool = True  # measured as a compiled function; False: op by op
    trains: bool = False  # code is None: a step of SGD on an MLP with relu, of images, classes, weights and biases
    bound: float = 2e-2  # of the difference from Keel's answer, relative to the largest value


def product(m, n, k, dtype):
    size = {"f32": 4}.get(dtype, 2)
    return Program(lambda f, a, b: f.matmul(a, b), (((m, k), dtype, 1), ((k, n), dtype, k**-0.5)), size * (m * k + k * n + m * n), 2 * m * n * k,
                   bound=1e-3 if dtype == "f32" else 2e-2)


def linear_gelu(m, n, k):
    return Program(lambda f, x, w, b: f.gelu(f.linear(x, w, b)), (((m, k), "bf16", 1), ((k, n), "bf16", k**-0.5), ((n,), "bf16", 1)),
                   operations=2 * m * n * k)


def chain(f, x, y):
    """Eight elementwise ops."""
    a = f.tanh(x * y)
    b = f.exp(a - x)
    return f.sqrt(b + 1.0) * a + y


def elementwise(dtype, n=64 << 20):
    return Program(chain, (((n,), dtype, 1), ((n,), dtype, 1)), 3 * n * (4 if dtype == "f32" else 2))


def rows(op, columns, dtype):
    size = 4 if dtype == "f32" else 2
    code = {"softmax": lambda f, x, g: f.softmax(x), "layer_norm": lambda f, x, g: f.layer_norm(x, g),
            "rms_norm": lambda f, x, g: f.rms_norm(x, g)}[op]
    return Program(code, (((ROWS, columns), dtype, 1), ((columns,), dtype, 1)), 2 * size * ROWS * columns)


def reduction(axes, n=16384):
    return Program(lambda f, x: f.sum(x, axes), (((n, n), "f32", 1),), 4 * n * n, bound=1e-4)


def tiny(f, x, y):
    for _ in range(200):
        x = x + y
    return x


def dense(f, x, w, b):
    return f.linear(x, w, b)


def gpt2(f, ids, table, places, *weights, layers=12, heads=12):
    """GPT-2 small: pre-norm decoder layers, gelu by tanh, logits of all tokens with the embedding table."""
    w = iter(weights)
    x = f.gather(table, ids) + places
    for _ in range(layers):
        h = f.layer_norm(x, next(w))
        q, k, v = (f.heads(dense(f, h, next(w), next(w)), heads) for _ in range(3))
        x = x + dense(f, f.together(f.attention(q, k, v)), next(w), next(w))
        h = f.gelu(dense(f, f.layer_norm(x, next(w)), next(w), next(w)))
        x = x + dense(f, h, next(w), next(w))
    return f.matmul_transposed(f.layer_norm(x, next(w)), table)


def gpt2_program(batch, length, words=50257, width=768, layers=12):
    def matrix(inside, outside):
        return [((inside, outside), "bf16", 0.02), ((outside,), "bf16", 0.02)]
    layer = [((width,), "bf16", 1), *(matrix(width, width) * 4), ((width,), "bf16", 1), *matrix(width, 4 * width), *matrix(4 * width, width)]
    operands = [((batch, length), "i64", words), ((words, width), "bf16", 0.02), ((length, width), "bf16", 0.02), *layer * layers, ((width,), "bf16", 1)]
    return Program(gpt2, tuple(operands), bound=0.1)


def training(batch):
    sizes = (784, 1024, 1024, 10)
    weights = [each for i, o in zip(sizes, sizes[1:]) for each in (((i, o), "f32", i**-0.5), ((o,), "f32", 0.1))]
    return Program(None, (((batch, 784), "f32", 1), ((batch,), "i64", 10), *weights), trains=True, bound=1e-3)


def conv_program(x, w, dtype, stride=1, groups=1):
    """A convolution with the padding that keeps the image's size."""
    places = x[0] * (x[2] // stride) * (x[3] // stride)
    return Program(lambda f, a, b: f.conv(a, b, stride, w[2] // 2, groups), ((x, dtype, 1), (w, dtype, (w[1] * w[2] * w[3])**-0.5)),
                   operations=2 * places * w[0] * w[1] * w[2] * w[3], bound=1e-3 if dtype == "f32" else 2e-2)


# Blocks, channels inside of a block, and the stride of its first block, of each stage.
STAGES = [(3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)]


def resnet50(f, x, *weights):
    """ResNet-50 (version 1.5) for inference: batch norms are part of the weights."""
    w = iter(weights)

    def layer(x, stride, size):
        return f.conv(x, next(w), stride, size // 2, 1) + next(w)
    x = f.max_pool(f.relu(layer(x, 2, 7)), 3, 2, 1)
    for blocks, _, first in STAGES:
        for i in range(blocks):
            stride = 1 if i else first
            shortcut = x if i else layer(x, stride, 1)
            h = f.relu(layer(x, 1, 1))
            h = f.relu(layer(h, stride, 3))
            x = f.relu(layer(h, 1, 1) + shortcut)
    return dense(f, f.sum(x, (2, 3)) * (1 / 49), next(w), next(w))


def resnet50_program(batch):
    operands = [((batch, 3, 224, 224), "bf16", 1)]

    def layer(outside, inside, size, gain=2):
        operands.extend([((outside, inside, size, size), "bf16", (gain / (inside * size * size))**0.5), ((outside, 1, 1), "bf16", 0.1)])
    layer(64, 3, 7)
    channels = 64
    for blocks, width, _ in STAGES:
        for i in range(blocks):
            if not i:
                layer(4 * width, channels, 1, 1)
            layer(width, channels, 1)
            layer(width, width, 3)
            channels = 4 * width
            layer(channels, width, 1, 0.1)  # so that 16 blocks do not add up
    operands.extend([((channels, 1000), "bf16", channels**-0.5), ((1000,), "bf16", 0.1)])
    return Program(resnet50, tuple(operands), operations=batch * 8_178_000_000, bound=0.1)


PROGRAMS = {
    "copy": Program(lambda f, x: f.copy(x), (((256 << 20,), "f32", 1),), 2 << 30, jit=False, bound=0),
    **{f"matmul {n} {d}": product(n, n, n, d) for n in (1024, 4096, 8192) for d in ("bf16", "f32") if (n, d) != (8192, "f32")},
    **{f"matmul {m}x{n}x4096 bf16": product(m, n, 4096, "bf16") for m in (1, 2, 4, 8) for n in (4096, 14336)},
    "linear gelu 4096x4096x16384 bf16": linear_gelu(4096, 16384, 4096),
    "linear gelu 1024x3072x768 bf16": linear_gelu(1024, 3072, 768),
    **{f"chain of 8 {d}": elementwise(d) for d in ("f32", "bf16")},
    **{f"{op} {ROWS}x{n} {d}": rows(op, n, d) for op in ("softmax", "layer_norm", "rms_norm") for n, d in
       ((256, "f32"), (1024, "f32"), (4096, "f32"), (4096, "bf16"), (16384, "f32"), (65536, "bf16"))},
    **{f"sum of {what}": reduction(axes) for what, axes in (("rows", (1,)), ("columns", (0,)), ("all", (0, 1)))},
    "transpose 16384": Program(lambda f, x: f.transpose(x), (((16384, 16384), "f32", 1),), 8 * 16384 * 16384, bound=0),
    "gather 65536 rows of 1024": Program(lambda f, x, i: f.gather(x, i), (((50257, 1024), "f32", 1), ((65536,), "i64", 50257)), 8 * 65536 * 1024,
                                         bound=0),
    "200 additions of 1000": Program(tiny, (((1000,), "f32", 1), ((1000,), "f32", 1))),
    "one addition of 1000, eager": Program(lambda f, x, y: x + y, (((1000,), "f32", 1), ((1000,), "f32", 1)), jit=False),
    "attention 16x2048x64 bf16": Program(lambda f, q, k, v: f.attention(q, k, v), (((1, 16, 2048, 64), "bf16", 1),) * 3,
                                         operations=2 * 2 * 16 * 2048 * 2048 * 64),
    **{f"MLP training step, {batch} images": training(batch) for batch in (64, 8192)},
    **{f"conv {n}x{c}x{size}x{size} to {o} {k}x{k}{'' if s == 1 else f' stride {s}'} {d}": conv_program((n, c, size, size), (o, c, k, k), d, s)
       for n, c, size, o, k, s in ((64, 64, 56, 64, 3, 1), (32, 256, 14, 1024, 1, 1), (64, 3, 224, 64, 7, 2)) for d in ("bf16", "f32")},
    **{f"conv 32x144x56x56 of each channel 3x3 {d}": conv_program((32, 144, 56, 56), (144, 1, 3, 3), d, groups=144) for d in ("bf16", "f32")},
    "ResNet-50 1 bf16": resnet50_program(1),
    "ResNet-50 64 bf16": resnet50_program(64),
    "GPT-2 1x128 bf16": gpt2_program(1, 128),
    "GPT-2 8x1024 bf16": gpt2_program(8, 1024),
}
