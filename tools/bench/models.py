"""The measured models, each written once for all runtimes.

How to read it: a model is a function of `f`, the ops of one runtime (forms/*.py), of `w`, which
returns weights in order, and of its inputs. forms/onnx_form.py writes it as a file, and the other forms load their
weights from that file. Weights are random with a fixed seed, scaled so that the values of each layer stay near one.
"""
import numpy as np


def dense(f, w, x, inside, outside, scale=0.02):
    return f.dense(x, w.dense(inside, outside, scale=scale), w.normal(outside, scale=0.02))


def norm(f, w, x, width, epsilon):
    return f.layer_norm(x, w.full(width, 1), w.full(width, 0), epsilon)


def mlp(f, w, x):
    sizes = (784, 128, 128, 128, 10)
    for k, (inside, outside) in enumerate(zip(sizes, sizes[1:])):
        x = dense(f, w, x, inside, outside, inside**-0.5)
        x = f.relu(x) if k < 3 else x
    return x


def attention(f, w, x, width, heads, causal=False):
    query, key, value = (dense(f, w, x, width, width) for _ in range(3))
    return dense(f, w, f.attention(query, key, value, heads, causal), width, width)


def bert(f, w, x, layers=12, width=768, inner=3072):
    """Post-norm encoder layers: attention, sum, norm, two dense layers with gelu by erf between, sum, norm."""
    for _ in range(layers):
        x = norm(f, w, f.add(attention(f, w, x, width, 12), x), width, 1e-12)
        inside = f.gelu(dense(f, w, x, width, inner))
        x = norm(f, w, f.add(dense(f, w, inside, inner, width), x), width, 1e-12)
    return x


def gpt2(f, w, ids, layers=12, width=768, words=50257, length=128):
    """GPT-2 small: pre-norm decoder layers, gelu by tanh, and logits of all tokens with the embedding table."""
    table = w.normal(words, width, scale=0.02)
    x = f.add(f.embed(table, ids), w.normal(length, width, scale=0.02))
    for _ in range(layers):
        x = f.add(x, attention(f, w, norm(f, w, x, width, 1e-5), width, 12, causal=True))
        inside = f.gelu_tanh(dense(f, w, norm(f, w, x, width, 1e-5), width, 4 * width))
        x = f.add(x, dense(f, w, inside, 4 * width, width))
    return f.scores(norm(f, w, x, width, 1e-5), table)


def conv(f, w, x, inside, outside, kernel, stride=1, groups=1, scale=1.0):
    """Convolution without bias, then batch norm with the given scale."""
    fan = inside // groups * kernel * kernel
    x = f.conv(x, w.normal(outside, inside // groups, kernel, kernel, scale=(2 / fan)**0.5), stride, groups)
    return f.batch_norm(x, w.full(outside, scale), w.normal(outside, scale=0.1), w.normal(outside, scale=0.1),
                        w.full(outside, 1))


def bottleneck(f, w, x, inside, middle, stride):
    y = f.relu(conv(f, w, x, inside, middle, 1))
    y = f.relu(conv(f, w, y, middle, middle, 3, stride))
    y = conv(f, w, y, middle, 4 * middle, 1, scale=0.4)
    short = x if inside == 4 * middle else conv(f, w, x, inside, 4 * middle, 1, stride)
    return f.relu(f.add(y, short))


def resnet50(f, w, x):
    x = f.max_pool(f.relu(conv(f, w, x, 3, 64, 7, 2)))
    inside = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            x = bottleneck(f, w, x, inside, 64 << stage, 2 if stage and not block else 1)
            inside = 256 << stage
    return f.softmax(dense(f, w, f.global_pool(x), inside, 1000))


def mobilenet(f, w, x):
    """MobileNetV2: a stem, 17 inverted residuals with depthwise convolutions, a head; 1000 classes."""
    x, inside = f.relu6(conv(f, w, x, 3, 32, 3, 2)), 32
    for expand, outside, blocks, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                           (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            middle, stride = inside * expand, first if block == 0 else 1
            y = f.relu6(conv(f, w, x, inside, middle, 1)) if expand > 1 else x
            y = f.relu6(conv(f, w, y, middle, middle, 3, stride, middle))
            y = conv(f, w, y, middle, outside, 1, scale=0.5)
            x = f.add(x, y) if stride == 1 and inside == outside else y
            inside = outside
    x = f.relu6(conv(f, w, x, inside, 1280, 1))
    return dense(f, w, f.global_pool(x), 1280, 1000)


def chain(f, w, a, b):
    for _ in range(100):
        a = f.add(f.mul(a, b), b)
    return a


def power(f, w, x):
    y = x
    for _ in range(100):
        y = f.matmul(y, x)
    return y


def product(f, w, a, b):
    return f.matmul(a, b)


def add(f, w, a, b):
    return f.add(a, b)


def normal(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def image(count):
    return [np.abs(normal(count, 3, 224, 224))]


def square(size):
    return [normal(size, size), np.random.default_rng(6).standard_normal((size, size)).astype(np.float32)]


def words(length):
    return [np.random.default_rng(4).integers(0, 50257, (1, length))]


def scalars():
    return [np.float32(0.3), np.float32(0.7)]


# name: (model, inputs, title)
WORKLOADS = {
    "resnet50": (resnet50, lambda: image(1), "ResNet-50, 1x3x224x224"),
    "resnet50b8": (resnet50, lambda: image(8), "ResNet-50, 8x3x224x224"),
    "mobilenet": (mobilenet, lambda: image(1), "MobileNetV2-like, 1x3x224x224"),
    "bert": (bert, lambda: [normal(1, 128, 768)], "BERT-base encoder, 1x128"),
    "bert8": (bert, lambda: [normal(8, 128, 768)], "BERT-base encoder, 8x128"),
    "bert512": (bert, lambda: [normal(1, 512, 768)], "BERT-base encoder, 1x512"),
    "gpt2": (gpt2, lambda: words(128), "GPT-2 small, 1x128, all logits"),
    "mlp60000": (mlp, lambda: [normal(60000, 784)], "MLP 784-128-128-128-10, 60,000 rows"),
    "mlp1": (mlp, lambda: [normal(1, 784)], "the same, 1 row, from Python"),
    "chain": (chain, scalars, "chain of 200 scalar nodes, from Python"),
    "power": (power, lambda: [np.random.default_rng(5).integers(-1, 2, (10, 10)).astype(np.int32)],
              "`power`: 100 matmuls 10x10 i32, from Python"),
    "one": (add, scalars, "call of a 1-node graph, from Python"),
}
# Of vulkan/run.py.
DEVICE_WORKLOADS = {
    "bert2": (lambda f, w, x: bert(f, w, x, layers=2), lambda: [normal(1, 128, 768)], "2 layers of BERT-base, 1x128"),
    **{f"matmul{n}": (product, lambda n=n: square(n), f"product {n}x{n}x{n}") for n in (128, 256, 512, 1024)},
}
