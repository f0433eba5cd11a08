"""Larger fragments: convolutions and products with their epilogues, softmax, norms, gelu and attention in primitive ops. See
bait.py for the return values."""
import numpy as np
from details import floats, itself, mostly, vector
from drawer import Refused
from graphs import Type


def affine(d, y, channels, back):
    """A chain of sums, products and norms with one number per channel, or almost."""
    for _ in range(d.one([0, 1, 1, 2, 3])):
        dims = mostly(d, (channels,) + (1,) * back, (1,) * (back + 1), (), (channels,), (1,) * (len(y.type.dims) + 1), (1, channels) + (1,) * back)
        c = constant(d, y.type.dtype, dims) if mostly(d, 1, 0) else d.parameter(Type(y.type.dtype, dims))
        op, before = d.one(["add", "sub", "mul", "div", "mul"]), y
        y = d.turn(op, y, c)
        d.wrong |= op == "div" and d.last_first != before.name  # c / y stays
        if d.chance(0.15) and back + 2 == len(y.type.dims):
            y = norm_of_batch(d, y, channels)
    return y


def constant(d, dtype, dims):
    if any(isinstance(n, str) for n in dims):
        raise Refused("constants have fixed dims")
    return d.constant(Type(dtype, dims), (np.random.default_rng(int(d.random.integers(1 << 30))).integers(-12, 13, dims) / 8 + 1 / 16).astype(
        "f4" if dtype == "f32" else "f8"))


def norm_of_batch(d, y, channels):
    g, b, m, v = (constant(d, y.type.dtype, (channels,)) for _ in range(4))
    return d.apply("batch_norm", y, g, b, m, d.apply("abs", v), eps=d.one([1e-5, 0.5]))


def convolution(d):
    dtype, groups, c, o = d.one(["f32", "f32", "f64"]), d.one([1, 1, 2]), d.one([1, 2, 3]), d.one([1, 2, 3])
    image, window = d.one([((4,), (2,)), ((5, 4), (1, 1)), ((4, 5), (3, 2))])
    turned = d.chance(0.2)
    x = d.fresh(Type(dtype, (d.one([1, 2, "b"]), (o if turned else c) * groups, *image)))
    if not d.top:
        raise Refused("weights are constants")
    shifted = d.chance(0.4)  # sums before the convolution stay: padding is not shifted
    if shifted:
        x = affine(d, x, (o if turned else c) * groups, len(image))
    w = constant(d, dtype, (o * groups, c, *window)) if mostly(d, 1, 0) else d.parameter(Type(dtype, (o * groups, c, *window)))
    if turned:
        dims = [x.type.dims[0], c * groups, *(i + k - 1 for i, k in zip(image, window))]
        y = d.apply("conv_grad_x", x, w, dims=dims, groups=groups)
        affine(d, y, c * groups, len(image))
        return "!mul div sub batch_norm" if not shifted else None
    attrs = {"groups": groups} | ({"lo": [1] * len(image)} if d.chance(0.3) else {}) | ({"stride": [2] * len(image)} if d.chance(0.2) else {})
    y = affine(d, d.apply("conv", x, w, **attrs), o * groups, len(image))
    if d.chance(0.3):
        y = norm_of_batch(d, y, o * groups)
    if d.chance(0.5):
        y = d.apply(d.one(["relu", "sigmoid", "tanh"]), y)
    if d.chance(0.3):
        y = d.apply(d.one(["max_pool", "avg_pool"]), y, window=[1] * len(image))
    if d.chance(0.3):
        d.apply("concat", y, y, axis=1)
    if d.chance(0.3):
        d.apply("reduce_mean", y, axes=list(range(2, 2 + len(image))), keep=d.chance(0.5))
    return "!div batch_norm" if not shifted else None


def product(d):
    """matmul with transposed and reshaped operands, and its epilogue."""
    dtype = d.one(["f32", "f32", "f64", "i32"])
    m, k, n = (d.one([1, 2, 3, 4, 17]) for _ in range(3))
    lead = d.one([(), (), (2,), ("b",), (2, 3)])
    flags = {}
    def side(name, dims, constant_too):
        t = d.chance(0.3)
        last = dims[-2:][::-1] if t else dims[-2:]
        dims = (*dims[:-2], *last)
        if len(dims) > 2 and d.chance(0.4):  # in the layout of attention heads
            perm = [int(i) for i in d.random.permutation(len(dims))]
            y = d.fresh(Type(dtype, tuple(dims[perm.index(i)] for i in range(len(dims)))), "plain")
            y = d.apply("transpose", y, perm=perm)
            d.wrong = True
            if t:
                flags[name] = True
            if d.chance(0.2):
                d.apply("neg", y)
            return y
        x = constant(d, dtype, dims) if constant_too and d.top and dtype != "i32" and d.chance(0.7) else d.fresh(Type(dtype, dims), "plain")
        if t and d.chance(0.6):
            perm = [*range(len(dims) - 2), len(dims) - 1, len(dims) - 2]
            return d.apply("transpose", x, perm=perm)
        if t:
            flags[name] = True
        return x
    flat = lead and d.chance(0.4)
    if flat:
        x = d.fresh(Type(dtype, (*lead, m, k)), "plain")
        a = d.apply("reshape", x, to=[-1, k])
    else:
        a = side("ta", (*lead, m, k), False)
        if d.chance(0.2) and dtype != "i32":
            a = d.turn("mul", a, d.one(["0.5", "2.0"]))
    b = side("tb", (k, n) if flat or d.chance(0.7) else (*lead, k, n), True)
    y = d.apply("matmul", a, b, **flags)
    if dtype != "i32":
        y = affine(d, y, n, 0) if d.top else y
        if d.chance(0.4):
            y = d.apply(d.one(["relu", "tanh", "gelu", "exp"]), y)
    if flat:
        right = d.block.nodes[-1].op in ("matmul", "add")
        d.apply("reshape", y, to=mostly(d, [*lead, m, n], [-1, n]))
        return "!reshape" if right and not flags and not any(o.op in ("transpose", "sub", "mul", "div") for o in d.block.nodes) else None
    return "~matmul" if any(n.op == "reshape" for n in d.block.nodes) else "!transpose"


def kept(d, op, x, axis):
    how = mostly(d, "keep", "reshape")
    y = d.apply(op, x, axes=[axis], keep=how == "keep")
    return y if how == "keep" else d.apply("reshape", y, to=[1 if i == axis else n for i, n in enumerate(x.type.dims)])


def softmax(d, x=None, axis=None):
    x = x or floats(d, 1)
    rank = len(x.type.dims)
    axis = int(d.random.integers(rank)) if axis is None else axis
    other = mostly(d, axis, int(d.random.integers(rank)))
    s = d.apply("sub", x, kept(d, "reduce_max", itself(d, x), other))
    e = d.apply("exp", s)
    total = kept(d, "reduce_sum", e, mostly(d, axis, int(d.random.integers(rank))))
    if d.chance(0.25):
        d.logarithm = True
        return d.apply("sub", s, d.apply("log", total))
    return d.apply("div", e, total) if d.chance(0.6) else d.turn("mul", e, d.apply("reciprocal", total))


def softmax_alone(d):
    d.logarithm = False
    x = softmax(d)
    return None if x.type.dtype != "f32" or 1 in x.type.dims else "log_softmax" if d.logarithm else "softmax"


def mean(d, x, axis):
    if d.chance(0.7):
        return kept(d, "reduce_mean", x, axis)
    n = x.type.dims[axis]
    total = kept(d, "reduce_sum", x, axis)
    if not isinstance(n, int) or n == 0:
        raise Refused("a mean of unknown length")
    return d.apply("div", total, mostly(d, f"{float(n)}", "2.0")) if d.chance(0.6) or n & (n - 1) else d.turn("mul", total, repr(1 / n))


def norm(d):
    n, centred = d.one([2, 3, 4, 17]), d.chance(0.6)
    x = d.fresh(Type(d.one(["f32", "f32", "f64", "f16"]), d.one([(n,), (2, n), ("b", n), (2, 3, n), (n, n)])))
    wanted = None if x.type.dtype != "f32" or not x.name.startswith("p") else "~layer_norm" if centred else "~rms_norm"
    last = len(x.type.dims) - 1
    axis = mostly(d, last, 0)
    middle = mean(d, x, axis) if centred else None
    c = d.apply("sub", x, middle) if centred else x
    square = d.one([lambda: d.apply("mul", c, c), lambda: d.apply("pow", c, mostly(d, "2.0", "3.0")), lambda: d.apply("square", c),
                    lambda: d.apply("mul", c, itself(d, c))])()
    v = mean(d, square, axis)
    if centred and d.chance(0.3):
        v = d.apply("sub", mean(d, d.apply("mul", x, itself(d, x)), axis), d.apply("mul", middle, itself(d, middle)))
        v = d.turn("maximum", v, mostly(d, "0.0", "0.5")) if d.chance(0.5) else v
    w = d.turn("add", v, mostly(d, "0.5", "0.25", "0.0"))
    if d.chance(0.5):
        y = d.apply("div", c, d.apply("sqrt", w) if d.chance(0.7) else d.apply("pow", w, "0.5"))
    else:
        root = d.one([lambda: d.apply("rsqrt", w), lambda: d.apply("pow", w, "-0.5"), lambda: d.apply("reciprocal", d.apply("sqrt", w))])()
        if d.chance(0.3):
            root = d.turn("mul", root, vector(d, x, n))
        if centred and d.chance(0.3):
            d.turn("add", d.turn("mul", x, root), d.apply("sub", vector(d, x, n), d.turn("mul", middle, root)))
            return wanted
        y = d.turn("mul", c, root)
    if d.chance(0.7):
        y = d.turn("mul", y, vector(d, x, n) if mostly(d, 1, 0) else d.fresh(x.type))
    if d.chance(0.6):
        y = d.turn("add", y, vector(d, x, n))
    return wanted


def gelu(d):
    x = floats(d, dtypes=("f32", "f32", "f64", "f16"))
    if d.chance(0.5):
        y = itself(d, x)
        inner = d.one([lambda: d.turn("mul", y, mostly(d, "0.7071067811865476", "0.7")), lambda: d.apply("div", y, mostly(d, "1.4142135623730951", "1.5"))])()
        curve = d.apply(mostly(d, "erf", "tanh", "sin"), inner)
    else:
        square = d.one([lambda: d.apply("mul", x, x), lambda: d.apply("pow", x, "2.0")])
        cube = d.apply("pow", x, mostly(d, "3.0", "2.0")) if d.chance(0.5) else d.turn("mul", square(), itself(d, x))
        sum_ = d.turn("add", x, d.turn("mul", cube, mostly(d, "0.044715", "0.04")))
        curve = d.apply(mostly(d, "tanh", "erf"), d.turn("mul", sum_, mostly(d, "0.7978845608028654", "0.8")))
    gate = d.turn("add", curve, mostly(d, "1.0", "2.0"))
    if d.chance(0.1):
        d.apply("neg", d.one([curve, gate]))  # the value has another user
        d.wrong = True
    if d.chance(0.5):
        d.turn("mul", d.turn("mul", x, gate), mostly(d, "0.5", "0.25"))
    else:
        d.turn("mul", d.turn("mul", itself(d, x), "0.5"), gate)
    return "gelu"


def attention(d):
    dtype, l, s, k, e = d.one(["f32", "f32", "f64"]), d.one([1, 2, 4]), d.one([2, 3, 4]), d.one([1, 2, 4]), d.one([1, 3])
    lead = d.one([(), (2,), ("b",)])
    q, keys, v = (d.fresh(Type(dtype, (*lead, *dims)), "plain") for dims in ((l, k), (s, k), (s, e)))
    rank = len(lead) + 2
    if d.chance(0.4):
        scores = d.apply("matmul", q, keys, tb=True)
    else:
        turned = d.apply("transpose", keys, perm=[*range(rank - 2), rank - 1, rank - 2])
        if d.chance(0.3):
            turned = d.apply("reshape", d.apply("reshape", turned, to=[1, *turned.type.dims]), to=turned.type.dims)
        scores = d.apply("matmul", q, turned)
    if d.chance(0.6):
        scores = d.turn(mostly(d, "mul", "div"), scores, mostly(d, "0.5", "2.0", "0.0"))
    if d.chance(0.3):
        scores = d.turn("add", scores, d.fresh(Type(dtype, d.one([(l, s), (s,), (1, s)])), "plain"))
    if d.chance(0.3) and d.top:
        triangle = np.tri(l, s, 0, bool)
        mask = d.constant(Type("bool", (l, s)), mostly(d, triangle, ~triangle, np.tri(l, s, 1, bool)))
        both = [scores, mostly(d, "-inf", "0.0")]
        scores = d.apply("select", mask, *(both if d.chance(0.8) else both[::-1]))
    d.logarithm = False
    weights = d.apply("softmax", scores, axis=mostly(d, -1, 0)) if d.chance(0.7) else softmax(d, scores, rank - 1)
    d.wrong |= d.logarithm
    if d.chance(0.3):
        weights = d.apply("select", d.apply("is_nan", weights), mostly(d, "0.0", "1.0"), weights)
    d.apply("matmul", weights, v)
    return "~attention" if dtype == "f32" and 1 not in (s, k) else None  # a transpose with dims of 1 is a reshape
