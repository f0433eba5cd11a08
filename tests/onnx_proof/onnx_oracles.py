"""Two oracles, onnx.reference and ONNX Runtime, node by node; their results are compared here, and with Keel's results.

`Oracles.settle` computes a node by both. Where they differ and disagreements.py has no word of the specification for it, both
results are kept: Keel's must be one of them. Floats have no fixed bound: the graph is computed again with operands that are multiplied
by numbers next to 1, and the changes are tolerated.
"""
import warnings
from dataclasses import dataclass, field

import numpy as np
import onnxruntime as ort
from disagreements import decided
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_draw import BF16, Graph, is_float, names_read

STEP = {np.dtype("d"): 1e-10, np.dtype("f"): 2e-5, np.dtype("e"): 4e-3, BF16: 3e-2}  # relative, of one node
# Absolute: halves are also rounded between the steps of an operator; a window of f32 ends with a sum that is zero.
TINY = {np.dtype("d"): 1e-14, np.dtype("f"): 1e-6, np.dtype("e"): 2e-3, BF16: 8e-3}
# An oracle computes these through f32, or with the f32 value of an attribute that f64 holds more exactly.
COARSE = set("Erf HardSwish Gelu Selu Resize GridSample LRN GroupNormalization BatchNormalization InstanceNormalization LayerNormalization "
             "RMSNormalization LeakyRelu Shrink Elu ThresholdedRelu HardSigmoid Attention Mish Swish MeanVarianceNormalization DFT STFT HannWindow HammingWindow BlackmanWindow".split())
# Sums with exact zeros, of which both sides have the rounding errors: what follows a zero takes either sign, or an index of either of two.
ZEROS = {"DFT", "STFT", "HannWindow", "HammingWindow", "BlackmanWindow"}
# A result in the middle between two integers is rounded by the last bit of a product of scales.
QUANTISED = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul")
DOMAINS = {"ai.onnx.ml": 3, "com.microsoft": 1}
ORACLES = ("reference", "runtime")
ort.set_default_logger_severity(4)


def model_of(nodes, inputs, constants, results, opset, dims_of=np.shape):
    """dims_of: an input's dims as the model has them."""
    given = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), dims_of(v)) for k, v in inputs.items()]
    graph = helper.make_graph(nodes, "g", given, [helper.make_empty_tensor_value_info(r) for r in results],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    domains = sorted({n.domain for n in nodes} - {""})
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *(helper.make_opsetid(d, DOMAINS[d]) for d in domains)], ir_version=10)


def by_reference(model, feeds):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, feeds)]


def by_runtime(model, feeds):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)


def one_node(opset, node, values):
    feeds = {name: values[name] for name in dict.fromkeys(names_read(node)) if name in values}
    return model_of([node], feeds, {}, [o for o in node.output if o], opset), feeds


def attempt(oracle, opset, node, values):
    """The results of one oracle; None if it does not take the node."""
    model, feeds = one_node(opset, node, values)
    try:
        return by_reference(model, feeds) if oracle == "reference" else by_runtime(model, feeds)
    except Exception:  # noqa: BLE001 (each oracle has its own ways to refuse)
        return None


def wide(array):
    return array.astype(np.float64) if is_float(array.dtype) else array


def agree(op, want, got, slack=None):
    """"" or how two lists of arrays differ; slack: for each array the tolerance, and the elements that are not compared."""
    if len(want) != len(got):
        return f"{len(got)} results, wanted {len(want)}"
    for k, (a, b) in enumerate(zip(want, got)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"result {k} is {b.dtype}{list(b.shape)}, wanted {a.dtype}{list(a.shape)}"
        more, ignored = slack[k] if slack is not None and slack[k][0].shape == a.shape else (0.0, False)
        if op in COARSE and a.dtype in (np.float32, np.float64):
            more = more + 5e-5 * np.maximum(1, np.abs(np.where(np.isfinite(a), a, 0)))
        off = one_step(a, b, ignored) if op in QUANTISED and a.dtype.itemsize == 1 else differing(a, b, more, ignored)
        if off.any():
            at = tuple(int(i) for i in np.argwhere(off)[0])
            return f"result {k} differs in {off.sum()} of {off.size} elements: {b[at]!r} at {list(at)}, wanted {a[at]!r}"
    return ""


def one_step(a, b, ignored):
    """Of integers of 8 bits: a few may be the next."""
    off = np.abs(a.astype(int) - b.astype(int))
    return (off > (1 if (off == 1).sum() <= max(1, off.size / 20) else 0)) & ~np.asarray(ignored)


def differing(a, b, more=0.0, ignored=False):
    if not is_float(a.dtype):
        return (a != b) & ~np.asarray(ignored)
    x, y, step = wide(a), wide(b), STEP[a.dtype]
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(x - y) <= step * np.maximum(np.abs(x), np.abs(y)) + more + TINY[a.dtype]
    return ~(near | (x == y) | (np.isnan(x) & np.isnan(y))) & ~np.asarray(ignored)


def nudged(array, random, op=""):
    if op in QUANTISED and array.dtype.itemsize == 1:
        info, by = np.iinfo(array.dtype), random.choice([-1, 0, 0, 1], array.shape)
        return np.clip(array.astype(int) + by, info.min, info.max).astype(array.dtype)
    if not is_float(array.dtype):
        return array
    step = 1e-5 if op in COARSE and array.dtype == np.float64 else STEP[array.dtype]
    with np.errstate(all="ignore"):
        more = 16 * TINY[array.dtype] * random.uniform(-1, 1, array.shape) if op in COARSE else 0
        return (wide(array) * (1 + step * random.uniform(-1, 1, array.shape)) + more).astype(array.dtype)


def slack_of(exact, changed):
    """The effect of small changes of operands: a bound for each element, and the elements that became another integer, NaN or infinity."""
    more, ignored = np.zeros(exact.shape), np.zeros(exact.shape, bool)
    for other in changed:
        if other is None or other.shape != exact.shape:
            return more, np.ones(exact.shape, bool)
        x, y = wide(exact), wide(other)
        if not is_float(exact.dtype):
            ignored |= x != y
            continue
        finite = np.isfinite(x) & np.isfinite(y)
        ignored |= ~finite & ~((x == y) | (np.isnan(x) & np.isnan(y)))
        ignored |= finite & (np.minimum(np.abs(x), np.abs(y)) > 1e4) & (np.sign(x) != np.sign(y))  # a pole between both
        more = np.maximum(more, np.where(finite, 8 * np.abs(np.where(finite, x, 0) - np.where(finite, y, 0)), 0))
    return more, ignored


@dataclass
class Oracles:
    """onnx_draw.graph runs `settle`."""
    chosen: dict = field(default_factory=dict)  # node -> oracle
    others: dict = field(default_factory=dict)  # node -> the other oracle's results, where both may be right
    counts: dict = field(default_factory=dict)  # (op, which oracles) -> nodes
    notes: list = field(default_factory=list)   # disagreements that no table explains

    def settle(self, graph: Graph, node, values):
        if self.others:
            return None  # nothing follows a node with two results
        found = {o: attempt(o, graph.opset, node, values) for o in ORACLES}
        taken = [o for o in ORACLES if found[o] is not None]
        self.counts[node.op_type, "+".join(taken)] = self.counts.get((node.op_type, "+".join(taken)), 0) + 1
        if not taken:
            return None
        choice = taken[-1]
        if len(taken) == 2:
            slack = self.spread(graph, node, values, "runtime", found["runtime"])
            difference = agree(node.op_type, found["runtime"], found["reference"], slack)
            if difference:
                choice = decided(node, [values.get(i) for i in node.input], graph.opset)
                if choice is None:
                    choice, self.others[node.name] = "runtime", found["reference"]
                    self.notes.append((node.op_type, difference))
        elif decided(node, [values.get(i) for i in node.input], graph.opset) not in (None, choice):
            return None  # the only oracle that takes the node is wrong
        self.chosen[node.name] = choice
        return found[choice]

    def spread(self, graph, node, values, oracle, exact):
        random = np.random.default_rng(5)
        runs = [attempt(oracle, graph.opset, node, {k: v if k in graph.constants else nudged(v, random) for k, v in values.items()})
                for _ in range(2)]
        return [slack_of(e, [None if r is None else r[k] for r in runs]) for k, e in enumerate(exact)]

    def slacks(self, graph, values):
        """For each result of the graph, by name."""
        changed = {}
        for k in range(10 if any(node.op_type in ZEROS for node in graph.nodes) else 3):
            random = np.random.default_rng(k)
            now = {n: nudged(v, random) for n, v in graph.inputs.items()} | graph.constants
            for node in graph.nodes:
                made = attempt(self.chosen[node.name], graph.opset, node, now) if all(i in now for i in node.input if i) else None
                for i, name in enumerate(node.output):
                    changed.setdefault(name, []).append(None if made is None else made[i])
                    if made is not None:
                        now[name] = nudged(made[i], random, node.op_type)
        return {name: slack_of(values[name], list_of) for name, list_of in changed.items()}
