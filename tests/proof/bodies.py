"""Ops with bodies: CONTROL draws each of them. A body sees only its parameters; its nodes are drawn like others, so variables are
read and written and lines printed there too."""
import numpy as np
from draw import fill
from drawer import Drawer, Refused, Value
from graphs import Block, Node, Type


def results_of(node, graph):
    blocks = dict(node.bodies)
    if node.op == "while":
        return int(node.attrs["carry"])
    return len(next(blocks[name] for name in ("then", "branches", "body") if name in blocks).results)


def child(drawer, values, function=False):
    """A drawer for a body on these values, under new names."""
    params = [Value(drawer.shared.name("p" if function else "q"), v.type, v.sample) for v in values]
    return Drawer(drawer.shared, Block({p.name: p.type for p in params}), params, top=False), params


def body(drawer, values, wanted, length=4):
    """A block with results of these types: new values where possible, otherwise parameters."""
    inner, params = child(drawer, values)
    fill(inner, drawer.one(range(length)), None, {"cond": cond} if length > 3 else {})
    for t in wanted:
        inner.block.results.append(inner.value(lambda v, t=t: v.type == t).name)
    return inner.block


def fitting(drawer, count):
    values = [drawer.value(lambda v: v.sample.size < 200) for _ in range(count)]
    return list({v.name: v for v in values}.values())


def condition(drawer):
    known = [v for v in drawer.values if v.type == Type("bool")]
    if known and drawer.chance(0.5):
        return drawer.one(known).name
    if drawer.chance(0.4):
        return drawer.one(["true", "false"])
    x = drawer.value(lambda v: not v.type.dims and v.type.dtype not in ("bool",))
    return drawer.apply("greater", x, "0" if x.type.dtype[0] in "iu" else "0.0").name


def cond(drawer):
    values = fitting(drawer, drawer.one([1, 2, 3]))
    wanted = [drawer.one(values).type for _ in range(drawer.one([1, 1, 2]))]
    bodies = [(name, body(drawer, values, wanted)) for name in ("then", "else")]
    drawer.add(Node("cond", [condition(drawer), *(v.name for v in values)], bodies=bodies))


def switch(drawer):
    values = fitting(drawer, drawer.one([1, 2]))
    wanted = [drawer.one(values).type]
    bodies = [("branches", body(drawer, values, wanted, 3)) for _ in range(drawer.one([1, 2, 3]))]
    drawer.add(Node("switch", [drawer.one(["i32(0)", "i64(1)", "i32(2)"]), *(v.name for v in values)], bodies=bodies))


def loop(drawer):
    """Counts to 0, 1 or 3."""
    values = fitting(drawer, drawer.one([1, 2]))
    carried = values[:drawer.one([1, len(values)])]
    count = Value("i32(0)", Type("i32"), np.int32(0))
    test, of_test = child(drawer, [count, *values])
    test.block.results = [test.apply("less", of_test[0], drawer.one(["0", "1", "3"])).name]
    inner = body(drawer, [count, *values], [v.type for v in carried])
    number = drawer.shared.name("n")
    inner.nodes.append(Node("add", [next(iter(inner.params)), "1"], {}, [number], [Type("i32")]))
    inner.results.insert(0, number)
    drawer.add(Node("while", ["i32(0)", *(v.name for v in values)], {"carry": str(1 + len(carried))},
                    bodies=[("test", test.block), ("body", inner)]))


def scan(drawer):
    rows = drawer.value(lambda v: v.type.dims and v.type.dims[0] != 0 and v.sample.size < 200)
    carried = drawer.value(lambda v: v.sample.size < 200)
    entry = Value("", Type(rows.type.dtype, rows.type.dims[1:]), rows.sample[0])
    more = [carried.type, drawer.one([carried, entry]).type]
    attrs = {"carry": "1"} | ({"reverse": "true"} if drawer.chance(0.3) else {})
    drawer.add(Node("scan", [carried.name, rows.name], attrs, bodies=[("body", body(drawer, [carried, entry], more))]))


def without_constants(drawer, values):
    """A function of the values; None: it would contain constants, or nothing."""
    inner, params = child(drawer, values, function=True)
    fill(inner, 3, None, {})
    names = {p.name for p in params} | {o for n in inner.block.nodes for o in n.outs}
    return inner if inner.block.nodes and all(i in names for n in inner.block.nodes for i in n.ins) else None


def call(drawer):
    """A function, called once or twice; it contains no constants."""
    values = fitting(drawer, drawer.one([1, 2]))
    inner = next((f for _ in range(4) if (f := without_constants(drawer, values))), None)  # many ops draw constants
    if inner is None:
        raise Refused("a constant in a call")
    inner.finish()
    name = drawer.shared.name("f")
    drawer.graph.functions[name] = inner.block
    try:
        drawer.add(Node("call", [v.name for v in values], {"body": f"@{name}"}))
    except Refused:
        del drawer.graph.functions[name]
        raise
    if drawer.chance(0.3):
        drawer.add(Node("call", [v.name for v in values], {"body": f"@{name}"}))


CONTROL = {"cond": cond, "switch": switch, "while": loop, "scan": scan, "call": call}
