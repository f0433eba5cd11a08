"""Structures of a saved entry's arguments and results: a dict is returned as a dict, with its order and keys.

Graphs have flat lists of tensors. For an entry with other arguments or results the module's metadata contains their
structures. How to read it: _described() writes the text, Shape reads it.
"""
import collections
import inspect
import json

from . import _keel
from .errors import Error, InvalidError

_LEAF, _CONSTANTS = "*", (bool, int, float, str, type(None))
_VARIADIC = {inspect.Parameter.VAR_POSITIONAL: "rest", inspect.Parameter.VAR_KEYWORD: "others"}


def _key(entry):
    return f"structure/{entry}"


def note(module, entry, parameters, values, like):
    """Stores the structures of a function's arguments, by name, and results in its module.
    parameters: inspect.Parameter objects."""
    try:
        results = None if _plain(like) else _described(like, lambda leaf: _LEAF if leaf is ... else _constant(leaf))
        args = [[p.name, _described(value, _argument)] for p, value in zip(parameters, values)]
        kinds = {_VARIADIC[p.kind]: p.name for p in parameters if p.kind in _VARIADIC}
        module._metadata(_key(entry), json.dumps({"args": args, "results": results, **kinds}))
    except (Error, TypeError, ValueError):
        pass  # a key without JSON form, or a text that is too long: flat lists remain


def is_flat(values, like):
    """Whether all arguments are tensors or constants, and the results are one tensor or a tuple of tensors."""
    return _plain(like) and not any(isinstance(value, (tuple, list, dict)) or hasattr(type(value), "__dataclass_fields__")
                                    for value in values)


def copy(source, entry, module, name):
    """Copies the structures of an entry linked into another module, under its name there."""
    text = source.info()["metadata"].get(_key(entry))
    if text:
        module._metadata(_key(name), text)


def of(module, entry):
    """The Shape of an entry; None: flat lists."""
    text = module.info()["metadata"].get(_key(entry))
    try:
        return Shape(entry, **json.loads(text)) if text else None
    except (TypeError, ValueError):  # metadata of another program
        return None


def _plain(like):
    """One tensor, or several in a tuple: the default form of flat lists."""
    return like is ... or type(like) is tuple and len(like) > 1 and all(part is ... for part in like)


def _constant(leaf):
    return {"constant": leaf} if isinstance(leaf, _CONSTANTS) else {"fixed": type(leaf).__name__}


def _argument(leaf):
    static = isinstance(leaf, (*_CONSTANTS, _keel.Variable)) or not hasattr(leaf, "__array__") and not hasattr(
        leaf, "__dlpack__")
    return _constant(leaf) if static else _LEAF


def _described(value, leaf):
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"named": type(value).__name__, "fields": [[f, _described(getattr(value, f), leaf)] for f in value._fields]}
    if isinstance(value, (tuple, list)):
        return {"tuple" if isinstance(value, tuple) else "list": [_described(v, leaf) for v in value]}
    if isinstance(value, dict):
        if not all(isinstance(key, _CONSTANTS) for key in value):
            raise TypeError("a dict key without JSON form")
        return {"dict": [[key, _described(v, leaf)] for key, v in value.items()]}
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        return {"named": type(value).__name__, "fields": [[f, _described(getattr(value, f), leaf)] for f in fields]}
    return leaf(value)


def _parts(described):
    """(accessor, description) for each part, in the order in which leaves are numbered."""
    if "fields" in described:
        return [(lambda v, f=f: getattr(v, f), part) for f, part in described["fields"]]
    if "dict" in described:
        return [(lambda v, k=k: v[k], part) for k, part in sorted(described["dict"], key=lambda pair: repr(pair[0]))]
    return [(lambda v, i=i: v[i], part) for i, part in enumerate(described.get("tuple") or described.get("list") or [])]


class _Number:
    def __init__(self, number):
        self.number = number


class Shape:
    """args: (name, structure) for each parameter of the function, or None: flat. results: the same. rest and others: the
    names of parameters such as *rest and **others."""

    def __init__(self, entry, args, results, rest=None, others=None):
        self._entry, self._rest, self._others = entry, rest, others
        self.args = None if args is None else dict(args)
        self.structured = results is not None  # not a flat list
        self._like = self._template(results) if self.structured else None

    def _template(self, described):
        """The value with `...` for tensors."""
        if described == _LEAF:
            return ...
        if "constant" in described:
            return described["constant"]
        if "dict" in described:
            return {key: self._template(part) for key, part in described["dict"]}
        if "fields" in described:
            made = collections.namedtuple(described["named"], [f for f, _ in described["fields"]])
            return made(*[self._template(part) for _, part in described["fields"]])
        made = [self._template(part) for part in described.get("tuple", described.get("list", ()))]
        return tuple(made) if "tuple" in described else made

    def built(self, tensors):
        """The results in their structure."""
        found = iter(tensors)
        return _keel.map_leaves(self._like, lambda leaf: next(found) if leaf is ... else leaf)

    def order(self, count):
        """The numbers of the entry's results in the order of the function."""
        def leaves(value):
            if isinstance(value, (tuple, list, dict)):
                for part in value.values() if isinstance(value, dict) else value:
                    yield from leaves(part)
            elif isinstance(value, _Number):
                yield value.number
        return [*leaves(self.built(map(_Number, range(count))))] if self.structured else [*range(count)]

    def takes(self, count):
        """Whether this number of positional arguments is allowed."""
        return self._rest is not None or count <= len(self.args)

    def flat(self, args, keywords):
        """The tensors of the function's arguments, in the order of the entry's parameters."""
        names, known = list(self.args), [name for name in keywords if name in self.args]
        places = names if self._rest is None else names[:names.index(self._rest)]
        given = {**dict(zip(places, args)), **{name: keywords[name] for name in known}}
        wrong = [name for name in known if name in places[:len(args)]]
        if self._rest not in (None, *known):
            given[self._rest] = args[len(places):]
        if self._others not in (None, *known):
            given[self._others] = {name: value for name, value in keywords.items() if name not in self.args}
        elif len(known) < len(keywords):
            wrong += keywords
        wanted = [name for name, described in self.args.items() if self._has_tensors(described)]
        if wrong or not self.takes(len(args)) or any(name not in given for name in wanted):
            raise InvalidError(f"entry {self._entry!r} takes ({', '.join(wanted)}), each once; got {len(args)} "
                               "positional arguments" + (f" and {', '.join(keywords)} by name" if keywords else ""))
        out = []
        for name, described in self.args.items():
            if name in given:
                self._collect(described, given[name], name, out)
        return out

    def _has_tensors(self, described):
        return described == _LEAF or any(self._has_tensors(part) for _, part in _parts(described))

    def _collect(self, described, value, place, out):
        if described == _LEAF:
            return out.append(value)
        if "constant" in described or "fixed" in described:
            if described.get("constant", self) != value:
                said = described.get("constant", described.get("fixed"))
                raise InvalidError(f"entry {self._entry!r}: {place} is fixed to the saved value {said!r}")
            return None
        if not self._fits(described, value):
            raise InvalidError(f"entry {self._entry!r}: {place} must have the saved structure {_text(described)}",
                               hint=f"got {type(value).__name__}: {str(value)[:80]}")
        for find, part in _parts(described):
            self._collect(part, find(value), place, out)
        return None

    @staticmethod
    def _fits(described, value):
        if "dict" in described:
            return isinstance(value, dict) and set(value) == {key for key, _ in described["dict"]}
        if "fields" in described:
            return all(hasattr(value, f) for f, _ in described["fields"])
        return isinstance(value, (tuple, list)) and len(value) == len(_parts(described))


def _text(described):
    if described == _LEAF:
        return "a tensor"
    if "dict" in described:
        return "{" + ", ".join(f"{key!r}: {_text(part)}" for key, part in described["dict"]) + "}"
    if "fields" in described:
        return f"{described['named']}({', '.join(f'{f}={_text(part)}' for f, part in described['fields'])})"
    if "constant" in described or "fixed" in described:
        return repr(described.get("constant", described.get("fixed")))
    inner = ", ".join(_text(part) for _, part in _parts(described))
    return f"({inner})" if "tuple" in described else f"[{inner}]"
