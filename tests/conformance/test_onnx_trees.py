"""TreeEnsemble of ai.onnx.ml: random forests of all modes against onnx.reference, then refusals."""
import numpy as np
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_cases import DEVICES, assert_refused, assert_similar, run_model
from test_onnx_learning import learned

FEATURES, MEMBER = 3, 6


def forest(seed, dtype=np.float32, trees=3, modes=range(7), depth=4, **more):
    """Attributes. Features and splits are small whole numbers, so that all relations occur."""
    random = np.random.default_rng(seed)
    nodes, leaves, roots, members = [], [], [], []

    def grow(left):
        if left == 0 or (left < depth and random.uniform() < 0.2):
            leaves.append((int(random.integers(0, 2)), float(random.integers(-9, 10)) / 4))
            return len(leaves) - 1, 1
        at, mode = len(nodes), int(random.choice(list(modes)))
        nodes.append(None)
        if mode == MEMBER:
            members.extend([*map(float, random.choice([1, 2, 3, 4], int(random.integers(1, 4)), replace=False)), np.nan])
        yes, no = grow(left - 1), grow(left - 1)
        nodes[at] = (int(random.integers(0, FEATURES)), mode, float(random.integers(0, 5)), *yes, *no, int(random.integers(0, 2)))
        return at, 0

    for _ in range(trees):
        roots.append(grow(depth)[0])
    feature, mode, split, yes, yes_leaf, no, no_leaf, nan = map(list, zip(*nodes))
    attributes = {
        "tree_roots": roots, "n_targets": 2, "nodes_featureids": feature, "nodes_modes": numpy_helper.from_array(np.array(mode, np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array(split, dtype)), "nodes_truenodeids": yes, "nodes_trueleafs": yes_leaf,
        "nodes_falsenodeids": no, "nodes_falseleafs": no_leaf, "nodes_missing_value_tracks_true": nan,
        "leaf_targetids": [t for t, _ in leaves], "leaf_weights": numpy_helper.from_array(np.array([w for _, w in leaves], dtype))}
    if members:
        attributes["membership_values"] = numpy_helper.from_array(np.array(members, dtype))
    return attributes | more


def rows(n, dtype=np.float32, missing=True):
    random = np.random.default_rng(n)
    x = random.integers(0, 5, (n, FEATURES)).astype(dtype)
    x[random.uniform(size=x.shape) < (0.15 if missing else 0)] = np.nan
    return x


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n, dtype, options", [
    (200, np.float32, {"seed": 1}), (200, np.float64, {"seed": 2}), (50, np.float32, {"seed": 3, "trees": 1}), (1, np.float32, {"seed": 4}),
    (0, np.float32, {"seed": 5}), *[(60, np.float32, {"seed": 10 + m, "modes": [m]}) for m in range(7)],
    (60, np.float32, {"seed": 6, "depth": 1}), (60, np.float32, {"seed": 7, "depth": 9, "trees": 2})])
def test_forests_of_all_modes(context, device, n, dtype, options):
    model, inputs = learned("TreeEnsemble", [rows(n, dtype)], forest(dtype=dtype, **options), 5)
    want = ReferenceEvaluator(model).run(None, {"x0": inputs[0]}) if n else [np.zeros((0, 2), dtype)]
    assert_similar(want, run_model(context, device, model, inputs), 1e-6, 1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("how", range(4))
def test_aggregates(context, device, how):
    """Twenty trees, so that each target has leaves in every row."""
    model, inputs = learned("TreeEnsemble", [rows(40)], forest(20 + how, trees=20, aggregate_function=how), 5)
    want = [y.astype(np.float32) for y in ReferenceEvaluator(model).run(None, {"x0": inputs[0]})]
    assert_similar(want, run_model(context, device, model, inputs), 1e-5, 1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_shared_nodes_and_listed_before_their_parents(context, device):
    """Tree 1 is a part of tree 0, whose root is listed last; both branches of a node lead to the same one."""
    made = forest(50, depth=1, trees=1) | {
        "tree_roots": [2, 0], "nodes_featureids": [0, 1, 2], "nodes_modes": numpy_helper.from_array(np.array([0, 1, 4], np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array([1, 2, 3], np.float32)), "nodes_truenodeids": [0, 0, 1], "nodes_trueleafs": [1, 0, 0],
        "nodes_falsenodeids": [1, 0, 0], "nodes_falseleafs": [1, 0, 0], "nodes_missing_value_tracks_true": [0, 1, 0], "leaf_targetids": [0, 1],
        "leaf_weights": numpy_helper.from_array(np.array([2, 3], np.float32))}
    model, inputs = learned("TreeEnsemble", [rows(60)], made, 5)
    assert_similar(ReferenceEvaluator(model).run(None, {"x0": inputs[0]}), run_model(context, device, model, inputs), 0, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_half_floats(context, device):
    model, inputs = learned("TreeEnsemble", [rows(60, np.float16)], forest(51, np.float16, trees=9), 5)
    assert_similar(ReferenceEvaluator(model).run(None, {"x0": inputs[0]}), run_model(context, device, model, inputs), 0, 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("after", [1, 2])
def test_transforms(context, device, after):
    plain, inputs = learned("TreeEnsemble", [rows(20)], forest(30), 5)
    y = ReferenceEvaluator(plain).run(None, {"x0": inputs[0]})[0].astype(np.float64)
    e = np.exp(y)
    want = e / e.sum(1, keepdims=True) if after == 1 else 1 / (1 + np.exp(-y))
    model, inputs = learned("TreeEnsemble", [rows(20)], forest(30, post_transform=after), 5)
    assert_similar([want.astype(np.float32)], run_model(context, device, model, inputs), 1e-5, 1e-6)


def broken(**changes):
    attributes = forest(40)
    for name, change in changes.items():
        attributes[name] = change(attributes[name]) if callable(change) else change
    return learned("TreeEnsemble", [rows(2)], attributes, 5)


@pytest.mark.parametrize("made, code, words", [
    (lambda: broken(nodes_truenodeids=lambda ids: [0] * len(ids), nodes_trueleafs=lambda ids: [0] * len(ids)), "INVALID", ["leads back", "trees"]),
    (lambda: broken(nodes_falsenodeids=lambda ids: [10**9, *ids[1:]]), "INVALID", ["nodes_falsenodeids", "1000000000"]),
    (lambda: broken(nodes_featureids=lambda ids: [FEATURES] * len(ids)), "INVALID", ["nodes_featureids", "3"]),
    (lambda: broken(nodes_featureids=lambda ids: ids[1:]), "INVALID", ["nodes_featureids", "entries"]),
    (lambda: broken(leaf_targetids=lambda ids: [2] * len(ids)), "INVALID", ["leaf_targetids", "[0, 2)"]),
    (lambda: broken(tree_roots=[-1]), "INVALID", ["tree_roots"]), (lambda: broken(aggregate_function=4), "INVALID", ["aggregate_function"]),
    (lambda: broken(membership_values=numpy_helper.from_array(np.array([1, np.nan], np.float32))), "INVALID", ["membership_values"]),
    (lambda: broken(nodes_modes=lambda t: numpy_helper.from_array(numpy_helper.to_array(t) + np.uint8(7))), "INVALID", ["nodes_modes"]),
    (lambda: broken(n_targets=2**40), "UNIMPLEMENTED", ["leaves", "1099511627776 results"]),
    (lambda: broken(post_transform=4), "UNIMPLEMENTED", ["post_transform 4"])], ids=range(11))
def test_refusals(context, made, code, words):
    assert_refused(context, *made(), code, words)
