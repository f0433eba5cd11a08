"""tree_ensemble: random forests of all relations, shared nodes, roots that are leaves; malformed indices. The oracle walks in Python and
adds in the order of the trees, so results are equal bit by bit: on each device, by several threads, of constant trees and others."""
import keel_abi
import numpy as np
import pytest
from keel_abi import KeelError
from regions import as_nodes
from tested_devices import DEVICES
from test_cpu_isa import call_in_each_class

FORMS = {"small": {}, "f64": {"dtype": np.float64}, "i64": {"index": np.int64}, "of one relation": {"tests": [3]}, "less, NaN too": {"tests": [9]},
         "wide leaves": {"width": 3, "size": 3}, "groups": {"width": 2, "size": 7}, "classes": {"size": 5}, "no nodes": {"nodes": 0},
         "one tree": {"trees": 1}, "no trees": {"trees": 0}, "no columns": {"width": 0, "size": 2}, "maximum": {"mode": "max", "size": 2},
         "minimum": {"mode": "min", "width": 2, "size": 3}, "zeros, maximum": {"mode": "max", "weights": [0.0, -0.0], "special": 1}, "zeros, minimum": {"mode": "min", "weights": [0.0, -0.0], "special": 1},
         "many trees": {"trees": 700, "nodes": 300}, "many nodes": {"nodes": 40000, "features": 3},
         "many features": {"nodes": 12000, "features": 9000}}
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3.0]


def forest(dtype=np.float32, index=np.int32, tests=range(16), width=1, size=1, nodes=60, leaves=40, trees=11, features=4, mode="add", weights=SPECIAL[1:], special=0.05):
    """Operands after x, and attributes. Nodes lead to any later node or leaf, the last of them to leaves only."""
    rng = np.random.default_rng(nodes + trees)
    split = rng.integers(-3, 4, nodes).astype(dtype)
    split = np.where(rng.random(nodes) < 0.3, rng.choice(SPECIAL, nodes), split).astype(dtype)
    after = (nodes + leaves - np.arange(nodes) - 1)[:, None]
    next = (rng.integers(0, 2**31, (nodes, 2)) % np.minimum(after, 2 * np.arange(1, nodes + 1)[:, None] + 5)).astype(index)
    weight = rng.standard_normal((leaves, width)).astype(dtype)
    weight = np.where(rng.random(weight.shape) < special, rng.choice(weights, weight.shape), weight).astype(dtype)
    lists = [rng.integers(0, features, nodes), rng.choice(list(tests), nodes)]
    roots = [rng.integers(0, max(1, nodes // 2), trees) if nodes else rng.integers(0, leaves, trees), rng.integers(0, size - width + 1, trees)]
    if trees > 3 and nodes:
        roots[0][3] = nodes + 2
    return [split, *(np.array(x, index) for x in lists), next, *(np.array(x, index) for x in roots), weight], {"size": size, "mode": mode}


def rows(n, features, dtype):
    rng = np.random.default_rng(n)
    x = rng.integers(-3, 4, (n, features)).astype(dtype)
    return np.where(rng.random(x.shape) < 0.2, rng.choice(SPECIAL, x.shape), x).astype(dtype)


def greatest(a, b):
    return a if np.isnan(a) else b if np.isnan(b) else max((a, b), key=lambda v: (v, not np.signbit(v)))


@np.errstate(invalid="ignore")
def wanted(x, split, feature, test, next, root, target, weight, size, mode):
    combine = {"add": lambda a, b: a + b, "max": greatest, "min": lambda a, b: -greatest(-a, -b)}[mode]
    y = np.full((len(x), size), {"add": 0, "max": -np.inf, "min": np.inf}[mode], x.dtype)
    for row, out in zip(x, y):
        for at, first in zip(root.tolist(), target.tolist()):
            while at < len(split):
                value, limit = row[feature[at]], split[at]
                relation = 1 if value < limit else 2 if value == limit else 4 if value > limit else 8
                at += 1 + int(next[at, int(bool(test[at] & relation))])
            for k, w in enumerate(weight[at - len(split)]):
                out[first + k] = combine(out[first + k], w)
    return y


def plan_of(device, x, operands, attributes, constant, threads=2):
    given, fixed = ([x], operands) if constant else ([x, *operands], [])
    def write(g, *ids):
        return g.node("tree_ensemble", *ids, **attributes)
    return as_nodes(keel_abi.Context(threads=threads), write, given, fixed, device=device), given


def assert_same(got, want):
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(want[want == 0]))


def check(device, form, n, constant, threads=2):
    operands, attributes = forest(**form)
    x = rows(n, form.get("features", 4), operands[0].dtype)
    plan, given = plan_of(device, x, operands, attributes, constant, threads)
    got = np.array(plan.run(*given)[0])
    assert_same(got, wanted(x, *operands, **attributes))
    return got.tobytes()


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "fed"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("device", DEVICES)
def test_forests(device, form, constant):
    for n in (0, 1, 3, 13) if FORMS[form].get("trees", 0) > 100 else (0, 1, 2, 5, 8, 12, 70):
        check(device, FORMS[form], n, constant)


@pytest.mark.parametrize("form", [FORMS["small"], FORMS["wide leaves"], {"trees": 4000, "nodes": 900}], ids=["small", "wide leaves", "4000 trees"])
def test_the_bits_do_not_depend_on_threads(form):
    """A row of 4000 trees is split over threads."""
    for n in (1, 7, 16):
        assert len({check("cpu", form, n, True, threads) for threads in (1, 2, 5)}) == 1


def forests():
    for form in ("small", "f64", "classes", "many nodes"):
        for n in (1, 13):
            check("cpu", FORMS[form], n, True)


def test_each_class_of_this_processor():
    call_in_each_class("test_tree_ensemble", "forests")


@pytest.mark.parametrize("device", DEVICES)
def test_one_plan_serves_all_sizes(context, device):
    operands, attributes = forest(size=2)
    module = context.module()
    g = module.graph("f")
    ids = [g.param("x", np.float32, [module.dim("n"), module.dim("f")]), *map(g.constant, operands)]
    size = module.dim("s")
    g.param("z", np.float32, [size])
    g.result("y", g.node("tree_ensemble", *ids, **attributes | {"size": size}))
    plan = module.session(device).prepare()
    for n, features, columns in ((9, 4, 2), (1, 5, 3), (0, 4, 2), (33, 4, 4)):
        x = rows(n, features, np.float32)
        want = wanted(x, *operands, **attributes | {"size": columns})
        assert_same(np.array(plan.run(x, np.zeros(columns, np.float32))[0]), want)
    for features, columns, words in ((3, 2, "index 3 is not in [0, 3)"), (4, 1, "index 1 is not in [0, 1)")):
        with pytest.raises(KeelError) as error:
            np.array(plan.run(rows(5, features, np.float32), np.zeros(columns, np.float32))[0])
        assert words in str(error.value), error.value


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "fed"])
@pytest.mark.parametrize("operand, at, value, words", [
    (1, 2, 4, "index 4 is not in [0, 4)"), (1, 2, -1, "index -1 is not in [0, 4)"), (3, (5, 0), 94, "index 94 is not in [0, 94)"),
    (3, (5, 1), -1, "index -1 is not in [0, 94)"), (3, (59, 1), 40, "index 40 is not in [0, 40)"), (4, 1, 100, "index 100 is not in [0, 100)"),
    (4, 1, -1, "index -1 is not in [0, 100)"), (5, 0, 2, "index 2 is not in [0, 2)"), (5, 0, -1, "index -1 is not in [0, 2)")])
@pytest.mark.parametrize("device", DEVICES)
def test_malformed_indices(device, operand, at, value, words, constant):
    for n in (1, 20):
        operands, attributes = forest(width=2, size=3)
        operands[operand][at] = value
        with pytest.raises(KeelError) as error:
            plan, given = plan_of(device, rows(n, 4, np.float32), operands, attributes, constant)
            [np.array(y) for y in plan.run(*given)]
        assert words in str(error.value), error.value
