"""What people are shown: tensors as HTML and modules as drawings in notebooks, why a function was traced.

The drawing is the one of `keel graph`: the command beside the package makes it, by Graphviz.
"""
import os

from . import _keel, command
from .errors import Error
from .function import Function

_NODES, _CONSTANT_BYTES = 500, 1 << 20  # of what is drawn without being asked


def html(tensor):
    """Tensor._repr_html_: dtype, shape, size, place and a few of the elements."""
    from html import escape  # here, for importing keel is to be quick
    head = tensor.type
    if not tensor.symbolic:
        head += f", {tensor.size * tensor.dtype.size:,} bytes on {tensor.device or 'the host'}"
    return f"<div><code>{escape(head)}</code><pre>{escape(str(tensor))}</pre></div>"


def svg(module, entry=None):
    """A drawing of the module's graphs (entry: of this one's, with all that it reaches), as SVG.

    Raises NotFoundError where the package has no command, NotFoundError for an entry that is not there, and Error
    where the command cannot draw, as without Graphviz's program dot.
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
    """Module._repr_svg_: None, and so text, where it is large or there is nothing to draw it."""
    facts = module.info()
    if sum(graph["nodes"] for graph in facts["graphs"]) > _NODES or facts["constant_bytes"] > _CONSTANT_BYTES:
        return None
    try:
        return svg(module)
    except Error:
        return None


def repr_text(module):
    """Module.__repr__: its entries."""
    return f"<keel.Module with {', '.join(entry['name'] for entry in module.info()['entries']) or 'no entry'}>"


def explain(f):
    """As f.explain(), for a keel.Function or a method of one."""
    found = getattr(f, "__func__", f)
    if not isinstance(found, Function):
        raise TypeError(f"only a keel.Function can be explained, not {type(f).__name__}: decorate it with keel.function")
    return found.explain()
