"""The conformance suite of the reference device passes on the hostile device, which computes with the reference's impls, but
late, in random order and in its own memory.

One seed each by default, spread over the tests; all 20 with one command:
    KEEL_HOSTILE_SEEDS=20 python -m pytest tests/hostile/test_conformance.py
"""
import inspect
import itertools

import hostile
import pytest
import test_grids
import test_onnx_nodes
import test_onnx_tiny

LIMIT = 10.0  # minimum sum of legal orders (log2) over all tests; less means that the device runs in order
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


def grids():
    """Every case of every test of test_grids, on the hostile device."""
    for name, test in vars(test_grids).items():
        if not name.startswith("test_") or "device" not in inspect.signature(test).parameters:
            continue
        axes = [m for m in test.pytestmark if m.name == "parametrize" and m.args[0] != "device"]
        rows = [[dict(zip(m.args[0].split(","), v if "," in m.args[0] else (v,))) for v in m.args[1]] for m in axes]
        for chosen in itertools.product(*rows):
            values = {k: v for row in chosen for k, v in row.items()}
            title = [test_grids.title(v) if k == "case" else getattr(v, "__name__", str(v)) for k, v in values.items()]
            yield pytest.param(test, values, id="-".join([name[len("test_"):], *title]))


@pytest.mark.parametrize("test,values", list(grids()))
def test_grid(test, values, request):
    on_hostile(request.node.callspec.id, lambda c: test(c, device="hostile", **values))


def test_there_was_a_choice(capsys):
    """Runs last: the suite had many possible orders."""
    with capsys.disabled():
        print(f" [{seen['runs']} runs, 2^{seen['orders']:.0f} legal orders] ", end="")
    assert seen["orders"] >= LIMIT * min(1, seen["runs"] / 100)
