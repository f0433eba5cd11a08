"""Operators that compute strings: StringConcat, StringSplit and StringNormalizer as in ONNX Runtime or ONNX's own evaluator."""
import numpy as np
import pytest
from keel.onnx import backend
from onnx_cases import DEVICES
from string_models import BOOL, INT64, STRING, WORDS, assert_as_evaluator, assert_as_runtime, assert_gives, node_model, words


def split_model(shape, **attributes):
    return node_model("StringSplit", [("x", STRING, shape)], [("y", STRING, None), ("n", INT64, None)], **attributes)


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 3), (0, 2)])
@pytest.mark.parametrize("attributes", [{}, {"delimiter": ""}, {"delimiter": "a"}, {"delimiter": "aa"}, {"delimiter": "aba"},
                                        {"delimiter": "的"}, {"delimiter": " ", "maxsplit": 2}, {"delimiter": "aa", "maxsplit": 1},
                                        {"maxsplit": 1}, {"maxsplit": 3}, {"maxsplit": 2**40}], ids=str)
def test_split(shape, attributes):
    some = ["", "a", "aaaa", "ababababa", " a  b\tc d e ", "的x的", "   ", "aaa b aba", "aa aa aa", "x"]
    x = words(np.random.default_rng(len(shape)), *shape, of=some)
    assert_as_evaluator(split_model(shape, **attributes), [x])


def test_split_all_at_once():
    x = np.array(["", "a", "aaaa", "ababababa", " a  b\tc d e ", "的x的", "   ", "aaa b aba", "aa aa aa"], object)
    for attributes in ({}, {"delimiter": "aa"}, {"delimiter": "aba", "maxsplit": 1}):
        assert_as_evaluator(split_model(["n"], **attributes), [x])
    assert_gives(split_model([]), [np.array("a b", object)], [np.array(["a", "b"], object), np.array(2)])


@pytest.mark.parametrize("delimiter", ["", "a", "ab", "aba", "aa", " "])
def test_split_of_random_strings(delimiter):
    """The oracle is Python's split()."""
    rng = np.random.default_rng(12)
    x = np.array(["".join(rng.choice(list("ab \t"), n)) for n in rng.integers(0, 24, 200)], object)
    for most in (None, 0, 1, 2, 5):
        attributes = {"delimiter": delimiter} | ({} if most is None else {"maxsplit": most})
        y, n = backend.prepare(split_model(["n"], **attributes), "cpu").run([x])
        wanted = [text.split(delimiter or None, -1 if most is None else most) for text in x]
        assert [row[:k].tolist() for row, k in zip(y, n)] == wanted
        assert y.shape[1] == max(map(len, wanted)) and all("".join(row[k:]) == "" for row, k in zip(y, n))


@pytest.mark.parametrize("op, more, wanted", [
    ("StringSplit", {}, np.zeros((2, 0))), ("StringSplit", {"delimiter": "aa"}, np.array([[""], [""]], object)),
    ("StringNormalizer", {"case_change_action": "UPPER", "stopwords": ["a"]}, np.array(["", ""], object)),
    ("RegexFullMatch", {"pattern": "a*"}, np.array([True, True])), ("Unique", {}, np.array([""], object)),
    ("Identity", {}, np.array(["", ""], object))], ids=str)
def test_strings_without_bytes(op, more, wanted):
    """Two empty strings in a tensor whose dim of bytes is 0."""
    outputs = [("y", BOOL if wanted.dtype == bool else STRING, None), *([("n", INT64, None)] if op == "StringSplit" else [])]
    for device in DEVICES:
        got = backend.prepare(node_model(op, [("x", STRING, ["n"])], outputs, **more), device).run([np.zeros((2, 0), np.uint8)])[0]
        assert (got.shape, got.tolist()) == (wanted.shape, wanted.tolist())


CHANGES = [{"locale": "C.UTF-8", "case_change_action": action, "is_case_sensitive": sensitive, "stopwords": stop}
           for action in ("NONE", "LOWER", "UPPER") for sensitive in (0, 1) for stop in ([], ["CAT", "naïve", "ÉCOLE"], WORDS)]


@pytest.mark.parametrize("attributes", CHANGES, ids=range(len(CHANGES)))
def test_normalizer(attributes):
    attributes = {k: v for k, v in attributes.items() if v != []}
    for shape in ((1,), (9,), (1, 6)):
        model = node_model("StringNormalizer", [("x", STRING, [1, None][2 - len(shape):])], [("y", STRING, None)], **attributes)
        assert_as_runtime(model, [words(np.random.default_rng(1), *shape)])


@pytest.mark.parametrize("action, change", [("LOWER", str.lower), ("UPPER", str.upper)])
def test_case_of_all_letters(action, change):
    """Every letter whose case is one other letter; the oracle is Python's Unicode data."""
    letters = [chr(c) for c in range(0x80, 0x20000) if not 0xd800 <= c < 0xe000 and len(change(chr(c))) == 1]
    model = node_model("StringNormalizer", [("x", STRING, ["n"])], [("y", STRING, None)], case_change_action=action)
    got = backend.prepare(model, "cpu").run([np.array(letters, object)])[0]
    assert [(a, b) for a, b in zip(letters, got) if change(a) != b] == []
