"""Weights in an ONNX file begin at any byte: read by launches, packed by them, kept for sizes that only a run knows, folded, in the
bodies of control operators, as results, and saved; NumPy is the oracle."""
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import DEVICES

SHIFTS = range(4)  # bytes of text in front of the graph; the writer puts text before tensors


def value(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def graph(name, nodes, inputs, results, weights):
    return helper.make_graph(nodes, name, inputs, results, [numpy_helper.from_array(x, n) for n, x in weights.items()])


def draw(seed=0):
    random = np.random.default_rng(seed)
    return {"table": random.standard_normal((301, 24)).astype(np.float32), "w": random.standard_normal((24, 40)).astype(np.float32),
            "b": random.standard_normal(160).astype(np.float64), "v": random.standard_normal((40, 24)).astype(np.float32),
            "f": random.integers(-999, 999, 160)}


def model(folder, shift, rows="n"):
    """logits = (table[ids] @ w) @ transposed(table @ w): a table that is read, packed and folded; and two results that are weights."""
    weights = draw()
    then = graph("then", [helper.make_node("MatMul", ["h", "v"], ["t"])], [], [value("t", TensorProto.FLOAT, [rows, 24])],
                 {"v": weights.pop("v")})
    other = graph("else", [helper.make_node("MatMul", ["h", "u"], ["e"])], [], [value("e", TensorProto.FLOAT, [rows, 24])],
                  {"u": np.full((40, 24), 20, np.float32)})
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"]), helper.make_node("MatMul", ["rows", "w"], ["h"]),
             helper.make_node("MatMul", ["table", "w"], ["all"]), helper.make_node("Transpose", ["all"], ["columns"], perm=[1, 0]),
             helper.make_node("MatMul", ["h", "columns"], ["logits"]),
             helper.make_node("If", ["choice"], ["branch"], then_branch=then, else_branch=other),
             helper.make_node("Add", ["f", "k"], ["whole"]), helper.make_node("Identity", ["b"], ["weight"])]
    made = graph("main" + "x" * shift, nodes,
                 [value("ids", TensorProto.INT64, [rows]), value("choice", TensorProto.BOOL, []), value("k", TensorProto.INT64, [])],
                 [value("logits", TensorProto.FLOAT, [rows, 301]), value("branch", TensorProto.FLOAT, [rows, 24]),
                  value("whole", TensorProto.INT64, [160]), value("weight", TensorProto.DOUBLE, [160])], weights)
    path = folder / f"shift{shift}.onnx"
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], producer_name="y" * shift), path)
    return path


def feeds(n, choice):
    return np.arange(n) * 7 % 301, np.array(choice), np.array(5)


def expected(ids, choice, k):
    x = draw()
    h = x["table"][ids].astype(np.float64) @ x["w"]
    last = x["v"] if choice else np.full((40, 24), 20)
    return h @ (x["table"].astype(np.float64) @ x["w"]).T, h @ last, x["f"] + k, x["b"]


def check(got, wanted):
    assert len(got) == len(wanted)
    for y, z in zip(got, wanted):
        np.testing.assert_allclose(np.asarray(y), z, rtol=1e-4, atol=1e-3)


def offsets(path):
    """Of all weights, modulo the size of an element."""
    bytes_, at = path.read_bytes(), []
    for name, x in draw().items():
        first = bytes_.index(x.tobytes())
        at.append((name, first % x.itemsize))
    return at


def test_files_have_all_offsets(tmp_path):
    found = {at for shift in SHIFTS for name, at in offsets(model(tmp_path, shift)) if name in ("table", "w", "v")}
    assert found == {0, 1, 2, 3}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [3, "n"])
@pytest.mark.parametrize("shift", SHIFTS)
def test_answers(context, tmp_path, device, rows, shift):
    module = context.import_file(str(model(tmp_path, shift, rows)))
    session = module.session(device).prepare()
    for n in [3] if rows == 3 else [3, 0, 1, 50, 3]:
        for choice in (True, False):
            given = feeds(n, choice)
            check(session.run(*given), expected(*given))
    again = module.session(device).prepare()  # after the first has packed what it needs
    check(again.run(*feeds(3, True)), expected(*feeds(3, True)))


def test_plans_made_at_once(context, tmp_path):
    module = context.import_file(str(model(tmp_path, 1)))

    def use(_):
        for n in (3, 5, 40):
            check(module.session("cpu").prepare().run(*feeds(n, True)), expected(*feeds(n, True)))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(use, range(4)))


def test_the_file_may_go_away(context, tmp_path):
    path = model(tmp_path, 3)
    module = context.import_file(str(path))
    path.unlink()
    check(module.session("cpu").prepare().run(*feeds(9, False)), expected(*feeds(9, False)))


def test_saved(context, tmp_path):
    module = context.import_file(str(model(tmp_path, 2)))
    module.session("cpu").prepare().run(*feeds(3, True))
    module.save(str(tmp_path / "f.keel"))
    del module
    check(context.load(str(tmp_path / "f.keel")).session("cpu").prepare().run(*feeds(4, True)), expected(*feeds(4, True)))
