"""The variables that pieces of a converted function share.

How to read it: Places reads and sets variables by name, in the cells of the pieces; explained() adds reasons for unset ones.
"""
import contextlib
import dis
import re
import threading

from .. import _keel, errors
from .build import unconverted
from .values import MISSING


class _Thread(threading.local):
    def __init__(self):
        self.reasons = {}  # reasons of variables unset by a graph, by name


_thread = _Thread()


@contextlib.contextmanager
def explained():
    """Converts a NameError about a variable unset by a graph to an error with the reason, and adds to errors about the
    value of a tensor why the code was not converted."""
    before, _thread.reasons = _thread.reasons, {}
    try:
        yield
    except NameError as e:
        name = re.search(r"'(\w+)'", str(e))
        reason = _thread.reasons.get(name.group(1)) if name else None
        if reason is None:
            raise
        raise errors.InvalidError(reason[0], errors.Code.INVALID, hint=reason[1]) from e
    except errors.PreconditionError as e:
        why = unconverted(e.__traceback__)
        e.hint += "" if why in e.hint else why  # an inner function may have added it
        raise
    finally:
        _thread.reasons = before


_known = {}  # results of _assigned by identity: comparing nested code objects takes time exponential in their depth


def _assigned(code):
    """Enclosing variables that the code sets, by name."""
    known = _known.get(id(code))
    if known is None:
        if len(_known) > 4096:
            _known.clear()
        known = _known[id(code)] = code, _found_assigned(code)  # keeps the code alive, so that its id stays unique
    return known[1]


def _found_assigned(code):
    found = {i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_DEREF", "DELETE_DEREF")}
    for const in code.co_consts:
        found |= _assigned(const) if isinstance(const, type(code)) else set()
    return found & set(code.co_freevars)


class _Cell:
    def __init__(self, cell):
        self._cell = cell

    def get(self):
        try:
            return self._cell.cell_contents
        except ValueError:
            return MISSING

    def set(self, value):
        if value is not MISSING:
            self._cell.cell_contents = value
        elif self.get() is not MISSING:
            del self._cell.cell_contents


class _Global:
    def __init__(self, table, name):
        self._table, self._name = table, name

    def get(self):
        return self._table.get(self._name, MISSING)

    def set(self, value):
        if value is MISSING:
            self._table.pop(self._name, None)
        else:
            self._table[self._name] = value


class _Attribute:
    def __init__(self, holder, name):
        self._holder, self._name = holder, name

    def get(self):
        return getattr(self._holder.get(), self._name, MISSING)

    def set(self, value):
        if value is not MISSING:
            setattr(self._holder.get(), self._name, value)
        elif hasattr(self._holder.get(), self._name):
            delattr(self._holder.get(), self._name)


def _items(container):
    return container.values() if isinstance(container, dict) else container


class Places:
    """The variables that pieces set, and the named ones: "y", or "self.total" for an attribute."""

    def __init__(self, pieces, names):
        cells, assigned = {}, set()
        for piece in pieces:
            cells.update(zip(piece.__code__.co_freevars, piece.__closure__ or ()))
            assigned |= _assigned(piece.__code__)
        self._cells, self._globals = cells, pieces[0].__globals__ if pieces else {}
        self.names, self._at = names, {n: self._place(n) for n in sorted(assigned.union(names))}

    def _place(self, name):
        holder, _, attribute = name.partition(".")
        place = _Cell(self._cells[holder]) if holder in self._cells else _Global(self._globals, holder)
        return _Attribute(place, attribute) if attribute else place

    def values(self):
        return {name: place.get() for name, place in self._at.items()}

    def restore(self, values):
        for name, value in values.items():
            self._at[name].set(value)

    def set(self, name, value):
        self._at[name].set(value)

    def containers(self):
        """The lists, dicts and sets that pieces can reach by a name, with their present items."""
        found = []
        for name, cell in self._cells.items():
            value = _Cell(cell).get()
            held = [(name, value)] + [(f"{name}.{k}", v) for k, v in getattr(value, "__dict__", {}).items()]
            found += [(n, c, list(_items(c))) for n, c in held if type(c) in (list, dict, set)]
        return found

    @staticmethod
    def check(containers, where):
        """Raises if a body put one of its tensors into one of them: a tensor cannot leave its body this way."""
        for name, container, before in containers:
            old = set(map(id, before))
            new = [x for x in _items(container) if id(x) not in old] if len(container) < 10_000 else []
            if any(isinstance(leaf, _keel.Tensor) and leaf.symbolic for x in new for leaf in _keel.leaves(x)):
                raise errors.InvalidError(
                    f"{where}: a tensor is put into `{name}`, a {type(container).__name__} of Python, in a branch or "
                    "loop that becomes part of a graph", errors.Code.INVALID,
                    hint="use keel.scan(init, xs, body) to stack the results of steps; put the result of an `if` in after it")

    def unset(self, name, why, hint):
        self._at[name].set(MISSING)
        _thread.reasons[name] = why, hint
