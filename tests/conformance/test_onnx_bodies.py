"""Types of what If, Loop and Scan return, carry, scan and stack: errors name the model's nodes, values and both types; loops whose values
change their shape are unrolled. Oracles: ONNX Runtime, literals."""
import numpy as np
import onnx
import pytest
from onnx_cases import DEVICES, assert_refused, assert_similar, onnxruntime_run, run_model

F = np.float32
X = np.array([1, 2], F)


def model(text):
    return onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 21]> ' + text)


def loop(body, trips="n", condition="true", extra="", results="float[k] final"):
    return model("""agraph (float[2] x, float[1] fed) => (RESULTS) {
  true = Constant <value = bool {1}> ()
  n = Constant <value_int = 3> ()
  total = ReduceSum (fed)
  many = Cast <to = 7> (total)
  EXTRA
  final = Loop <body = round (int64 i, bool on, float[k] h) => (bool on_, float[m] h_) { BODY }> (TRIPS, CONDITION, x)
}""".replace("EXTRA", extra).replace("BODY", body).replace("TRIPS", trips).replace("CONDITION", condition).replace("RESULTS", results))


GROWS = "on_ = Identity (on) h_ = Concat <axis = 0> (h, h)"
ONE = np.ones(1, F)


@pytest.mark.parametrize("device", DEVICES)
def test_a_carried_value_that_grows(context, device):
    proto = loop(GROWS)
    got = run_model(context, device, proto, [X, ONE])
    assert_similar([np.tile(X, 8)], got, 0, 0)
    assert_similar(onnxruntime_run(proto, [X, ONE]), got, 0, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_a_carried_value_that_grows_once(context, device):
    """As PyTorch's exports begin with an empty tensor or a scalar."""
    proto = loop("on_ = Identity (on) one = Constant <value = int64[1] {4}> () low = Cast <to = 1> (i) h_ = Expand (low, one)")
    got = run_model(context, device, proto, [X, ONE])
    assert_similar([np.full(4, 2, F)], got, 0, 0)
    assert_similar(onnxruntime_run(proto, [X, ONE]), got, 0, 0)


BEFORE_AND_AFTER = "the value that it carries as 'h' is f32[2] before its body and f32[4] after it ('h_')"
WHOLE = "on_ = Identity (on) h_ = Neg (h)"
LOOPS = {
    "it grows as often as data say": (loop(GROWS, "many"), "UNIMPLEMENTED", [BEFORE_AND_AFTER, "unrolled", "its trip count must be known", "data"]),
    "it grows until data end it": (loop("sum = ReduceSum <keepdims = 0> (h) on_ = Cast <to = 9> (sum) h_ = Concat <axis = 0> (h, h)"), "UNIMPLEMENTED",
                                   [BEFORE_AND_AFTER, "unrolled", "the condition after iteration 0"]),
    "its dtype changes": (loop("on_ = Identity (on) h_ = Cast <to = 11> (h)"), "INVALID",
                          ["'h' is f32[2] before its body and f64[2] after it ('h_')", "one dtype", "cast"]),
    "its count is a float": (loop(WHOLE, "fed"), "INVALID", ["its trip count ('fed') is f32[1]; expected one integer"]),
    "its count is two numbers": (loop(WHOLE, "two", extra="two = Concat <axis = 0> (many, many)"), "INVALID",
                                 ["its trip count ('two') is i64[2]; expected one integer"]),
    "its condition is a number": (loop(WHOLE, condition="many"), "INVALID", ["its condition ('many') is i64[1]; expected one bool"]),
    "its body's condition is a number": (loop("on_ = ReduceSum <keepdims = 0> (h) h_ = Neg (h)"), "INVALID",
                                         ["the condition that its body returns ('on_') is f32[]; expected one bool"]),
    "its body's condition is two bools": (loop("on_ = Cast <to = 9> (h) h_ = Neg (h)"), "INVALID",
                                          ["the condition that its body returns ('on_') is bool[2]; expected one bool"]),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_refused(context, name):
    proto, code, words = LOOPS[name]
    assert_refused(context, proto, [X, ONE], code, ["node 'final' (Loop): ", *words])


STACKS = """agraph (float[2] x) => (float[k] last, float[n, m] all) {
  n = Constant <value_int = 2> ()
  last, all = Loop <body = round (int64 i, bool on, float[k] h) => (bool on_, float[m] h_, float[k] seen) {
    on_ = Identity (on) h_ = Concat <axis = 0> (h, h) seen = Identity (h)
  }> (n, , x)
}"""
MORE = STACKS.replace("last, all =", "last, all, more =")
STRAY = STACKS.replace("Identity (h)", "Add (h, lost)")


@pytest.mark.parametrize("text, words", [(STACKS, "'seen' that its body stacks is f32[2] in iteration 0 and f32[4] in iteration 1; expected one type"),
                                         (MORE, "node 'last' (Loop): it has 3 results, but its body makes 2"),
                                         (STRAY, "node 'seen' (Add) reads 'lost', which no earlier node produces")])
def test_results_of_bodies_are_refused(context, text, words):
    assert_refused(context, model(text), [X], "INVALID", [words])


def choice(yes, no, condition="p", outputs="y"):
    return model("""agraph (float[2] x, float[n] fed) => (float[k] y) {
  many = Cast <to = 7> (fed)
  sum = ReduceSum <keepdims = 0> (x)
  p = Cast <to = 9> (sum)
  OUTPUTS = If <then_branch = a () => (float[m] yes) { YES }, else_branch = b () => (float[m] no) { NO }> (CONDITION)
}""".replace("YES", yes).replace("NO", no).replace("CONDITION", condition).replace("OUTPUTS", outputs))


SAME = "yes = Neg (x)"
CHOICES = {
    "shapes differ": (choice(SAME, "no = ReduceSum <keepdims = 1> (x)"), "UNIMPLEMENTED",
                      ["result 0 ('y') of its branches differs: f32[2] in then_branch ('yes'), f32[1] in else_branch ('no')", "dim.NAME"]),
    "an open size differs": (choice(SAME, "no = Neg (fed)"), "UNIMPLEMENTED", ["f32[2] in then_branch ('yes'), f32[n] in else_branch ('no')"]),
    "dtypes differ": (choice(SAME, "no = Cast <to = 11> (x)"), "UNIMPLEMENTED", ["f32[2] in then_branch ('yes'), f64[2] in else_branch ('no')"]),
    "the condition is two bools": (choice(SAME, "no = Neg (x)", "both").graph, "INVALID", ["its condition ('both') is bool[2]; expected one bool"]),
    "the condition is a number": (choice(SAME, "no = Neg (x)", "sum"), "INVALID", ["its condition ('sum') is f32[]; expected one bool"]),
    "a branch lacks a result": (choice(SAME, "no = Neg (x)", outputs="y, z"), "INVALID", ["its branches have 1 and 1 outputs; expected 2"]),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_are_refused(context, name):
    proto, code, words = CHOICES[name]
    if isinstance(proto, onnx.GraphProto):
        proto.node.insert(0, onnx.helper.make_node("Cast", ["x"], ["both"], to=onnx.TensorProto.BOOL))
        proto = onnx.helper.make_model(proto, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    assert_refused(context, proto, [X, ONE], code, ["node 'y' (If): ", *words])


def scan(body, inputs="float[3, 2] a, float[3, 2] b"):
    return model("""agraph (float[2] x, INPUTS) => (float[k] last, float[t, m] all) {
  last, all = Scan <num_scan_inputs = 2, body = step (float[m] h, float[2] p, float[2] q) => (float[m] h_, float[m] seen) { BODY }> (x, a, b)
}""".replace("INPUTS", inputs).replace("BODY", body))


ADDS = "sum = Add (p, q) h_ = Add (h, sum) seen = Neg (h_)"
SCANS = {
    "its state grows": (scan("h_ = Concat <axis = 0> (h, p) seen = Neg (q)"), "UNIMPLEMENTED", [BEFORE_AND_AFTER, "expected one type in all iterations"]),
    "its state's dtype changes": (scan("h_ = Cast <to = 11> (h) seen = Neg (q)"), "INVALID", ["f32[2] before its body and f64[2] after it"]),
    "lengths differ": (scan(ADDS, "float[3, 2] a, float[4, 2] b"), "INVALID", ["it scans 3 entries of 'a' and 4 of 'b'; expected as many"]),
    "open lengths may differ": (scan(ADDS, "float[s, 2] a, float[t, 2] b"), "UNIMPLEMENTED", ["it scans s entries of 'a' and t of 'b'", "--dim"]),
    "packed entries are scanned": (scan("h_ = Neg (h) w = Cast <to = 1> (q) seen = Neg (w)", "float[3, 2] a, int4[3, 2] b"), "UNIMPLEMENTED",
                                   ["the operand 'b' that it scans is INT4", "packed", "INT8"]),
    "packed results are stacked": (scan("h_ = Add (h, q) seen = Cast <to = 22> (p)"), "UNIMPLEMENTED", ["'seen' that its body stacks is INT4[2]", "packed", "INT8"]),
    "stacked dims are too many": (scan("h_ = Add (h, q) axes = Constant <value_ints = [1, 2, 3, 4, 5, 6, 7]> () seen = Unsqueeze (p, axes)"), "UNIMPLEMENTED",
                                  ["'seen' that its body stacks is f32[2, 1, 1, 1, 1, 1, 1, 1]", "9 dims", "at most 8"]),
}


@pytest.mark.parametrize("name", SCANS)
def test_scans_are_refused(context, name):
    proto, code, words = SCANS[name]
    assert_refused(context, proto, [X, np.zeros((3, 2), F), np.zeros((3, 2), F)], code, ["node 'last' (Scan): ", *words])
