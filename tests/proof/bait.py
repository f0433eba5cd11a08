"""Fragments that the passes match, exactly or almost: BAIT has a function for each, which adds its nodes to a drawer. One in
three has a wrong detail. Later nodes may use any value, so fragments with other users occur too.

A function returns the expected result of the fragment alone: ops in any order ("mul mul"; "": none), ops that occur ("~softmax"),
ops that do not ("!mul div"), or None if the result depends on more. The expectation applies if no detail is wrong.
"""
import numpy as np
from composites import attention, convolution, gelu, norm, product, softmax_alone
from details import WIDE, floats, itself, mostly
from drawer import Refused
from graphs import Type
from loops_bait import moved, repeated
from matrices_bait import matrices


def anything(d):
    return d.value()


def twice(d, op, **attrs):
    return d.apply(op, d.apply(op, floats(d), **attrs), **attrs)


def undone(d):
    op = d.one(["neg", "abs", "relu", "floor", "sign", "ceil", "round"])
    twice(d, op)
    return "" if op == "neg" else op


def not_twice(d):
    x = d.value(lambda v: v.type.dtype == "bool")
    op, times = d.one(["", "equal", "not_equal"]), d.one([1, 2])
    y = d.apply(op, x, x) if op else x
    for _ in range(times):
        y = d.apply("logical_not", y)
    return op if times == 2 else {"": "logical_not", "equal": "not_equal", "not_equal": "equal"}[op]


def neutral(d):
    """An operand with no effect, or almost none: a literal, or a constant that may also broadcast."""
    op, number = d.one([("add", "-0.0"), ("add", "0.0"), ("sub", "0.0"), ("mul", "1.0"), ("div", "1.0"), ("pow", "1.0"), ("div", "8.0"), ("div", "0.25"),
                        ("div", "-2.0"), ("div", "3.0"), ("maximum", "-inf"), ("minimum", "inf"), ("maximum", "inf"), ("mul", "0.0"), ("sub", "-0.0"), ("div", "1e38")])
    x, literal = floats(d), (op, number)
    with_constant = d.top and d.chance(0.4) and all(isinstance(n, int) for n in x.type.dims)
    if with_constant:
        from elements import numpy_dtype
        dims = d.one([x.type.dims, x.type.dims[1:], (1,) * len(x.type.dims), (2, *(1 for _ in x.type.dims))])
        number = d.constant(Type(x.type.dtype, dims), np.full(dims, float(number), numpy_dtype(x.type.dtype)))
    elif x.type.dtype == "f16" and "e" in number:
        raise Refused("too large for f16")
    y = d.apply(op, x, number)
    if d.chance(0.3):
        d.apply(op, number, x)
        return None
    stays = literal in {("add", "0.0"), ("maximum", "inf"), ("minimum", "-inf"), ("mul", "0.0"), ("sub", "-0.0"), ("div", "3.0"), ("div", "1e38")}
    return None if y.type != x.type or (stays and with_constant) else op if stays else "mul" if literal in {("div", n) for n in ("8.0", "0.25", "-2.0")} else ""


def neutral_bits(d):
    op = d.one(["bit_and", "bit_or", "bit_xor", "shift_left", "shift_right", "add", "mul", "div", "pow", "maximum", "logical_and", "logical_or", "logical_xor"])
    logical = op.startswith("logical")
    x = d.value(lambda v: v.type.dtype == "bool" if logical else v.type.dtype[0] == "u" or (v.type.dtype[0] == "i" and "shift" not in op))
    bits = int(x.type.dtype[1:]) if not logical else 0
    full = "-1" if x.type.dtype[0] == "i" else str(2**bits - 1)
    number = d.one(["true", "false"] if logical else ["0", "1", full])
    d.last_first = x.name
    d.turn(op, x, number) if d.chance(0.2) else d.apply(op, x, number)
    neutral_ones = {"bit_and": full, "bit_or": "0", "bit_xor": "0", "shift_left": "0", "shift_right": "0", "add": "0", "mul": "1", "div": "1", "pow": "1",
                    "logical_and": "true", "logical_or": "false", "logical_xor": "false"}
    return "" if neutral_ones.get(op) == number and d.last_first == x.name and bits < 64 else None


def negated(d):
    x, y = floats(d), None
    y = d.value(lambda v: v.type.dtype == x.type.dtype)
    n, op = d.apply("neg", y), d.one(["add", "sub"])
    d.turn(op, x, n)
    return "sub" if op == "add" else "add" if d.last_first == x.name else None


def chosen(d):
    x = anything(d)
    y = d.value(lambda v: v.type.dtype == x.type.dtype)
    p = d.one(["true", "false"]) if d.chance(0.6) else d.value(lambda v: v.type.dtype == "bool")
    z = d.apply("select", p, x, x if d.chance(0.4) else y)
    return "" if p in ("true", "false") and x.type == y.type == z.type else None


def reshapes(d):
    x = anything(d)
    from attributes import reshape
    first = x
    for _ in range(d.one([2, 2, 3])):
        x = d.apply("reshape", x, **dict(reshape(d, {"P": x.type.dims})))
    return "" if x.type == first.type else "reshape"


def transposes(d):
    x = d.value(lambda v: len(v.type.dims) >= 2)
    rank = len(x.type.dims)
    perm = [int(i) for i in d.random.permutation(rank)]
    y = d.apply("transpose", x, perm=perm)
    if d.chance(0.3):
        y = d.apply(d.one(["neg", "identity", "abs"]), y)
    back = [perm.index(i) for i in range(rank)]
    changed = d.block.nodes[-1].op != "transpose"
    d.apply("transpose", y, perm=mostly(d, back, perm, list(range(rank))))
    return None if changed else ""


def of_ones(d):
    dims = [1 if d.chance(0.6) else d.dim() for _ in range(d.one([2, 3, 4]))]
    x = d.fresh(Type(d.one(WIDE), tuple(dims)))
    d.apply("transpose", x, perm=[int(i) for i in d.random.permutation(len(dims))])
    axes = [i for i, n in enumerate(dims) if n == 1]
    d.apply(d.one(["reduce_max", "reduce_min", "reduce_prod", "reduce_sum", "reduce_mean"]), x, axes=mostly(d, axes, [0], []), keep=d.chance(0.5))


def reduce_of_one_integer(d):
    x = d.fresh(Type(d.one(["i32", "i64", "u8"]), d.one([(1, 3), (3, 1), (1,), (1, 1)])))
    d.apply(d.one(["reduce_sum", "reduce_mean", "reduce_max", "reduce_prod"]), x, axes=[0], keep=d.chance(0.5))


def casts(d):
    x = anything(d)
    from drawer import DTYPES
    for _ in range(d.one([2, 2, 3])):
        x = d.apply("cast", x, to=mostly(d, d.one(DTYPES), x.type.dtype))
    if d.chance(0.3):
        d.apply("cast", x, to=x.type.dtype)


def by_integers(d):
    """A cast that truncates or saturates, and back."""
    x = floats(d, dtypes=("f16", "bf16", "f32", "f64")) if d.chance(0.6) else d.value(lambda v: v.type.dtype[0] in "iu")
    by = d.one(["i64", "i64", "i32", "u64", "f64", "f32", "i8", "bool"])
    d.apply("cast", d.apply("cast", x, to=by), to=d.one([x.type.dtype, "f64", "f32", "i16", "u8"]))


def dequantised(d):
    """An 8-bit value as floats: in a product with 8-bit weights, or quantised again as it was."""
    x = d.value(lambda v: v.type.dtype in ("i8", "u8"))
    zero, scale, low = d.one(["0.0", "3.0"]), d.one(["0.5", "0.1"]), 0 if x.type.dtype == "u8" else -128
    y = d.apply("mul", d.apply("sub", d.apply("cast", x, to="f32"), zero), scale)
    deep = x.type.dims[-1] if len(x.type.dims) > 1 else "b"
    if d.top and isinstance(deep, int) and d.chance(0.5):
        w = d.constant(Type("i8", (deep, 3)), (np.arange(3 * deep, dtype="i1") * 5 - 7).reshape(deep, 3))
        d.apply("matmul", y, d.apply("mul", d.apply("cast", w, to="f32"), mostly(d, "0.25", "-3.0")))
        return None
    y = d.apply("add", d.apply("round", d.apply("div", y, mostly(d, scale, "0.2"))), mostly(d, zero, "4.0"))
    d.apply("cast", d.apply("clamp", y, f"{low}.0", mostly(d, f"{low + 255}.0", f"{low + 254}.0")), to=x.type.dtype)
    return ""


def reverses(d):
    x = d.value(lambda v: v.type.dims)
    axes = sorted({int(d.random.integers(len(x.type.dims))) for _ in range(2)})
    d.apply("reverse", d.apply("reverse", x, axes=axes), axes=mostly(d, axes, [0]))
    return ""


def nothing_moved(d):
    """Slices, pads, tiles, broadcasts that keep all elements, or almost all."""
    x = anything(d)
    dims, rank = x.type.dims, len(x.type.dims)
    some = [0] * rank if d.chance(0.7) or not rank else [int(d.chance(0.5)) for _ in range(rank)]
    which = d.one(["slice", "pad", "tile", "broadcast_to", "identity", "sum_to", "concat", "split"])
    if which == "slice":
        d.apply("slice", x, start=some, stop=dims)
    elif which == "pad":
        number = {"f": "1.0", "b": "1.0" if x.type.dtype == "bf16" else "true"}.get(x.type.dtype[0], "1")
        d.apply("pad", x, number, **{d.one(["lo", "hi", "gap"]): some})
    elif which == "tile":
        d.apply("tile", x, times=[1 + s for s in some])
    elif which in ("broadcast_to", "sum_to"):
        d.apply(which, x, dims=mostly(d, dims, (2, *dims)))
    elif which == "identity":
        d.apply(d.one(["identity", "stop_gradient"]), x)
    elif which == "concat" and rank:
        axis = d.one(range(rank))
        empty = tuple(0 if i == axis else n for i, n in enumerate(dims))
        more = [d.fresh(Type(x.type.dtype, empty)), x][:d.one([0, 1, 1, 2])]
        d.apply("concat", *([x, *more] if d.chance(0.5) else [*more, x]), axis=axis)
    elif which == "split" and rank and isinstance(dims[0], int):
        d.apply("split", x, sizes=[dims[0]], axis=0)
    if which == "slice":
        return "" if not any(some) else None
    return "" if not any(some) and which in ("pad", "tile", "broadcast_to") else None


def spread_twice(d):
    x = d.fresh(Type(d.one(WIDE), (d.one([1, 3]), 1)))
    y = d.apply("broadcast_to", x, dims=(x.type.dims[0], 4))
    z = d.apply("broadcast_to", y, dims=d.one([(2, x.type.dims[0], 4), (3, 4), (x.type.dims[0], 4)])) if d.chance(0.5) else y
    other = d.fresh(Type(x.type.dtype, d.one([(4,), (3, 4), (1, 1), ()])))
    d.turn(d.one(["add", "mul", "maximum", "sub", "div", "less", "equal", "pow"]), z, other)


def filled(d):
    x = floats(d)
    y = d.apply("fill", f"{x.type.dtype}({d.one(['0.0', '1.0', '2.0', '-0.0', '3.0'])})", dims=mostly(d, x.type.dims, (2, *x.type.dims)))
    d.turn(d.one(["add", "mul", "sub", "div", "maximum", "pow"]), x, y)


def equal_nodes(d):
    """The same node twice, operands of equal constants, or almost."""
    x = floats(d, 1)
    op = d.one(["exp", "reduce_sum", "softmax", "transpose", "add", "cumsum"])
    if op == "add":
        same = [d.fresh(Type(x.type.dtype, (1,)), "same") for _ in range(2)]
        a, b = d.apply("add", x, same[0]), d.apply("add", x, same[1])
    elif op in ("reduce_sum", "softmax", "cumsum"):
        key = {"reduce_sum": "axes"}.get(op, "axis")
        axis = [0] if op == "reduce_sum" else 0
        last = [-1] if op == "reduce_sum" else -1
        a, b = d.apply(op, x, **{key: axis}), d.apply(op, x, **{key: mostly(d, axis, last)})
    else:
        a, b = d.apply(op, x), d.apply(op, x)
    if d.chance(0.4):
        d.turn("mul", a, d.apply("neg", b))
        return None
    d.turn("sub", a, b)
    return None if op in ("add", "transpose") else f"{op} sub"


def powers(d):
    x = floats(d)
    power = d.one(["2.0", "3.0", "-1.0", "0.5", "1.0", "4.0"])
    if d.top and d.chance(0.3):
        dims = (d.one([1, 2]), *(1 for _ in x.type.dims))
        power = d.constant(Type(x.type.dtype, dims), np.full(dims, float(power)))
    y = d.apply("pow", x, power)
    literal = power if isinstance(power, str) else d.graph.constants[power.name][1].split(",")[0].strip("[]")
    same = y.type == x.type and (x.type.dtype in ("f32", "f64") or literal != "0.5")
    return {"2.0": "mul", "3.0": "mul mul", "-1.0": "reciprocal", "1.0": "", "4.0": "pow"}.get(literal) if same else None


def roots(d):
    x = floats(d)
    y = d.value(lambda v: v.type.dtype == x.type.dtype)
    root = d.apply(mostly(d, "sqrt", "rsqrt", "exp"), x)
    how = d.one(["over", "inverse", "one over", "root over"])
    {"over": lambda: d.apply("div", y, root), "inverse": lambda: d.apply("reciprocal", root), "one over": lambda: d.apply("div", "1.0", root),
     "root over": lambda: d.apply("div", root, y)}[how]()
    return {"over": "rsqrt mul", "root over": "sqrt div"}.get(how, "rsqrt")


def logistic(d):
    x = floats(d)
    n_op = mostly(d, "neg", "abs")
    n = d.apply(n_op, x)
    w = d.turn("add", d.apply("exp", n), mostly(d, "1.0", "2.0"))
    y = d.apply("reciprocal", w) if d.chance(0.5) else d.apply("div", mostly(d, "1.0", "2.0"), w)
    right = d.block.nodes[-3].op == "exp" or d.block.nodes[-1].op == "reciprocal"
    if d.chance(0.6):
        d.turn("mul", y, itself(d, x))
        return "silu" if right and n_op == "neg" else None
    return "sigmoid" if right and n_op == "neg" else None


def gated(d):
    x = floats(d)
    d.turn("mul", d.apply("sigmoid", x), itself(d, x))
    return "silu"


def known_branch(d):
    """A cond or switch with a constant predicate."""
    from bodies import CONTROL
    CONTROL[d.one(["cond", "cond", "switch"])](d)
    node = d.block.nodes[-1]
    known = node.op == "switch" or node.ins[0] in ("true", "false")
    return "!cond switch" if known and not any(n.var or not n.outs or n.bodies for _, b in node.bodies for n in b.all_nodes()) else None


def reads(d):
    """Two reads of a variable, with a write between them or not."""
    from draw_node import variable
    from graphs import Node
    name = variable(d, d.shared.ops["read"], {})
    t = d.graph.variables[name][0]
    a = d.add(Node("read", [], var=name))[0]
    written = d.chance(0.5) and t.dtype != "bool"
    if written:
        d.add(Node(d.one(["assign", "assign_add", "assign_sub"]), [a.name], var=name))
    b = d.add(Node("read", [], var=name))[0]
    d.turn("equal", a, b)
    return None if written else "read equal"


BAIT = {f.__name__: f for f in (undone, by_integers, dequantised, not_twice, neutral, neutral_bits, negated, chosen, reshapes, transposes, of_ones, reduce_of_one_integer, casts,
                                reverses, nothing_moved, spread_twice, filled, equal_nodes, powers, roots, logistic, gated, convolution, product,
                                softmax_alone, norm, gelu, attention, known_branch, reads, repeated, moved, matrices)}
