"""Models that scikit-learn fits and skl2onnx converts, against ONNX Runtime: trees, linear models, support vectors, neighbours, mixtures,
scalers, encoders, pipelines. The wheels (tools/requirements-learned.txt) are installed by `tools/sweep models` only.

Labels are the same for nearly all rows: a row on the border of two classes may fall on the other side. Scores have a bound.
"""
import warnings

import numpy as np
import pytest
from onnx_cases import assert_refused, onnxruntime_run, run_model

skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed (tools/requirements-learned.txt; tools/sweep models)")
pytest.importorskip("sklearn.ensemble", reason="SciPy is not installed (tools/requirements-learned.txt; tools/sweep models)")

from sklearn import (cluster, compose, decomposition, discriminant_analysis, ensemble, gaussian_process, impute,  # noqa: E402
                     linear_model, mixture, multiclass, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree)
from sklearn.base import is_classifier  # noqa: E402

RANDOM = np.random.default_rng(11)
ROWS = RANDOM.standard_normal((300, 5)).astype(np.float32)
NUMBER = ROWS @ np.array([1, -2, 0.5, 0, 3], np.float32) + np.sin(3 * ROWS[:, 1])
TWO, THREE = (NUMBER > 0).astype(np.int64), np.digitize(NUMBER, [-2, 2]).astype(np.int64)
COUNTS = np.abs(np.round(2 * ROWS)).astype(np.float32)
GAPS = np.where(RANDOM.uniform(size=ROWS.shape) < 0.2, np.float32(np.nan), ROWS)
SMALL = {"n_estimators": 12, "random_state": 0}
SCALED = preprocessing.StandardScaler

# name -> estimator, rows, target
CASES = {
    "forest of two classes": (ensemble.RandomForestClassifier(**SMALL), ROWS, TWO),
    "forest of three classes": (ensemble.RandomForestClassifier(max_depth=6, **SMALL), ROWS, THREE),
    "forest of numbers": (ensemble.RandomForestRegressor(**SMALL), ROWS, NUMBER),
    "forest of two numbers": (ensemble.ExtraTreesRegressor(**SMALL), ROWS, np.stack([NUMBER, -NUMBER], 1)),
    "extra trees": (ensemble.ExtraTreesClassifier(**SMALL), ROWS, THREE),
    "boosted, two classes": (ensemble.GradientBoostingClassifier(**SMALL), ROWS, TWO),
    "boosted, three classes": (ensemble.GradientBoostingClassifier(**SMALL), ROWS, THREE),
    "boosted numbers": (ensemble.GradientBoostingRegressor(**SMALL), ROWS, NUMBER),
    "one tree": (tree.DecisionTreeClassifier(max_depth=5, random_state=0), ROWS, THREE),
    "one tree of numbers": (tree.DecisionTreeRegressor(max_depth=5, random_state=0), ROWS, NUMBER),
    "adaboost": (ensemble.AdaBoostClassifier(**SMALL), ROWS, THREE),
    "adaboost of numbers": (ensemble.AdaBoostRegressor(**SMALL), ROWS, NUMBER),
    "bagging": (ensemble.BaggingClassifier(**SMALL), ROWS, THREE),
    "isolation forest": (ensemble.IsolationForest(**SMALL), ROWS, None),
    "voting": (ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())], voting="soft", flatten_transform=False), ROWS, THREE),
    "stacking": (ensemble.StackingClassifier([("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())]), ROWS, THREE),
    "logistic, two classes": (linear_model.LogisticRegression(), ROWS, TWO),
    "logistic, three classes": (linear_model.LogisticRegression(), ROWS, THREE),
    "linear": (linear_model.LinearRegression(), ROWS, NUMBER),
    "linear, two targets": (linear_model.Ridge(), ROWS, np.stack([NUMBER, -NUMBER], 1)),
    "lasso": (linear_model.Lasso(0.1), ROWS, NUMBER),
    "gradient descent": (linear_model.SGDClassifier(loss="log_loss", random_state=0), ROWS, THREE),
    "perceptron": (linear_model.Perceptron(random_state=0), ROWS, THREE),
    "poisson": (linear_model.PoissonRegressor(), ROWS, np.exp(NUMBER / 4)),
    "one against the rest": (multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), ROWS, THREE),
    "linear support vectors": (svm.LinearSVC(random_state=0), ROWS, THREE),
    "support vectors, rbf": (svm.SVC(), ROWS, THREE),
    "support vectors, two classes": (svm.SVC(kernel="poly", degree=2), ROWS, TWO),
    "support vectors, linear kernel": (svm.SVC(kernel="linear"), ROWS, THREE),
    "support vectors, sigmoid": (svm.SVC(kernel="sigmoid"), ROWS, TWO),
    "support vectors, probabilities": (svm.SVC(probability=True, random_state=0), ROWS, THREE),
    "support vectors, probabilities of two": (svm.SVC(probability=True, random_state=0), ROWS, TWO),
    "support vectors of numbers": (svm.SVR(), ROWS, NUMBER),
    "nu support vectors": (svm.NuSVR(), ROWS, NUMBER),
    "one class": (svm.OneClassSVM(), ROWS, None),
    "neighbours": (neighbors.KNeighborsClassifier(3), ROWS, THREE),
    "neighbours of numbers": (neighbors.KNeighborsRegressor(3, weights="distance"), ROWS, NUMBER),
    "gaussian bayes": (naive_bayes.GaussianNB(), ROWS, THREE),
    "multinomial bayes": (naive_bayes.MultinomialNB(), COUNTS, THREE),
    "bernoulli bayes": (naive_bayes.BernoulliNB(), ROWS, TWO),
    "complement bayes": (naive_bayes.ComplementNB(), COUNTS, THREE),
    "perceptron of two layers": (neural_network.MLPClassifier((8,), max_iter=40, random_state=0), ROWS, THREE),
    "perceptron of numbers": (neural_network.MLPRegressor(hidden_layer_sizes=(8, 6), activation="tanh", max_iter=40, random_state=0), ROWS, NUMBER),
    "discriminant": (discriminant_analysis.LinearDiscriminantAnalysis(), ROWS, THREE),
    "quadratic discriminant": (discriminant_analysis.QuadraticDiscriminantAnalysis(), ROWS, THREE),
    "gaussian process": (gaussian_process.GaussianProcessRegressor(alpha=1e-2), ROWS, NUMBER),
    "mixture": (mixture.GaussianMixture(3, random_state=0), ROWS, None),
    "means": (cluster.KMeans(4, random_state=0, n_init=1), ROWS, None),
    "principal components": (decomposition.PCA(3), ROWS, None),
    "singular vectors": (decomposition.TruncatedSVD(3, random_state=0), ROWS, None),
    "scaler": (SCALED(), ROWS, None),
    "least and largest": (preprocessing.MinMaxScaler(clip=True), ROWS, None),
    "robust scaler": (preprocessing.RobustScaler(), ROWS, None),
    "largest absolute": (preprocessing.MaxAbsScaler(), ROWS, None),
    "normaliser": (preprocessing.Normalizer(), ROWS, None),
    "threshold": (preprocessing.Binarizer(threshold=0.3), ROWS, None),
    "bins": (preprocessing.KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf"), ROWS, None),
    "bins, one hot": (preprocessing.KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"), ROWS, None),
    "polynomials": (preprocessing.PolynomialFeatures(3), ROWS, None),
    "power": (preprocessing.PowerTransformer(), ROWS, None),
    "gaps filled": (impute.SimpleImputer(), GAPS, None),
    "one hot": (preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False), COUNTS.astype(np.int64), None),
    "ordinals": (preprocessing.OrdinalEncoder(), COUNTS.astype(np.int64), None),
    "pipeline": (pipeline.make_pipeline(impute.SimpleImputer(), SCALED(), decomposition.PCA(3), linear_model.LogisticRegression()), GAPS, THREE),
    "columns": (pipeline.make_pipeline(compose.ColumnTransformer([("a", SCALED(), [0, 1]), ("b", preprocessing.MinMaxScaler(), [3, 4])]),
                                       ensemble.RandomForestClassifier(**SMALL)), ROWS, THREE),
}
# Branches with as many rows as data have gaps; one of them has another rank, too.
REFUSED = {"nearest rows fill gaps": (impute.KNNImputer(n_neighbors=3), GAPS, None)}


def converted(name):
    estimator, rows, target = (CASES | REFUSED)[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(rows) if target is None else estimator.fit(rows, target)
        options = {id(estimator): {"zipmap": False}} if is_classifier(estimator) and not isinstance(estimator, svm.LinearSVC) else None
        return skl2onnx.to_onnx(estimator, rows[:1], options=options, target_opset={"": 21, "ai.onnx.ml": 3}), rows


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_converted(context, device, name):
    model, rows = converted(name)
    for n in (60, 1):
        x = rows[:n]
        if x.dtype == np.float32:
            x = x + (RANDOM.standard_normal(x.shape) / 8).astype(np.float32)
        for k, (want, got) in enumerate(zip(onnxruntime_run(model, [x], optimised=False), run_model(context, device, model, [x]), strict=True)):
            assert want.shape == got.shape and want.dtype == got.dtype, f"result {k}: {got.dtype}{got.shape}, wanted {want.dtype}{want.shape}"
            if want.dtype == np.int64:
                assert np.mean(want != got) <= 0.02, f"result {k}: {np.mean(want != got):.3g} of the labels differ"
            else:
                np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5 * max(1, np.abs(want).max()), err_msg=f"result {k}")


@pytest.mark.parametrize("name", ["forest of three classes", "logistic, three classes", "pipeline", "boosted numbers", "scaler"])
def test_no_rows(context, name):
    model, rows = converted(name)
    one, none = (run_model(context, "cpu", model, [rows[:n]]) for n in (1, 0))
    assert [(0, *y.shape[1:]) for y in one] == [y.shape for y in none] and [y.dtype for y in one] == [y.dtype for y in none]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(context, name):
    model, rows = converted(name)
    assert_refused(context, model, [rows[:9]], "UNIMPLEMENTED", ["(If)", "result 1 ('dist_subset_updated') of its branches differs", "in then_branch ('B')", "in else_branch ('B')"])
