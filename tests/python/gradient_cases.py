"""Cases for the gradient of each op: operands (float64 where a gradient is tested) and attributes.

CASES maps an op to its cases; the functions above draw operands away from the points at which an op has a kink (ties of a
maximum, zero of abs, whole numbers of floor). Unusual shapes come first in each list: scalars, one element, none.
"""
from dataclasses import dataclass, field

import numpy as np

RANDOM = np.random.default_rng(11)
SHAPES = [(), (1,), (0,), (2, 3), (2, 0, 3), (3, 1, 2)]
PAIRS = [((), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((1,), (0,)), ((0, 3), (1, 3)), ((1, 1), (4,)), ((2, 3), ()),
         ((1,), (1, 1, 2))]


@dataclass
class Case:
    operands: list
    attrs: dict = field(default_factory=dict)
    results: int = 1

    def __str__(self):
        shapes = "-".join("x".join(map(str, np.shape(o))) or "0d" if o is not None else "none" for o in self.operands)
        return shapes + "".join(f"-{k}{v}" for k, v in self.attrs.items()).replace(" ", "")


def draw(*shape):
    return RANDOM.uniform(-1, 1, shape)


def positive(*shape):
    return RANDOM.uniform(0.5, 2, shape)


def inside(*shape):
    return RANDOM.uniform(-0.9, 0.9, shape)


def apart(*shape):
    """Different from each other and from zero, by 0.1 at least."""
    count = int(np.prod(shape))
    return ((RANDOM.permutation(count) - count // 2) * 0.25 + 0.11).reshape(shape)


def between(*shape):
    """Away from multiples of a half."""
    return (RANDOM.integers(-4, 4, shape) + RANDOM.uniform(0.1, 0.4, shape)) / 1.0


def whole(high, *shape, dtype=np.int64):
    return RANDOM.integers(0, high, shape).astype(dtype)


def unary(source, shapes=SHAPES, **attrs):
    return [Case([source(*shape)], attrs) for shape in shapes]


def binary(left, right, pairs=PAIRS):
    return [Case([left(*a), right(*b)]) for a, b in pairs]


def quotients():
    """a / b is far from whole numbers."""
    cases = []
    for p, q in PAIRS:
        b = positive(*q) * RANDOM.choice([-1, 1], q)
        a = np.broadcast_to(1.0, np.broadcast_shapes(p, q))
        shift = RANDOM.integers(-3, 3, a.shape) + RANDOM.uniform(0.2, 0.8, a.shape)
        full = shift * b
        if full.shape != tuple(p):  # if a is broadcast, one b applies to all: no multiple of it is near any of them
            b = np.full(q, 0.7)
            full = RANDOM.integers(-3, 3, p) * 0.7 + RANDOM.uniform(0.2, 0.5, p)
        cases.append(Case([np.array(full), b]))
    return cases


def reduction(source, empty=True):
    shapes = [((), {}), ((1,), {}), ((2, 3), {}), ((2, 3), {"axes": [0]}), ((2, 3), {"axes": [-1], "keep": True}),
              ((2, 3, 2), {"axes": [0, 2]}), ((2, 3, 2), {"axes": [1], "keep": True}), ((3, 2), {"axes": []}), ((2, 0), {"axes": [0]}),
              ((4,), {"keep": True})]
    if empty:
        shapes += [((0,), {}), ((2, 0), {"axes": [1]})]
    return [Case([source(*shape)], attrs) for shape, attrs in shapes]


def with_zeros(*shape):
    x = apart(*shape)
    x[RANDOM.uniform(size=shape) < 0.4] = 0
    return x


def along(source, **attrs):
    return [Case([source(*shape)], {"axis": axis, **attrs})
            for shape, axis in [((1,), 0), ((4,), -1), ((2, 3), 0), ((2, 3), 1), ((2, 3, 2), 1), ((0, 3), 1), ((3, 0), 0)]]


def windows(source, ops=("window",), **more):
    """Pools: window, stride, dil, lo, hi over one to three image dims."""
    drawn = [((1, 1, 1), {"window": [1]}), ((0, 2, 4), {"window": [2]}), ((2, 2, 5), {"window": [2], "stride": [2]}),
             ((1, 2, 5), {"window": [3], "lo": [1], "hi": [1]}), ((1, 1, 4, 5), {"window": [2, 3]}),
             ((1, 2, 4, 5), {"window": [2, 2], "stride": [2, 3], "lo": [1, 0], "hi": [0, 1]}),
             ((1, 1, 6), {"window": [2], "dil": [2], "stride": [3]}), ((1, 1, 5), {"window": [3], "dil": [2], "lo": [1], "hi": [2]}), ((1, 1, 2, 3, 2), {"window": [2, 2, 1]}),
             ((2, 1, 7), {"window": [2], "stride": [3]})]
    return [Case([source(*shape)], {**attrs, **more}) for shape, attrs in drawn]


CONVS = [  # x, w, attributes
    ((1, 1, 1), (1, 1, 1), {}), ((0, 2, 3), (2, 2, 2), {}), ((2, 2, 5), (3, 2, 2), {}), ((1, 2, 5), (2, 2, 3), {"lo": [1], "hi": [2]}),
    ((1, 2, 6), (2, 2, 2), {"stride": [3]}), ((1, 1, 7), (1, 1, 3), {"dil": [2], "stride": [2], "lo": [1]}),
    ((1, 4, 3), (6, 2, 2), {"groups": 2}), ((1, 3, 4), (3, 1, 2), {"groups": 3, "hi": [1]}), ((2, 1, 4, 3), (2, 1, 2, 2), {}),
    ((1, 2, 4, 5), (2, 2, 3, 2), {"stride": [2, 1], "lo": [1, 0], "hi": [1, 1]}), ((1, 1, 2, 3, 2), (1, 1, 2, 1, 2), {}),
    ((1, 1, 8), (1, 1, 2), {"stride": [4]})]


def conv_dims(x, w, a):
    each = lambda name, default: a.get(name, [default] * (len(x) - 2))
    return [(s + lo + hi - dil * (k - 1) - 1) // stride + 1 for s, k, lo, hi, dil, stride in
            zip(x[2:], w[2:], each("lo", 0), each("hi", 0), each("dil", 1), each("stride", 1))]


def conv_grads(op):
    cases = []
    for x, w, a in CONVS:
        dy = (x[0], w[0], *conv_dims(x, w, a))
        attrs = {k: v for k, v in a.items() if k != "hi"}
        other, dims = (w, x) if op == "x" else (x, w)
        cases.append(Case([draw(*dy), draw(*other)], {"dims": list(dims), **attrs}))
    return cases


def matmuls():
    shapes = [((1, 1), (1, 1)), ((2, 3), (3, 4)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 2, 3), (3, 2)), ((2, 3), (2, 3, 2)),
              ((2, 1, 2, 3), (3, 3, 2)), ((1, 2, 3), (4, 3, 1))]
    turn = lambda s: (*s[:-2], s[-1], s[-2])
    return [Case([draw(*(turn(a) if ta else a)), draw(*(turn(b) if tb else b))], {"ta": ta, "tb": tb})
            for a, b in shapes for ta in (False, True) for tb in (False, True)]


def scatter_nd():
    shapes = [((4,), (3, 1), False), ((4, 2), (2, 1), True), ((3, 2), (4, 2), True), ((2, 3, 2), (2, 2, 2), True), ((3,), (0, 1), False),
              ((3, 2), (1, 0), False), ((3, 2), (2,), False)]
    cases = []
    for mode in ("set", "add", "mul", "max", "min"):
        for x, i, repeats in shapes:
            k = i[-1]
            index = np.stack([whole(x[d], *i[:-1]) for d in range(k)], -1) if k else np.zeros(i, np.int64)
            if not repeats and mode != "set" and k:
                index = np.stack([RANDOM.permutation(x[0])[:i[0]]], -1) if len(i) > 1 else index
            both = apart(int(np.prod(x)) + int(np.prod((*i[:-1], *x[k:]))))
            values, updates = both[:int(np.prod(x))].reshape(x), both[int(np.prod(x)):].reshape((*i[:-1], *x[k:]))
            cases.append(Case([values, index, updates], {"mode": mode}))
    x, u = draw(3), np.array([0.0, 0.5, 0.0, 2.0])
    cases.append(Case([x, np.array([[0], [0], [1], [2]]), u], {"mode": "mul"}))
    cases.append(Case([x, np.array([[1], [1], [1], [2]]), u], {"mode": "mul"}))
    return cases


def norms(count):
    return [Case([draw(*shape), *[positive(shape[-1]) for _ in range(count)]], attrs)
            for shape, attrs in [((1, 2), {}), ((3,), {}), ((2, 4), {"eps": 0.1}), ((2, 2, 3), {}), ((0, 3), {})]]


def attentions():
    cases = []
    for lead in [(), (2,), (0,), (1, 2)]:
        q, k, v = draw(*lead, 2, 3), draw(*lead, 4, 3), draw(*lead, 4, 2)
        cases += [Case([q, k, v]), Case([q, k, v, draw(2, 4)], {"scale": 0.5}), Case([q, k, v], {"causal": True})]
    return cases


PARTS = [((), [], []), ((1,), [0], [1]), ((5,), [9], [2]), ((4, 3), [-1, 1], [2, 2]), ((2, 3, 2), [1, 1, 0], [1, 2, 2]), ((4, 0), [1, 0], [2, 0]),
         ((3,), [1], [0])]  # x, start, dims


def squares(*shape):
    """Diagonally dominant, with different singular values."""
    n = shape[-1]
    return RANDOM.uniform(-0.3, 0.3, shape) / max(n, 1) + np.diag(np.arange(1.0, n + 1) * 0.7)


def oblongs(*shape):
    """The same, with more rows or columns."""
    return RANDOM.uniform(-0.2, 0.2, shape) + np.eye(*shape[-2:]) * np.arange(1.0, shape[-1] + 1) * 0.7


SQUARES = [(1, 1), (0, 0), (2, 2), (2, 3, 3), (0, 2, 2), (2, 0, 0)]
OBLONGS = SQUARES + [(3, 2), (2, 3), (3, 1), (2, 0), (2, 2, 4), (0, 4, 2)]


def solves(**attrs):
    return [Case([squares(*shape), draw(*shape[:-1], k)], attrs) for shape in SQUARES for k in (1, 2)]


KEY = np.array(7, np.uint64)
CASES = {
    "add": binary(draw, draw), "sub": binary(draw, draw), "mul": binary(draw, draw), "div": binary(draw, positive),
    "mod": quotients(), "rem": quotients(),
    "pow": binary(positive, draw) + [Case([positive(3), np.zeros(3)]), Case([positive(2, 1), np.array([0.0, 1, 2])])],
    "maximum": [Case([apart(*a), apart(*b) + 0.07]) for a, b in PAIRS], "minimum": [Case([apart(*a), apart(*b) + 0.07]) for a, b in PAIRS],
    "neg": unary(draw), "abs": unary(apart), "sign": unary(apart), "sqrt": unary(positive), "rsqrt": unary(positive),
    "reciprocal": unary(positive), "exp": unary(draw), "log": unary(positive), "log1p": unary(positive), "sin": unary(draw),
    "cos": unary(draw), "tanh": unary(draw), "erf": unary(draw), "floor": unary(between), "ceil": unary(between),
    "round": unary(between), "relu": unary(apart), "sigmoid": unary(draw), "gelu": unary(draw) + unary(draw, tanh=True),
    "silu": unary(draw), "softplus": unary(draw) + [Case([np.array([0.0, 40, -40, 800, -800])])], "leaky_relu": unary(apart) + unary(apart, alpha=0.3),
    "square": unary(draw), "tan": unary(draw), "atan": unary(draw) + [Case([np.array([-3.0, 0.8, 20])])],
    "asin": unary(inside), "acos": unary(inside), "atan2": binary(positive, draw) + [Case([-positive(3), positive(3)])],
    "linspace": [Case([np.array(-0.5), np.array(2.0)], {"n": n}) for n in (0, 1, 2, 5)],
    "clamp": [Case([apart(*shape), np.array(-0.3), np.array(0.4)]) for shape in SHAPES],
    "select": [Case([RANDOM.uniform(size=p) < 0.5, draw(*a), draw(*b)]) for p, a, b in
               [((), (), ()), ((2, 3), (2, 3), (2, 3)), ((3,), (2, 1), ()), ((0,), (1,), (0,)), ((2, 1), (3,), (1, 3)), ((), (2,), (2,))]],
    "cast": unary(draw, to=np.float64) + [Case([draw(2, 3)], {"to": np.float32}), Case([draw(2, 3)], {"to": np.int32})],
    "identity": unary(draw),
    "fill": [Case([np.array(0.7)], {"dims": dims}) for dims in ([], [1], [0], [2, 3])],
    "reshape": [Case([draw(*shape)], {"to": to}) for shape, to in [((), [1, 1]), ((2, 3), [3, -1]), ((0, 3), [3, 0]), ((2, 3), [2, 3])]],
    "broadcast_to": [Case([draw(*shape)], {"dims": dims}) for shape, dims in
                     [((), [2, 3]), ((1,), [0]), ((3, 1), [2, 3, 4]), ((2,), [2]), ((1, 1), [1, 1])]],
    "sum_to": [Case([draw(*shape)], {"dims": dims}) for shape, dims in
               [((2, 3), []), ((2, 3), [3]), ((2, 3), [2, 1]), ((0, 3), [1, 3]), ((2, 3), [2, 3]), ((2, 1, 3), [1, 1])]],
    "transpose": [Case([draw(*shape)], attrs) for shape, attrs in
                  [((), {}), ((3,), {}), ((2, 3), {}), ((2, 3, 4), {"perm": [1, 2, 0]}), ((0, 2), {}), ((2, 1, 3), {"perm": [0, 2, 1]})]],
    "concat": [Case([draw(*s) for s in shapes], {"axis": axis}) for shapes, axis in
               [([(2,)], 0), ([(2,), (1,), (3,)], 0), ([(2, 3), (2, 1)], 1), ([(0, 2), (3, 2)], 0), ([(2, 2, 1), (2, 2, 2)], -1)]],
    "split": [Case([draw(*shape)], {"sizes": sizes, "axis": axis}, len(sizes)) for shape, sizes, axis in
              [((4,), [4], 0), ((4,), [1, 3], 0), ((2, 5), [2, 0, 3], 1), ((0, 2), [1, 1], 1), ((3, 2, 2), [1, 1, 1], 0)]],
    "slice": [Case([draw(*shape)], attrs) for shape, attrs in
              [((4,), {}), ((4,), {"start": [1], "stop": [3]}), ((7,), {"start": [1], "step": [3]}), ((4, 5), {"start": [1, 0], "stop": [4, 4], "step": [2, 3]}),
               ((4,), {"start": [2], "stop": [2]}), ((0, 3), {"step": [1, 2]}), ((6,), {"stop": [5], "step": [2]}), ((1,), {"step": [4]})]],
    "dynamic_slice": [Case([draw(*x), np.array(start, np.int64)], {"dims": dims}) for x, start, dims in PARTS],
    "dynamic_update_slice": [Case([draw(*x), draw(*dims), np.array(start, np.int64)]) for x, start, dims in PARTS],
    "pad": [Case([draw(*shape), np.array(0.3)], attrs) for shape, attrs in
            [((3,), {}), ((3,), {"lo": [2], "hi": [1]}), ((3,), {"gap": [2]}), ((2, 3), {"lo": [1, 0], "hi": [0, 2], "gap": [0, 1]}),
             ((0, 2), {"lo": [2, 1]}), ((1,), {"gap": [3], "hi": [1]}), ((0,), {"gap": [2], "hi": [2]}), ((), {})]],
    "reverse": [Case([draw(*shape)], attrs) for shape, attrs in [((), {}), ((3,), {}), ((2, 3), {"axes": [1]}), ((0, 2), {}), ((2, 1, 2), {"axes": [0, 2]})]],
    "roll": [Case([draw(*shape)], attrs) for shape, attrs in
             [((1,), {"shift": 3}), ((5,), {"shift": 2}), ((2, 3), {"shift": -1, "axis": 1}), ((0, 2), {"shift": 1})]],
    "tile": [Case([draw(*shape)], {"times": times}) for shape, times in
             [((2,), [3]), ((2, 3), [2, 1]), ((1, 2), [3, 2]), ((2,), [0]), ((0, 2), [2, 2]), ((2,), [1]), ((1, 2, 1, 1, 2), [2, 1, 2, 1, 2])]],
    "gather": [Case([draw(*x), whole(max(x[axis], 1), *i)], {"axis": axis}) for x, i, axis in
               [((3,), (), 0), ((3,), (5,), 0), ((2, 3), (2, 2), 1), ((4, 2), (0,), 0), ((0, 3), (2,), 1), ((2, 3, 2), (4,), -2), ((1, 2), (1,), 0)]]
    + [Case([draw(3, 2), whole(3, 4, dtype=np.int32)])],
    "scatter_add": [Case([whole(size, *i), draw(*u)], {"axis": axis, "size": size}) for i, u, axis, size in
                    [((), (), 0, 2), ((4,), (4,), 0, 3), ((2,), (3, 2), 1, 4), ((2, 2), (2, 2, 3), 0, 3), ((0,), (0, 2), 0, 2), ((3,), (3, 0), 0, 3),
                     ((1,), (1, 2), 0, 1)]],
    "gather_elements": [Case([draw(*x), whole(max(x[axis], 1), *i)], {"axis": axis}) for x, i, axis in
                        [((3,), (5,), 0), ((2, 3), (2, 3), 1), ((3, 4), (2, 4), 0), ((3, 4), (2, 2), 1), ((3, 2), (0, 2), 0), ((2, 3, 2), (2, 1, 2), 1),
                         ((0, 3), (0, 2), 1), ((0,), (0,), 0)]] + [Case([draw(3, 2), whole(2, 3, 2, dtype=np.int32)], {"axis": -1})],
    "gather_nd": [Case([draw(*x), np.stack([whole(n, *rows) for n in x[batch:batch + k]], -1) if k else np.zeros((*rows, 0), np.int64)],
                       {"batch": batch}) for x, rows, k, batch in
                  [((3,), (), 1, 0), ((3, 2), (4,), 1, 0), ((3, 2), (2, 2), 2, 0), ((2, 3, 2), (2,), 1, 1), ((2, 3, 2), (2, 4), 2, 1), ((3,), (0,), 1, 0),
                   ((2, 2, 3), (2, 2, 3), 1, 2), ((3,), (2,), 0, 0), ((2, 3), (2,), 0, 1)]],
    "scatter_nd": scatter_nd(),
    "triangle": [Case([draw(*shape)], attrs) for shape, attrs in
                 [((1, 1), {}), ((3, 3), {}), ((2, 3, 4), {"k": 1}), ((3, 2), {"upper": True, "k": -1}), ((0, 2), {}), ((2, 3), {"upper": True})]],
    "reduce_sum": reduction(draw), "reduce_mean": reduction(draw, empty=False), "reduce_prod": reduction(apart) + reduction(with_zeros),
    "reduce_max": reduction(apart), "reduce_min": reduction(apart),
    "reduce_var": reduction(draw, empty=False) + [Case(c.operands, c.attrs | {"ddof": 0.5}) for c in reduction(draw, empty=False)],
    "reduce_std": [Case([apart(*shape)], attrs) for shape, attrs in
                   [((4,), {}), ((2, 3), {"axes": [1], "ddof": 1.0}), ((3, 1), {"axes": [0], "keep": True}), ((0, 3), {"axes": [1]})]],
    "sort": [Case([apart(*shape)], attrs, 2) for shape, attrs in
             [((1,), {}), ((5,), {"descending": True}), ((3, 4), {"axis": 0}), ((2, 3, 2), {"axis": 1}), ((0, 3), {})]],
    "top_k": [Case([apart(*shape)], {"k": k, **a}, 2) for shape, k, a in
              [((1,), 1, {}), ((5,), 3, {}), ((2, 4), 2, {"largest": False}), ((2, 2, 3), 3, {}), ((0, 3), 2, {}), ((3,), 0, {})]],
    "trim": [Case([draw(*shape), np.asarray(count, kind)], {"size": count}) for shape, count, kind in
             [((5,), 3, "i8"), ((3, 2), 2, "i4"), ((4, 3), 2, "i8"), ((1, 1), 1, "i8"), ((3,), 0, "i8"), ((0, 2), 0, "i8")]],
    "cumsum": along(draw) + along(draw, exclusive=True) + along(draw, reverse=True) + along(draw, exclusive=True, reverse=True),
    "cumprod": [c for exclusive in (False, True) for reverse in (False, True) for source in (apart, with_zeros)
                for c in along(source, exclusive=exclusive, reverse=reverse)],
    "linear_recurrence": [Case([draw(*shape), draw(*shape)], {"axis": axis, "reverse": reverse}) for reverse in (False, True)
                          for shape, axis in [((1,), 0), ((4,), -1), ((2, 3), 0), ((2, 3, 2), 1), ((0, 3), 1), ((3, 0), 0)]],
    "matmul": matmuls(),
    "dft": [Case([draw(*shape)], attrs) for shape, attrs in
            [((1, 1), {}), ((1, 2), {"inverse": True}), ((5, 2), {}), ((2, 6, 1), {}), ((4, 3, 2), {"axis": 0, "inverse": True}), ((0, 3, 2), {}),
             ((4, 2), {"length": 6}), ((5, 2), {"length": 3, "inverse": True}), ((2, 6, 2, 1), {"axis": 1, "onesided": True}), ((5, 1), {"onesided": True, "length": 7}),
             ((4, 2), {"onesided": True, "inverse": True}), ((3, 2, 2), {"axis": 0, "onesided": True, "inverse": True, "length": 5}),
             ((5, 1), {"onesided": True, "inverse": True, "length": 4})]],
    "cholesky": [Case([squares(*shape)]) for shape in SQUARES], "inv": [Case([squares(*shape)]) for shape in SQUARES],
    "det": [Case([squares(*shape)]) for shape in SQUARES],
    "solve": solves() + solves(ta=True),
    "triangular_solve": [case for lower in (True, False) for ta in (True, False) for unit in (True, False) for case in solves(lower=lower, ta=ta, unit=unit)],
    "qr": [Case([oblongs(*shape)], {}, 2) for shape in OBLONGS], "svd": [Case([oblongs(*shape)], {}, 3) for shape in [*OBLONGS, (1, 3)]],
    "eigh": [Case([squares(*shape)], {}, 2) for shape in SQUARES],
    "conv": [Case([draw(*x), draw(*w)], a) for x, w, a in CONVS], "conv_grad_x": conv_grads("x"), "conv_grad_w": conv_grads("w"),
    "max_pool": windows(apart) + [Case([apart(1, 1, 3)], {"window": [2], "lo": [lo], "hi": [hi]})
                                   for lo, hi in [(2, 3), (0, 3), (3, 0)]],  # some windows contain no element
    "avg_pool": windows(draw) + windows(draw, count_pad=True) + [Case([draw(1, 2, 5)], {"window": [2], "stride": [2], "over": [1], "count_pad": p})
                                                                for p in (False, True)],
    "softmax": along(draw), "log_softmax": along(draw), "log_sum_exp": along(draw),
    "cross_entropy": [Case([draw(*x), whole(x[-1], *x[:-1], dtype=t)]) for x in [(3,), (1, 1), (2, 4), (2, 2, 3), (0, 3)] for t in (np.int32, np.int64)],
    "layer_norm": norms(2), "rms_norm": norms(1),
    "batch_norm": [Case([draw(*s), draw(s[1]), draw(s[1]), draw(s[1]), positive(s[1])], a) for s, a in
                   [((1, 1), {}), ((2, 3), {"eps": 0.2}), ((2, 3, 2), {}), ((0, 2, 3), {}), ((1, 2, 2, 2), {})]],
    "lrn": [Case([draw(*s)], a) for s, a in [((1, 1, 1), {"size": 1}), ((1, 4, 2), {"size": 3, "alpha": 0.5}), ((1, 3, 2, 2), {"size": 2, "beta": 0.5, "bias": 2.0}),
                                          ((2, 3, 2), {"size": 2, "alpha": 0.3}), ((0, 2, 3), {"size": 3})]],
    "matmul_blocks": [Case([draw(*x), RANDOM.integers(0, 256, w, np.uint8), draw(*w[:2]), *([draw(*w[:2])] if zero else [])], {"bits": bits})
                      for x, w, bits in [((2, 7), (3, 2, 2), 4), ((1, 4), (1, 1, 1), 2), ((2, 1, 3), (2, 3, 1), 8), ((0, 4), (3, 1, 2), 4), ((2, 0), (3, 1, 1), 4)]
                      for zero in (False, True)],
    "linear": [Case([draw(*x), draw(*w), draw(w[1])]) for x, w in [((1, 1), (1, 1)), ((2, 3), (3, 2)), ((2, 2, 3), (3, 4)), ((0, 2), (2, 3)), ((2, 0), (0, 3))]],
    "attention": attentions(),
    "mean_squared_error": [Case([draw(*s), draw(*s)]) for s in [(), (1,), (2, 3), (0,), (2, 0)]],
    "erf_inv": unary(inside), "truncated_normal": [Case([KEY, np.array(-0.4), np.array(1.3)], {"dims": dims}) for dims in ([], [1], [0], [2, 3])],
    "shuffle": [Case([KEY, draw(*shape)], {"axis": axis}) for shape, axis in [((1,), 0), ((5,), 0), ((2, 3), 1), ((3, 0), 0)]],
    "random_uniform": [Case([KEY, np.array(-0.4), np.array(1.3)], {"dims": dims}) for dims in ([], [1], [0], [2, 3])],
    "unique": [Case([apart(n)], {"size": n}, 4) for n in (1, 5, 0)],
    "einsum": [Case([draw(*[size[label] for label in x]), draw(*[size[label] for label in y])], {"x": x, "y": y, "to": to})
               for size in ({0: 2, 1: 3, 2: 4, 3: 2}, {0: 1, 1: 1, 2: 1, 3: 1}, {0: 0, 1: 2, 2: 3, 3: 1}, {0: 2, 1: 0, 2: 3, 3: 2})
               for x, y, to in (([0, 1], [1, 2], [0, 2]), ([3, 1, 0], [3, 2, 1], [0, 3, 2]), ([0], [2, 3], [3, 0]), ([0, 1], [0, 1], []),
                                ([0, 1, 2], [1, 3], [3, 0]), ([], [1, 0], [0]))],
}
