"""RegexFullMatch: patterns in RE2's syntax. The oracles are ONNX Runtime, which has RE2, and Python's re where both agree."""
import numpy as np
import onnx_cases
import pytest
from keel.onnx import backend
from keel_abi import KeelError  # noqa: F401
from onnx import TensorProto
from string_models import BOOL, STRING, assert_as_runtime, node_model

TEXTS = np.array(["", "a", "aa", "aaa", "ab", "abab", "A", "aB", "b", "-", "a-b", "a b", "a\nb", "\n", "1", "12", "123", "x12", "é", "É", "的", "🐈",
                  "的的", "naïve", "a.b", "]", "[", "^", "\\", "{", "a{2}", "a{,2}", "foo.com", "foo@bar.com", " foo", "foo ", "K", "k",
                  "ſ", "s", "S", "\t", "_", "ß", "z" * 60, "ab" * 30, "\x7f", "\u0080", "\u07ff", "\u0800", "\uffff",
                  "\U00010000", "\U0010ffff", "Ω", "ω", "Ω"], object)

PATTERNS = ["", "a", "a*", "a+", "a?", "a{2}", "a{1,2}", "a{2,}", "a{0}", "a{,2}", "a*?", "(ab)*", "(?:ab)+?", "a|b|", "(a|ab)(ab|b)?", ".", ".*", "..",
            "(?s).", "(?s).*", "[ab]", "[^ab]", "[a-c-]+", "[]a]", "[^]a]", "[\\]\\[]", "[[:alpha:]]+", "[[:^alpha:]]", "[[:punct:]]", "[[:word:]]+", "\\d+",
            "\\D", "\\w+", "\\W", "\\s", "\\S+", "[\\d\\s]", "[^\\w]", "\\x41", "\\x{7684}", "\\101", "\\Qa.b\\E", "\\Q[", "a\\.b", "(?i)a", "(?i)ab", "(?i)é",
            "(?i)k", "(?i)[k-s]", "(?i)ω", "(?i:a)b", "a(?i)b", "(?i)[^a]", "é", "[é的]", "[à-ÿ]", "的+", "[\\x{80}-\\x{10ffff}]", "[\\x{7ff}-\\x{800}]",
            "[\\x{ffff}-\\x{10000}]", "[^\\x{0}-\\x{7f}]", "^a$", "(^a|b)", "a$b", "a\\b-\\bb", "a\\Bb", "(?m)a$\\n^b", "a\nb", "\\Aa\\z", "(?P<n>a)", "(?<n>a)",
            "z{60}", "(?:a|b)*-?b", "(\\W|^)[\\w.\\-]{0,25}@?(bar|gmail)?\\.com(\\W|$)?", "\\t|\\n", "(a*)*", "(a?){3}", "(|a)+", "((a)|(b))+", "_", "(?-i)a",
            "(?U)a+", "[a\\-b]+", "\\^", "\\\\", "[\\^\\\\]", "(?:)", "x*y*|é", "[[:alpha:][:digit:]]+", "()", "a||b"]


def match_model(pattern, shape=("n",)):
    return node_model("RegexFullMatch", [("x", STRING, list(shape))], [("y", BOOL, None)], pattern=pattern)


@pytest.mark.parametrize("pattern", PATTERNS, ids=range(len(PATTERNS)))
def test_pattern(pattern):
    assert_as_runtime(match_model(pattern), [TEXTS], ("cpu",))


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 3), (0, 2), ()])
def test_shapes(shape):
    x = np.array(np.random.default_rng(2).choice(TEXTS, shape), object)
    assert_as_runtime(match_model("a.*|.", shape), [x])


def test_random_patterns():
    """Patterns of random trees, on random strings of three letters."""
    rng = np.random.default_rng(11)

    def tree(depth):
        kind = rng.integers(0, 7 if depth else 3)
        if kind < 3:
            return str(rng.choice(["a", "b", "é", ".", "[ab]", "[^a]", "\\b", "\\B", "^", "$", "(?i)É", ""]))
        if kind == 3:
            return f"(?:{tree(depth - 1)}|{tree(depth - 1)})"
        if kind < 6:
            return tree(depth - 1) + tree(depth - 1)
        return f"(?:{tree(depth - 1)})" + str(rng.choice(["*", "+", "?", "{2}", "{1,3}", "{0,2}?"]))
    texts = np.array(["".join(rng.choice(list("abé-"), n)) for n in rng.integers(0, 7, 300)], object)
    matched = 0
    for _ in range(60):
        matched += assert_as_runtime(match_model(tree(4)), [texts], ("cpu",))[0].sum()
    assert matched > 100


@pytest.mark.parametrize("pattern, error, words", [
    ("a**", "INVALID", ["repetition of a repetition", "character 2"]), ("*", "INVALID", ["repetition of nothing"]),
    ("(a", "INVALID", ["( without a )"]), ("a)", "INVALID", [") without a ("]), ("[a", "INVALID", ["[ without a ]"]),
    ("[b-a]", "INVALID", ["range whose end"]), ("a{3,2}", "INVALID", ["numbers in order"]), ("a{1001}", "INVALID", ["at most 1000"]),
    ("\\y", "INVALID", ["unknown escape"]), ("\\", "INVALID", ["\\ at the end"]), ("(?x)a", "INVALID", ["unknown flag"]),
    ("[[:what:]]", "INVALID", ["[:what:]"]), ("\\x{110000}", "INVALID", ["code point"]),
    ("(?=a)", "UNIMPLEMENTED", ["look around"]), ("(a)\\1", "UNIMPLEMENTED", ["reference to a group"]),
    ("\\pL", "UNIMPLEMENTED", ["\\p", "Unicode"]), ("(?:a|b)*a(?:a|b){14}", "UNIMPLEMENTED", ["16384 states"]),
    ("((((){1000}){1000}){1000}){1000}", "UNIMPLEMENTED", ["40000 steps"]), ("(?:(?:[ab]{1000}){1000})", "UNIMPLEMENTED", ["40000 steps"])])
def test_refused_patterns(context, pattern, error, words):
    onnx_cases.assert_refused(context, match_model(pattern), [np.zeros((1, 1), np.uint8)], error, ["node 'y' (RegexFullMatch)", *words])


def test_bytes_that_are_no_text():
    """Bytes that are not UTF-8 match nothing but themselves: no error, no match of a character."""
    x = np.array([[0xff, 0], [0xc3, 0], [0xc3, 0xa9], [0x80, 0x80]], np.uint8)
    model = match_model(".*")
    assert model.graph.input[0].type.tensor_type.elem_type == TensorProto.STRING
    assert backend.prepare(model, "cpu").run([x])[0].tolist() == [False, False, True, False]
