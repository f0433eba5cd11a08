"""Fragments for passes that move nodes: loops with invariant computations, moves that cancel across other ops. See bait.py for
the return values."""
import numpy as np
from bodies import child
from details import itself, mostly
from drawer import Refused, Value
from graphs import Node, Type


def repeated(d):
    """An iteration that recomputes invariants, carries invariants, and computes unused values."""
    dims = d.one([(3,), (2, 2), ()])
    x, same, w = (d.fresh(Type("f32", dims), "plain") for _ in range(3))
    loop = d.one(["while", "scan"])
    count = Value("i32(0)", Type("i32"), np.int32(0))
    rows = d.fresh(Type("f32", (d.one([2, 4]), *dims)), "plain")
    entry = Value("", Type("f32", dims), rows.sample[0])
    given = [count, x, same, w] if loop == "while" else [x, same, w, entry]
    inner, p = child(d, given)
    x_in, same_in, w_in = p[1:] if loop == "while" else p[:3]
    op = d.one(["exp", "sin", "tanh"])
    e = inner.apply(op, itself(d, w_in))
    s = inner.turn(d.one(["add", "mul"]), x_in, inner.apply("mul", e, w_in) if d.chance(0.5) else e)
    kept = same_in if d.chance(0.6) else inner.apply("neg", same_in)
    if loop == "while":
        test, t = child(d, given)
        test.block.results = [test.apply("less", t[0], d.one(["0", "1", "3"])).name]
        inner.block.results = [inner.apply("add", p[0], "1").name, s.name, kept.name]
        d.add(Node("while", [count.name, x.name, same.name, w.name], {"carry": "3"}, bodies=[("test", test.block), ("body", inner.block)]))
        return None
    y = inner.turn("mul", p[3], e)
    inner.block.results = [s.name, kept.name, y.name] + [e.name] * d.chance(0.3)
    ins, attrs = [x.name, same.name, w.name, rows.name], {"carry": "2", "invariants": "1"}
    if d.chance(0.3):
        ins.append(d.one(["i64(0)", "i64(1)"]))
        attrs["counted"] = "true"
    if d.chance(0.3):
        attrs["reverse"] = "true"
    d.add(Node("scan", ins, attrs, bodies=[("body", inner.block)]))
    return f"~{op}" if "counted" not in attrs else None


def moved(d):
    """Elementwise ops, softmax, sums, between a move and its inverse."""
    dims = d.one([(2, 3, 4), (3, 4, 2), (2, 2, 3)])
    perm = d.one([[0, 2, 1], [1, 2, 0], [2, 1, 0], [1, 0, 2]])
    flat = d.one([(6, 4), (24,), (2, 12)]) if dims != (2, 2, 3) else d.one([(4, 3), (12,)])
    reshapes = d.chance(0.35)

    def there(x):
        return d.apply("reshape", x, to=flat) if reshapes else d.apply("transpose", x, perm=perm)
    x, z = (d.fresh(Type("f32", dims), "plain") for _ in range(2))
    y = there(x)
    y = d.apply(d.one(["exp", "relu", "tanh"]), y)
    if d.chance(0.6):
        other = mostly(d, there(z), d.fresh(y.type, "plain"), d.fresh(Type("f32", y.type.dims[-1:]), "plain"))
        y = d.turn(d.one(["add", "mul", "sub"]), y, other)
    if not reshapes and d.chance(0.4):
        y = d.apply(d.one(["softmax", "log_softmax"]), y, axis=int(d.random.integers(3)))
    if not reshapes and d.chance(0.2):
        y = d.apply(d.one(["reduce_max", "reduce_sum"]), y, axes=[int(d.random.integers(3))], keep=mostly(d, True, False))
        d.wrong = True
    if len(y.type.dims) != (len(flat) if reshapes else 3):
        raise Refused("another rank")
    back = [perm.index(i) for i in range(3)]
    if reshapes:
        d.apply("reshape", y, to=mostly(d, dims, (dims[2], dims[1], dims[0])))
        return None
    d.apply("transpose", y, perm=mostly(d, back, perm))
    return "!transpose"
