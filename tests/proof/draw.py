"""Random graphs from the catalogue: `draw(context, seed)`.

drawer.py writes a block, draw_node.py draws one node of any op, attributes.py attributes by type, bodies.py bodies and effects, bait.py
fragments that passes match."""
from draw_node import any_node
from drawer import DTYPES, Drawer, Refused, Shared
from graphs import Type

# Ops that are not drawn, and the reason.
IN_A_RUN = "its size is known in a run only; tests/python_sdk/test_py_selection.py"
NOT_DRAWN = {"trim": IN_A_RUN, "nonzero": IN_A_RUN, "unique": IN_A_RUN,
             "non_max_suppression": "a rounding error of an operand changes which boxes it chooses; tests/conformance/test_onnx_suppression.py",
             "tree_ensemble": "a rounding error of an operand leads to other leaves; tests/conformance/test_tree_ensemble.py"}
MATRIX_OPS = {"cholesky", "triangular_solve", "solve", "inv", "det", "qr", "svd", "eigh"}  # only in matrices_bait.py


# ---- a whole graph
def draw(context, ops, seed, length=18):
    """Returns Shared, with the graph and the names of its bait."""
    from bait import BAIT
    from bodies import CONTROL
    shared = Shared(context, ops, seed)
    drawer = Drawer(shared, shared.graph.main)
    drawer.parameter(Type("f32", drawer.one([("b",), ("b", 4), (2, "b"), ("b", 1, 3)])))
    for dtype in ["f32", drawer.one(DTYPES)]:
        drawer.parameter(Type(dtype, drawer.dims()))
    fill(drawer, length, BAIT, CONTROL)
    drawer.finish()
    return shared


def draw_bait(context, ops, name, seed):
    """Returns a graph of one fragment alone and its expected result, or None."""
    from bait import BAIT
    shared = Shared(context, ops, seed)
    drawer = Drawer(shared, shared.graph.main)
    drawer.alone, drawer.strict = True, seed % 2 == 0
    for dtype, dims in [("f32", (3, 4)), ("f32", ("b", 4)), ("bool", (4,)), ("u8", (2, 3)), ("f64", (2, 1, 4)), ("i32", ())]:
        drawer.parameter(Type(dtype, dims), "plain")
    try:
        wanted = BAIT[name](drawer)
    except Refused:
        return None, None
    drawer.block.results = drawer.block.nodes[-1].outs if drawer.block.nodes else []
    return shared.graph, None if drawer.wrong or not drawer.block.results else wanted


def fill(drawer, length, bait, control):
    """Adds nodes up to this number. Ops of the catalogue are equally likely, except effects; none with bodies, none of
    NOT_DRAWN and MATRIX_OPS."""
    ops = drawer.shared.ops
    names = sorted(n for n, op in ops.items()
                   if n not in NOT_DRAWN and n not in MATRIX_OPS and not any(a["type"].startswith("graph") for a in op["attributes"]))
    names += [n for n in names if not ops[n]["results"]] * 2  # effects
    most = 12 * length
    while len(drawer.block.nodes) < length and (most := most - 1):
        mark = len(drawer.block.nodes), len(drawer.values)
        try:
            if bait and drawer.chance(0.25):
                name = drawer.one(sorted(bait))
                bait[name](drawer)
                drawer.shared.baits.append(name)
            elif control and drawer.chance(0.07):
                control[drawer.one(sorted(control))](drawer)
            else:
                any_node(drawer, drawer.one(names))
        except Refused:
            pass
