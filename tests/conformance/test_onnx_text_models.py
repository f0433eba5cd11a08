"""Pipelines in the style of scikit-learn: text features, categories and classifiers whose labels are strings."""
import keel
import numpy as np
import pytest
from keel.onnx import backend
from onnx import helper, numpy_helper
from string_models import FLOAT, INT64, STRING, WORDS, assert_as_evaluator, assert_as_runtime, assert_gives, model_of, node_model, words

ML = "ai.onnx.ml"
LABELS = ["cat", "dög", "的"]


def classifier(op, features, **attributes):
    return node_model(op, [("x", FLOAT, [None, features])], [("label", STRING, None), ("scores", FLOAT, None)], ML, ml=1, **attributes)


def scored(n, seed=0):
    return [np.random.default_rng(seed).standard_normal((n, 4)).astype(np.float32)]


@pytest.mark.parametrize("n", [0, 1, 9])
def test_classifiers(n):
    rng = np.random.default_rng(1)
    linear = {"coefficients": rng.standard_normal(12).tolist(), "intercepts": [0.1, -0.2, 0.3], "classlabels_strings": LABELS}
    assert_as_runtime(classifier("LinearClassifier", 4, post_transform="SOFTMAX", **linear), scored(n))
    binary = {"coefficients": rng.standard_normal(4).tolist(), "intercepts": [0.1], "classlabels_strings": LABELS[:2]}
    assert_as_evaluator(classifier("LinearClassifier", 4, post_transform="LOGISTIC", **binary), scored(n or 1))
    tree = {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [1, 0, 0], "nodes_values": [0.1, 0.0, 0.0],
            "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
            "class_treeids": [0, 0, 0], "class_nodeids": [1, 2, 2], "class_ids": [0, 1, 2], "class_weights": [1.0, 0.3, 0.7],
            "classlabels_strings": LABELS}
    assert_as_runtime(classifier("TreeEnsembleClassifier", 4, **tree), scored(n))
    svm = {"classlabels_strings": LABELS, "coefficients": rng.standard_normal(8).tolist(), "kernel_params": [0.5, 0.0, 3.0],
           "kernel_type": "RBF", "rho": [0.1, -0.1, 0.2], "support_vectors": rng.standard_normal(16).tolist(), "vectors_per_class": [1, 2, 1]}
    assert_as_runtime(classifier("SVMClassifier", 4, **svm), scored(n))


@pytest.mark.parametrize("zeros", [0, 1])
def test_one_hot_encoder(zeros):
    model = node_model("OneHotEncoder", [("x", STRING, ["n", None])], [("y", FLOAT, None)], ML, ml=1, cats_strings=LABELS, zeros=zeros)
    for shape in ((1, 1), (4, 3), (0, 2)):
        assert_as_runtime(model, [words(np.random.default_rng(2), *shape, of=[*LABELS, *([""] if zeros else [])])])


def test_array_feature_extractor():
    model = node_model("ArrayFeatureExtractor", [("x", STRING, [None, 4]), ("i", INT64, [3])], [("y", STRING, None)], ML, ml=1)
    assert_as_runtime(model, [words(np.random.default_rng(3), 3, 4), np.array([2, 0, 2])])


def branches(condition):
    """x or x + "!?", by a number; the constant branch and captured strings have other widths."""
    def graph(name, nodes, out):
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(out, STRING, None)])
    yes = graph("yes", [helper.make_node("StringConcat", ["x", "mark"], ["a"])], "a")
    no = graph("no", [helper.make_node("Where", ["p", "k", "x"], ["b"])], "b")
    nodes = [helper.make_node("StringConcat", ["k", "mark"], ["before"]), helper.make_node("If", [condition], ["c"], then_branch=yes, else_branch=no), helper.make_node("StringConcat", ["c", "before"], ["y"])]
    stored = [numpy_helper.from_array(np.array(value, object), name) for name, value in (("mark", ["!?"]), ("k", ["of a constant"]))]
    return model_of(nodes, [("x", STRING, ["n"]), ("p", 9, [])], [("y", STRING, None)],
                    initializer=[*stored, numpy_helper.from_array(np.array(True), "yes")])


@pytest.mark.parametrize("condition", ["p", "yes"])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_branches(condition, n):
    for chosen in (True, False):
        x = words(np.random.default_rng(7), n)
        assert_as_evaluator(branches(condition), [x, np.array(chosen)])


def test_sequences():
    """Sequences made, changed, joined and cut; the elements have tables of other widths."""
    stored = [numpy_helper.from_array(np.array(["of a constant", "é"], object), "k"), numpy_helper.from_array(np.array(1), "one")]
    nodes = [helper.make_node("SequenceConstruct", ["x", "k"], ["s"]), helper.make_node("SequenceInsert", ["s", "x", "one"], ["t"]),
             helper.make_node("ConcatFromSequence", ["t"], ["y"], axis=0), helper.make_node("ConcatFromSequence", ["t"], ["z"], axis=1, new_axis=1),
             helper.make_node("SplitToSequence", ["z"], ["parts"], axis=0, keepdims=0), helper.make_node("SequenceAt", ["parts", "one"], ["last"]),
             helper.make_node("SequenceLength", ["parts"], ["n"])]
    model = model_of(nodes, [("x", STRING, [2])], [("y", STRING, None), ("z", STRING, None), ("last", STRING, None), ("n", INT64, None)],
                     initializer=stored)
    assert_as_evaluator(model, [words(np.random.default_rng(9), 2)])
    wrong = model_of([helper.make_node("SequenceConstruct", ["x", "one"], ["s"]), helper.make_node("SequenceAt", ["s", "one"], ["y"])],
                     [("x", STRING, [2])], [("y", STRING, None)], initializer=stored[1:])
    with pytest.raises(keel.InvalidError, match="operand 1 .'one'. is i64; the sequence's elements are strings"):
        backend.prepare(wrong)


def test_sequences_as_inputs_and_results():
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(STRING, [None]))
    graph = helper.make_graph([helper.make_node("SequenceErase", ["s"], ["t"])], "g", [helper.make_value_info("s", kind)], [helper.make_value_info("t", kind)])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    got = backend.prepare(model, "cpu").run([[np.array(["a", "的的"], object), np.array([], object), np.array(["c"], object)]])[0]
    assert [x.tolist() for x in got] == [["a", "的的"], []]


POOL = ["a", "b", "的", "", "a", "b", "b", "的", "x", "y", "a", "b", "a"]  # 4 words alone, 3 pairs, one triple


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_tf_idf(mode, n):
    given = {"min_gram_length": 1, "max_gram_length": 3, "max_skip_count": 1, "mode": mode, "ngram_counts": [0, 4, 10],
             "ngram_indexes": [0, 2, 1, 3, 7, 6, 5, 4], "pool_strings": POOL, "weights": [1.0, 2.0, 0.5, 4.0, 3.0, 0.1, 7.0, 9.0]}
    model = node_model("TfIdfVectorizer", [("x", STRING, ["n", 6])], [("y", FLOAT, None)], **given)
    x = words(np.random.default_rng(n), n, 6, of=["a", "b", "的", "", "x", "y", "other words"])
    assert_as_runtime(model, [x]) if n else assert_gives(model, [x], [np.zeros((0, 8), np.float32)])


def test_long_n_grams():
    """20-grams, which are not one i64 each; tokens are integers and strings."""
    rng = np.random.default_rng(8)
    letters = list("abcdefghij")
    x = rng.choice(letters[:2], (4, 30))
    pool = [*letters, *"abbabb", *x[1, 3:23], *x[2, 10:30]]
    given = {"min_gram_length": 1, "max_gram_length": 20, "max_skip_count": 0, "mode": "TF", "ngram_counts": [0, 10] + [16] * 18,
             "ngram_indexes": list(range(15))}
    strings = node_model("TfIdfVectorizer", [("x", STRING, ["n", "m"])], [("y", FLOAT, None)], pool_strings=pool, **given)
    numbers = node_model("TfIdfVectorizer", [("x", INT64, ["n", "m"])], [("y", FLOAT, None)], pool_int64s=[ord(p) for p in pool], **given)
    codes = np.vectorize(ord)(x)
    want = assert_as_evaluator(numbers, [codes])
    assert_gives(strings, [x.astype(object)], want)
    assert want[0][1, 13] == want[0][2, 14] == 1


@pytest.mark.parametrize("attributes", [{}, {"sorted": 0}, {"axis": 0}, {"axis": 1}, {"axis": 0, "sorted": 0}], ids=str)
def test_unique(attributes):
    rng = np.random.default_rng(4)
    outputs = [("y", STRING, None), ("first", INT64, None), ("inverse", INT64, None), ("counts", INT64, None)]
    for shape in ((5, 2), (1, 1), (12, 1)):
        x = words(rng, *shape, of=WORDS[:6])
        got = node_model("Unique", [("x", STRING, [None, shape[1]])], outputs, **attributes)
        assert_as_runtime(got, [x])


def pipeline(vocabulary, labels, first, seed=5):
    """Lower case, words (first: only so many), counts of n-grams and a linear classifier; and a label encoder of the same words."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((len(labels), len(vocabulary))).astype(np.float32)
    nodes = [helper.make_node("StringNormalizer", ["text"], ["low"], case_change_action="LOWER", locale="C.UTF-8"),
             helper.make_node("StringSplit", ["low"], ["words", "n"]),
             helper.make_node("Gather", ["words", "first"], ["some"], axis=1),
             helper.make_node("TfIdfVectorizer", ["some" if first else "words"], ["counts"], min_gram_length=1, max_gram_length=1, max_skip_count=0, mode="TF",
                              ngram_counts=[0], ngram_indexes=list(range(len(vocabulary))), pool_strings=vocabulary),
             helper.make_node("LinearClassifier", ["counts"], ["label", "scores"], domain=ML, coefficients=weights.reshape(-1).tolist(),
                              intercepts=rng.standard_normal(len(labels)).tolist(), classlabels_strings=labels, post_transform="SOFTMAX"),
             helper.make_node("LabelEncoder", ["label"], ["code"], domain=ML, keys_strings=labels, values_int64s=list(range(len(labels))))]
    return model_of(nodes, [("text", STRING, ["n"])], [("label", STRING, None), ("scores", FLOAT, None), ("code", INT64, None)], ml=2,
                    initializer=[numpy_helper.from_array(np.arange(first), "first")])


@pytest.mark.parametrize("first", [0, 3])
def test_pipeline(first):
    """Texts of 3 to 7 words in several numbers and widths."""
    rng = np.random.default_rng(6)
    vocabulary = ["w%d" % k for k in range(40)] + ["é%d" % k for k in range(10)]
    model = pipeline(vocabulary, LABELS, first)
    for n in (1, 2, 17, 200):
        texts = [" ".join(rng.choice([*vocabulary, "É3", "W7", "other"], rng.integers(3, 8))) for _ in range(n)]
        assert_as_runtime(model, [np.array(texts, object)], ("cpu", "reference") if n < 100 else ("cpu",))
