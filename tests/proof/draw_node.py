"""One node of any op, from its data in the catalogue: binds the names in an op's operand patterns (docs/reference/catalogue_language.md) to
the dims of existing values, or creates values that fit."""
import re

import numpy as np
from drawer import DTYPES, Refused
from elements import elements, numbers, numpy_dtype, spelled
from graphs import Node, Type, split

INDICES = {"i32", "i64"}  # a dtype variable limited to these is an index type


def parts(pattern, attrs):
    """Returns dtype and items of a pattern such as "ta ? T[P.., k, m] : T[P.., m, k]"."""
    if found := re.fullmatch(r"(\w+) \? (.*) : (.*)", pattern):
        pattern = found[2] if attrs.get(found[1]) == "true" else found[3]
    dtype, items = re.fullmatch(r"(\w+)\[(.*)\]", pattern).groups()
    return dtype, split(items)


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
