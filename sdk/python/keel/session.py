"""Saved graphs: files of functions, sessions that run them by feeds and fetches, plans that run them fast.

    keel.save("m.keel", serve=f.concrete(x))
    session = keel.Session("m.keel", device="cpu")
    session.run(x=numbers)["y"]                       # all results of the entry, by name
    session.run("y", {"x": numbers})                  # any values, also in lists and dicts
    plan = session.prepare()                          # inputs and results in order, from many threads
"""
import json
import os
import threading

from . import _keel, saved
from .errors import Code, InvalidError, PreconditionError
from .graph import Graph, Node, default_graph


def load(path):
    """The module of a .keel file; its weights are mapped, not copied. Raises NotFoundError, InvalidError."""
    return _keel.load_module(os.fsdecode(path))


def import_file(path, fixed=None, **options):
    """A module of what an importer plugin reads, such as an ONNX file. fixed: parameters that become constants."""
    return _keel.import_module(os.fsdecode(path), options, fixed or {})


def join(gradients=False, **entries):
    """One module with the only entry of each of these modules, under a name each. gradients: for each entry f with
    float parameters also f.gradient. Variables that they share are one."""
    if wrong := [f"{name}={each!r}" for name, each in entries.items() if not isinstance(each, _keel.Module)]:
        raise TypeError(f"an entry is a keel.Module, such as f.concrete(x): got {', '.join(wrong)}")
    if not entries:
        raise InvalidError("there is no entry: keel.save(path, serve=f.concrete(x))")
    module = _keel.new_module()
    for name, each in entries.items():
        module._link(each, "", name)
        saved.copy(each, each.info()["entries"][0]["name"], module, name)
    for name in entries if gradients else ():
        module._gradient(name, name + ".gradient")
    return module


def save(path, module=None, gradients=False, **entries):
    """Writes a module, or several functions' as named entries: keel.save("m.keel", serve=f.concrete(x)). Atomic."""
    if isinstance(module, (str, os.PathLike)):
        raise TypeError(f"the path is first: keel.save({module!r}, ...)")
    if not isinstance(module, (_keel.Module, type(None))):
        raise TypeError(f"what is saved is a keel.Module, such as f.concrete(x): got {module!r}")
    (join(gradients, **entries) if module is None else module).save(path)


def _info(self):
    """Facts as a dict: entries with parameters and results, graphs, op counts, constants, metadata."""
    return json.loads(self._info())


def _save(self, path):
    """Writes the file, all or nothing."""
    self._save(os.fsdecode(path))


_keel.Module.info = _info
_keel.Module.save = _save
_keel.Module.__reduce__ = lambda self: (_parsed, (self.text(),))
_keel.Module.variable = lambda self, name: self._variable(name)
_keel.Module.variable.__doc__ = "The module's keel.Variable of that name."


def is_literal(value):
    """Does it take the dtype of what it is given to?"""
    return isinstance(value, (int, float, list, tuple))


class Session:
    """Runs a graph on a device. module: a keel.Module, the path of a file, a keel.Graph, or None: the default graph.

    entry: its name (default: the only one). options: threads, memory, timeout_ms, level, passes, place, fallback, strict,
    exact_convolution, feeds ("cast", or "exact"). exact_convolution=True: convolutions add up what they are defined by;
    else the device cpu takes Winograd's way where that is quicker (3x3 windows, constant weights), which rounds
    otherwise. Any thread may run it. Raises DeviceError for a device that is not there.
    with session: makes it the default one of its thread, for keel.evaluate() and tensor.eval().
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

    @property
    def parameters(self):
        """(name, dtype, shape) for each, with -1 where a size is not known before a run."""
        return self.module._ports(self._arguments[2] or "", False)

    @property
    def results(self):
        """As parameters."""
        return self.module._ports(self._arguments[2] or "", True)

    def __reduce__(self):
        return _restored, self._arguments

    def __enter__(self):
        _defaults.stack.append(self)
        return self

    def __exit__(self, *_):
        _defaults.stack.remove(self)

    def run(self, fetches=None, feeds=None, targets=(), **inputs):
        """The values of `fetches`: names in any structure, of a keel.Graph also its tensors, and Nodes, which run and
        give None. By default all results of the entry, in a dict, with all its effects; fetches have only the effects
        that they need. Values are in host memory.

        feeds (a dict by name or tensor) and inputs (by name): a fed value cuts the graph there. Feeds are cast within
        their kind (f64 to f32, not f32 to i32). targets: what else to compute. Raises NotFoundError for a name that is
        not there, InvalidError for a parameter that is needed and not fed, ShapeError, DTypeError.
        """
        whole = fetches is None
        if whole:
            entry = [name for name, *_ in self.results]
            fetches = {name: name for name in self._ordered(entry)}
        fed = {self._name(key): value for key, value in {**(feeds or {}), **inputs}.items()}
        leaves = _keel.leaves(fetches)
        wanted = entry if whole else (self._name(leaf) for leaf in leaves if not isinstance(leaf, Node))
        names = list(dict.fromkeys(wanted))  # leaves() sorts a dict
        targets = [*targets, *(leaf.name for leaf in leaves if isinstance(leaf, Node)),
                   *(self.graph.each_run if self.graph else ())]
        values = [self._fed(name, value) for name, value in fed.items()]
        got = dict(zip(names, self._session._run(list(fed), values, names, targets, whole)))
        return _keel.map_leaves(fetches, lambda leaf: None if isinstance(leaf, Node) else got[self._name(leaf)])

    def _ordered(self, names):
        """All results as the function gave them that was saved."""
        if self._order is None:
            entry = self._arguments[2] or next((each["name"] for each in self.module.info()["entries"]), "")
            shape = None if self.graph else saved.of(self.module, entry)
            self._order = shape.order(len(names)) if shape else range(len(names))
        return [names[k] for k in self._order] if len(names) == len(self._order) else names

    def _name(self, leaf):
        """Of what is fed or fetched."""
        if isinstance(leaf, str):
            return leaf
        if self.graph and isinstance(leaf, _keel.Tensor):
            return self.graph.name_of(leaf)
        wanted = "names, tensors and Nodes of its graph" if self.graph else "names: it runs a module"
        raise TypeError(f"a session feeds and fetches {wanted}, not {type(leaf).__name__}")

    @staticmethod
    def _fed(_, value):
        """What is fed for the value of that name: literals at their widest, for the session casts them."""
        tensor = _keel.array(value)
        wide = {"i": _keel.i64, "f": _keel.f64}.get(tensor.dtype.kind)
        return _keel.array(value, wide) if wide and is_literal(value) else tensor

    def prepare(self, feeds=(), fetches=(), targets=()):
        """A plan for these names (none: the entry's parameters, results): plan(x, y) gives the results."""
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
    """The innermost `with session:` of this thread; None where there is none."""
    return _defaults.stack[-1] if _defaults.stack else None


def evaluate(fetches, feeds=None, session=None):
    """As run() of the session, by default the default one. Raises PreconditionError where there is none."""
    session = session or default_session()
    if session is None:
        raise PreconditionError("cannot evaluate: no default session is there", Code.PRECONDITION,
                                hint="write with session: around it, or session.run(tensor)")
    return session.run(fetches, feeds)


def _parsed(text):  # for pickle, which knows functions of Python modules only; likewise _restored
    return _keel.parse(text)


def _restored(module, device, entry, options):
    return Session(module, device, entry, **options)


def _named(variables):
    """All variables of a structure by path; one with a name of its own is called by it in place of the last part."""
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
    """A file of the values of all variables in a structure, by path ("layers/0/w"); written all or nothing."""
    _keel.save_checkpoint(os.fsdecode(path), _named(variables))


def load_checkpoint(path, variables):
    """Gives each variable of the structure its value in the file, or raises and changes none."""
    _keel.load_checkpoint(os.fsdecode(path), _named(variables))
