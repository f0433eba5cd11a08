"""Calls and drawings of a keel.Module.

    model = keel.load("m.keel")                      # or keel.from_onnx(...), keel.parse(...), f.concrete(...)
    model(x); model(x=x)                             # its only entry: one result, or a named tuple of them
    model                                            # in a notebook: a drawing

The first call for a device makes a keel.Session for it; create one yourself for feeds, fetches and options, or to choose
among several entries.
"""
import collections
import functools

from . import _keel, display, saved
from .graph import Graph
from .session import Session, bytes_among, tensor_fed


@functools.lru_cache(maxsize=None)
def _results_type(names):
    plain = collections.namedtuple("Results", names, rename=True)  # "495" is not a Python name

    class Results(plain):
        """Results in the order of the entry: by index, by name as an attribute, or by any name in brackets."""
        __slots__ = ()

        def __getitem__(self, key):
            return super().__getitem__(names.index(key) if isinstance(key, str) else key)

    return Results


def _bound(names, args, keywords):
    given = dict(zip(names, args))
    wrong = [name for name in keywords if name in given or name not in names]
    if len(args) > len(names) or wrong:
        got = ", ".join([f"{len(args)} positional", *keywords]) if keywords else f"{len(args)} arguments"
        raise TypeError(f"the module takes ({', '.join(names)}), got {got}")
    return {**given, **keywords}


class _Run:
    """A session of a module on a device, with its names; owned by the module, and without a reference to it."""

    def __init__(self, module, device):
        session = Session(module, device)
        self.shape = saved.of(module, module.info()["entries"][0]["name"])
        self.names, self.bytes = [name for name, *_ in session.parameters], bytes_among(session.parameters)
        self.results = [name for name, *_ in session.results]
        self.type = _results_type(tuple(self.results))
        self.session = session._session

    def __call__(self, feeds):
        values = [tensor_fed(value, name in self.bytes) for name, value in feeds.items()]
        return self.built(self.session._run(list(feeds), values, self.results, [], True))

    def bound(self, args, keywords):
        flat = set(keywords) & set(self.names) - set(self.shape.args if self.shape and self.shape.args else ())
        if self.shape and self.shape.args and not flat and self.shape.takes(len(args)):
            args, keywords = self.shape.flat(args, keywords), {}
        return _bound(self.names, args, keywords)

    def built(self, out):
        if self.shape and self.shape.structured:
            return self.shape.built(out)
        return out[0] if len(out) == 1 else self.type(*out)


def _call(self, *args, **keywords):
    """The results of the only entry on self.device (None: the current one). Arguments as for Session.run(). For traced
    functions and tapes, too, as the Entry module["serve"](x)."""
    runs, device = self.__dict__.setdefault("_runs", {}), self.device or _keel.default_device()
    run = runs.get(device) or runs.setdefault(device, _Run(self, device))
    feeds = run.bound(args, keywords)
    if _keel.executing_eagerly() and not _keel.recording():
        return run(feeds)
    made = self[self.info()["entries"][0]["name"]](**feeds)
    return made if run.shape and run.shape.structured else run.built(made if isinstance(made, tuple) else (made,))


_keel.Module.device = None
_keel.Module.__call__ = _call
_keel.Module.svg = display.svg
_keel.Module._repr_svg_ = display.repr_svg
_keel.Module.__repr__ = display.repr_text
Graph.svg = lambda self: self.module.svg()
Graph.svg.__doc__ = display.svg.__doc__
Graph._repr_svg_ = lambda self: self.module._repr_svg_()
