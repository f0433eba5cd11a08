"""Display: tensors as HTML and modules as drawings in notebooks, and the reasons of traces.

The drawings of `keel graph`, made by the command of the package, with Graphviz.
"""
import os

from . import _keel, command
from .errors import Error
from .function import Function

_NODES, _CONSTANT_BYTES = 500, 1 << 20  # limits of drawings shown automatically


def html(tensor):
    """Tensor._repr_html_: dtype, shape, size, device and some of the elements."""
    from html import escape  # imported here, to keep `import keel` fast
    head = tensor.type
    if not tensor.symbolic:
        head += f", {tensor.size * tensor.dtype.size:,} bytes on {tensor.device or 'the host'}"
    return f"<div><code>{escape(head)}</code><pre>{escape(str(tensor))}</pre></div>"


def svg(module, entry=None):
    """A drawing of the module's graphs (entry: the graph of this entry and the graphs that it uses), as SVG.

    Raises NotFoundError if the package has no command or the module no such entry, and Error if the command fails, for
    example without Graphviz's program dot.
    """
    import tempfile
    if entry is not None:
        whole, module = module, _keel.new_module()
        module._link(whole, entry, entry)
    with tempfile.TemporaryDirectory(prefix="keel-") as folder:
        path = os.path.join(folder, "graph.keel")
        module.save(path)
        return command.run("graph", path, "--svg")


def repr_svg(module):
    """Module._repr_svg_: None (the notebook shows text) if it is large or cannot be drawn."""
    facts = module.info()
    if sum(graph["nodes"] for graph in facts["graphs"]) > _NODES or facts["constant_bytes"] > _CONSTANT_BYTES:
        return None
    try:
        return svg(module)
    except Error:
        return None


def repr_text(module):
    """Module.__repr__: the names of its entries."""
    return f"<keel.Module with {', '.join(entry['name'] for entry in module.info()['entries']) or 'no entry'}>"


def explain(f):
    """f.explain(), for a keel.Function or a bound one. Raises TypeError for other functions."""
    found = getattr(f, "__func__", f)
    if not isinstance(found, Function):
        raise TypeError(f"only a keel.Function can be explained, not {type(f).__name__}: decorate it with keel.function")
    return found.explain()
