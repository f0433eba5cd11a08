"""tree_ensemble written as TreeEnsembleRegressor, which ONNX Runtime runs; then refusals."""
import numpy as np
import pytest
from keel_abi import KeelError
from onnx_export import exported, run_onnx, through_keel
from test_onnx_learning import labels_and_scores, learned
from test_onnx_tree_nodes import CLASSIFIERS
from test_onnx_tree_nodes import forest as nodes_of
from test_tree_ensemble import FORMS, forest, rows, wanted

WRITTEN = ["small", "i64", "of one relation", "less, NaN too", "wide leaves", "groups", "classes", "no nodes", "one tree", "many trees", "many features"]


def module_of(context, operands, attributes, constant=True, columns=4):
    module = context.module()
    g = module.graph("f")
    ids = [g.param("x", operands[0].dtype, [module.dim("n"), columns])]
    ids += [g.constant(a) if constant else g.param(f"p{i}", a.dtype, a.shape) for i, a in enumerate(operands)]
    g.result("y", g.node("tree_ensemble", *ids, **attributes))
    module.entry("f", g)
    return module


def compare(context, tmp_path, form):
    operands, attributes = forest(**form)
    columns = form.get("features", 4)
    model = exported(module_of(context, operands, attributes, columns=columns), tmp_path)
    for n in (1, 30):
        x = rows(n, columns, np.float32)
        got, = run_onnx(model, {"x": x})
        np.testing.assert_allclose(got, wanted(x, *operands, **attributes), 1e-5, 1e-5)
    return model


@pytest.mark.parametrize("form", WRITTEN)
def test_written_forests(context, tmp_path, form):
    compare(context, tmp_path, FORMS[form] | {"weights": [1, 2]})


@pytest.mark.parametrize("relations", range(16))
def test_sets_of_relations(context, tmp_path, relations):
    compare(context, tmp_path, {"tests": [relations], "weights": [1, 2]})


@pytest.mark.parametrize("mode", ["max", "min"])
def test_the_greatest_and_the_least(context, tmp_path, mode):
    compare(context, tmp_path, {"mode": mode, "width": 2, "size": 2, "weights": [1, 2]})


def test_written_trees_are_read_again(context, tmp_path):
    operands, attributes = forest(size=5)
    exported(module_of(context, operands, attributes), tmp_path)
    plan = context.import_file(tmp_path / "exported.onnx").session("cpu").prepare()
    x = rows(40, 4, np.float32)
    np.testing.assert_array_equal(np.array(plan.run(x)[0]), wanted(x, *operands, **attributes))


@pytest.mark.parametrize("made, more", CLASSIFIERS[2:4], ids=range(2))  # of two scores ONNX Runtime takes the second where it is above 0
def test_a_classifier_is_read_and_written(context, made, more):
    model, inputs = learned("TreeEnsembleClassifier", [rows(30, 3, np.float32)], nodes_of(11, kind="class", **made) | more)
    model = labels_and_scores(model)
    for got, want in zip(through_keel(context, model, inputs), run_onnx(model, {"x0": inputs[0]}), strict=True):
        np.testing.assert_allclose(got, want, 1e-5, 1e-5)


@pytest.mark.parametrize("form, constant, words", [
    ({"dtype": np.float64}, True, "of f64"), ({}, False, "not constant"), ({"trees": 0}, True, "no trees"), ({"mode": "max", "size": 3}, True, "leave out columns"),
    ({"width": 0, "size": 2}, True, "no weights")])
def test_refusals(context, tmp_path, form, constant, words):
    operands, attributes = forest(**form)
    with pytest.raises(KeelError) as error:
        module_of(context, operands, attributes, constant).save(tmp_path / "m.onnx")
    assert error.value.code == "UNIMPLEMENTED" and "tree_ensemble" in str(error.value) and words in str(error.value)


def test_an_index_out_of_range_is_not_written(context, tmp_path):
    operands, attributes = forest()
    operands[3][5] = 95
    with pytest.raises(KeelError) as error:
        module_of(context, operands, attributes).save(tmp_path / "m.onnx")
    assert "index out of range" in str(error.value)
