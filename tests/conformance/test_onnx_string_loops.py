"""Strings that Loop, Scan and SequenceMap carry, scan and stack, against ONNX Runtime."""
import keel
import numpy as np
import pytest
from keel.onnx import backend
from onnx import TensorProto, helper, numpy_helper
from string_models import INT64, STRING, assert_as_runtime, assert_gives, model_of, words

BOOL = TensorProto.BOOL
LONG = "of a constant, which is longer than every word of the tests, even the one of eighty letters: " + "z" * 20


def stored(**values):
    return [numpy_helper.from_array(np.array(value, object if isinstance(np.array(value).flat[0], str) else None), name) for name, value in values.items()]


def body(nodes, inputs, outputs):
    def infos(names):
        return [helper.make_tensor_value_info(name, kind, None if kind == STRING else []) for name, kind in names]
    return helper.make_graph(nodes, "body", infos(inputs), infos(outputs))


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


def loop_of(nodes, carried, stacked=(), on="on", k="k", **constants):
    """carried: name -> name after the body; counted by n if n is an input, and ended by the condition `on` unless it is kept."""
    if on == "on":
        nodes = [*nodes, node("Identity", "go", "on")]
    graph = body(nodes, [("i", INT64), ("go", BOOL), *((name, STRING) for name in carried)],
                 [(on, BOOL), *((name, STRING) for name in [*carried.values(), *stacked])])
    outputs = [f"y{k}" for k in range(len(carried) + len(stacked))]
    loop = helper.make_node("Loop", ["n", "", *(f"{name}_0" for name in carried)], outputs, body=graph)
    return model_of([loop], [("n", INT64, []), *((f"{name}_0", STRING, [k]) for name in carried), ("x", STRING, [k])],
                    [(name, STRING, None) for name in outputs], initializer=stored(**constants))


def feeds(n, k, seed=3, carried=1):
    rng = np.random.default_rng(seed)
    return [np.array(n), *(words(rng, k) for _ in range(carried)), words(rng, k)]


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_words_are_exchanged(n, k):
    """s, t = t, chosen(s): widths of both and of a longer constant meet."""
    model = loop_of([node("Identity", "t", "s_new"), node("Equal", "s x", "same"), node("Where", "same long s", "t_new")],
                    {"s": "s_new", "t": "t_new"}, long=[LONG])
    assert_as_runtime(model, feeds(n, k, carried=2))


@pytest.mark.parametrize("k", [0, 1, 4])
def test_a_loop_until_a_word_is_reached(k):
    """A list of words is gone through; the number of iterations depends on data."""
    nodes = [node("Add", "i one", "next"), node("Gather", "list next", "word"), node("Equal", "word last", "done"), node("Not", "done", "going"),
             node("Expand", "word shape", "s_new")]
    model = loop_of(nodes, {"s": "s_new"}, on="going", k=k, one=1, list=["a", "b", "naïve", LONG, "c"], last=LONG, shape=[k])
    (got,) = assert_as_runtime(model, feeds(100, k))
    assert got.tolist() == [LONG] * k


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("n", [1, 2, 6])
def test_results_are_stacked(n, device):
    model = loop_of([node("StringConcat", "x mark", "marked"), node("Equal", "s x", "same"), node("Where", "same marked s", "s_new"),
                     node("Gather", "list i", "word")], {"s": "s_new"}, ["marked", "word"], mark="!", list=["ä", "", "ccc", "d", "e", "f"])
    assert_as_runtime(model, feeds(n, 3), [device])


@pytest.mark.parametrize("n", [0, 1, 4])
def test_growing_strings_need_the_number_of_iterations(n):
    model = loop_of([node("StringConcat", "s x", "s_new"), node("Identity", "s_new", "seen")], {"s": "s_new"}, ["seen"])
    if n:
        assert_as_runtime(model, feeds(n, 3))
    else:
        with pytest.raises(keel.UnimplementedError, match="no iterations, and the body's result 'seen' has no known shape"):
            backend.prepare(model, "cpu").run(feeds(n, 3))


def test_growing_strings_of_unknown_iterations_are_refused():
    nodes = [node("StringConcat", "s x", "s_new"), node("Equal", "s_new x", "same"), node("Cast", "same", "ones", to=INT64),
             node("ReduceSum", "ones", "count", keepdims=0), node("Equal", "count zero", "going")]
    model = loop_of(nodes, {"s": "s_new"}, on="going", zero=0)
    with pytest.raises(keel.UnimplementedError, match="strings that it carries grow in its body, so the loop is unrolled, and the condition.*depends on data"):
        backend.prepare(model, "cpu").run(feeds(3, 2))


def scan_of(nodes, carried, scanned, outputs, feeds_of, **attributes):
    graph = body(nodes, [(name, STRING) for name in [*carried, *scanned]], [(name, STRING) for name in outputs])
    names = [f"y{k}" for k in range(len(outputs))]
    scan = helper.make_node("Scan", [*(f"{name}_0" for name in carried), *(f"{name}_all" for name in scanned)], names, body=graph,
                            num_scan_inputs=len(scanned), **attributes)
    return model_of([scan], feeds_of, [(name, STRING, None) for name in names])


@pytest.mark.parametrize("shape", [(1, 1), (3, 0), (4, 3), (5, 2)])
@pytest.mark.parametrize("attributes", [{}, {"scan_input_axes": [1]}, {"scan_input_directions": [1]}, {"scan_output_axes": [1], "scan_output_directions": [1]}],
                         ids=["plain", "axis", "backward", "turned results"])
def test_strings_are_scanned(shape, attributes):
    rng = np.random.default_rng(1)
    axis = attributes.get("scan_input_axes", [0])[0]
    x, s = words(rng, *shape), words(rng, shape[1 - axis])
    model = scan_of([node("Equal", "s x", "same"), node("Where", "same x s", "s_new"), node("StringConcat", "x s", "pair")], ["s"], ["x"],
                    ["s_new", "pair"], [("s_0", STRING, ["a"]), ("x_all", STRING, ["b", "c"])], **attributes)
    if shape[axis]:
        assert_as_runtime(model, [s, x])
    else:  # ONNX Runtime fails
        assert_gives(model, [s, x], [s, np.zeros((0, len(s)), object)])


def test_scan_of_opset_8():
    graph = body([node("Identity", "x", "s_new"), node("Identity", "s", "before")], [("s", STRING), ("x", STRING)], [("s_new", STRING), ("before", STRING)])
    scan = helper.make_node("Scan", ["", "s_0", "x_all"], ["last", "all"], body=graph, num_scan_inputs=1)
    model = model_of([scan], [("s_0", STRING, [1]), ("x_all", STRING, [1, 4])], [("last", STRING, None), ("all", STRING, None)], opset=8)
    got = backend.prepare(model, "cpu").run([np.array(["first"], object), np.array([["a", "的", "", "dd"]], object)])
    assert [each.tolist() for each in got] == [["dd"], [["first", "a", "的", ""]]]


def test_growing_strings_of_a_scan_are_refused():
    model = scan_of([node("StringConcat", "s x", "s_new")], ["s"], ["x"], ["s_new"], [("s_0", STRING, []), ("x_all", STRING, ["b"])])
    with pytest.raises(keel.UnimplementedError, match="strings that it carries grow in its body; expected one type in all iterations"):
        backend.prepare(model, "cpu").run([np.array("a", object), np.array(["b", "c"], object)])


@pytest.mark.parametrize("length", [0, 1, 3])
def test_sequence_map_takes_a_tensor_of_strings(length):
    graph = body([node("StringConcat", "part x", "made")], [("part", STRING), ("x", STRING)], [("made", STRING)])
    parts = [node("SequenceEmpty", "", "s0", dtype=STRING)] + [node("SequenceInsert", f"s{k} x", f"s{k + 1}") for k in range(length)]
    mapped = helper.make_node("SequenceMap", [f"s{length}", "x"], ["m"], body=graph)
    end = [node("SequenceLength", "m", "count")] + ([node("ConcatFromSequence", "m", "y", axis=0)] if length else [])
    outputs = [("count", INT64, None)] + ([("y", STRING, None)] if length else [])
    x = words(np.random.default_rng(2), 3)
    got = backend.prepare(model_of([*parts, mapped, *end], [("x", STRING, ["k"])], outputs), "cpu").run([x])
    assert int(got[0]) == length
    if length:
        assert got[1].tolist() == [word * 2 for word in x] * length


def test_loops_in_loops_and_branches():
    """An inner loop stacks what the outer one carries; a branch chooses among them. (ONNX Runtime loses strings of the inner stack.)"""
    inner = body([node("Where", "go x s", "t"), node("Identity", "t", "t_seen"), node("Identity", "inner_go", "inner_on")],
                 [("j", INT64), ("inner_go", BOOL), ("s", STRING)], [("inner_on", BOOL), ("t", STRING), ("t_seen", STRING)])
    chosen = {name: helper.make_graph([node("Identity", source, name)], name, [], [helper.make_tensor_value_info(name, STRING, None)])
              for name, source in (("yes", "u"), ("no", "long"))}
    nodes = [helper.make_node("Loop", ["two", "", "s"], ["u", "stack"], body=inner), node("Less", "i two", "early"),
             helper.make_node("If", ["early"], ["s_new"], then_branch=chosen["yes"], else_branch=chosen["no"]), node("Gather", "stack zero", "seen")]
    model = loop_of(nodes, {"s": "s_new"}, ["seen"], k=3, two=2, zero=0, long=[LONG] * 3)
    for n, last in (1, None), (2, None), (4, [LONG] * 3):
        *_, x = given = feeds(n, 3)
        assert_gives(model, given, [x if last is None else np.array(last, object), np.stack([x] * n)])
