"""NonZero, Compress, Unique and Slice in models whose sizes only a run knows; onnx.reference and NumPy are the oracles."""
import numpy as np
import onnx
import pytest
from keel_abi import KeelError
from onnx.reference import ReferenceEvaluator
from onnx_cases import DEVICES, assert_similar, run_model

SIZES = (1, 2, 7, 40, 0)


def model(text):
    return onnx.parser.parse_model('<ir_version: 9, opset_import: ["": 18]> ' + text)


def numbers(*dims):
    return np.random.default_rng(sum(dims)).integers(-2, 3, dims).astype("f4")


CHAIN = """agraph (float[n, 3] x) => (int64[2, m] places, float[m] found, float[k, 3] rows, int64[1] count) {
  zero = Constant <value = float {0.0}> ()
  axes = Constant <value_ints = [1]> ()
  places = NonZero (x)
  turned = Transpose <perm = [1, 0]> (places)
  found = GatherND (x, turned)
  sums = ReduceSum <keepdims = 0> (x, axes)
  keep = Greater (sums, zero)
  rows = Compress <axis = 0> (x, keep)
  count = Shape (found)
}"""
UNIQUE = """agraph (float[n] x) => (float[m] y, int64[m] first, int64[n] places, int64[m] counts) {
  y, first, places, counts = Unique <sorted = SORTED> (x)
}"""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("text, dims", [(CHAIN, (3,)), (UNIQUE.replace("SORTED", "0"), ()), (UNIQUE.replace("SORTED", "1"), ())],
                         ids=["chain", "unsorted", "sorted"])
def test_one_plan_serves_all_sizes(context, device, tmp_path, text, dims):
    proto = model(text)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    plan = context.import_file(tmp_path / "m.onnx").session(device).prepare()
    oracle = ReferenceEvaluator(proto)
    for n in (*SIZES, 7):
        x = numbers(n, *dims)
        if n or dims:  # the oracle's Unique has no empty operand
            assert_similar(oracle.run(None, {"x": x}), plan.run(x), 0, 0, f"n = {n}")
        else:
            assert [y.shape for y in plan.run(x)] == [(0,)] * 4


ALONG = """agraph (T[dims] x) => (T[more] y, int64[m] first, int64[n] places, int64[m] counts) {
  y, first, places, counts = Unique <axis = AXIS, sorted = SORTED> (x)
}"""


def unique(x, axis, by_value):
    """numpy.unique along axis; ONNX's reference has a fault in the unsorted form."""
    y, first, places, counts = np.unique(x, True, True, True, axis=axis)
    turn = np.arange(len(first)) if by_value else np.argsort(first)
    return [y.take(turn, axis), first[turn], np.argsort(turn)[places.reshape(-1)], counts[turn]]


@pytest.mark.parametrize("by_value", [0, 1], ids=["unsorted", "sorted"])
@pytest.mark.parametrize("shape, axis", [((7, 2), 0), ((2, 40), -1), ((2, 30, 2), 1), ((3, 2, 2, 9), 3), ((9, 1, 1), 0), ((1, 4), 0),
                                         ((5, 0), 0), ((2, 1, 3), 1), ((30,), 0), ((30,), -1)])
@pytest.mark.parametrize("device", DEVICES)
def test_slices(context, device, shape, axis, by_value):
    for kind, name in (("f4", "float"), ("i8", "int64"), ("u1", "uint8"), ("?", "bool")):
        x = numbers(*shape).astype(kind)
        text = ALONG.replace("AXIS", str(axis)).replace("SORTED", str(by_value)).replace("T[", name + "[")
        proto = model(text.replace("[dims]", str(list(shape))).replace("[more]", str([f"d{k}" for k in range(x.ndim)]).replace("'", "")))
        assert_similar(unique(x, axis, by_value), run_model(context, device, proto, [x]), 0, 0, name)
        if by_value and kind != "?" and x.size:  # the oracle's unsorted form gathers along axis 0 only
            assert_similar(ReferenceEvaluator(proto).run(None, {"x": x}), run_model(context, device, proto, [x]), 0, 0, name)


@pytest.mark.parametrize("device", DEVICES)
def test_one_plan_serves_slices_of_all_sizes(context, device, tmp_path):
    text = ALONG.replace("AXIS", "1").replace("SORTED", "0").replace("T[dims]", "float[a, b, c]").replace("T[more]", "float[a, m, c]")
    (tmp_path / "m.onnx").write_bytes(model(text).SerializeToString())
    plan = context.import_file(tmp_path / "m.onnx").session(device).prepare()
    for shape in ((2, 7, 1), (1, 40, 2), (2, 1, 2), (2, 5, 0), (1, 40, 2)):
        x = numbers(*shape)
        assert_similar(unique(x, 1, False), plan.run(x), 0, 0, str(shape))
    assert [y.shape for y in plan.run(numbers(2, 0, 3))] == [(2, 0, 3), (0,), (0,), (0,)]


@pytest.mark.parametrize("device", DEVICES)
def test_slices_with_nan_and_zeros_of_both_signs(context, device):
    x = np.array([[np.nan, 1], [0., 2], [np.nan, 1], [-0., 2], [-np.inf, np.nan]], "f4")
    text = ALONG.replace("AXIS", "0").replace("SORTED", "1").replace("T[dims]", "float[5, 2]").replace("T[more]", "float[m, 2]")
    got = run_model(context, device, model(text), [x])
    assert [v.tolist() for v in got[1:]] == [[4, 1, 0, 2], [2, 1, 3, 1, 0], [1, 2, 1, 1]]
    np.testing.assert_array_equal(got[0], x[[4, 1, 0, 2]])


IN_BODIES = """agraph (float[n, 3] x, int64 rounds, bool first) => (float looped, float chosen) {
  zero = Constant <value = float {0.0}> ()
  yes = Constant <value = bool {1}> ()
  looped = Loop <body = round (int64 i, bool more, float sum) => (bool again, float next) {
    again = Identity (more)
    bound = Cast <to = 1> (i)
    above = Greater (x, bound)
    places = NonZero (above)
    turned = Transpose (places)
    found = GatherND (x, turned)
    total = ReduceSum <keepdims = 0> (found)
    next = Add (sum, total)
  }> (rounds, yes, zero)
  chosen = If <then_branch = one () => (float p) {
    shape = Constant <value_ints = [-1]> ()
    flat = Reshape (x, shape)
    negative = Less (flat, zero)
    kept = Compress (flat, negative)
    p = ReduceSum <keepdims = 0> (kept)
  }, else_branch = other () => (float q) {
    values = Unique (x)
    q = ReduceSumSquare <keepdims = 0> (values)
  }> (first)
}"""


@pytest.mark.parametrize("device", DEVICES)
def test_loops_and_branches(context, device, tmp_path):
    proto = model(IN_BODIES)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    plan = context.import_file(tmp_path / "m.onnx").session(device).prepare()
    oracle = ReferenceEvaluator(proto)
    for n in (1, 2, 7, 40):
        for rounds in (0, 1, 3):
            inputs = [numbers(n, 3), np.array(rounds), np.array(rounds != 1)]
            wanted = oracle.run(None, dict(zip(("x", "rounds", "first"), inputs)))
            assert_similar(wanted, plan.run(*inputs), 1e-6, 0, f"n = {n}, rounds = {rounds}")


@pytest.mark.parametrize("text, words", [
    ("agraph (float[n, 3] x) => (float[m, 3] y) { y = Unique <axis = 2> (x) }", "axis 2"),
    ("agraph (float x) => (float y) { y = Unique <axis = 0> (x) }", "axis 0"),
    ("agraph (float x) => (int64[k, m] y) { y = NonZero (x) }", "its operand has no dims")])
def test_refusals(context, tmp_path, text, words):
    (tmp_path / "m.onnx").write_bytes(model(text).SerializeToString())
    with pytest.raises(KeelError, match=words):
        context.import_file(tmp_path / "m.onnx")


CUT = """agraph (float[a, b, 2] x, float[k] from, float[k] to) => (float[m, n, 2] y) {
  near = Round (from)
  starts = Cast <to = 7> (near)
  far = Round (to)
  ends = Cast <to = TYPE> (far)
  axes = Constant <value_ints = AXES> ()
  steps = Constant <value_ints = STEPS> ()
  y = Slice (x, START, ends, axes, steps)
}"""
FAR = 2**40
CUTS = [([0], [1], [1]), ([0], [0], [1]), ([-1], [1], [-1]), ([1], [1], [3]), ([4], [0], [-2]), ([1, -2], [0, 1], [1, 1]), ([-FAR, FAR], [1, 0], [2, -1])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("starts, axes, steps", CUTS)
def test_slices_between_bounds_that_a_run_finds(context, device, tmp_path, starts, axes, steps, known):
    text = CUT.replace("k]", f"{len(axes)}]").replace("AXES", str(axes)).replace("STEPS", str(steps)).replace("TYPE", "7")
    text = text.replace("(x, START", "(x, fixed" if known else "(x, starts").replace("axes =", f"fixed = Constant <value_ints = {starts}> ()\n  axes =")
    proto = model(text)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    plan = context.import_file(tmp_path / "m.onnx").session(device).prepare()
    for a, b in ((3, 5), (6, 1), (0, 4), (5, 0)):
        for end in (-FAR, -7, -2, -1, 0, 1, 2, 4, 9, FAR):
            x, begin, ends = numbers(a, b, 2), np.array(starts, "f4"), np.array([end, -1, 2][:len(axes)], "f4")
            cut = [slice(None)] * 2
            for axis, first, last, step in zip(axes, starts, ends.astype(int), steps):
                size = x.shape[axis]  # Python keeps nothing where ONNX begins at the first element
                cut[axis] = slice(max(int(first), -size) if step < 0 else first, None if step < 0 and last < -size else last, step)
            assert_similar([x[tuple(cut)]], plan.run(x, begin, ends), 0, 0, str(end))


MASKED = """agraph (float[n, 3] x, bool[n] keep) => (float[m, 3] y) {
  y = Compress <axis = 0> (x, keep)
}"""


@pytest.mark.parametrize("text, dims", [(CHAIN, [(5, 3)]), (UNIQUE.replace("SORTED", "1"), [(9,)]), (MASKED, [(6, 3), (6,)])],
                         ids=["chain", "unique", "mask"])
def test_written_models_can_be_read(context, tmp_path, text, dims):
    inputs = [numbers(*d) if len(d) > 1 or len(dims) == 1 else numbers(*d) > 0 for d in dims]
    (tmp_path / "m.onnx").write_bytes(model(text).SerializeToString())
    first = context.import_file(tmp_path / "m.onnx")
    first.save(tmp_path / "again.onnx")
    again = context.import_file(tmp_path / "again.onnx")
    assert_similar(first.session("cpu").prepare().run(*inputs), again.session("cpu").prepare().run(*inputs), 0, 0, text)
