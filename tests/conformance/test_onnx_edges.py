"""Ends of ranges, dims and names that random graphs (../onnx_proof) found wrong: small, large and negative numbers, empty dims, names that
look like Keel's own. Expected: NumPy in f64, ONNX Runtime, literals.
"""
import keel
import numpy as np
import pytest
from keel_abi import KeelError
from onnx import helper, numpy_helper
from onnx_cases import DEVICES, assert_refused, assert_similar, onnxruntime_run, run_model
from test_onnx_families import F, L, model_of

RANGES = {"Sinh": [1e-30, 1e-6, -0.011, 0.3, 0.999, 1.001, -3, 11.4, 88, -89.3, 89.4], "Cosh": [0, 1e-6, -1.5, 11.4, 88, -89.3, 89.4],
          "Asinh": [1e-30, -1e-6, 0.5, -90, 110, 9e4, -1.1e5, 1e20, -3e38], "Acosh": [1, 1.001, 2, 90, 110, 9e4, 1.1e5, 1e20, 3e38]}
SPECIAL = {"Sinh": [np.inf, -np.inf, np.nan], "Cosh": [np.inf, -np.inf, np.nan], "Asinh": [np.inf, -np.inf, np.nan],
           "Acosh": [np.inf, -np.inf, np.nan, 0.5, -2, -29, -1e4, -1e20]}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype, bound", [(np.float64, 1e-13), (F, 2e-6), (np.float16, 4e-3)])
@pytest.mark.parametrize("op", RANGES)
def test_hyperbolic_functions_over_their_whole_range(context, device, op, dtype, bound):
    with np.errstate(all="ignore"):
        x = np.array(RANGES[op] + SPECIAL[op], dtype)
        want = getattr(np, op.lower().replace("as", "arcs").replace("ac", "arcc"))(x.astype(np.float64)).astype(dtype)
    got = run_model(context, device, *model_of(op, [x], 9, {}))[0]
    assert got.dtype == dtype
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=bound, atol=1e-7 if dtype == np.float16 else 0)


@pytest.mark.parametrize("op, at", [("Sinh", 30.0), ("Sinh", 0.0), ("Cosh", -30.0), ("Asinh", 0.0), ("Asinh", 1e12), ("Acosh", 1e12), ("Acosh", 1.5)])
def test_gradients_at_the_ends_of_their_ranges_are_no_nan(context, tmp_path, op, at):
    model, (x,) = model_of(op, [np.array([at])], 9, {})
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    module = context.import_file(path)
    graph = module.graph_of()
    graph.result("d", graph.gradient([graph.find("y0")], [graph.find("x0")])[0])
    slope = {"Sinh": np.cosh, "Cosh": np.sinh, "Asinh": lambda x: 1 / np.sqrt(x * x + 1), "Acosh": lambda x: 1 / np.sqrt(x * x - 1)}[op]
    np.testing.assert_allclose(module.session("reference").run({"x0": x}, ["d"])[0], slope(x), rtol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint64, np.int8, np.int64])
def test_shrink_of_integers(context, device, dtype):
    x = np.array([0, 1, 2, 3, 7, 100], dtype)
    want = np.array([0, 0, 0, 1, 5, 98], dtype)
    assert_similar([want], run_model(context, device, *model_of("Shrink", [x], 9, {"bias": 2.0, "lambd": 2.0})), 0, 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows, axis", [((0, 1), 0), ((2, 0), -1), ((0, 3), -1)])
def test_hardmax_of_no_elements(context, device, rows, axis):
    assert_similar([np.zeros(rows, F)], run_model(context, device, *model_of("Hardmax", [np.zeros(rows, F)], 13, {"axis": axis})), 0, 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op, more", [("InstanceNormalization", {}), ("GroupNormalization", {"num_groups": 1})])
def test_norms_of_large_halves(context, device, op, more):
    """The square of 1000 is no half."""
    x = np.array([[[1000, 1, -3, 0.5], [2, -999, 5, 0]]], np.float16)
    y = x.astype(np.float64)
    axes = 2 if op[0] == "I" else (1, 2)
    want = (y - y.mean(axes, keepdims=True)) / np.sqrt(y.var(axes, keepdims=True) + 1e-5)
    got = run_model(context, device, *model_of(op, [x, np.ones(2, np.float16), np.zeros(2, np.float16)], 21, more))[0]
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_grid_of_one_cell_between_aligned_corners(context, device):
    """It is the first corner, as onnx.reference has it."""
    theta = np.array([[[2, 0, 0.5], [0, 3, 0.25]]], F)
    model, inputs = model_of("AffineGrid", [theta, np.array([1, 1, 1, 2])], 20, {"align_corners": 1})
    assert_similar([np.array([[[[-1.5, -2.75], [2.5, -2.75]]]], F)], run_model(context, device, model, inputs), 1e-6, 1e-6)


def with_open_sizes(model):
    for k, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
        dim.dim_param = f"n{k}"
    return model


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [(2, 3), (0, 1), (2, 0)])
def test_hardmax_of_open_sizes(context, device, rows):
    x = -np.arange(6, dtype=F)[:np.prod(rows)].reshape(rows)
    model, inputs = model_of("Hardmax", [x], 13, {"axis": 1})
    want = np.zeros(rows, F)
    want[:, :1] = 1
    assert_similar([want], run_model(context, device, with_open_sizes(model), inputs), 0, 0)


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel", "asymmetric"])
def test_nearest_neighbours_of_open_sizes(context, nearest, coordinates):
    """Repetition of each element, or computed places."""
    x = np.arange(4, dtype=F).reshape(1, 4)
    model, inputs = model_of("Resize", [x, None, np.array([1, 3], F)], 13, {"nearest_mode": nearest, "coordinate_transformation_mode": coordinates})
    model.graph.input.pop()
    model.graph.initializer.append(numpy_helper.from_array(inputs.pop(), "x2"))
    want = onnxruntime_run(model, inputs)
    assert_similar(want, run_model(context, "reference", with_open_sizes(model), inputs), 0, 0)


@pytest.mark.parametrize("start, end, want", [(-9, -9, [0]), (-2**31, -2**31, [0]), (-9, 0, []), (9, -9, [3, 2, 1, 0]), (-2, -9, [2, 1, 0])])
def test_starts_before_the_first_element_of_backward_slices_are_the_first(context, start, end, want):
    model, inputs = model_of("Slice", [np.arange(4.0), *(np.array([v]) for v in (start, end, 0, -1))], 13, {})
    assert_similar([np.array(want, float)], run_model(context, "reference", model, inputs), 0, 0)
    assert_similar(onnxruntime_run(model, inputs), run_model(context, "reference", model, inputs), 0, 0)
    assert_similar([np.array(want, float)], run_model(context, "reference", with_open_sizes(model), inputs), 0, 0)
    inputs[0] = inputs[0][:0]
    assert_similar(inputs[:1], run_model(context, "reference", with_open_sizes(model), inputs), 0, 0)


@pytest.mark.parametrize("op", ["Abs", "Neg"])
def test_the_lowest_integer_in_constants(context, op):
    """They are read as sizes, which end at -2^62."""
    x = np.array([-2**63, -2**62, -5], L)
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [], [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(x, "x")])
    got = run_model(context, "reference", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), [])
    assert_similar([np.array([-2**63, 2**62, 5], L)], got, 0, 0)


def reversing(lens, constant):
    model, inputs = model_of("ReverseSequence", [np.arange(8, dtype=F).reshape(4, 2), np.array(lens)], 10, {"batch_axis": 1, "time_axis": 0})
    if constant:
        model.graph.input.pop()
        model.graph.initializer.append(numpy_helper.from_array(inputs.pop(), "x1"))
    return model, inputs


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("constant", [True, False])
def test_lengths_of_reversed_sequences(context, device, constant):
    model, inputs = reversing([0, 4], constant)
    got = run_model(context, device, model, inputs)
    assert_similar([np.array([[0, 7], [2, 5], [4, 3], [6, 1]], F)], got, 0, 0)
    assert_similar(onnxruntime_run(model, inputs), got, 0, 0)


@pytest.mark.parametrize("lens, at", [([0, 5], 1), ([-1, 2], 0)])
def test_lengths_that_reversed_sequences_do_not_have(context, lens, at):
    model, inputs = reversing(lens, True)
    with pytest.raises(Exception, match="Invalid sequence length"):
        onnxruntime_run(model, inputs)
    assert_refused(context, model, inputs, "INVALID", [f"(ReverseSequence): sequence_lens ('x1') has {lens[at]} at index {at}; expected lengths from 0 to 4"])
    model, inputs = reversing(lens, False)
    with pytest.raises(KeelError, match=rf"sequence_lens \('x1'\)\W+index {lens[at]} is not in \[0, 5\)"):
        run_model(context, "cpu", model, inputs)


LOW = np.array([[-2**63, 5], [3, -2**62 - 7]], L)
MOVED = [("Size", [], {}, L(4)), ("Shape", [], {}, L([2, 2])), ("Reshape", [[4]], {}, LOW.reshape(4)), ("Transpose", [], {}, LOW.T),
         ("Unsqueeze", [[0]], {}, LOW[None]), ("Squeeze", [], {}, LOW), ("Gather", [[1]], {}, LOW[1:]), ("Gather", [0], {"axis": 1}, LOW[:, 0]),
         ("Slice", [[1], [-2**63], [0], [-1]], {}, LOW[::-1]), ("Concat", [LOW], {"axis": 1}, np.concatenate([LOW, LOW], 1)),
         ("Expand", [[3, 2, 2]], {}, np.stack([LOW] * 3)), ("Split", [[2]], {}, LOW), ("Identity", [], {}, LOW)]


@pytest.mark.parametrize("op, more, attributes, want", MOVED, ids=[f"{k} {row[0]}" for k, row in enumerate(MOVED)])
def test_constants_with_the_lowest_integer_are_moved(context, op, more, attributes, want):
    names = ["x", *(f"m{k}" for k in range(len(more)))]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes), helper.make_node("Identity", ["y"], ["z"])], "g", [],
                              [helper.make_empty_tensor_value_info("z")], [numpy_helper.from_array(np.array(v, L), n) for n, v in zip(names, [LOW, *more])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    got = run_model(context, "reference", model, [])
    assert_similar([np.asarray(want)], got, 0, 0)
    assert_similar(onnxruntime_run(model, []), got, 0, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_constants_with_names_that_keel_gives_to_others(context, device):
    """Weights without a name of their own are c0, c1 ... in a Keel module."""
    weights = {f"c{k}": np.full(3, k + 1.0, F) for k in range(4)}
    nodes = [helper.make_node("Resize", ["x", "", "", "sizes"], ["r"], mode="linear")]
    for k, name in enumerate(weights):
        nodes.append(helper.make_node("Mul", [nodes[-1].output[0], name], [f"m{k}"]))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, [1, 2])], [helper.make_empty_tensor_value_info("m3")],
                              [numpy_helper.from_array(v, k) for k, v in weights.items()] + [numpy_helper.from_array(np.array([1, 3]), "sizes")])
    model, x = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), np.array([[1, 2]], F)
    assert_similar(onnxruntime_run(model, [x]), run_model(context, device, model, [x]), 1e-6, 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows, columns", [(3, 5), (2, 1), (0, 4), (1, 7)])
def test_ranges_by_an_open_size(context, device, rows, columns):
    """The places of the rows of a matrix without gaps, as torch exports EmbeddingBag."""
    nodes = [helper.make_node("Size", ["x"], ["all"]), helper.make_node("Shape", ["x"], ["step"], start=1, end=2),
             helper.make_node("Squeeze", ["step"], ["by"]), helper.make_node("Range", ["none", "all", "by"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["n", "m"])], [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(np.array(0), "none")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    want = [np.arange(0, rows * columns, columns)]
    assert_similar(want, run_model(context, device, model, [np.zeros((rows, columns), F)]), 0, 0)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool", "Conv"])
def test_strides_above_the_window_need_no_padding(context, op, mode):
    """The formula for pads is negative then; runtimes cut the image in four ways, ONNX's own Conv pads nothing."""
    x = np.arange(1, 9, dtype=F).reshape(1, 1, 8)
    model, inputs = model_of(op, [x, np.ones((1, 1, 1), F)][:2 if op == "Conv" else 1], 19, {"auto_pad": mode, "strides": [4], "kernel_shape": [1]})
    assert_similar([np.array([[[1, 5]]], F)], run_model(context, "reference", model, inputs), 0, 0)


def expanding(source, target):
    """x[:source, ..] expanded to the first `target` rows of x's dims."""
    nodes = [helper.make_node("Shape", ["x"], ["dims"]), helper.make_node("Gather", ["dims", "0"], ["n"]), helper.make_node("Gather", ["dims", "1"], ["m"]),
             helper.make_node("Min", ["n", str(source)], ["from"]), helper.make_node("Min", ["n", str(target)], ["to"]),
             helper.make_node("Slice", ["x", "0", "from", "0"], ["part"]), helper.make_node("Concat", ["to", "m"], ["shape"], axis=0),
             helper.make_node("Expand", ["part", "shape"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["n", "m"])], [helper.make_tensor_value_info("y", 1, None)],
                              [numpy_helper.from_array(np.array([k], L), str(k)) for k in range(3)])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("source, target", [(1, 2), (2, 1), (2, 2)])
def test_expand_of_sizes_that_only_a_run_can_compare(context, source, target):
    """Equal sizes pass; a 1 is stretched if the import knows it, as by fixed sizes; else the run names both."""
    for n in (0, 1, 2, 5):
        model, x = expanding(source, target), np.arange(3 * n, dtype=F).reshape(n, 3)
        expected = onnxruntime_run(model, [x])
        sides = [min(n, source), min(n, target)]
        if sides[0] == sides[1]:
            assert_similar(expected, run_model(context, "reference", model, [x]), 0, 0)
        else:
            assert_refused(context, model, [x], "INVALID", [f"broadcast_to: [min(n, {source}), m] does not broadcast to [min(n, {target}), m]",
                                                            f"{sides[0]} is not equal to {sides[1]}"])
            with pytest.raises(keel.InvalidError, match="a symbolic size of 1 is not broadcast: give it as a number"):
                keel.from_onnx(model)(x)
        for value, size in zip(model.graph.input[0].type.tensor_type.shape.dim, x.shape):
            value.dim_value = size
        assert_similar(expected, run_model(context, "reference", model, [x]), 0, 0)
