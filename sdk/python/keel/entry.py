"""Entries of modules as functions: what was saved is called, and trained further, without its source.

    module = keel.load("m.keel")
    module["serve"](x)                     # or module["serve"](x=x)
    module["train"](x, y)                  # a step that was saved too: it writes the module's variables
    keel.save_checkpoint("m.ckpt", module.variables())
"""
from . import _keel
from .errors import InvalidError, NotFoundError, PreconditionError
from .session import Session


class Entry:
    """One of a module, on the device in use; its variables are those of module.variables(). Any thread may call it."""

    def __init__(self, module, name):
        known = [entry["name"] for entry in module.info()["entries"]]
        if name not in known:
            raise NotFoundError(f"the module has no entry {name!r}", hint="it has " + ", ".join(map(repr, known)))
        self.module, self.name = module, name
        self.parameters = module._ports(name, False)
        self._plans = {}  # by device

    def __call__(self, *args, **keywords):
        """Arguments as the entry names them, in order or by name; one result alone, several as a tuple, as a plan."""
        inputs = self._bound(args, keywords)
        if not _keel.executing_eagerly() or _keel.recording():
            raise PreconditionError(f"entry {self.name!r} of a module is not recorded by tapes and traced functions",
                                    hint="save the step of training as an entry beside it: it holds its own gradients")
        return self._plan()(*inputs)

    def _plan(self):
        device = _keel.default_device()
        if device not in self._plans:
            self._plans[device] = Session(self.module, device, entry=self.name).prepare()
        return self._plans[device]

    def _bound(self, args, keywords):
        """A tensor for each parameter; literals get its dtype."""
        given = dict(zip([name for name, *_ in self.parameters], args))
        wrong = sorted(set(keywords) - {name for name, *_ in self.parameters} | set(keywords) & set(given))
        given.update(keywords)
        if wrong or len(args) > len(self.parameters) or len(given) < len(self.parameters):
            wanted = ", ".join(name for name, *_ in self.parameters)
            raise InvalidError(f"entry {self.name!r} takes ({wanted}), each once; got {len(args)} arguments by place" + (
                f" and {', '.join(keywords)} by name" if keywords else ""))
        return [_keel.array(given[name], dtype if _is_literal(given[name]) else None) for name, dtype, _ in self.parameters]

    def __repr__(self):
        types = ", ".join(f"{name}: {dtype}{list(shape)}" for name, dtype, shape in self.parameters)
        return f"Entry {self.name}({types})"


def _is_literal(value):
    return isinstance(value, (bool, int, float, list, tuple))


def _variables(module):
    """All variables of the module by name: a structure for optimizers and checkpoints."""
    return {variable["name"]: module.variable(variable["name"]) for variable in module.info()["variables"]}


def _entry(module, name):
    """The entry of that name, a keel.Entry. Raises NotFoundError."""
    kept = module.__dict__.setdefault("_entries", {})  # with their plans
    if name not in kept:
        kept[name] = Entry(module, name)
    return kept[name]


_keel.Module.__getitem__ = _entry
_keel.Module.variables = _variables
