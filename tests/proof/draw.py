"""Random graphs from the catalogue: `draw(context, seed)`.

A Drawer writes one block node by node and knows the type and a sample of each value. It tries each node on the reference device
immediately: nodes with invalid types are drawn again, nodes that fail at run time are rarely kept. `Patterns` binds the names in
an op's operand patterns (docs/reference/catalogue_language.md) to the dims of existing values, or creates values that fit. attributes.py draws
attributes by type, bodies.py bodies and effects, bait.py fragments that passes match.
"""
import re

import numpy as np
from elements import elements, is_float, numbers, numpy_dtype, spelled
from graphs import Block, Graph, Node, Type, read_type, split

SIZES = {"b": 3, "s": 2}  # values of symbols in samples
DTYPES = ["f32"] * 9 + ["f64", "f16", "bf16", "i32", "i32", "i64", "u8", "bool", "i8", "i16", "u16", "u32", "u64"]
DIMS = [1, 2, 3, 3, 4, 4, 2, 17, 0, "b", "b"]
MOST_ELEMENTS = 3000
INDICES = {"i32", "i64"}  # a dtype variable limited to these is an index type
# Ops that are not drawn, and the reason.
NOT_DRAWN = {"trim": "its size is known in a run only; tests/python_sdk/test_py_selection.py",
             "non_max_suppression": "a rounding error of an operand changes which boxes it chooses; tests/conformance/test_onnx_suppression.py",
             "tree_ensemble": "a rounding error of an operand leads to other leaves; tests/conformance/test_tree_ensemble.py"}
MATRIX_OPS = {"cholesky", "triangular_solve", "solve", "inv", "det", "qr", "svd", "eigh"}  # only in matrices_bait.py


class Refused(Exception):
    """The drawn node is invalid."""


class Value:
    def __init__(self, name, type, sample):
        self.name, self.type, self.sample = name, type, sample


def parts(pattern, attrs):
    """Returns dtype and items of a pattern such as "ta ? T[P.., k, m] : T[P.., m, k]"."""
    if found := re.fullmatch(r"(\w+) \? (.*) : (.*)", pattern):
        pattern = found[2] if attrs.get(found[1]) == "true" else found[3]
    dtype, items = re.fullmatch(r"(\w+)\[(.*)\]", pattern).groups()
    return dtype, split(items)


class Drawer:
    def __init__(self, shared, block, values=(), top=True):
        self.shared, self.block, self.values, self.top = shared, block, list(values), top
        self.random, self.graph = shared.random, shared.graph
        self.wrong, self.last_first = False, ""  # of a bait: a detail is wrong; the last first operand of turn()
        self.alone = self.strict = self.logarithm = False  # of a single bait: on parameters, few wrong details

    # -- choices
    def one(self, among):
        return among[int(self.random.integers(len(among)))]

    def chance(self, p):
        return self.random.random() < p

    def dim(self):
        return self.one([d for d in DIMS if self.top or d != "b"])

    def dims(self, rank=None):
        return tuple(self.dim() for _ in range(self.one([0, 1, 1, 2, 2, 2, 3, 3, 4]) if rank is None else rank))

    def value(self, fits=lambda v: True):
        """Newer values are likelier."""
        among = [v for v in self.values if fits(v)]
        if not among:
            raise Refused("no value fits")
        return among[max(int(self.random.integers(len(among))) for _ in range(2))]

    # -- new values
    def fresh(self, type, kind=None):
        sized = type.sized(SIZES)
        if np.prod(sized, dtype=np.int64) > MOST_ELEMENTS:
            raise Refused("too large")
        fixed = all(isinstance(d, int) for d in type.dims)
        if self.top and (not fixed or (self.alone and kind != "same") or (kind is None and self.chance(0.5))):
            return self.parameter(type, kind)
        if self.top:
            kind = kind or self.one(["plain", "special", "same", "same", "round"])
            array = elements(type.dtype, sized, self.random, kind)
            return self.constant(type, array)
        number = self.one(numbers(type.dtype)) if kind is None else "0" if not is_float(type.dtype) else "1.0"
        number = {"bool": "true"}.get(type.dtype, number) if kind else number
        return self.add(Node("fill", [f"{type.dtype}({number})"], {"dims": listed(type.dims)}))[0]

    def parameter(self, type, kind=None):
        name = self.shared.name("i" if kind == "index" else "p")
        self.block.params[name] = type
        sample = elements(type.dtype, type.sized(SIZES), self.random, kind or self.one(["plain", "plain", "special"]))
        self.values.append(Value(name, type, sample))
        return self.values[-1]

    def constant(self, type, array):
        name = self.shared.name("k")
        self.graph.constants[name] = (type, spelled(array))
        self.values.append(Value(name, type, np.asarray(array)))
        return self.values[-1]

    # -- nodes
    def add(self, node):
        """Types and runs the node on samples; returns its results."""
        types, arrays = self.shared.tried(node, self.values)
        if any(a.size > MOST_ELEMENTS for a in arrays):
            raise Refused("too large")
        node.types, node.outs = types, node.outs or [self.shared.name("n") for _ in types]
        self.block.nodes.append(node)
        made = [Value(*v) for v in zip(node.outs, types, arrays)]
        self.values += made
        self.shared.count(node)
        return made

    def apply(self, op, *ins, **attrs):
        """For bait: one result, operands as values or literals."""
        ins = [i.name if isinstance(i, Value) else i for i in ins]
        return self.add(Node(op, ins, {k: spell(v) for k, v in attrs.items()}))[0]

    def turn(self, op, a, b):
        """Operands in random order."""
        a, b = (a, b) if self.chance(0.5) else (b, a)
        self.last_first = a.name if isinstance(a, Value) else a
        return self.apply(op, a, b)

    def finish(self):
        """Results: mostly unused values, and some others."""
        used = {i for n in self.block.nodes for i in n.ins}
        made = [o for n in self.block.nodes for o in n.outs]
        wanted = [o for o in made if (o not in used and self.chance(0.9)) or self.chance(0.08)]
        self.block.results = wanted or made[-1:] or [v.name for v in self.values[:1]]


def spell(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    return listed(v) if isinstance(v, (tuple, list)) else str(v)


def listed(dims):
    return "[" + ", ".join(map(str, dims)) + "]"


class Shared:
    """Shared by the drawers of one graph."""

    def __init__(self, context, ops, seed):
        self.context, self.ops = context, ops
        self.random, self.graph, self.names = np.random.default_rng(seed), Graph(Block({}), seed=seed), 0
        self.baits = []  # names of the fragments in it

    def name(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def count(self, node):
        pass

    def tried(self, node, values):
        """Returns types and sample arrays of the results of a single node."""
        from keel_abi import KeelError
        known = {v.name: v for v in values}
        used = {name: known[name] for name in dict.fromkeys(node.ins) if name in known}
        results = self.results_of(node)
        node.outs = [self.name("n") for _ in range(results)]
        alone = Graph(Block({n: v.type for n, v in used.items()}, [node], node.outs), {}, self.graph.variables, self.graph.functions)
        if "b" in alone.text() and not any("b" in v.type.dims for v in used.values()):
            alone.main.params["zb"] = Type("bool", ("b",))
        arrays = [v.sample for v in used.values()] + [np.zeros(3, bool)] * ("zb" in alone.main.params)
        try:
            module = self.context.parse(alone.text())
            types = types_of(module.to_text())
            plan = module.session("reference", level=0).prepare()
        except KeelError as e:
            raise Refused(str(e)) from e
        try:
            return types, [np.array(y) for y in plan.run(*arrays)]
        except KeelError as e:
            if self.random.random() < 0.9:
                raise Refused(str(e)) from e
            return types, [np.zeros(t.sized(SIZES), bool) for t in types]

    def results_of(self, node):
        op = self.ops[node.op]
        if node.op == "split":
            return len(split(node.attrs["sizes"][1:-1]))
        if node.bodies:
            from bodies import results_of
            return results_of(node, self.graph)
        if node.op == "call":
            return len(self.graph.functions[node.attrs["body"][1:]].results)
        return len(op["results"])


def types_of(text):
    head = re.search(r"fn @main\(.*?\)(?: -> (.*?))? \{", text)
    return [read_type(t) for t in split(head[1])] if head[1] else []


# ---- one node of any op
def operand(drawer, op, spec, env, attrs):
    """The text of an operand that fits the pattern; binds names in env."""
    if spec["pattern"] == "any":
        return drawer.value().name
    kind, items = parts(spec["pattern"], attrs)
    allowed = [env[kind]] if kind in env else op["types"].get(kind, [kind])
    if set(allowed) <= INDICES and kind in op["types"] and not drawer.chance(0.1):
        return index(drawer, items, env, allowed, kind)
    groups = [i for i in items if i.endswith("..")]
    if kind in env and len(groups) == len(items) and drawer.chance(0.25):
        for g in groups:
            env.setdefault(g[:-2], ())
        return drawer.one(numbers(env[kind])) if drawer.chance(0.9) else f"{env[kind]}({drawer.one(numbers(env[kind]))})"
    if not drawer.chance(0.35):
        fitting = [(v, e) for v in drawer.values if v.type.dtype in allowed and (e := match(drawer, items, v.type.dims, env))]
        if fitting:
            v, bound = fitting[max(int(drawer.random.integers(len(fitting))) for _ in range(2))]
            env.update(bound)
            env[kind] = v.type.dtype
            return v.name
    dtype = drawer.one([d for d in DTYPES if d in allowed] or allowed)
    env[kind] = dtype
    wanted = Type(dtype, make(drawer, items, env))
    same = [v for v in drawer.values if v.type == wanted]
    return drawer.one(same).name if same and drawer.chance(0.7) else drawer.fresh(wanted).name


def index(drawer, items, env, allowed, kind):
    env[kind] = drawer.one(allowed)
    dims = make(drawer, items, env)
    if not drawer.top or any(isinstance(d, str) for d in dims):
        return drawer.fresh(Type(env[kind], dims), "index").name
    sizes = [d for v in env.values() for d in (v if isinstance(v, tuple) else (v,)) if isinstance(d, int) and d > 0]
    most = env["n"] if isinstance(env.get("n"), int) and env["n"] > 0 else min(sizes or [1])
    array = np.asarray(drawer.random.integers(0, max(1, most), dims)).astype(numpy_dtype(env[kind]))
    return drawer.constant(Type(env[kind], dims), array).name


def calculated(text, env):
    names = {"after": lambda p, k: tuple(p[k:]), "before": lambda p, k: tuple(p[:k]), "rank": len, **env}
    try:
        return eval(text, {}, names)
    except Exception as e:
        raise Refused(text) from e


def match(drawer, items, dims, env):
    """The bindings for which the items equal these dims; None: there are none."""
    env, at = dict(env), next((i for i, item in enumerate(items) if "@" in item), None)
    if at is not None and at > 0 and items[at - 1][:-2] not in env:
        size = lengths(items[at].split("@")[0], env)
        room = len(dims) - size
        if room < 0:
            return None
        axis = env.get("axis")
        axis = int(drawer.random.integers(room + (size > 0 or 1))) if axis is None else axis
        if axis > room:
            return None
        env["axis"] = axis
        env[items[at - 1][:-2]] = tuple(dims[:axis])
    plain = [i.split("@")[0] for i in items if i.split("@")[0]]
    open_groups = [i for i in plain if lengths(i, env) is None]
    if len(open_groups) > 1:
        return None
    rest = len(dims) - sum(lengths(i, env) or 0 for i in plain if i not in open_groups)
    place = 0
    for item in plain:
        size = lengths(item, env)
        size = rest if size is None else size
        taken = tuple(dims[place:place + size])
        place += size
        if size < 0 or len(taken) < size or not bind(item, taken, env):
            return None
    return env if place == len(dims) else None


def lengths(item, env):
    """The number of dims of an item; None: all remaining ones."""
    if not item.endswith(".."):
        return 1 if item else 0
    name = item[:-2]
    if re.fullmatch(r"\w+", name):
        return len(env[name]) if name in env else env.get("#" + name)
    try:
        return len(calculated(name, env))
    except Refused:
        return None


def bind(item, taken, env):
    name = item[:-2] if item.endswith("..") else item
    taken = taken if item.endswith("..") else taken[0]
    if name.startswith("*"):
        return True
    if not re.fullmatch(r"[A-Za-z]\w*", name):
        return True if not item.endswith("..") else tuple(calculated(name, env)) == taken
    return env.setdefault(name, taken) == taken


def make(drawer, items, env):
    """Dims that fit; draws unbound names."""
    made = []
    for item in items:
        bare, _, at = item.partition("@")
        if not bare:
            env.setdefault("axis", len(made))
            continue
        group, name = bare.endswith(".."), bare.removesuffix("..").lstrip("*")
        if not re.fullmatch(r"[A-Za-z]\w*", name):
            found = calculated(name, env)
        elif name in env and not bare.startswith("*"):
            found = env[name]
        else:
            found = group_like(drawer, env, name) if group else near_dim(drawer, env)
            env[name] = found
        if at:
            env.setdefault("axis", len(made))
        made += found if group else [found]
    if len(made) > 6:
        raise Refused("too many dims")
    return tuple(made)


def near_dim(drawer, env):
    known = [v for k, v in env.items() if k != "axis" and (isinstance(v, int) or v in ("b",))]
    return drawer.one(known) if known and drawer.chance(0.4) else drawer.dim()


def group_like(drawer, env, name):
    """Dims of a group, often broadcastable with those of a bound group."""
    if "#" + name in env:
        return drawer.dims(env["#" + name])
    known = [v for v in env.values() if isinstance(v, tuple)]
    if not known or drawer.chance(0.15):
        return drawer.dims(drawer.one([0, 1, 1, 2, 2]))
    like = drawer.one(known)
    how = drawer.one(["same", "same", "ones", "suffix", "least"])
    if how == "ones":
        return tuple(1 if drawer.chance(0.4) else d for d in like)
    if how == "suffix":
        return like[len(like) - int(drawer.random.integers(len(like) + 1)):]
    if how == "least":
        return tuple(min(d, drawer.one([1, 2, 3])) if isinstance(d, int) else d for d in like)
    return like


def any_node(drawer, name):
    """One node of this op, from its data in the catalogue."""
    from attributes import after, before
    op, env = drawer.shared.ops[name], {}
    attrs = before(drawer, op, env)
    ins = []
    for spec in op["operands"]:
        if spec["optional"] and drawer.chance(0.5):
            break
        times = drawer.one([1, 2, 3]) if spec["variadic"] else 1
        ins += [operand(drawer, op, spec, env, attrs) for _ in range(times)]
    if drawer.chance(0.1) and len(ins) > 1:
        ins[1] = ins[0]
    attrs.update(after(drawer, op, env))
    var = variable(drawer, op, env) if any(a["type"].startswith("var") for a in op["attributes"]) else ""
    return drawer.add(Node(name, ins, attrs, var=var))


def variable(drawer, op, env):
    """A variable of the bound type, or any if none is bound."""
    table = drawer.graph.variables
    if "T" in env:
        wanted = Type(env["T"], tuple(env["P"]))
        fitting = [n for n, (t, _) in table.items() if t == wanted]
        if any(isinstance(d, str) for d in wanted.dims):
            raise Refused("variables have fixed dims")
    else:
        fitting, wanted = list(table), Type(drawer.one(DTYPES), tuple(d for d in drawer.dims() if isinstance(d, int)))
    if fitting and drawer.chance(0.8):
        return drawer.one(fitting)
    name = drawer.shared.name("w")
    table[name] = (wanted, spelled(elements(wanted.dtype, wanted.dims, drawer.random, "plain")))
    return name


# ---- a whole graph
def draw(context, ops, seed, length=18):
    """Returns Shared, with the graph and the names of its bait."""
    from bait import BAIT
    from bodies import CONTROL
    shared = Shared(context, ops, seed)
    drawer = Drawer(shared, shared.graph.main)
    drawer.parameter(Type("f32", drawer.one([("b",), ("b", 4), (2, "b"), ("b", 1, 3)])))
    for dtype in ["f32", drawer.one(DTYPES)]:
        drawer.parameter(Type(dtype, drawer.dims()))
    fill(drawer, length, BAIT, CONTROL)
    drawer.finish()
    return shared


def draw_bait(context, ops, name, seed):
    """Returns a graph of one fragment alone and its expected result, or None."""
    from bait import BAIT
    shared = Shared(context, ops, seed)
    drawer = Drawer(shared, shared.graph.main)
    drawer.alone, drawer.strict = True, seed % 2 == 0
    for dtype, dims in [("f32", (3, 4)), ("f32", ("b", 4)), ("bool", (4,)), ("u8", (2, 3)), ("f64", (2, 1, 4)), ("i32", ())]:
        drawer.parameter(Type(dtype, dims), "plain")
    try:
        wanted = BAIT[name](drawer)
    except Refused:
        return None, None
    drawer.block.results = drawer.block.nodes[-1].outs if drawer.block.nodes else []
    return shared.graph, None if drawer.wrong or not drawer.block.results else wanted


def fill(drawer, length, bait, control):
    """Adds nodes up to this number. Ops of the catalogue are equally likely, except effects; none with bodies, none of
    NOT_DRAWN and MATRIX_OPS."""
    ops = drawer.shared.ops
    names = sorted(n for n, op in ops.items()
                   if n not in NOT_DRAWN and n not in MATRIX_OPS and not any(a["type"].startswith("graph") for a in op["attributes"]))
    names += [n for n in names if not ops[n]["results"]] * 2  # effects
    most = 12 * length
    while len(drawer.block.nodes) < length and (most := most - 1):
        mark = len(drawer.block.nodes), len(drawer.values)
        try:
            if bait and drawer.chance(0.25):
                name = drawer.one(sorted(bait))
                bait[name](drawer)
                drawer.shared.baits.append(name)
            elif control and drawer.chance(0.07):
                control[drawer.one(sorted(control))](drawer)
            else:
                any_node(drawer, drawer.one(names))
        except Refused:
            pass
