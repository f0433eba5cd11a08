"""TreeEnsembleRegressor and TreeEnsembleClassifier of ai.onnx.ml, whose nodes are lists: random forests against ONNX Runtime or
onnx.reference, then refusals."""
import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from onnx_cases import DEVICES, assert_refused, assert_similar, run_model
from test_onnx_families import agrees
from test_onnx_learning import labels_and_scores, learned

FEATURES = 3
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def forest(seed, trees=3, modes=("BRANCH_LEQ",), depth=4, missing=False, kind="target", results=1, least=-9):
    """Attributes. Features and splits are small whole numbers, so that all relations occur."""
    random, nodes, weights = np.random.default_rng(seed), [], []

    def grow(tree, left, first):
        at, number = len(nodes), len(nodes) - first
        nodes.append(None)
        leaf = left == 0 or (left < depth and random.uniform() < 0.2)
        branches = [] if leaf else [grow(tree, left - 1, first) for _ in (1, 2)]
        mode = "LEAF" if leaf else str(random.choice(modes))
        nodes[at] = (tree, number, int(random.integers(0, FEATURES)), mode, float(random.integers(0, 5)), *(branches or (0, 0)), int(random.integers(0, 2)))
        if leaf:
            weights.extend((tree, number, r, float(random.integers(least, 10)) / 4) for r in range(results))
        return number

    for tree in range(trees):
        grow(7 * tree, depth, len(nodes))
    tree, number, feature, mode, split, yes, no, nan = map(list, zip(*nodes))
    attributes = {"nodes_treeids": tree, "nodes_nodeids": number, "nodes_featureids": feature, "nodes_modes": mode, "nodes_values": split,
                  "nodes_truenodeids": yes, "nodes_falsenodeids": no}
    trees, leaves, ids, values = map(list, zip(*weights))
    attributes |= {f"{kind}_treeids": trees, f"{kind}_nodeids": leaves, f"{kind}_ids": ids, f"{kind}_weights": values}
    return attributes | ({"nodes_missing_value_tracks_true": nan} if missing else {})


def rows(n, dtype=np.float32, missing=False):
    random = np.random.default_rng(n)
    x = random.integers(0, 5, (n, FEATURES)).astype(dtype)
    if missing:
        x[random.uniform(size=x.shape) < 0.2] = np.nan
    return x


REGRESSORS = [(n, {}, {}) for n in (1, 2, 77)] + [(40, {"modes": [m], "missing": True}, {}) for m in MODES] + [
    (50, {"modes": MODES, "missing": True}, {}), (30, {"results": 3, "trees": 5}, {"n_targets": 3, "base_values": [1.0, -2.0, 0.5]}),
    (30, {"trees": 1, "depth": 0}, {}), (30, {"depth": 8, "trees": 2}, {}), (20, {"trees": 30}, {"base_values": [3.0]}),
    *[(30, {"trees": 6, "results": 2}, {"n_targets": 2, "aggregate_function": how}) for how in ("SUM", "AVERAGE", "MIN", "MAX")],
    (20, {"results": 3}, {"n_targets": 3, "post_transform": "SOFTMAX"}), (20, {"results": 2}, {"n_targets": 2, "post_transform": "LOGISTIC"})]  # of one target ONNX Runtime leaves it out


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n, made, more", REGRESSORS, ids=range(len(REGRESSORS)))
def test_regressors(context, device, n, made, more):
    agrees(context, device, *learned("TreeEnsembleRegressor", [rows(n, missing=made.get("missing"))], {"n_targets": 1} | forest(n, **made) | more),
           rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN"])
def test_each_tree_adds_to_one_result(context, device, how):
    made = forest(5, trees=9, modes=MODES)
    made["target_ids"] = [tree // 7 % 3 for tree in made["target_treeids"]]
    agrees(context, device, *learned("TreeEnsembleRegressor", [rows(40)], made | {"n_targets": 3, "aggregate_function": how}), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_nodes_may_be_listed_in_any_order_after_the_root(context, device):
    made, random = forest(6, depth=6), np.random.default_rng(6)
    tree = np.array(made["nodes_treeids"])
    order = np.concatenate([np.r_[at[:1], random.permutation(at[1:])] for at in (np.flatnonzero(tree == t) for t in np.unique(tree))])
    shuffled = {name: [v[i] for i in order] if name.startswith("nodes_") else v for name, v in made.items()}
    agrees(context, device, *learned("TreeEnsembleRegressor", [rows(40)], {"n_targets": 1} | shuffled), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
def test_other_dtypes_of_features(context, device, dtype):
    model, inputs = learned("TreeEnsembleRegressor", [rows(40, dtype)], {"n_targets": 1, "aggregate_function": "SUM"} | forest(3, modes=MODES))
    agrees_with_reference(context, device, model, inputs)


def agrees_with_reference(context, device, model, inputs):
    want = [y if y.dtype == np.int64 else y.astype(np.float32) for y in ReferenceEvaluator(model).run(None, {"x0": inputs[0].astype(np.float64)})]
    assert_similar(want, run_model(context, device, model, inputs), 1e-5, 1e-5)


LABELS = [4, -1, 9]
CLASSIFIERS = [({"results": 3}, {"classlabels_int64s": LABELS}), ({"results": 2, "trees": 9}, {"classlabels_int64s": [0, 1]}),
               ({"results": 3}, {"classlabels_int64s": LABELS, "post_transform": "SOFTMAX", "base_values": [0.5, 0.0, -1.0]}),
               ({"results": 1, "least": 0, "trees": 1}, {"classlabels_int64s": [3, 5]}), ({"results": 1}, {"classlabels_int64s": [3, 5]}),
               ({"results": 1}, {"classlabels_int64s": [3, 5], "post_transform": "LOGISTIC"}),
               ({"results": 1}, {"classlabels_int64s": [3, 5], "post_transform": "LOGISTIC", "base_values": [0.75]})]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [1, 2, 60])
@pytest.mark.parametrize("made, more", CLASSIFIERS, ids=range(len(CLASSIFIERS)))
def test_classifiers(context, device, made, more, n):
    model, inputs = learned("TreeEnsembleClassifier", [rows(n)], forest(11, kind="class", **made) | more)
    if made["results"] == 2:  # ONNX Runtime takes the second class wherever its score is above 0
        agrees_with_reference(context, device, labels_and_scores(model), inputs)
    else:
        agrees(context, device, labels_and_scores(model), inputs, rtol=1e-5, atol=1e-5)


def broken(**changes):
    attributes = forest(40) | {"n_targets": 1}
    for name, change in changes.items():
        attributes[name] = change(attributes[name]) if callable(change) else change
    return learned("TreeEnsembleRegressor", [rows(2)], attributes)


def classes(**more):
    return learned("TreeEnsembleClassifier", [rows(2)], forest(1, kind="class") | more)


@pytest.mark.parametrize("made, code, words", [
    (lambda: broken(nodes_truenodeids=lambda ids: [0] * len(ids)), "INVALID", ["leads back", "trees"]),
    (lambda: broken(nodes_falsenodeids=lambda ids: [10**9, *ids[1:]]), "INVALID", ["nodes_falsenodeids", "1000000000", "tree 0"]),
    (lambda: broken(nodes_featureids=lambda ids: [FEATURES] * len(ids)), "INVALID", ["nodes_featureids", "3"]),
    (lambda: broken(nodes_featureids=lambda ids: ids[1:]), "INVALID", ["nodes_featureids", "entries"]),
    (lambda: broken(nodes_nodeids=lambda ids: [0] * len(ids)), "INVALID", ["node 0", "tree 0", "twice"]),
    (lambda: broken(nodes_modes=lambda modes: ["BRANCH_MEMBER", *modes[1:]]), "INVALID", ["nodes_modes", "BRANCH_MEMBER"]),
    (lambda: broken(target_ids=lambda ids: [1] * len(ids)), "INVALID", ["target_ids", "[0, 1)"]),
    (lambda: broken(target_nodeids=lambda ids: [0] * len(ids)), "INVALID", ["target_nodeids", "no leaf"]),
    (lambda: broken(base_values=[1.0, 2.0]), "INVALID", ["base_values", "2 entries"]),
    (lambda: broken(aggregate_function="MEDIAN"), "INVALID", ["aggregate_function", "MEDIAN"]),
    (lambda: broken(n_targets=0), "INVALID", ["n_targets"]), (lambda: broken(post_transform="PROBIT"), "UNIMPLEMENTED", ["PROBIT"]),
    (lambda: classes(classlabels_strings=["a", "b"], classlabels_int64s=[1, 2]), "INVALID", ["classlabels_int64s", "one of them"]),
    (lambda: classes(classlabels_int64s=[1]), "UNIMPLEMENTED", ["class labels"])], ids=range(14))
def test_refusals(context, made, code, words):
    assert_refused(context, *made(), code, words)
