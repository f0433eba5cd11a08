"""A fixed sample of random ONNX graphs, a few graphs of each operator, kept graphs, gradients; and the harness finds and shrinks a
wrong result. For longer runs: onnx_proof.py.
"""
import subprocess
from collections import Counter

import numpy as np
import onnx_gradients
import pytest
from keel_abi import BUILD
from onnx_checks import failure
from onnx_draw import all_rows, graph
from onnx_kept import all_kept, keep, load
from onnx_oracles import Oracles
from onnx_proof import look
from onnx_shrink import shrink
from tested_devices import DEVICES

SEEDS, BLOCK = 480, 60
OPERATORS = sorted({row.op for row in all_rows()})
# Operators without a row, by reason.
NOT_DRAWN = {
    "random numbers": "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "sequences and optionals, whose lengths are options of the import": "ConcatFromSequence Optional OptionalGetElement OptionalHasElement "
    "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence",
    "newer than the opsets that both oracles take": "BitCast CausalConvWithState CumProd FlexAttention LinearAttention SwiGLU",
    "not in the opsets drawn": "Scatter Upsample",
    "no operand": "Constant",
    "strings": "RegexFullMatch StringConcat StringNormalizer StringSplit",
    "the oracles lack it or take a special form only": "MaxRoiPool SimplifiedLayerNormalization TfIdfVectorizer",
}


def test_each_operator_of_onnx_is_drawn():
    listed = subprocess.run([BUILD / "bin/keel", "ops", "--onnx"], capture_output=True, text=True, check=True).stdout
    taken = {line.split()[0] for line in listed.splitlines()[1:] if line.split()[1:] and line.split()[1].isdigit()}
    plain = {op for op in taken if "." not in op}
    assert len(plain) > 150 and plain - set(OPERATORS) == set(" ".join(NOT_DRAWN.values()).split()) & plain


def assert_right(context, seed, folder, ops=None):
    counts = Counter()
    if found := look(context, seed, ops, counts):
        small, values, wrong = found
        pytest.fail(f"seed {seed}: {wrong}\nwritten to {keep(small, values, wrong, folder)}; tests/onnx_proof/onnx_proof.py runs it again")
    return counts


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_graphs(context, tmp_path, first):
    for seed in range(first, first + BLOCK):
        assert_right(context, seed, tmp_path)


@pytest.mark.parametrize("op", OPERATORS)
def test_each_operator(context, tmp_path, op):
    """Two graphs with nodes that an oracle took."""
    counts, graphs = Counter(), 0
    for seed in range(30):
        graphs += any(which for _, which in assert_right(context, seed, tmp_path, [op]))
        if graphs == 2:
            return
    pytest.fail(f"in 30 seeds no oracle took two graphs of {op}: {counts}")


@pytest.mark.parametrize("path", all_kept(), ids=lambda path: path.stem)
def test_kept(context, path):
    kept, values, oracles = load(path)
    assert failure(context, kept, values, oracles, DEVICES) is None


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_gradients(context, first):
    """Against finite differences in f64."""
    compared = 0
    for seed in range(first, first + 20):
        wrong, elements = onnx_gradients.failure(context, seed)
        assert not wrong, f"seed {seed}: {wrong}"
        compared += elements
    assert compared > 50, "too few derivatives to test anything"


def test_a_wrong_result_is_found_and_shrunk(context, tmp_path):
    """The expected result of one node is changed: only this node remains, also when it is read from a file."""
    for seed in range(100):
        oracles = Oracles()
        drawn, values = graph(seed, oracles.settle, ["Sub", "Mul", "Transpose"])
        if len(drawn.nodes) > 4 and all(v.size and v.dtype == np.float32 and np.isfinite(v).all() for v in values.values()):
            break
    assert failure(context, drawn, values, oracles, ["reference"]) is None
    node = drawn.nodes[2]
    broken = values | {node.output[0]: values[node.output[0]] + np.float32(1)}
    wrong = failure(context, drawn, broken, oracles, ["reference"])
    assert node.op_type in wrong
    small, kept, wrong = shrink(drawn, broken, lambda g, v: failure(context, g, v, oracles, ["reference"]), wrong)
    assert [n.name for n in small.nodes] == [node.name]
    again, kept, oracles = load(keep(small, kept, wrong, tmp_path))
    assert failure(context, again, kept, oracles, ["reference"]) == wrong
