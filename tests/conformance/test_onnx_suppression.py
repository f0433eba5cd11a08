"""NonMaxSuppression: ONNX's reference and ONNX Runtime are the oracles, which must agree; plain numbers where they do not."""
import numpy as np
import onnx
import pytest
from keel_abi import KeelError
from onnx.reference import ReferenceEvaluator
from onnx_cases import DEVICES, assert_similar, onnxruntime_run, run_model

CONSTANTS = """agraph (float[b, n, 4] boxes, float[b, c, n] scores) => (int64[k, 3] y) {{
  most = Constant <value = int64[1] {{{most}}}> ()
  overlap = Constant <value = float[1] {{{overlap}}}> ()
  {score}
  y = NonMaxSuppression <center_point_box = {center}> (boxes, scores, most, overlap{low})
}}"""
FED = """agraph (float[b, n, 4] boxes, float[b, c, n] scores, int64[1] most, float[1] overlap, float[1] low) => (int64[k, 3] y) {
  y = NonMaxSuppression (boxes, scores, most, overlap, low)
}"""


def model(text, opset=11):
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}]> {text}')


def constant_model(most, overlap, low=None, center=0, opset=11):
    score = f"low = Constant <value = float[1] {{{low:.6f}}}> ()" if low is not None else ""
    return model(CONSTANTS.format(most=most, overlap=f"{overlap:.6f}", score=score, low=", low" if score else "", center=center), opset)


def drawn(seed, b, c, n):
    """Boxes of which many overlap, with corners in any order; scores with equal ones."""
    rng = np.random.default_rng(seed)
    at, size = rng.uniform(0, 10, (b, n, 2)), rng.uniform(-4, 4, (b, n, 2))
    return np.concatenate([at, at + size], 2).astype("f4"), (rng.integers(-3, 20, (b, c, n)) / 16).astype("f4")


def expected(proto, feeds):
    want = ReferenceEvaluator(proto).run(None, dict(zip([i.name for i in proto.graph.input], feeds)))
    want = [want[0].reshape(-1, 3)]  # of no boxes it has another shape
    assert_similar(onnxruntime_run(proto, feeds), want, 0, 0, "the oracles")
    return want


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("device", DEVICES)
def test_random(context, device, seed):
    rng = np.random.default_rng(seed)
    b, c, n = int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.choice([1, 2, 9, 40, 130]))
    low = [None, -0.1, 0.3, 0.9][seed % 4]
    proto = constant_model(int(rng.choice([1, 3, 200])), rng.uniform(0, 0.9), low, seed % 2, 10 + seed // 2 % 2)
    feeds = drawn(seed, b, c, n)
    if seed % 2:
        feeds[0][..., 2:] = np.abs(feeds[0][..., 2:])  # width and height
    assert_similar(expected(proto, feeds), run_model(context, device, proto, feeds), 0, 0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scores", ["random", "falling", "rising", "equal"])
def test_the_best_boxes_of_many_are_at_one_place(context, device, scores):
    """So the boxes with low scores are needed, too."""
    rng, n = np.random.default_rng(6), 3100
    boxes = np.tile(np.array([0, 0, 8, 8], "f4"), (1, n, 1)) + rng.uniform(0, 0.1, (1, n, 4)).astype("f4")
    boxes[0, 1::600] += 10 * np.arange(1, 7, dtype="f4")[:, None]
    score = {"random": rng.uniform(0.5, 1, n), "falling": np.linspace(1, 0.5, n), "rising": np.linspace(0.5, 1, n), "equal": np.full(n, 0.5)}[scores]
    score[1::600] = [0.3, 0.2, 0.2, 0.4, 0.1, 0.3]
    feeds = boxes, score.astype("f4")[None, None]
    for most in (1, 5, 100):
        proto = constant_model(most, 0.5, 0.05)
        want = expected(proto, feeds)
        assert len(want[0]) == min(most, 7)
        assert_similar(want, run_model(context, device, proto, feeds), 0, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_one_plan_serves_fed_limits_and_all_sizes(context, device, tmp_path):
    (tmp_path / "m.onnx").write_bytes(model(FED).SerializeToString())
    plan = context.import_file(tmp_path / "m.onnx").session(device).prepare()
    for b, c, n, most, overlap, low in ((1, 1, 9, 2, 0.5, 0.1), (2, 3, 40, 100, 0.2, -1.0), (1, 2, 40, 0, 0.5, 0.0),
                                        (2, 3, 40, 2**62, 1.0, 0.5), (1, 1, 30, 9, 0.5, 5.0)):
        feeds = (*drawn(n, b, c, n), np.array([most]), np.array([overlap], "f4"), np.array([low], "f4"))
        assert_similar(expected(model(FED), feeds), plan.run(*feeds), 0, 0, str(feeds[2:]))
    for b, c, n, most in ((0, 2, 5, 9), (2, 0, 5, 9), (2, 2, 0, 9), (2, 2, 5, -1), (2, 2, 5, -2**62)):
        limits = np.array([most]), np.array([0.5], "f4"), np.array([0.1], "f4")
        assert [y.shape for y in plan.run(*drawn(0, b, c, n), *limits)] == [(0, 3)]


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("low, scores, found", [
    (None, [NAN, 1, NAN, 2], [3, 1]), (None, [NAN, -INF, 1, -INF], [2, 1, 3]), (None, [NAN] * 4, []),
    (0.0, [NAN, 1, 0, INF], [3, 1]), (0.0, [-1, 0, -0.0, NAN], []), (NAN, [1, 2, 3, 4], [])])
@pytest.mark.parametrize("device", DEVICES)
def test_scores_that_are_no_numbers(context, device, low, scores, found):
    """A NaN is never selected, an infinite score is a score; scores that equal the limit are not above it."""
    boxes = np.array([[[k, k, k + .5, k + .5] for k in range(4)]], "f4")
    text = CONSTANTS.format(most=9, overlap="0.5", center=0, score="", low="")
    feeds = [boxes, np.array([[scores]], "f4")]
    if low is not None:
        text = FED
        feeds += [np.array([9]), np.array([0.5], "f4"), np.array([low], "f4")]
    assert run_model(context, device, model(text), feeds)[0].tolist() == [[0, 0, k] for k in found]


@pytest.mark.parametrize("device", DEVICES)
def test_a_limit_of_the_overlap_is_not_exceeded_by_the_same_number(context, device):
    """Halves that overlap by a third, boxes without area, and a box of NaN, which overlaps none."""
    boxes = np.array([[[0, 0, 1, 1], [0, 0.5, 1, 1.5], [0, 0, 0, 1], [0, 0, 0, 1], [NAN, 0, 1, 1], [0, 0, 1, 1]]], "f4")
    scores = np.array([[[6, 5, 4, 3, 2, 1]]], "f4")
    for overlap, found in ((np.float32(0.5) / np.float32(1.5), [0, 1, 2, 3, 4]), (np.float32(0.3), [0, 2, 3, 4]),
                           (np.float32(1), [0, 1, 2, 3, 4, 5]), (np.float32(0), [0, 2, 3, 4])):
        got = run_model(context, device, model(FED), [boxes, scores, np.array([9]), np.array([overlap]), np.array([0], "f4")])
        assert got[0][:, 2].tolist() == found


def test_the_limit_of_the_number_may_be_omitted(context):
    proto = model("agraph (float[1, n, 4] boxes, float[1, 1, n] scores) => (int64[k, 3] y) { y = NonMaxSuppression (boxes, scores) }")
    assert run_model(context, "cpu", proto, drawn(0, 1, 1, 9))[0].shape == (0, 3)


BAD = "agraph (float[{boxes}] boxes, float[{scores}] scores, {most} most, {overlap} overlap) => (int64[k, 3] y) {{\n" \
      "  y = NonMaxSuppression <center_point_box = {center}> (boxes, scores, most, overlap) }}"
GOOD = dict(boxes="2, 5, 4", scores="2, 3, 5", most="int64[1]", overlap="float[1]", center=0)


@pytest.mark.parametrize("changed, words", [
    (dict(center=2), "center_point_box is 2; expected 0 or 1"),
    (dict(boxes="5, 4"), r"boxes has 2 dims; expected \[batches, boxes, 4\]"),
    (dict(boxes="2, 5, 5"), "the last dim of boxes is not 4"),
    (dict(scores="3, 5"), r"scores has 2 dims; expected \[batches, classes, boxes\]"),
    (dict(scores="1, 3, 5"), "boxes and scores have different numbers of batches"),
    (dict(scores="2, 3, 6"), "boxes and scores have different numbers of boxes"),
    (dict(most="int64[1, 1]"), "operand 2 has 2 dims; expected one number"),
    (dict(most="int64[2]"), "operand 2 has 1 dims; expected one number"),
    (dict(most="float[1]"), "operand 2 is f32; expected i64"),
    (dict(boxes="2, 5, 4", overlap="int64[1]"), "operand 3 is i64; expected f32")])
def test_refusals(context, tmp_path, changed, words):
    (tmp_path / "m.onnx").write_bytes(model(BAD.format(**(GOOD | changed))).SerializeToString())
    with pytest.raises(KeelError, match=words):
        context.import_file(tmp_path / "m.onnx")


@pytest.mark.parametrize("overlap", [-0.5, 1.5])
def test_thresholds_of_the_overlap(context, tmp_path, overlap):
    (tmp_path / "m.onnx").write_bytes(constant_model(9, overlap).SerializeToString())
    with pytest.raises(KeelError, match=f"iou_threshold is {overlap}0*; expected a number from 0 to 1"):
        context.import_file(tmp_path / "m.onnx")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("overlap", [-0.5, 1.5, NAN])
def test_fed_thresholds_of_the_overlap(context, device, overlap):
    boxes, scores = np.zeros((1, 2, 4), "f4"), np.zeros((1, 1, 2), "f4")
    with pytest.raises(KeelError, match="NonMaxSuppression.*: iou_threshold; expected a number from 0 to 1"):
        run_model(context, device, model(FED), [boxes, scores, np.array([9]), np.array([overlap], "f4"), np.array([0], "f4")])


@pytest.mark.parametrize("device", DEVICES)
def test_many_boxes(context, device):
    """More rounds than a dispatch of a device runs, more rows than threads; ONNX's reference would take minutes."""
    for b, c, n, most, low in ((1, 1, 3000, 3000, 0.0), (2, 40, 300, 5, 0.8), (1, 1, 70, 70, -1.0)):
        boxes, scores = drawn(n, b, c, n)
        feeds = [boxes * 5, scores, np.array([most]), np.array([0.4], "f4"), np.array([low], "f4")]
        assert_similar(onnxruntime_run(model(FED), feeds), run_model(context, device, model(FED), feeds), 0, 0, str((b, c, n)))


@pytest.mark.parametrize("kind", ["i4", "i8"])
@pytest.mark.parametrize("device", DEVICES)
def test_the_op_itself(context, device, kind):
    """size limits the rows of all classes; zeros follow the found ones."""
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, .9], [5, 5, 6, 6], [7, 7, 8, 8]]], "f4")
    scores = np.array([[[1, 2, 3, 0], [4, 0, 0, 0]]], "f4")
    half, zero = np.array(0.5, "f4"), np.array(0, "f4")
    for most, size, rows in ((9, 4, [[0, 0, 2], [0, 0, 1], [0, 1, 0]]), (9, 2, [[0, 0, 2], [0, 0, 1], [0, 1, 0]]), (1, 4, [[0, 0, 2], [0, 1, 0]]),
                             (9, 1, [[0, 0, 2], [0, 1, 0]]), (0, 3, []), (-1, 1, []), (9, 0, [])):
        found, count = context.apply(device, "non_max_suppression", boxes, scores, np.array(most, kind), half, zero, n_out=2, size=size)
        assert int(count) == len(rows) and np.asarray(found).tolist() == rows + [[0, 0, 0]] * (2 * size - len(rows))
    with pytest.raises(KeelError, match="size is 5 but there are 4 boxes"):
        context.apply(device, "non_max_suppression", boxes, scores, np.array(9, kind), half, zero, n_out=2, size=5)
    with pytest.raises(KeelError, match="non_max_suppression: boxes"):
        context.apply(device, "non_max_suppression", boxes[..., :3], scores, np.array(9, kind), half, zero, n_out=2, size=1)
