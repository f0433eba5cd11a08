"""The variables that pieces of a converted function share, and values with places for what a graph computes.

How to read it: Places reads and sets variables by name, in the cells of the pieces; MISSING is an unset one. Template
is a value whose tensors are taken out, and put in again as others. describe() says in messages what a value is.
"""
import contextlib
import dis
import functools
import re
import threading

from .. import _keel, errors
from .._keel import ops
from ..shapes import zeros
from .build import unconverted


MISSING = object()  # in place of the value of an unset variable
ANY = object()      # in place of a value that nobody will read
_thread = threading.local()


@contextlib.contextmanager
def explained():
    """Within it, a NameError about a variable that a graph unset becomes an error that says why, and a tensor that is
    asked for its value in code that was not converted one that says why not."""
    before, _thread.reasons = getattr(_thread, "reasons", {}), {}
    try:
        yield
    except NameError as e:
        name = re.search(r"'(\w+)'", str(e))
        reason = _thread.reasons.get(name.group(1)) if name else None
        if reason is None:
            raise
        raise errors.InvalidError(reason[0], errors.Code.INVALID, hint=reason[1]) from e
    except errors.PreconditionError as e:
        e.hint += unconverted(e.__traceback__)
        raise
    finally:
        _thread.reasons = before


@functools.lru_cache(maxsize=4096)
def _assigned(code):
    """Names that the code sets in variables around it."""
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
    """The variables that pieces set, and those of the names: "y", or "self.total" for an attribute."""

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
        """The lists, dicts and sets that pieces can reach by a name, and what they hold now."""
        found = []
        for name, cell in self._cells.items():
            value = _Cell(cell).get()
            held = [(name, value)] + [(f"{name}.{k}", v) for k, v in getattr(value, "__dict__", {}).items()]
            found += [(n, c, list(_items(c))) for n, c in held if type(c) in (list, dict, set)]
        return found

    @staticmethod
    def check(containers, where):
        """Raises where a tensor of a body was put into one of them: it cannot leave the body that way."""
        for name, container, before in containers:
            old = set(map(id, before))
            new = [x for x in _items(container) if id(x) not in old] if len(container) < 10_000 else []
            if any(isinstance(leaf, _keel.Tensor) and leaf.symbolic for x in new for leaf in _keel.leaves(x)):
                raise errors.InvalidError(
                    f"{where}: a tensor is put into `{name}`, a {type(container).__name__} of Python, in a branch or loop "
                    "that becomes part of a graph", errors.Code.INVALID,
                    hint="keel.scan(init, xs, body) stacks what each step gives; after an `if` put the result in, not in it")

    def unset(self, name, why, hint):
        self._at[name].set(MISSING)
        _thread.reasons[name] = why, hint


def is_number(value):
    return isinstance(value, (bool, int, float))


def tensor(value):
    """The tensor for a leaf that can be one and is no number, else None."""
    if isinstance(value, _keel.Tensor):
        return value
    if isinstance(value, (_keel.Dim, Zeros)):
        return ops.dim(value) if isinstance(value, _keel.Dim) else value.make()
    return _keel.array(value) if hasattr(value, "__array__") and not isinstance(value, _keel.Variable) else None


def number_dtype(*numbers):
    return _keel.array([float(n) if isinstance(n, float) else n for n in numbers]).dtype


class Zeros:
    """Stands for zeros of a tensor's type, to be made in another trace than the tensor's."""

    def __init__(self, like):
        self._shape, self._dtype = like.shape, like.dtype

    def make(self):
        return zeros(self._shape, self._dtype)


def as_zeros(value):
    """The value with Zeros for tensors."""
    def one(leaf):
        found = tensor(leaf)
        return leaf if found is None else Zeros(found)
    return _keel.map_leaves(value, one)


class _Slot:
    def __init__(self, index):
        self.index = index


class Template:
    """A value with numbered places: those that take(leaf, place in the value) gives a number for, not None."""

    def __init__(self, value, take):
        places = iter([place for place, _ in _keel.places(value)])

        def one(leaf):
            index = take(leaf, next(places))
            return leaf if index is None else _Slot(index)
        self._value = value if value is ANY else _keel.map_leaves(value, one)

    def filled(self, tensors):
        return self.mapped(lambda index: tensors[index])

    def mapped(self, f):
        if self._value is ANY:
            return ANY
        return _keel.map_leaves(self._value, lambda x: f(x.index) if type(x) is _Slot else x)


def describe(value):
    if value is None or value is MISSING:
        return "nothing"
    if isinstance(value, _keel.Tensor):
        return value.type
    if is_number(value):
        return repr(value)
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(describe, value))
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    return "{" + ", ".join(f"{k}: {describe(v)}" for k, v in value.items()) + "}" if isinstance(value, dict) else repr(value)[:60]


def where(piece):
    return f"{piece.__code__.co_filename}:{piece.__code__.co_firstlineno}"
