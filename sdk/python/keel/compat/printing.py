"""Tensors in TensorFlow's format: tf.Tensor(5.5, shape=(), dtype=float32). Formatting ("{}") shows values only, in
both. The extension calls these functions only while they are enabled.
"""
import numpy

from .. import _keel


def shape_text(shape):
    """(2, None): None for unknown sizes."""
    sizes = [str(d) if isinstance(d, int) else "None" for d in shape]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def _facts(tensor):
    return f"shape={shape_text(tensor.shape)}", f"dtype={tensor.dtype.numpy_name}"


def name_of(tensor):
    """'const:0', the name of a tensor of the default graph; '' for other tensors."""
    from .graphs import current_graph
    graph = current_graph()
    if graph is None or not graph._owns(tensor):
        return ""
    name = graph.name_of(tensor)
    return name if ":" in name else name + ":0"


def _in_a_line(text):
    return ("\n" if "\n" in text else "") + text


def as_str(tensor):
    facts = ", ".join(_facts(tensor))
    if not tensor.symbolic:
        return f"tf.Tensor({_in_a_line(str(tensor.numpy()))}, {facts})"
    name = name_of(tensor)
    return f'Tensor("{name}", {facts})' if name else f"Tensor({facts})"


def value_repr(tensor):
    """numpy=11, for a tensor with a value."""
    array = tensor.numpy()
    return "numpy=" + (_in_a_line(repr(array)) if array.ndim else str(array))


def as_repr(tensor):
    if not tensor.symbolic:
        return f"<tf.Tensor: {', '.join(_facts(tensor))}, {value_repr(tensor)}>"
    name = name_of(tensor)
    return f"<tf.Tensor {name!r} {' '.join(_facts(tensor))}>" if name else f"<tf.Tensor {' '.join(_facts(tensor))}>"


def enable(on):
    _keel.show_by(*((as_str, as_repr) if on else (None, None)))
