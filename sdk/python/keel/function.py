"""keel.function: Python code that is traced once per signature of its arguments and then runs as a graph.

    @keel.function
    def power(x, n):
        y = x
        for _ in range(n - 1):
            y = y @ x               # unrolled: n is a static value
        return y

if, while, for, and, or, not and assert that depend on tensors become parts of the graph: see keel.convert.

A signature has: of tensors (and arrays of NumPy and others) the dtype and shape; of variables and other objects the
identity; of numbers, strings and None the type and value; in tuples, lists, dicts and dataclasses. Results: tensors,
numbers (which become tensors), None, and structures of them. Exceptions of the code pass through unchanged.
"""
import functools
import inspect
import json
import types

from . import _keel, convert, saved
from .signature import Spec, as_text, dtypes, of_method


class Function(_keel.Function):
    """Made by keel.function; thread-safe: all threads share its traces."""

    def __init__(self, code, name, options, convert=True):
        functools.update_wrapper(self, code)  # first: copies the attributes of another keel.Function, too
        self._dtypes = dtypes(options.get("signature", ""))
        signature = inspect.signature(code)
        kinds = {p.kind for p in signature.parameters.values()}
        plain = kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY}
        self._names = list(signature.parameters)
        super().__init__(name, tuple(self._names) if plain else None, options)
        self._code, self._signature, self._plain, self._convert = code, signature, plain, convert

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self):
        """Pickled by name, as Python functions are: another process uses its own."""
        return self.__qualname__

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return f"<keel.function {self.__name__}{self._signature}>"

    def _canonical(self, args, keywords):
        try:
            bound = self._signature.bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"{self.__name__}{self._signature}: {error}") from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def _typed(self, values):
        """The arguments, with tensors for numbers that have a type in the signature."""
        places = iter([place for place, _ in _keel.places(values)])

        def typed(leaf):
            number, _, inner = next(places)[1:].partition("]")
            dtype = self._dtypes.get(self._names[int(number)] + inner)
            return _keel.array(leaf, dtype) if dtype and isinstance(leaf, (bool, int, float)) else leaf
        return _keel.map_leaves(values, typed)

    def _run(self, values):
        return self._call(self._code, values)

    def _trace(self, values):
        return convert.traced(self._code, self._convert, lambda code: self._call(code, values))

    def _call(self, code, values):
        if self._plain:
            return code(*values)
        bound = inspect.BoundArguments(self._signature, dict(zip(self._names, values)))
        return code(*bound.args, **bound.kwargs)

    def concrete(self, *args, **keywords):
        """The graph for these arguments (or types: keel.f32[2, 3]), traced if necessary, as a new module."""
        examples = _keel.map_leaves((args, keywords), lambda x: x.example() if isinstance(x, Spec) else x)
        module, like = self._concrete(*examples[0], **examples[1])
        values = self._canonical(*examples)
        if not saved.is_flat(values, like):
            saved.note(module, module.info()["entries"][0]["name"], self._signature.parameters.values(), values, like)
        return module

    def report(self):
        """Facts as a dict: name, traces, dropped."""
        return json.loads(self._report())

    def traces(self):
        """A dict per trace, with signature, reason, trace_ms, plan_ms, calls and captures."""
        return self.report()["traces"]

    def trace(self, number):
        """A copy of one of the traces() as a module, with text() and svg(); -1: the last. Does not count as a call. Raises IndexError."""
        count = len(self.traces())
        if not -count <= number < count:
            raise IndexError(f"{self.__name__} has {count} traces; got number {number}")
        return self._trace_module(number % count)

    @property
    def trace_count(self):
        """The number of traces so far, including dropped ones."""
        report = self.report()
        return len(report["traces"]) + report["dropped"]

    def explain(self):
        """The reason of each trace, and its captures, as text for people."""
        out, traces = "", self.traces()
        blocks = self.signatures().strip().split("\n\n")
        for number, (trace, block) in enumerate(zip(traces, blocks), 1):
            out += f"{number}. {trace['signature']}, {trace['calls']} calls\n   why: {trace['reason']}\n"
            called = block.split("\n")[0]
            out += f"   call: {called}\n" if "=" in called else ""
            out += "".join(f"   {kind}: {', '.join(map(str, trace[kind]))}\n"
                           for kind in ("variables", "captures", "islands") if trace.get(kind))
        if len(traces) >= 5 and len(traces) * 2 > sum(trace["calls"] for trace in traces):
            out += "most calls are traced: pass tensors in place of numbers that change, or give a signature\n"
        return out


class _Method(Function):
    """A method whose signature omits self: each object has its own function."""

    def __init__(self, code, name, options, convert=True):
        super().__init__(code, name, options, convert)
        self._options, self._of = options, {}  # by id of the object; its function keeps the object alive

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        if id(instance) not in self._of:
            made = Function(types.MethodType(self._code, instance), self.__name__, self._options, self._convert)
            self._of[id(instance)] = getattr(self, "dressed", lambda f: f)(made)
        return self._of[id(instance)]

    def __call__(self, instance, *args, **keywords):
        return self.__get__(instance)(*args, **keywords)

    def concrete(self, instance, *args, **keywords):
        return self.__get__(instance).concrete(*args, **keywords)


def function(code=None, *, name=None, signature=None, any_after=None, max_traces=None, check_captures=False,
             convert=True, **options):
    """Makes code a keel.Function; a decorator, with or without options.

    signature: "x: f32[b, 784], y: i32[b] where b % 8 == 0", or a list of [keel.f32["b", 784], ...] and rules: makes one
    trace for all calls; numbers become tensors of these types, and other calls raise InvalidError. A method's signature
    omits self: each object has one trace. any_after: the number of sizes of a dim with a trace each, after which the dim
    becomes a symbol (default 2; "never"). max_traces: the least recently used trace beyond is dropped (default 64).
    check_captures: traces each call again, and raises PreconditionError if a capture has changed. convert: if, while, for,
    and, or, not and assert that depend on tensors become parts of the graph, also in functions of the program called by
    the code (see keel.convert). options: threads, memory, timeout_ms, level, passes, exact_convolution, as for
    keel.Session.
    """
    if code is None:
        return functools.partial(function, name=name, signature=signature, any_after=any_after, max_traces=max_traces,
                                 check_captures=check_captures, convert=convert, **options)
    if not callable(code) or not isinstance(name, (str, type(None))):
        raise TypeError(f"keel.function takes a callable and a string as name; got {code!r}, {name!r}")
    given = {"any_after": any_after, "max_traces": max_traces, "check_captures": "1" if check_captures else None}
    kind = Function
    if signature is not None:
        names = list(inspect.signature(code).parameters)
        kind = _Method if of_method(code, signature, names) else Function
        given["signature"] = as_text(signature, names[kind is _Method:])
    options.update((key, value) for key, value in given.items() if value is not None)
    return kind(code, name or getattr(code, "__name__", "function").replace("<lambda>", "function"), options, convert)
