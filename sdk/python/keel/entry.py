"""Entries of modules as functions: saved programs are called, and trained further, without their source.

    module = keel.load("m.keel")
    module["serve"](x)                                     # or module["serve"](x=x)
    module["train"](x, y)                                  # a saved training step, which writes the variables
    with keel.Tape() as tape:                              # or a new step
        loss = loss_of(module["serve"](x))
    adam.apply(tape.gradient(loss, weights), weights)      # of module.variables()
"""
from . import _keel, saved
from .errors import InvalidError, NotFoundError, PreconditionError
from .function import Function
from .session import Session, is_literal
from .strings import encoded


class Entry:
    """An entry of a module as a function, also for traced functions and tapes; its variables are those of
    module.variables(). Runs on the current device; any thread may call it."""

    def __init__(self, module, name):
        known = {entry["name"]: entry for entry in module.info()["entries"]}
        if name not in known:
            raise NotFoundError(f"the module has no entry {name!r}", hint="it has " + ", ".join(map(repr, known)))
        self.module, self.name = module, name
        self.parameters = module._ports(name, False)
        self._types = [(p["name"], p["type"]) for p in known[name]["params"]]
        self._shape = saved.of(module, name)
        self._functions = {}  # by device

    def __call__(self, *args, **keywords):
        """Arguments and results as of the saved function; for other modules those of the entry, in order or by name, with
        one result alone and several as a tuple. Raises InvalidError for wrong arguments."""
        made = self._function()(*self._bound(args, keywords))
        if not self._shape or not self._shape.structured:
            return made
        return self._shape.built(made if isinstance(made, tuple) else (made,))

    def concrete(self):
        """The entry in a new module, with shared variables: for keel.save()."""
        alone = _keel.new_module()
        alone._link(self.module, self.name, self.name)
        saved.copy(self.module, self.name, alone, self.name)
        return alone

    def _function(self):
        device = _keel.default_device()
        if device not in self._functions:
            plain = all(name.isidentifier() for name, _ in self._types) and self._types
            options = {"signature": ", ".join(f"{name}: {kind}" for name, kind in self._types)} if plain else {}
            self._functions[device] = Function(self._written, self.name, options)
        return self._functions[device]

    def _written(self, *inputs):
        """The code of the function: in a trace adds the graph of the entry; eagerly runs it."""
        if not _keel.executing_eagerly():
            made = _keel.write_entry(self.module, self.name, inputs)
            return made[0] if len(made) == 1 else tuple(made)
        if _keel.recording():
            raise PreconditionError(f"entry {self.name!r} of a module is a graph: tapes cannot record it under run_eagerly()",
                                    hint="switch keel.run_eagerly() off for the functions that call it")
        return Session(self.module, entry=self.name).prepare()(*inputs)

    def _bound(self, args, keywords):
        """A tensor for each parameter; literals take its dtype."""
        if self._shape and self._shape.args and not self._is_flat(args, keywords):
            args, keywords = self._shape.flat(args, keywords), {}
        given = dict(zip([name for name, *_ in self.parameters], args))
        wrong = sorted(set(keywords) - {name for name, *_ in self.parameters} | set(keywords) & set(given))
        given.update(keywords)
        if wrong or len(args) > len(self.parameters) or len(given) < len(self.parameters):
            wanted = ", ".join(name for name, *_ in self.parameters)
            raise InvalidError(f"entry {self.name!r} takes ({wanted}), each once; got {len(args)} positional arguments" + (
                f" and {', '.join(keywords)} by name" if keywords else ""))
        return [self._tensor(given[name], dtype) for name, dtype, _ in self.parameters]

    @staticmethod
    def _tensor(value, dtype):
        if dtype == _keel.u8:
            value = encoded(value)
        return _keel.array(value, dtype if is_literal(value) else None)

    def _is_flat(self, args, keywords):
        """Whether the arguments are the entry's flat list of tensors."""
        names = {name for name, *_ in self.parameters}
        lists = not self._shape.takes(len(args)) and not keywords
        return lists or any(name in names and name not in self._shape.args for name in keywords)

    def __repr__(self):
        types = ", ".join(f"{name}: {dtype}{list(shape)}" for name, dtype, shape in self.parameters)
        return f"Entry {self.name}({types})"


def _variables(module):
    """All variables of the module by name: a structure for optimizers and checkpoints."""
    return {variable["name"]: module.variable(variable["name"]) for variable in module.info()["variables"]}


def _entry(module, name):
    """The entry of that name, a keel.Entry. Raises NotFoundError."""
    kept = module.__dict__.setdefault("_entries", {})  # keeps their plans
    if name not in kept:
        kept[name] = Entry(module, name)
    return kept[name]


_keel.Module.__getitem__ = _entry
_keel.Module.variables = _variables
