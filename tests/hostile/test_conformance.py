"""The conformance suite that runs on the reference device passes on the hostile one, which computes with the
reference's impls but late, in random order, in memory of its own.

One seed each by default, spread over the tests; all 20 with one command:
    KEEL_HOSTILE_SEEDS=20 python -m pytest tests/hostile/test_conformance.py
"""
import hostile
import pytest
import test_grids
import test_onnx_nodes
import test_onnx_tiny

LIMIT = 10.0  # legal orders (log2) that all tests together must have had, so that the device is not just in order
seen = {"orders": 0.0, "runs": 0}


def on_hostile(name, test):
    for seed in hostile.seeds_of(name):
        context = hostile.context(seed)
        try:
            test(context)
        except Exception as e:
            e.add_note(f"hostile device, seed {seed}") if hasattr(e, "add_note") else print(f"seed {seed}")
            raise
        seen["orders"] += hostile.get("orders") / 1000
        seen["runs"] += 1


@pytest.mark.parametrize("name", test_onnx_nodes.NAMES)
def test_node(name):
    on_hostile(name, lambda c: test_onnx_nodes.test_node(c, name, "hostile"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return test_onnx_tiny.tiny_models(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("name", test_onnx_tiny.NAMES)
def test_tiny(folders, name):
    on_hostile(name, lambda c: test_onnx_tiny.test_tiny(c, folders, name, "hostile"))


@pytest.mark.parametrize("case", test_grids.WINDOWED, ids=test_grids.title)
def test_windows_and_norm(case):
    on_hostile(test_grids.title(case), lambda c: test_grids.test_windows_and_norm(c, case, "hostile"))


@pytest.mark.parametrize("left,right", test_grids.MATMULS, ids=str)
def test_matmul(left, right):
    for dtype in (test_grids.np.float32, test_grids.np.int64):
        on_hostile(f"{left}{right}", lambda c, dtype=dtype: test_grids.test_matmul(c, left, right, dtype, "hostile"))


@pytest.mark.parametrize("left,right", test_grids.BROADCASTS, ids=str)
def test_broadcasts(left, right):
    for op in ("Add", "Sub", "Mul", "Div", "Pow"):
        on_hostile(op + f"{left}{right}", lambda c, op=op: test_grids.test_broadcasts(c, op, left, right, "hostile"))


def test_there_was_a_choice(capsys):
    """Last: the suite ran in many possible orders."""
    with capsys.disabled():
        print(f" [{seen['runs']} runs, 2^{seen['orders']:.0f} legal orders] ", end="")
    assert seen["orders"] >= LIMIT * min(1, seen["runs"] / 100)
