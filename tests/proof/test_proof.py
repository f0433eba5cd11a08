"""The fixed sample of the property tests: random graphs, single fragments, kept graphs; and the harness detects and shrinks the
effect of a wrong pass. For longer runs: proof.py."""
from collections import Counter
from types import SimpleNamespace

import keel_abi
import numpy as np
import pytest
from bait import BAIT
from becomes import becomes
from checks import devices
from draw import NOT_DRAWN, draw, draw_bait
from kept import all_kept, cause, keep, load, smaller
from oracle import Oracle
from proof import catalogue, new_context, new_oracle

SEEDS, BLOCK = 300, 20
ALONE = 12  # fragments of each kind


@pytest.fixture(scope="module")
def shared():
    oracle = new_oracle()
    return SimpleNamespace(oracle=oracle, ops=catalogue(oracle.context), drawn={})


def graph_of(shared, seed):
    if seed not in shared.drawn:
        shared.drawn[seed] = draw(shared.oracle.context, shared.ops, seed)
    return shared.drawn[seed].graph


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_graphs(shared, tmp_path, first):
    for seed in range(first, first + BLOCK):
        graph = graph_of(shared, seed)
        if text := cause(shared.oracle, graph):
            small = smaller(new_oracle, graph, text)
            pytest.fail(f"seed {seed}: {text}\n{small.text()}written to {keep(small, text, tmp_path)}")


def test_every_op_is_drawn(shared):
    """A new op of the catalogue is drawn from its data; attributes.py has a line for facts that the data lack."""
    drawn = Counter(node.op for seed in range(SEEDS) for node in graph_of(shared, seed).nodes())
    assert set(shared.ops) - set(drawn) == set(NOT_DRAWN), "drawn or listed, not both"
    assert len(set(NOT_DRAWN.values())) < 4, "few reasons not to draw an op"


def test_dtypes_dims_and_control_are_drawn(shared):
    graphs = [graph_of(shared, seed) for seed in range(SEEDS)]
    types = [t for g in graphs for n in g.nodes() for t in n.types]
    assert len({t.dtype for t in types}) == 13
    assert {0, 1, 2, 17, "b"} <= {d for t in types for d in t.dims}
    baits = {bait for seed in range(SEEDS) for bait in shared.drawn[seed].baits}
    assert baits == set(BAIT)
    assert sum(bool(g.variables) for g in graphs) > 20 and sum(any(n.bodies for n in g.nodes()) for g in graphs) > 20


@pytest.mark.parametrize("name", sorted(BAIT))
def test_fragments(shared, name):
    """Passes match fragments in every equivalent form."""
    for seed in range(ALONE):
        graph, wanted = draw_bait(shared.oracle.context, shared.ops, name, seed)
        if wanted is not None:
            becomes(shared.oracle, graph, wanted)


@pytest.mark.parametrize("path", all_kept(), ids=lambda p: p.stem)
def test_kept(path):
    oracle = new_oracle()
    text = cause(oracle, load(oracle.context, path))
    assert text is None, text


def test_a_wrong_pass_is_seen_and_its_graph_made_small(tmp_path):
    """wrong.c swaps the operands of subtractions: the smallest failing graph is one subtraction."""
    def wrong():
        context = new_context(keel_abi.BUILD / "tests" / "passes" / "wrong" / "keel-wrong.so")
        context.devices = lambda: ["reference:0"]  # others need the rules, which are not loaded here, for the ops that they lack
        return Oracle(context)
    plain = new_oracle()
    ops, check = catalogue(plain.context), [devices]
    for seed in range(40):
        graph = draw(plain.context, ops, seed).graph
        if not (text := cause(wrong(), graph, check)):
            continue
        small = smaller(wrong, graph, text)
        nodes = [n.op for n in small.nodes()]
        assert "sub" in nodes and len(nodes) <= 2, small.text()
        assert cause(wrong(), load(plain.context, keep(small, text, tmp_path)), check)
        return
    pytest.fail("no seed sees it")


def test_an_endless_loop_is_skipped(tmp_path):
    """Shrinking a loop may take away its end."""
    path = tmp_path / "endless.keelt"
    path.write_text("keel 1\n\nfn @main(x: f32[2]) {\n  c, y = while(i32(0), x){carry=2}\n    test(i, u) {\n      more = less(i, i32(3))\n"
                    "      yield more\n    }\n    body(i, u) {\n      v = add(u, u)\n      yield i, v\n    }\n  return y\n}\n\n"
                    "entry main = @main (x)\n")
    oracle = Oracle(new_context(), timeout_ms=200)
    graph = load(oracle.context, path)
    with pytest.raises(keel_abi.KeelError, match="CANCELLED|DEADLINE|stopped"):
        oracle.run_text(graph.text(), "reference", [np.ones(2, np.float32)])
    assert cause(oracle, graph) is None
