"""Strings that models look up: LabelEncoder, CategoryMapper, Equal, and operators that only move them, as in ONNX Runtime."""
import keel
import numpy as np
import pytest
from keel.onnx import backend
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import DEVICES
from string_models import FLOAT, INT64, STRING, WORDS, assert_as_evaluator, assert_as_runtime, model_of, node_model, tensor, words

ML = "ai.onnx.ml"


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (3, 5), (2, 0, 3), ()])
def test_label_encoder(shape):
    x = words(np.random.default_rng(3), *shape)
    numbers = {"keys_strings": WORDS[2:], "values_int64s": list(range(-5, len(WORDS) - 7)), "default_int64": 77}
    assert_as_runtime(node_model("LabelEncoder", [("x", STRING, [None] * len(shape))], [("y", INT64, None)], ML, ml=2, **numbers), [x])
    texts = {"keys_strings": WORDS[::2], "values_strings": WORDS[::-2], "default_string": "nö"}
    assert_as_runtime(node_model("LabelEncoder", [("x", STRING, list(shape))], [("y", STRING, None)], ML, ml=2, **texts), [x])
    back = {"keys_int64s": [5, -9, 2**62, 5, -2**63], "values_strings": ["five", "-nine", "big", "other five", "low"]}
    numbers = np.random.default_rng(4).choice([5, -9, 2**62, 0, -2**63], shape)
    assert_as_runtime(node_model("LabelEncoder", [("x", INT64, list(shape))], [("y", STRING, None)], ML, ml=2, **back), [np.array(numbers)])


def test_label_encoder_of_tensors():
    keys, values = tensor("k", STRING, ["a", "的"]), tensor("v", FLOAT, [1.5, -2.0])
    x = np.array([["的", "b"], ["a", "aa"]], object)
    model = node_model("LabelEncoder", [("x", STRING, [2, None])], [("y", FLOAT, None)], ML, keys_tensor=keys, values_tensor=values,
                       default_tensor=tensor("d", FLOAT, [9.0]))
    assert_as_runtime(model, [x])


def test_large_vocabulary():
    """5,000 words of up to 60 bytes, in 1 to 3,000 strings of several widths: the plan of one function."""
    rng = np.random.default_rng(5)
    vocabulary = sorted({"".join(rng.choice(list("abcdé的"), int(n))) for n in rng.integers(1, 20, 9000)})[:5000]
    assert len(vocabulary) == 5000
    rng.shuffle(vocabulary)
    model = node_model("LabelEncoder", [("x", STRING, ["n"])], [("y", INT64, None)], ML, ml=2, keys_strings=vocabulary,
                       values_int64s=list(range(5000)))
    for n, width in ((1, 3), (700, 40), (3000, 90), (0, 1)):
        assert_as_runtime(model, [words(rng, n, of=[w[:width] for w in vocabulary] + ["unknown " * 12])], ("cpu",))


@pytest.mark.parametrize("n", [0, 1, 9])
def test_category_mapper(n):
    cats = {"cats_strings": WORDS[1:7], "cats_int64s": [10, 20, 30, 40, 50, 60]}
    model = node_model("CategoryMapper", [("x", STRING, ["n"])], [("y", INT64, None)], ML, default_int64=-7, **cats)
    assert_as_runtime(model, [words(np.random.default_rng(6), n)])
    model = node_model("CategoryMapper", [("x", INT64, ["n"])], [("y", STRING, None)], ML, default_string="none", **cats)
    assert_as_runtime(model, [np.random.default_rng(7).integers(1, 8, n) * 10])


def test_label_encoder_of_version_1():
    classes = {"classes_strings": ["a", "的", "b"], "default_int64": 9, "default_string": "none"}
    x = np.array([["的", "x"], ["b", "a"]], object)
    assert_as_runtime(node_model("LabelEncoder", [("x", STRING, [2, 2])], [("y", INT64, None)], ML, ml=1, **classes), [x])
    x = np.array([0, 2, 3, -1, 2**40])
    assert_as_runtime(node_model("LabelEncoder", [("x", INT64, [5])], [("y", STRING, None)], ML, ml=1, **classes), [x])


NUMBERS = ["0", "7", "-7", "+12", "00120", "-0", "123456789012345678", "-999999999999999999"]


def cast_model(kinds, to, shape=("n",), **attributes):
    return node_model("Cast", [("x", kinds[0], list(shape))], [("y", kinds[1], None)], to=to, **attributes)


@pytest.mark.parametrize("shape", [(0,), (1,), (20,), (2, 3), ()])
def test_cast_of_integers(shape):
    rng = np.random.default_rng(10)
    assert_as_runtime(cast_model((STRING, INT64), INT64, shape), [words(rng, *shape, of=NUMBERS)])
    numbers = [0, 1, -1, 10, 99, -100, 2**63 - 1, -2**63, 10**18, -10**18, 1234567890123456789]
    assert_as_runtime(cast_model((INT64, STRING), STRING, shape), [np.array(rng.choice(numbers, shape))])


@pytest.mark.parametrize("word", ["", "x", "1x", "-", "1.5", "1 ", "--1", "1-", "1234567890123456789"])
def test_strings_that_are_no_integers(word):
    with pytest.raises(keel.Error, match="a string is no integer; expected 1 to 18 digits, after a sign or none"):
        backend.prepare(cast_model((STRING, INT64), INT64), "cpu").run([np.array(["1", word], object)])


def test_cast_of_constants_to_floats():
    stored = numpy_helper.from_array(np.array([["1.5", "-2e-3"], ["+.25", "1e300"]], object), "k")
    nodes = [helper.make_node("Cast", ["k"], ["f"], to=FLOAT), helper.make_node("Add", ["f", "x"], ["y"])]
    model = model_of(nodes, [("x", FLOAT, [1])], [("y", FLOAT, None)], initializer=[stored])
    got = backend.prepare(model, "cpu").run([np.zeros(1, np.float32)])[0]
    assert got.tolist() == np.array([[1.5, -2e-3], [0.25, np.inf]], np.float32).tolist()


WRITTEN = [0.0, -0.0, 1, -1, 10, 0.1, 123456.125, 123456.375, 12345678, 99999999.5, 99999996, 1e8, 123456789, 1e-4, 9.9999999e-5, 0.00012345678,
           123456785, 12345678.5, 12345679.5, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1e-100, 9.9999999499999995e99, 1e100,
           4503599627370497.5, 2**60 * 5.0**8, 2.0**-40, 99999999.49999999, -1.5e-10, 3.4028235e38, -3.4028235e38, 1.1754944e-38, 1e-45, 7e-44, 16777217, 2.5, 1e22, np.inf, -np.inf, np.nan]


def as_c_writes(x):
    names = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}
    return np.array([names.get(text, text) for text in ("%.8g" % float(each) for each in x.flat)], object).reshape(x.shape)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind, dtype", [(FLOAT, np.float32), (TensorProto.FLOAT16, np.float16), (TensorProto.DOUBLE, np.float64)])
def test_cast_of_floats(device, kind, dtype):
    rng = np.random.default_rng(4)
    with np.errstate(over="ignore"):
        numbers = np.array(WRITTEN).astype(dtype)
    bits = rng.integers(0, 1 << 16, (40, 50, dtype().itemsize // 2), np.uint16).view(dtype)[..., 0]
    with np.errstate(over="ignore"):
        halves = ((rng.integers(10**7, 10**8, 500) + 0.5) * 10.0 ** rng.integers(-8, 9, 500)).astype(dtype)
        ties = np.array([n * 5 // 5**j * 5.0**j / 10**j for j in range(13) for n in rng.integers(10**7, 2 * 10**8, 40) | 1]).astype(dtype)
    for x in ties, halves, np.nextafter(halves, 0), numbers, bits, numbers[:1], numbers[:0], numbers[5].reshape(()), (rng.integers(-10**6, 10**6, (3, 500)) / 100).astype(dtype):
        got, = backend.prepare(cast_model((kind, STRING), STRING, x.shape), device).run([x])
        np.testing.assert_array_equal(got, as_c_writes(x))


def test_cast_of_floats_as_onnx_runtime():
    with np.errstate(over="ignore"):
        assert_as_runtime(cast_model((FLOAT, STRING), STRING), [np.array(WRITTEN).astype(np.float32)])
    assert_as_runtime(cast_model((TensorProto.DOUBLE, STRING), STRING), [np.array(WRITTEN)])
    with pytest.raises(keel.UnimplementedError, match="u64 to strings; integers of up to i64, f16, bf16, f32 and f64 can be cast"):
        backend.prepare(cast_model((TensorProto.UINT64, STRING), STRING))


FLOATS = ["0", "-0", "1", "+2.5", "-.5", "3.", "1e5", "1E-5", "-2.5e+3", "0.1", "123456.789", "00012.50", "3.4028235e38", "1e40", "-1e400",
          "1e-400", "0e999999999999", "INF", "-inf", "+Infinity", "NaN", "0." + "0" * 20 + "1", "9" * 15, "1" + "0" * 22, "1e22"]
LONG = ["3.14159265358979323846", "2.2250738585072014e-308", "123456789012345678e-30", "1.7976931348623157e308", "1e-45", "0." + "0" * 30 + "17",
        "4503599627370497.5"]


@pytest.mark.parametrize("kind, dtype", [(FLOAT, np.float32), (TensorProto.DOUBLE, np.float64)])
@pytest.mark.parametrize("device", DEVICES)
def test_cast_to_floats(device, kind, dtype):
    """As Python reads them: the nearest floats, of up to 15 digits and powers of ten up to 22. ONNX Runtime refuses some of the ends."""
    got, = backend.prepare(cast_model((STRING, kind), kind), device).run([np.array(FLOATS, object)])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, np.array([float(word) for word in FLOATS]).astype(dtype))
        assert np.signbit(got[1])
        got, = backend.prepare(cast_model((STRING, kind), kind), device).run([np.array(LONG, object)])
        np.testing.assert_allclose(got, np.array([float(word) for word in LONG]).astype(dtype), rtol=5e-16 if dtype == np.float64 else 0)


def test_cast_to_floats_as_onnx_runtime():
    assert_as_runtime(cast_model((STRING, FLOAT), FLOAT, (2, 3)), [np.array([["1.25", "-3e2", "0.1"], ["7", "+1.5e-3", "NaN"]], object)])
    assert_as_runtime(cast_model((STRING, FLOAT), FLOAT, (0,)), [np.array([], object)])


@pytest.mark.parametrize("word", ["", "-", ".", "e5", "1e", "1e+", "1.2.3", "1e5e5", "1e5.0", "--1", "1-", "1 ", " 1", "0x10", "infin", "nano", "1f", "é"])
def test_strings_that_are_no_floats(word):
    with pytest.raises(keel.Error, match="a string is no number; expected digits, a point and an exponent, or inf or nan"):
        backend.prepare(cast_model((STRING, FLOAT), FLOAT), "cpu").run([np.array(["1", word], object)])


def test_equal_and_concat():
    rng = np.random.default_rng(8)
    for x, y in ((words(rng, 4, 3, of=WORDS[:4]), words(rng, 3, of=WORDS[:4])), (words(rng, 1, 1), words(rng, 5)),
                 (words(rng, 0, 2), words(rng, 2))):
        pair = [("x", STRING, x.shape), ("y", STRING, y.shape)]
        assert_as_runtime(node_model("Equal", pair, [("z", 9, None)]), [x, y])
        assert_as_runtime(node_model("StringConcat", pair, [("z", STRING, None)]), [x, y])
    pair = [("x", STRING, [None, 2]), ("y", STRING, [None, 2])]
    for n, m in ((3, 4), (0, 1), (1, 0)):
        assert_as_runtime(node_model("Concat", pair, [("z", STRING, None)], axis=0), [words(rng, n, 2), words(rng, m, 2)])


def test_moves():
    """Operators that move elements take strings, of inputs and of constants with other widths. The oracle is ONNX's evaluator: ONNX
    Runtime 1.31 loses strings that Gather repeats."""
    stored = numpy_helper.from_array(np.array([["of a constant", "é"], ["", "z"]], object), "k")
    index = numpy_helper.from_array(np.array([1, -1, 0]), "i")
    shape, axes = numpy_helper.from_array(np.array([-1, 2]), "s"), numpy_helper.from_array(np.array([0]), "a")
    nodes = [helper.make_node("Gather", ["x", "i"], ["g"], axis=0), helper.make_node("Transpose", ["g"], ["t"], perm=[1, 0]),
             helper.make_node("Reshape", ["t", "s"], ["r"]), helper.make_node("Concat", ["r", "k", "r"], ["c"], axis=0),
             helper.make_node("Unsqueeze", ["c", "a"], ["u"]), helper.make_node("Identity", ["u"], ["y"]),
             helper.make_node("Shape", ["y"], ["d"]), helper.make_node("Where", ["p", "k", "x"], ["w"])]
    model = model_of(nodes, [("x", STRING, ["n", 2]), ("p", 9, [2, 2])],
                     [("y", STRING, None), ("d", INT64, None), ("w", STRING, None)], initializer=[stored, index, shape, axes])
    rng = np.random.default_rng(9)
    assert_as_evaluator(model, [words(rng, 2, 2), np.array([[True, False], [False, True]])])
