"""Operators of ai.onnx.ml around models of tables: support vector machines, OneHotEncoder, FeatureVectorizer, ZipMap. Oracle: ONNX
Runtime; NumPy for ZipMap, whose maps Keel does not have. Then refusals.
"""
import numpy as np
import pytest
from keel_abi import KeelError
from onnx_cases import DEVICES, assert_refused, assert_similar, run_model
from test_onnx_families import agrees, model_of

F = np.float32
RANDOM = np.random.default_rng(11)
ROWS = RANDOM.standard_normal((7, 3)).astype(F)
KERNELS = [("LINEAR", [0, 0, 0]), ("POLY", [0.5, 1, 3]), ("RBF", [0.7, 0, 0]), ("SIGMOID", [0.3, 0.1, 0])]


def learned(op, inputs, attributes, n_out=1):
    model, inputs = model_of(op, inputs, 17, attributes, n_out, domain="ai.onnx.ml")
    return model, inputs


def numbers(*shape):
    return [float(x) for x in RANDOM.standard_normal(int(np.prod(shape))).astype(F)]


def regressor(kernel="RBF", params=(0.7, 0, 0), **more):
    return learned("SVMRegressor", [ROWS], {"kernel_type": kernel, "kernel_params": [float(p) for p in params], "n_supports": 5,
                                            "support_vectors": numbers(5, 3), "coefficients": numbers(5), "rho": [0.25], **more})


def classifier(per_class, kernel="RBF", params=(0.7, 0, 0), **more):
    classes, vectors = len(per_class), sum(per_class)
    return learned("SVMClassifier", [ROWS], {
        "kernel_type": kernel, "kernel_params": [float(p) for p in params], "classlabels_ints": [7 * k + 1 for k in range(classes)],
        "vectors_per_class": per_class, "support_vectors": numbers(vectors, 3), "coefficients": numbers(classes - 1, vectors),
        "rho": numbers(classes * (classes - 1) // 2), **more}, 2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel, params", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_regressors(context, device, kernel, params, one_class):
    agrees(context, device, *regressor(kernel, params, one_class=one_class))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel, params", KERNELS)
@pytest.mark.parametrize("per_class", [[2, 3], [1, 4, 2], [2, 1, 1, 3]])
def test_classifiers(context, device, kernel, params, per_class):
    agrees(context, device, *classifier(per_class, kernel, params))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("after", ["NONE", "SOFTMAX"])
@pytest.mark.parametrize("per_class", [[2, 3], [1, 4, 2], [2, 1, 1, 3, 2]])
def test_probabilities(context, device, per_class, after):
    """Slopes from flat to so steep that pairs are certain."""
    pairs = len(per_class) * (len(per_class) - 1) // 2
    agrees(context, device, *classifier(per_class, prob_a=[-3.0 * 4**k for k in range(pairs)], prob_b=numbers(pairs), post_transform=after))


@pytest.mark.parametrize("device", DEVICES)
def test_probabilities_of_no_rows(context, device):
    model, _ = classifier([2, 1, 2], prob_a=[-1.0] * 3, prob_b=[0.0] * 3)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    labels, scores = run_model(context, device, model, [ROWS[:0]])
    assert labels.shape == (0,) and scores.shape == (0, 3)


@pytest.mark.parametrize("device", DEVICES)
def test_categories(context, device):
    known = np.array([[3, 5], [9, 3]])
    for x in (known, known.astype(F), known[0]):
        for zeros in (0, 1):
            agrees(context, device, *learned("OneHotEncoder", [x], {"cats_int64s": [3, 5, 9], "zeros": zeros}))
    unknown = np.array([3, 4])
    agrees(context, device, *learned("OneHotEncoder", [unknown], {"cats_int64s": [3, 5, 9]}))
    with pytest.raises(KeelError, match="index 1 is not in"):
        run_model(context, device, *learned("OneHotEncoder", [unknown], {"cats_int64s": [3, 5, 9], "zeros": 0}))


@pytest.mark.parametrize("device", DEVICES)
def test_features_in_one_row(context, device):
    agrees(context, device, *learned("FeatureVectorizer", [ROWS, ROWS[:, :2].copy()], {"inputdimensions": [3, 2]}))
    agrees(context, device, *learned("FeatureVectorizer", [np.arange(6).reshape(2, 3)], {"inputdimensions": [3]}))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("labels", [{"classlabels_int64s": [4, 5, 6]}, {"classlabels_strings": ["a", "b", "c"]}])
def test_scores_of_named_classes(context, device, labels):
    assert_similar([ROWS], run_model(context, device, *learned("ZipMap", [ROWS], labels)), 0, 0)


REFUSED = [
    (lambda: regressor("WAVE"), "INVALID", "kernel_type is 'WAVE'"),
    (lambda: regressor(params=[1, 2]), "INVALID", "kernel_params has 2 entries"),
    (lambda: regressor(support_vectors=numbers(14)), "INVALID", "support_vectors has 14 entries for 5 vectors of 3 features"),
    (lambda: regressor(coefficients=numbers(4)), "INVALID", "4 coefficients and 1 entries of rho for 5 support vectors"),
    (lambda: regressor(n_supports=0), "UNIMPLEMENTED", "no support vectors"),
    (lambda: regressor(post_transform="PROBIT"), "UNIMPLEMENTED", "post_transform 'PROBIT'"),
    (lambda: classifier([2, 3], coefficients=numbers(6)), "INVALID", "6 coefficients for 5 support vectors of 2 classes"),
    (lambda: classifier([2, 3], rho=numbers(2)), "INVALID", "rho has 2 entries for 1 pairs"),
    (lambda: classifier([2, 3], vectors_per_class=[6, -1]), "INVALID", "vectors_per_class has the entry -1"),
    (lambda: classifier([2, 3], vectors_per_class=[5]), "UNIMPLEMENTED", "vectors_per_class with 1 entries for 2 classes"),
    (lambda: classifier([2, 3, 1], prob_a=[1.0] * 3, prob_b=[0.0]), "INVALID", "prob_a has 3 and prob_b 1 entries for 3 pairs"),
    (lambda: learned("OneHotEncoder", [ROWS], {"cats_strings": ["a"]}), "INVALID", "operand 0 is f32; expected a tensor of strings"),
    (lambda: learned("OneHotEncoder", [ROWS], {}), "INVALID", "expected cats_int64s or cats_strings"),
    (lambda: learned("FeatureVectorizer", [ROWS], {"inputdimensions": [2]}), "UNIMPLEMENTED", "inputdimensions"),
    (lambda: learned("ZipMap", [ROWS], {"classlabels_int64s": [4, 5]}), "INVALID", "2 labels for 3 columns"),
]


@pytest.mark.parametrize("made, code, words", REFUSED, ids=range(len(REFUSED)))
def test_refusals_name_the_reason(context, made, code, words):
    assert_refused(context, *made(), code, [words])
