"""Values carried by a loop of a graph: variables, and the value of a `return` in it.

How to read it: in the order of a trace: first() before the body, enter() and made() within, leave() after it. made()
raises TraceAgain if the trace finds types that it should have started with.
"""
from .. import _keel, errors
from ..control import is_number, number_dtype
from .values import ANY, MISSING, Template, as_zeros, describe, tensor


class TraceAgain(Exception):
    """The body must be traced again: the carried types are known only now."""


class Carry:
    """The carried values of a loop: variables, and the body's returned value."""

    def __init__(self, places, where):
        self._places, self._where = places, where
        self.begin, self.dtypes = {}, {}  # found by the first trace: values of unset variables, dtypes of numbers
        self._probes = None               # whether the current trace finds the dtypes of numbers
        self.returned = ANY               # the value that the body returns, with zeros
        self.before, self._containers = places.values(), places.containers()

    def first(self):
        """The initial carried tensors."""
        self._leaves, self._templates = [], {}
        for name in self._places.names:
            value = self.begin.get(name, self.before[name])
            if value is not MISSING:
                self._templates[name] = Template(value, self._take_any)
        self._value = Template(self.returned, lambda leaf, _: self._take(tensor(leaf)))
        return [_keel.array(leaf, self.dtypes.get(k)) for k, leaf in enumerate(self._leaves)]

    def _take_any(self, leaf, _):
        return self._take(leaf if is_number(leaf) else tensor(leaf))

    def _take(self, leaf):
        """The number of a carried leaf, or None for a constant one."""
        if leaf is None:
            return None
        self._leaves.append(leaf)
        return len(self._leaves) - 1

    def probe(self):
        """After a dtype error: numbers stay numbers for one trace, which finds their dtypes. Returns False if useless."""
        again = self._probes is None and any(self._open(k) for k in range(len(self._leaves)))
        self._probes = again
        return again

    def _open(self, k):
        """Whether it is a number of unknown dtype."""
        return is_number(self._leaves[k]) and k not in self.dtypes

    def enter(self, tensors):
        """Sets the variables to the body's parameters."""
        if self._probes:
            tensors = [leaf if self._open(k) else t for k, (t, leaf) in enumerate(zip(tensors, self._leaves))]
        for name, template in self._templates.items():
            self._places.set(name, template.filled(tensors))

    def _probed(self, k, new):
        if self._open(k) and (is_number(new) or tensor(new) is not None):
            self.dtypes[k] = number_dtype([new, self._leaves[k]]) if is_number(new) else tensor(new).dtype

    def made(self, tensors, like, value):
        """The results of a body for the parameters `tensors`, in order. value: its returned value, or ANY. like: the initial
        carried tensors."""
        results, after = list(tensors), self._places.values()
        self._places.check(self._containers, self._where)
        for name, template in self._templates.items():
            self._collect(name, template.filled(tensors), after[name], like, results)
        if self._probes:
            self._probes = False
            raise TraceAgain
        if value is not ANY:
            if self.returned is ANY:
                self.returned = as_zeros(value)
                raise TraceAgain
            self._return(value, results)
        return results

    def _return(self, value, results):
        for k, leaf in zip(self._value.numbers(), _keel.leaves(value)):
            if k is not None:
                results[k] = tensor(leaf)

    def _collect(self, name, entered, value, like, results):
        if value is MISSING or _keel.structure(value) != _keel.structure(entered):
            self._fail(name, entered, value, errors.InvalidError)
        for k, old, (place, new) in zip(self._templates[name].numbers(), _keel.leaves(entered), _keel.places(value)):
            if k is not None and self._probes:
                self._probed(k, new)
            elif k is not None:
                results[k] = self._settled(k, new, like[k], name + place)
            elif old is not new and repr(old) != repr(new):
                self._fail(name + place, old, new, errors.InvalidError)

    def _settled(self, k, new, like, name):
        """The tensor of a leaf after the body, of the initial type."""
        made = new if is_number(new) else tensor(new)
        if made is None:
            self._fail(name, like, new, errors.InvalidError)
        if is_number(made):
            made = self._as(made, number_dtype([made, self._leaves[k]]) if self._open(k) else like.dtype, name, like, new)
        if made.dtype != like.dtype and self._open(k) and not made.ndim:
            self._as(self._leaves[k], made.dtype, name, like, new)
            self.dtypes[k] = made.dtype
            raise TraceAgain
        if made.type != like.type:
            kind = errors.DTypeError if made.dtype != like.dtype else errors.ShapeError
            self._fail(name, self._leaves[k], new, kind)
        return made

    def _as(self, number, dtype, name, before, after):
        try:
            return _keel.array(number, dtype)
        except errors.Error:
            self._fail(name, before, after, errors.DTypeError)

    def unset_found(self, count):
        """Variables first set by the body: carried if the body surely runs, else unset after the loop."""
        found = {n: v for n, v in self._places.values().items()
                 if n in self._places.names and n not in self._templates and v is not MISSING}
        if found and isinstance(count, int) and count > 0:
            self.begin.update({n: as_zeros(v) for n, v in found.items()})
            raise TraceAgain
        return list(found)

    def leave(self, out, unset):
        """Sets the variables to the loop's results, and unsets those of unset_found(). Returns the returned value."""
        self._places.restore(self.before)
        for name, template in self._templates.items():
            self._places.set(name, template.filled(out))
        for name in unset:
            why = f"{self._where}: `{name}` is set only in a loop of a graph, which may run zero times, and read later"
            self._places.unset(name, why, f"set {name} before the loop, to a value of the same type")
        return self._value.filled(out)

    def _fail(self, name, before, after, kind):
        hint = "start with a value of the final type: keel.zeros(shape, dtype), t.astype(dtype)"
        if isinstance(before, (list, dict)):
            hint = "its structure must not change; keel.scan(init, xs, body) stacks the results of the steps"
        raise kind(f"{self._where}: `{name}` changes its type in a loop that becomes part of a graph: "
                   f"{describe(before)} before, {describe(after)} after a step", errors.Code.INVALID, hint=hint)
