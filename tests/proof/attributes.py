"""Random attributes by their type in the catalogue; OF_OPS handles ops whose catalogue data do not determine valid values."""
import re

from draw_node import make
from drawer import DTYPES, Refused, listed
from graphs import split


def before(drawer, op, env):
    """Attributes that determine operand patterns: flags, choices, ranks."""
    attrs = {}
    for a in op["attributes"]:
        if a["default"] and drawer.chance(0.3):
            if a["type"].startswith("rank"):
                env["#" + a["type"][5:-1]] = int(a["default"])
            continue
        if a["type"] == "bool":
            attrs[a["name"]] = drawer.one(["true", "false"])
        elif found := re.fullmatch(r"enum\((.*)\)", a["type"]):
            attrs[a["name"]] = drawer.one(split(found[1]))
        elif found := re.fullmatch(r"rank\[(\w+)\]", a["type"]):
            env["#" + found[1]] = env[a["name"]] = drawer.one([0, 1, 2])
            attrs[a["name"]] = str(env[a["name"]])
    return attrs


def after(drawer, op, env):
    given = OF_OPS.get(op["name"])
    attrs = dict(given(drawer, env)) if given else {}
    for a in op["attributes"]:
        name, kind = a["name"], a["type"]
        if name in attrs or kind == "bool" or re.match(r"enum|rank|var|graph", kind):
            continue
        if kind == "axis":
            attrs[name] = str(env.get("axis", 0))
        elif a["default"] == "" or drawer.chance(0.4):
            attrs[name] = drawn(drawer, kind, env)
    return attrs


NUMBERS = {"i64": [1, 1, 2, 3, 0, -1], "f64": [1e-5, 0.5, 1.0, 2.0, 0.125], "dim": [0, 1, 2, 3, 4, "b"], "str": ['""', '"it is {}"']}


def drawn(drawer, kind, env):
    if kind in NUMBERS:
        return str(drawer.one([n for n in NUMBERS[kind] if drawer.top or n != "b"]))
    if kind in ("dtype", "dtype or storage"):
        return drawer.one(DTYPES)
    if kind.endswith("[]"):
        return listed(drawer.dims())
    name, inner = re.fullmatch(r"(\w+)\[(.*)\]", kind).groups()
    if name == "shape":
        return listed(make(drawer, split(inner), env))
    rank = len(env.get(inner, ()))
    if name in ("axis", "axes", "perm"):
        order = [int(i) for i in drawer.random.permutation(rank)]
        if name == "perm":
            return listed(order)
        if name == "axes":
            return listed(i - rank if drawer.chance(0.2) else i for i in sorted(order[:int(drawer.random.integers(rank + 1))]))
        if not rank:
            raise Refused("no axis")
        return str(order[0])
    values = [1, 1, 2, 3] if name == "i64" else [0, 0, 1, 2]
    return listed(drawer.one(values) for _ in range(rank)) if rank else "[]"


def reshape(drawer, env):
    """Factors in another order or grouping; symbols stay, or are inferred by -1."""
    dims = list(env["P"])
    numbers = [d for d in dims if isinstance(d, int)]
    symbols = [d for d in dims if isinstance(d, str)]
    if drawer.chance(0.3) and len(symbols) <= 1:
        yield "to", "[-1]" if 0 not in numbers else listed(dims)
        return
    primes = [p for d in numbers for p in factors(d)] + symbols
    order = [primes[int(i)] for i in drawer.random.permutation(len(primes))] if drawer.chance(0.5) else primes
    to = []
    for d in order:
        if to and isinstance(d, int) and isinstance(to[-1], int) and drawer.chance(0.5):
            to[-1] *= d
        else:
            to.append(d)
    if drawer.chance(0.3):
        to.insert(int(drawer.random.integers(len(to) + 1)), 1)
    if drawer.chance(0.15):
        to = dims
    yield "to", listed(to)


def factors(d):
    found, p = [], 2
    while d > 1 and p <= d:
        while d % p == 0 and d:
            found.append(p)
            d //= p
        p += 1
    return found if d else [0]


def spread(drawer, env):
    dims = tuple(drawer.dim() if d == 1 and drawer.chance(0.7) else d for d in env["P"])
    yield "dims", listed(drawer.dims(drawer.one([0, 0, 1])) + dims)


def gathered(drawer, env):
    dims = tuple(1 if drawer.chance(0.4) else d for d in env["P"])
    yield "dims", listed(dims[drawer.one([0, 0, 1]):])


def sizes(drawer, env):
    n = env["n"]
    if not isinstance(n, int):
        raise Refused("split of a symbol")
    cut = drawer.one(range(n + 1))
    yield "sizes", drawer.one([listed([n]), listed([cut, n - cut]), listed([0, n])])


def part(drawer, env):
    dims = env["P"]
    starts = [drawer.one([0, 0, 1]) if isinstance(d, int) and d > 0 else 0 for d in dims]
    stops = [drawer.one([d, d, max(s, d - 1)]) if isinstance(d, int) else d for d, s in zip(dims, starts)]
    yield "start", listed(starts)
    yield "stop", listed(stops)


def smaller(drawer, dims):
    return listed(drawer.one([d, d, min(d, 1)]) if isinstance(d, int) else d for d in dims)


def piece(drawer, env):
    yield "dims", smaller(drawer, env["P"])


def indices(drawer, env):
    if not isinstance(env["r"], int) or env["r"] > 4:
        raise Refused("too many dims")
    dims = drawer.dims(env["r"])
    yield "of", listed(dims)
    yield "dims", smaller(drawer, dims)


def window(drawer, env):
    yield "window", listed(drawer.one([1, 2, 3]) if isinstance(d, int) else 1 for d in env["S"])


def least(name):
    def attrs(drawer, env):
        n = env.get("n")
        yield name, str(drawer.one([0, 1, n]) if isinstance(n, int) else 1)
    return attrs


def size(drawer, env):
    yield "size", str(drawer.one([17, 4, 20]))


def columns(drawer, env):
    dims = drawer.dims(drawer.one([1, 2, 3]))
    yield "dims", listed(dims)
    yield "axis", str(drawer.one(range(len(dims))))


def braces(drawer, env):
    yield "format", drawer.one(['""', f'"step {drawer.shared.name("t")}"'])


def labels(drawer, env):
    """Dims of b share a label with a dim of a of the same size, or have their own; the result has some labels in any order."""
    x, y = list(range(len(env["P"]))), []
    for place, size in enumerate(env["Q"]):
        same = [label for label in x if env["P"][label] == size and label not in y]
        y.append(drawer.one(same) if same and drawer.chance(0.7) else len(x) + place)
    kept = [label for label in sorted({*x, *y}) if drawer.chance(0.6)]
    yield "x", listed(x)
    yield "y", listed(y)
    yield "to", listed(kept[int(i)] for i in drawer.random.permutation(len(kept)))


OF_OPS = {"reshape": reshape, "einsum": labels, "broadcast_to": spread, "sum_to": gathered, "split": sizes, "slice": part, "dynamic_slice": piece,
          "slice_index": indices, "max_pool": window, "max_pool_index": window, "avg_pool": window, "top_k": least("k"),
          "scatter_add": size, "iota": columns, "print": braces}
