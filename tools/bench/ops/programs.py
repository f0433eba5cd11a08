"""Cases of ops/run.py that are programs in other runtimes: recurrent nets, quantised products, a loop, suppression of boxes, trees,
einsum.

How to read it: a Program is a Case whose nodes a function writes.
"""
import numpy as np
from cases import Case, add, integers, normal, text
from onnx import TensorProto, helper


class Program(Case):
    opsets = {"": 21, "com.microsoft": 1, "ai.onnx.ml": 3}

    def __init__(self, family, label, nodes, inputs, constants=(), torch=None):
        """nodes: a function that returns them."""
        super().__init__(family, label, None, inputs, torch, constants, False, {})
        self.nodes = nodes
        add(self)


def one(op, inputs, domain="", outputs=("y",), **attrs):
    return lambda: [helper.make_node(op, list(inputs), list(outputs), domain=domain, **attrs)]


def scaled(factor, *shape):
    return lambda random: (factor * random.standard_normal(shape)).astype(np.float32)


def recurrent():
    for op, gates, lengths in (("LSTM", 4, (1, 64, 512)), ("GRU", 3, (64,)), ("RNN", 1, (64,))):
        for units in (128, 512):
            for length in lengths:
                for batch in (1, 16):
                    weights = [scaled(units**-0.5, 1, gates * units, units)] * 2 + [scaled(0.1, 1, 2 * gates * units)]
                    Program(op.lower(), f"{units} units, {length} steps, batch {batch}",
                            one(op, ["x0", "c0", "c1", "c2"], hidden_size=units), [normal(length, batch, units)], weights)


def quantised():
    for m, k, n in ((1, 768, 3072), (128, 768, 3072), (512, 512, 512)):
        Program("int8", f"MatMulInteger {text(m, k, n)}", one("MatMulInteger", ["x0", "c0", "c1", "c2"]),
                [integers(m, k, below=256, dtype=np.uint8)],
                [integers(k, n, below=127, dtype=np.int8), lambda _: np.uint8(128), lambda _: np.int8(0)])
        Program("int8", f"QLinearMatMul {text(m, k, n)}", one("QLinearMatMul", ["x0", "c0", "c1", "c2", "c3", "c4", "c5", "c6"]),
                [integers(m, k, below=256, dtype=np.uint8)],
                [lambda _: np.float32(0.02), lambda _: np.uint8(128), integers(k, n, below=127, dtype=np.int8),
                 lambda _: np.float32(0.01), lambda _: np.int8(0), lambda _: np.float32(0.9), lambda _: np.uint8(120)])
    for m, level in ((1, 0), (128, 0), (1, 4), (4, 4), (16, 4), (128, 4)):  # level 4 rounds the values to 8 bits
        blocks = 4096 // 32
        Program("int4", f"MatMulNBits {m}x4096x4096" + f" level {level}" * (level > 0),
                one("MatMulNBits", ["x0", "c0", "c1"], "com.microsoft", K=4096, N=4096, bits=4, block_size=32, accuracy_level=level),
                [normal(m, 4096)], [integers(4096, blocks, 16, below=256, dtype=np.uint8), scaled(0.01, 4096 * blocks)])


def counted():
    """x = x * 0.999 + 1, as often as trips."""
    body = helper.make_graph(
        [helper.make_node("Mul", ["x", "c0"], ["m"]), helper.make_node("Add", ["m", "c1"], ["after"]),
         helper.make_node("Identity", ["go"], ["on"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("x", TensorProto.FLOAT, [])],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("after", TensorProto.FLOAT, [])])
    return [helper.make_node("Loop", ["c2", "", "x0"], ["y"], body=body)]


def loops():
    Program("loop", "1000 rounds of x * a + b", counted, [normal()],
            [lambda _: np.float32(0.999), lambda _: np.float32(1), lambda _: np.int64(1000)])


def boxes(count):
    def make(random):
        middle, size = random.uniform(0, 640, (1, count, 2)), random.uniform(8, 120, (1, count, 2))
        return np.concatenate([middle, size], -1).astype(np.float32)
    return make


def suppression():
    for classes in (1, 80):
        Program("boxes", f"NonMaxSuppression, 8400 boxes, {classes} classes",
                one("NonMaxSuppression", ["x0", "x1", "c0", "c1", "c2"], center_point_box=1),
                [boxes(8400), lambda random, n=classes: random.uniform(0, 1, (1, n, 8400)).astype(np.float32)],
                [lambda _: np.int64(100), lambda _: np.float32(0.5), lambda _: np.float32(0.6)])


def full_trees(trees=500, depth=6, features=30, targets=1):
    """Complete trees with random splits, as a TreeEnsembleRegressor; each tree has one of the targets, as in boosting by classes."""
    random, inner = np.random.default_rng(7), 2**depth - 1
    count = 2 ** (depth + 1) - 1
    node = np.arange(count)
    branch = node < inner
    attrs = {"nodes_treeids": np.repeat(np.arange(trees), count), "nodes_nodeids": np.tile(node, trees),
             "nodes_truenodeids": np.tile(np.where(branch, 2 * node + 1, 0), trees),
             "nodes_falsenodeids": np.tile(np.where(branch, 2 * node + 2, 0), trees),
             "nodes_featureids": random.integers(0, features, trees * count),
             "target_treeids": np.repeat(np.arange(trees), count - inner), "target_nodeids": np.tile(node[inner:], trees),
             "target_ids": np.repeat(np.arange(trees) % targets, count - inner)}
    attrs = {k: v.tolist() for k, v in attrs.items()}
    return one("TreeEnsembleRegressor", ["x0"], "ai.onnx.ml", n_targets=targets, nodes_modes=np.tile(np.where(branch, "BRANCH_LEQ", "LEAF"), trees).tolist(),
               nodes_values=random.standard_normal(trees * count).tolist(),
               target_weights=random.standard_normal(trees * (count - inner)).tolist(), **attrs)()


def trees():
    for rows in (1, 10000):
        Program("trees", f"500 of depth 6, {rows} rows", full_trees, [normal(rows, 30)])
        Program("trees", f"800 of depth 6, 8 targets, {rows} rows", lambda: full_trees(800, targets=8), [normal(rows, 30)])


def einsums():
    for equation, *shapes in (("bij,bjk->bik", (12, 128, 64), (12, 64, 128)), ("bihd,bjhd->bhij", (2, 128, 12, 64), (2, 128, 12, 64)),
                              ("ij,jk,kl->il", (256, 256), (256, 256), (256, 8)), ("bi,ijk,bk->bj", (16, 64), (64, 32, 64), (16, 64))):
        Program("einsum", f"{equation} {' '.join(text(*s) for s in shapes)}",
                one("Einsum", [f"x{i}" for i in range(len(shapes))], equation=equation), [normal(*s) for s in shapes],
                torch=lambda t, *xs, equation=equation: t.einsum(equation, *xs))


for family in (recurrent, quantised, loops, suppression, trees, einsums):
    family()
