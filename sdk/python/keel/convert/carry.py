"""What goes round a loop of a graph: the values of variables, and what `return` in it gives.

How to read it: in the order of a trace: first() before the body, enter() and made() within, leave() behind. made()
raises Again where the trace shows types that it should have begun with.
"""
from .. import _keel, errors
from .values import ANY, MISSING, Template, as_zeros, describe, is_number, number_dtype, tensor


class Again(Exception):
    """The body must be traced once more, for now it is known what it carries."""


class Carry:
    """Values that go round a loop: those of variables, and what the body returns."""

    def __init__(self, places, where):
        self._places, self._where = places, where
        self.begin, self.dtypes = {}, {}  # found by the first trace: values of unset variables, dtypes of numbers
        self._probes = None               # whether the trace under way is for the dtypes of numbers
        self.returned = ANY               # the value that the body returns, with zeros
        self.before, self._containers = places.values(), places.containers()

    def first(self):
        """The tensors that the loop begins with."""
        self._leaves, self._templates = [], {}
        for name in self._places.names:
            value = self.begin.get(name, self.before[name])
            if value is not MISSING:
                self._templates[name] = Template(value, lambda leaf, place, name=name: self._take(leaf, name + place))
        self._value = Template(self.returned, lambda leaf, _: None if is_number(leaf) else self._take(leaf, "return"))
        return [_keel.array(leaf, self.dtypes.get(k)) for k, (leaf, _) in enumerate(self._leaves)]

    def _take(self, leaf, what):
        leaf = leaf if is_number(leaf) else tensor(leaf)
        if leaf is not None:
            self._leaves.append((leaf, what))
        return None if leaf is None else len(self._leaves) - 1

    def probe(self):
        """After an error of dtypes: numbers stay numbers for one trace, which shows what they become. False: no use."""
        again = self._probes is None and any(self._open(k) for k in range(len(self._leaves)))
        self._probes = again
        return again

    def _open(self, k):
        """Is it a number whose dtype is not known yet?"""
        return is_number(self._leaves[k][0]) and k not in self.dtypes

    def enter(self, tensors):
        if self._probes:
            tensors = [leaf if self._open(k) else t for k, (t, (leaf, _)) in enumerate(zip(tensors, self._leaves))]
        for name, template in self._templates.items():
            self._places.set(name, template.filled(tensors))

    def _probed(self, index, new):
        if self._open(index) and (is_number(new) or tensor(new) is not None):
            dtype = number_dtype(new, self._leaves[index][0]) if is_number(new) else tensor(new).dtype
            self.dtypes[index] = dtype

    def made(self, tensors, like, value):
        """What the body made of the tensors: results in their order. Raises Again."""
        results, after = list(tensors), self._places.values()
        self._places.check(self._containers, self._where)
        for name, template in self._templates.items():
            self._collect(template.filled(list(range(len(like)))), template.filled(tensors), after[name], name, like, results)
        if self._probes:
            self._probes = False
            raise Again
        if value is not ANY:
            if self.returned is ANY:
                self.returned = as_zeros(value)
                raise Again
            self._return(value, results)
        return results

    def _return(self, value, results):
        for index, leaf in zip(_keel.leaves(self._value.mapped(_Index)), _keel.leaves(value)):
            if type(index) is _Index:
                results[index.index] = tensor(leaf)

    def _collect(self, places, entered, value, name, like, results):
        if value is MISSING or _keel.structure(value) != _keel.structure(entered):
            self._fail(name, entered, value, errors.InvalidError)
        indexed = self._templates[name].mapped(_Index)
        for index, old, (place, new) in zip(_keel.leaves(indexed), _keel.leaves(entered), _keel.places(value)):
            if type(index) is _Index and self._probes:
                self._probed(index.index, new)
            elif type(index) is _Index:
                results[index.index] = self._settled(index.index, new, like[index.index], name + place)
            elif old is not new and repr(old) != repr(new):
                self._fail(name + place, old, new, errors.InvalidError)

    def _settled(self, k, new, like, name):
        number = is_number(self._leaves[k][0])
        made = new if is_number(new) else tensor(new)
        if made is None:
            self._fail(name, like, new, errors.InvalidError)
        if is_number(made):
            wanted = number_dtype(made, self._leaves[k][0]) if number and k not in self.dtypes else like.dtype
            try:
                made = _keel.array(made, wanted)
            except errors.Error:
                self._fail(name, like, new, errors.DTypeError)
        if made.dtype != like.dtype and number and k not in self.dtypes and not made.ndim:
            try:
                _keel.array(self._leaves[k][0], made.dtype)
            except errors.Error:
                self._fail(name, like, new, errors.DTypeError)
            self.dtypes[k] = made.dtype
            raise Again
        if made.type != like.type:
            self._fail(name, self._leaves[k][0], new, errors.DTypeError if made.dtype != like.dtype else errors.ShapeError)
        return made

    def unset_found(self, count):
        """Variables that the body sets first: carried too if it surely runs, else unset behind the loop."""
        found = {n: v for n, v in self._places.values().items()
                 if n in self._places.names and n not in self._templates and v is not MISSING}
        if found and isinstance(count, int) and count > 0:
            self.begin.update({n: as_zeros(v) for n, v in found.items()})
            raise Again
        return list(found)

    def leave(self, out, unset):
        self._places.restore(self.before)
        after = {n for n in self.before if n not in self._templates}
        for name, template in self._templates.items():
            self._places.set(name, template.filled(out))
        for name in after & set(self._places.names):
            if name in unset:
                self._places.unset(name, f"{self._where}: `{name}` is set in a loop of a graph only, which may run no time, "
                                   "and read later", f"set {name} before the loop, to a value of the same type")
        return self._value.filled(out)

    def _fail(self, name, before, after, kind):
        hint = "start with a value of the type that it keeps: keel.zeros(shape, dtype), t.astype(dtype)"
        if isinstance(before, (list, dict)):
            hint = "a graph's loop carries values of one structure: keel.scan(init, xs, body) stacks what each step gives"
        raise kind(f"{self._where}: `{name}` changes its type in a loop that becomes part of a graph: {describe(before)} before, "
                   f"{describe(after)} after a step", errors.Code.INVALID, hint=hint)


class _Index:
    def __init__(self, index):
        self.index = index
