"""Where onnx.reference and ONNX Runtime differ, and which of them the specification backs.

A row: operators, a condition on (node, operands, opset), the oracle that is right, and why. The specification leaves differences
without a row open (NaN in comparisons, rounding to zero): Keel's result must be one of the two.
"""
from onnx import helper


def attribute(node, name, otherwise=None):
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), otherwise)


def always(node, operands, opset):
    return True


def empty(node, operands, opset):
    return operands[0].size == 0


def half(node, operands, opset):
    return operands[0].dtype.itemsize == 2


TABLE = [
    ("Loop", always, "runtime", "reference joins the stacked results without a dim for the iterations"),
    ("RNN GRU LSTM", always, "runtime", "reference ignores lengths of sequences, and the direction of some"),
    ("GlobalMaxPool", always, "runtime", "reference takes the maximum over the channels, too"),
    ("ConvTranspose", always, "runtime", "reference gives all groups the bias of the first"),
    ("AveragePool MaxPool LpPool", lambda node, operands, opset: bool(attribute(node, "ceil_mode", 0)), "runtime",
     "reference places windows of ceil_mode elsewhere, and sizes the result otherwise"),
    ("BatchNormalization", always, "runtime", "reference moves the given statistics as in training"),
    ("LpNormalization", lambda node, operands, opset: attribute(node, "p", 2) == 1, "runtime", "reference sums without absolute values"),
    ("LayerNormalization RMSNormalization GroupNormalization InstanceNormalization", half, "runtime", "stash_type is float, reference stays in halves"),
    ("InstanceNormalization", always, "reference", "runtime scales the mean before it subtracts, which cancels where elements are few"),
    ("Slice", always, "runtime", "reference takes a start before the first element as NumPy does; it is clamped to the first"),
    ("Shape", always, "runtime", "reference takes an end before the first dim as the first"),
    ("ReduceSum ReduceL1 ReduceL2 ReduceSumSquare ReduceProd ReduceLogSum", empty, "reference", "runtime keeps the dims of an empty operand"),
    ("MatMulInteger QLinearMatMul", empty, "reference", "runtime leaves sums of no products as its memory was"),
    ("ReduceSumSquare", always, "runtime", "reference widens i32 to i64"),
    ("Resize", lambda node, operands, opset: len(operands) == 4 and attribute(node, "coordinate_transformation_mode") == b"pytorch_half_pixel" and
     1 in operands[3], "runtime", "reference reads the place -0.5 where a size of the result is 1; it is 0"),
    ("Resize", lambda node, operands, opset: len(operands) == 3 and attribute(node, "coordinate_transformation_mode") in
     (b"align_corners", b"pytorch_half_pixel"), "reference", "ONNX's node tests compute with fractional lengths; runtime rounds them"),
]


def decided(node, operands, opset):
    """The oracle that is right; None: both may be."""
    for operators, condition, right, _ in TABLE:
        if node.op_type in operators.split() and condition(node, operands, opset):
            return right
    return None
