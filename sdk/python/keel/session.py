"""Saved graphs: files of functions, sessions with feeds and fetches, plans for repeated runs.

    keel.save("m.keel", serve=f.concrete(x))
    session = keel.Session("m.keel", device="cpu")
    session.run(x=numbers)["y"]                       # all results of the entry, by name
    session.run("y", {"x": numbers})                  # any values, also in lists and dicts
    plan = session.prepare()                          # inputs and results in order; thread-safe
"""
import json
import os
import threading

from . import _keel, saved
from .errors import Code, InvalidError, PreconditionError
from .graph import Graph, Node, default_graph
from .strings import encoded, holds_strings


def load(path):
    """The module of a .keel file; its weights are mapped, not copied. Raises NotFoundError, InvalidError."""
    return _keel.load_module(os.fsdecode(path))


def import_file(path, fixed=None, **options):
    """A module from a file in the format of an importer plugin, such as ONNX. fixed: values of parameters, which become constants."""
    values = {name: encoded(value) for name, value in (fixed or {}).items()}
    return _keel.import_module(os.fsdecode(path), options, values)


def join(gradients=False, **entries):
    """One module with the only entry of each of these modules, under the given names. gradients: adds f.gradient for each
    entry f with float parameters. Shared variables stay shared."""
    if wrong := [f"{name}={each!r}" for name, each in entries.items() if not isinstance(each, _keel.Module)]:
        raise TypeError(f"an entry must be a keel.Module, such as f.concrete(x); got {', '.join(wrong)}")
    if not entries:
        raise InvalidError("there is no entry: use keel.save(path, serve=f.concrete(x))")
    module = _keel.new_module()
    for name, each in entries.items():
        module._link(each, "", name)
        saved.copy(each, each.info()["entries"][0]["name"], module, name)
    for name in entries if gradients else ():
        module._gradient(name, name + ".gradient")
    return module


def save(path, module=None, gradients=False, **entries):
    """Writes a module, or modules of functions as named entries: keel.save("m.keel", serve=f.concrete(x)). Atomic."""
    if isinstance(module, (str, os.PathLike)):
        raise TypeError(f"the path comes first: keel.save({module!r}, ...)")
    if not isinstance(module, (_keel.Module, type(None))):
        raise TypeError(f"keel.save takes a keel.Module, such as f.concrete(x); got {module!r}")
    (join(gradients, **entries) if module is None else module).save(path)


def _info(self):
    """Facts as a dict: entries with parameters and results, graphs, op counts, constants, metadata."""
    return json.loads(self._info())


def _save(self, path):
    """Writes the file, complete or not at all."""
    self._save(os.fsdecode(path))


_keel.Module.info = _info
_keel.Module.save = _save
_keel.Module.__reduce__ = lambda self: (_parsed, (self.text(),))
_keel.Module.variable = lambda self, name: self._variable(name)
_keel.Module.variable.__doc__ = "The module's keel.Variable of that name."


def is_literal(value):
    """Whether the value takes the dtype of its destination."""
    return isinstance(value, (int, float, list, tuple))


def bytes_among(ports):
    """The names of those (name, dtype, shape) that hold bytes, and so may be fed strings."""
    return {name for name, dtype, *_ in ports if dtype == _keel.u8}


def tensor_fed(value, takes_strings):
    """The tensor to feed for a value: literals at their widest dtype, since the session casts them; strings as their bytes, where
    these are taken."""
    if takes_strings:
        value = encoded(value)
    tensor = _keel.array(value)
    wide = {"i": _keel.i64, "f": _keel.f64}.get(tensor.dtype.kind)
    return _keel.array(value, wide) if wide and is_literal(value) else tensor


class Session:
    """Runs a graph on a device. module: a keel.Module, the path of a file, a keel.Graph, or None: the default graph.

    device: a name, or "auto": the first of the devices of cuda, the discrete ones of vulkan and cpu that has all ops of
    the graph; self.device then names it. entry: its name (default: the only one). options: threads, memory, timeout_ms,
    level, strict, exact_convolution, feeds ("cast", or "exact"), and, each a text or a list of texts, passes,
    place ("PATTERN=DEVICE") and fallback ("DEVICE"). exact_convolution=True: convolutions sum in the order of their
    definition; otherwise the device cpu uses Winograd's algorithm where it is faster (3x3 windows, constant weights),
    which rounds differently. Thread-safe. Raises DeviceError for an unknown device.
    with session: makes it the default of its thread, for keel.evaluate() and tensor.eval().
    """

    def __init__(self, module=None, device=None, entry=None, **options):
        module = default_graph() if module is None else module
        self.graph = module if isinstance(module, Graph) else None
        self.module = self.graph.module if self.graph else module if isinstance(module, _keel.Module) else load(module)
        self.device = device or (self.graph._device() if self.graph else _keel.default_device())
        chosen = {**options, **({"entry": entry} if entry else {})}
        self._session = _keel.Session(self.module, self.device, chosen)
        self._order = None
        self._arguments = (self.module if self.graph else module, device, entry, options)
        if self.device == "auto":
            self.device = json.loads(self.prepare()._report())["device"]

    @property
    def parameters(self):
        """(name, dtype, shape) of each parameter, with -1 for sizes unknown before a run."""
        return self.module._ports(self._arguments[2] or "", False)

    @property
    def results(self):
        """(name, dtype, shape) of each result, as for parameters."""
        return self.module._ports(self._arguments[2] or "", True)

    def __reduce__(self):
        return _restored, self._arguments

    def __enter__(self):
        _defaults.stack.append(self)
        return self

    def __exit__(self, *_):
        _defaults.stack.remove(self)

    def run(self, fetches=None, feeds=None, targets=(), **inputs):
        """The values of `fetches`, in host memory: names in any structure; for a keel.Graph also tensors, and Nodes, which are
        run and yield None. Default: all results of the entry, in a dict, with all its effects; a run of fetches has only
        the effects that they depend on.

        feeds (a dict by name or tensor) and inputs (by name): a fed value replaces its computation. Feeds are cast within
        their kind (f64 to f32, not f32 to i32). targets: nodes to run in addition. Raises NotFoundError for an unknown
        name, InvalidError for a required parameter without a feed, ShapeError, DTypeError.
        """
        whole = fetches is None
        if whole:
            entry = [name for name, *_ in self.results]
            fetches = {name: name for name in self._ordered(entry)}
        fed = {self._name(key): value for key, value in {**(feeds or {}), **inputs}.items()}
        leaves = _keel.leaves(fetches)
        wanted = entry if whole else (self._name(leaf) for leaf in leaves if not isinstance(leaf, Node))
        names = list(dict.fromkeys(wanted))  # not from leaves(), which sorts dicts
        targets = [*targets, *(leaf.name for leaf in leaves if isinstance(leaf, Node)),
                   *(self.graph.each_run if self.graph else ())]
        values = [self._fed(name, value) for name, value in fed.items()]
        got = dict(zip(names, self._session._run(list(fed), values, names, targets, whole)))
        return _keel.map_leaves(fetches, lambda leaf: None if isinstance(leaf, Node) else got[self._name(leaf)])

    def _ordered(self, names):
        """The results in the order of the saved function."""
        if self._order is None:
            entry = self._arguments[2] or next((each["name"] for each in self.module.info()["entries"]), "")
            shape = None if self.graph else saved.of(self.module, entry)
            self._order = shape.order(len(names)) if shape else range(len(names))
        return [names[k] for k in self._order] if len(names) == len(self._order) else names

    def _name(self, leaf):
        """The name of a feed or fetch."""
        if isinstance(leaf, str):
            return leaf
        if self.graph and isinstance(leaf, _keel.Tensor):
            return self.graph.name_of(leaf)
        wanted = "names, tensors and Nodes of its graph" if self.graph else "names: it runs a module"
        raise TypeError(f"a session feeds and fetches {wanted}, not {type(leaf).__name__}")

    def _fed(self, name, value):
        return tensor_fed(value, holds_strings(value) and name in bytes_among(self.parameters))

    def prepare(self, feeds=(), fetches=(), targets=()):
        """A thread-safe plan for these names (default: the entry's parameters and results): plan(x, y) returns the results."""
        graphs = self.module.info()["graphs"]
        may_be_brief = not any(graph["effects"]["prints"] or "while" in graph["ops"] for graph in graphs)
        targets = [*targets, *(self.graph.each_run if self.graph else ())]
        return self._session._prepare(list(feeds), list(fetches), targets, may_be_brief)


class _Defaults(threading.local):
    """The default sessions of each thread, innermost last."""

    def __init__(self):
        self.stack = []


_defaults = _Defaults()


def default_session():
    """The innermost `with session:` of this thread; None if there is none."""
    return _defaults.stack[-1] if _defaults.stack else None


def evaluate(fetches, feeds=None, session=None):
    """run() of the session (default: the default session). Raises PreconditionError if there is none."""
    session = session or default_session()
    if session is None:
        raise PreconditionError("cannot evaluate: there is no default session", Code.PRECONDITION,
                                hint="use `with session:` around it, or session.run(tensor)")
    return session.run(fetches, feeds)


def _parsed(text):  # for pickle, which requires functions of Python modules; so is _restored
    return _keel.parse(text)


def _restored(module, device, entry, options):
    return Session(module, device, entry, **options)


def _named(variables):
    """All variables of a structure by path; a variable's name replaces the last part."""
    found, seen = [], set()
    for place, leaf in _keel.places(variables):
        if isinstance(leaf, _keel.Variable) and leaf.id not in seen:
            seen.add(leaf.id)
            path = place.replace("[", ".").replace("]", "").strip(".").split(".")
            found.append(("/".join(path[:-1] + [leaf.name or path[-1] or "variable"]), leaf))
    if not found:
        raise InvalidError(f"there is no keel.Variable in {variables!r}")
    return found


def save_checkpoint(path, variables):
    """Writes the values of all variables in a structure to a file, by path ("layers/0/w"); complete or not at all."""
    _keel.save_checkpoint(os.fsdecode(path), _named(variables))


def load_checkpoint(path, variables):
    """Sets each variable of the structure to its value in the file, or raises and changes none."""
    _keel.load_checkpoint(os.fsdecode(path), _named(variables))
