"""A small binding of abi/keel.h with ctypes, for the tests and tools; NumPy arrays in and out.

Start with `call` of keel_calls.py, which makes every call (a failure becomes a KeelError); then one class per handle of
keel.h, with the same names. Arrays are passed without a copy.
"""
import ctypes as C
import json
import re

import numpy as np

from keel_calls import BUILD, LIBRARY, ROOT, Handle, KeelError, call, lib  # noqa: F401
from keel_types import (Attr, Kv, Plugin, Tensor, code_of, dt, dtype_of, encode, int64s, is_storage, names,  # noqa: F401
                        options, tensor_of, unpack)

NO_VALUE = 0xFFFFFFFF
PRINT = C.CFUNCTYPE(None, C.c_void_p, C.c_int32, C.c_void_p, C.c_uint64)


class Dim(int):  # a handle of keel_module_dim
    pass


_wrapped = {}  # memory borrowed by libkeel, by the number passed to its release callback


@C.CFUNCTYPE(None, C.c_void_p)
def _release(key):
    _wrapped.pop(key, None)


class Array(Handle):
    free = "keel_array_free"

    def to(self, device=None):
        """The array on a device, or in host memory."""
        context = self
        while not isinstance(context, Context):
            context = context.keep[0]
        out = C.c_void_p()
        call("keel_array_to", context, self, encode(device), C.byref(out))
        return Array(out, *self.keep)

    def wait(self):
        call("keel_array_wait", self)
        return self

    @property
    def device(self):
        return lib().keel_array_device(self).decode()

    def numpy(self):
        """A view of the array's memory, which it keeps alive; a copy for arrays on a device."""
        if self.device:
            return self.to().numpy()
        t = Tensor()
        lib().keel_array_tensor(self, C.byref(t))
        dtype, shape = dtype_of(t.code, t.bits), tuple(t.shape[i] for i in range(t.ndim))
        if 0 in shape:
            return np.empty(shape, dtype)
        if is_storage(dtype):
            count = int(np.prod(shape, dtype=np.int64))
            return unpack((C.c_char * ((count * t.bits + 7) // 8)).from_address(t.data + t.byte_offset), dtype, shape)
        strides = [t.strides[i] * dtype.itemsize for i in range(t.ndim)] if t.strides else None
        reach = sum(abs(s) * (n - 1) for s, n in zip(strides, shape)) if strides else \
            dtype.itemsize * (int(np.prod(shape, dtype=np.int64)) - 1)
        memory = (C.c_char * (reach + dtype.itemsize)).from_address(t.data + t.byte_offset)
        memory.owner = self
        return np.ndarray(shape, dtype, memory, 0, strides)


class Op(Handle):
    free = "keel_op_free"

    def arrays(self, *inputs, n_out=1):
        """The results where the op leaves them: on its device, perhaps not yet computed."""
        keep, ins = pointers(self.keep[0], inputs)
        out = (C.c_void_p * n_out)()
        call("keel_apply", self, ins, len(inputs), out, n_out)
        return [Array(C.c_void_p(p), self) for p in out]

    def __call__(self, *inputs, n_out=1):
        results = [array.numpy() for array in self.arrays(*inputs, n_out=n_out)]
        return results[0] if n_out == 1 else results


def pointers(context, arrays):
    keep = [a if a is None or isinstance(a, Array) else context.array(a) for a in arrays]
    return keep, (C.c_void_p * max(1, len(keep)))(*[a._as_parameter_ if a else None for a in keep])


def attributes(items):
    """Returns names, keel_attrs, their number, and the objects to keep alive."""
    def attr(v):
        if isinstance(v, (bool, np.bool_)):
            return Attr(1, 0, int(v))
        if isinstance(v, (GraphNumber, VariableNumber)):
            return Attr(10 if isinstance(v, GraphNumber) else 11, 0, int(v))
        if isinstance(v, Dim):
            return Attr(6, 0, int(v))
        if isinstance(v, (int, np.integer)):
            return Attr(2, 0, int(v))
        if isinstance(v, (float, np.floating)):
            return Attr(3, 0, 0, float(v))
        if isinstance(v, str):
            buffer = C.create_string_buffer(v.encode())
            return Attr(4, len(v.encode()), 0, 0, C.cast(buffer, C.c_void_p)), buffer
        if isinstance(v, (np.dtype, type)):
            return Attr(5, 0, dt(v))
        kind = [k for t, k in ((float, 8), (Dim, 9), (GraphNumber, 12)) if any(isinstance(x, t) for x in v)] + [7]
        buffer = (C.c_double * len(v))(*v) if kind[0] == 8 else int64s(v)
        return Attr(kind[0], len(v), 0, 0, C.cast(buffer, C.c_void_p)), buffer
    made = [attr(v) for v in items.values()]
    values = [m if isinstance(m, Attr) else m[0] for m in made]
    return (*names(items)[:1], (Attr * max(1, len(values)))(*values), len(values)), made


class Context(Handle):
    free = "keel_context_free"

    def __init__(self, plugins=True, **opts):
        out = C.c_void_p()
        call("keel_context_new", *options(opts), C.byref(out))
        super().__init__(out)
        if plugins:
            call("keel_plugin_load", self, None)

    def load_plugin(self, path):
        call("keel_plugin_load", self, encode(path))

    def add_ops(self, name, text):
        """A plugin that consists of a text of ops."""
        numbers = (ROOT / "abi/keel_base.h").read_text()
        draft = int(re.search(r"KEEL_ABI_DRAFT (\d+)", numbers)[1])
        self.plugin = Plugin(C.sizeof(Plugin), 0, draft, 0, name.encode(), b"1", b"", None, None, 0, 0, text.encode())
        call("keel_plugin_add", self, C.byref(self.plugin))

    def devices(self):
        found = []
        while name := lib().keel_device_name(self, len(found)):
            found.append(name.decode())
        return found

    def report(self, what):
        return json.loads(self.text("keel_context_report", encode(what)))

    def array(self, array):
        """A keel array over the numpy array's memory."""
        array = np.asarray(array)
        if array.dtype.itemsize and any(s % array.itemsize for s in array.strides):
            array = np.ascontiguousarray(array)
        tensor, out = tensor_of(array), C.c_void_p()
        key = id(tensor)
        _wrapped[key] = (array, tensor)
        try:
            call("keel_array_from_tensor", self, C.byref(tensor), _release, C.c_void_p(key), C.byref(out))
        except KeelError:
            _wrapped.pop(key)
            raise
        return Array(out, self)

    def bind(self, device, op, version=0, **attrs):
        args, keep = attributes(attrs)
        return self.make(Op, "keel_op_new", encode(device), encode(op), version, *args)

    def apply(self, device, op, *inputs, n_out=1, **attrs):
        return self.bind(device, op, **attrs)(*inputs, n_out=n_out)

    def module(self):
        return self.make(Module, "keel_module_new")

    def variable(self, value):
        keep, values = pointers(self, [value])
        return self.make(Variable, "keel_variable_new", None, C.c_void_p(values[0]), None, 0)

    def print_hook(self, hook):
        """hook(stream, line) receives the output of `print`; None: the default."""
        def tell(_, stream, text, size):
            hook(stream, C.string_at(text, size).decode())
        self.hook = PRINT(tell) if hook else None
        lib().keel_print_hook(self, self.hook, None)

    def load(self, path):
        return self.make(Module, "keel_module_load", encode(path))

    def load_bytes(self, data):
        return self.make(Module, "keel_module_load_bytes", data, C.c_uint64(len(data)), None, None)

    def parse(self, text):
        data = text.encode()
        return self.make(Module, "keel_module_parse", data, C.c_uint64(len(data)))

    def import_file(self, path, fixed=None, **opts):
        """`fixed`: values for parameters that the import requires; the parameters named there become constants and are no longer
        inputs (Module.fixed lists them)."""
        use = {}
        while True:
            keep, values = pointers(self, list(use.values()))
            try:
                module = self.make(Module, "keel_module_import", encode(path), *options(opts), names(use)[0], values,
                                   len(use))
                module.fixed = list(use)
                return module
            except KeelError as e:
                wanted = [n for n in re.findall(r"'([^']*)'", e.message) if n in (fixed or {}) and n not in use]
                if e.code != "PRECONDITION" or not wanted:
                    raise
                use.update((n, fixed[n]) for n in wanted)


class GraphNumber(int):
    """An attribute that names a graph of the module."""


class VariableNumber(int):
    """An attribute that names a variable of the module: Module.number."""


class Variable(Handle):
    free = "keel_variable_free"

    def context(self):
        handle = self
        while not isinstance(handle, Context):
            handle = handle.keep[0]
        return handle

    def read(self):
        return self.make(Array, "keel_variable_read", None, None).numpy()

    def assign(self, value):
        self.write("assign", value)

    def add(self, value, sign=1):
        self.write("assign_add" if sign > 0 else "assign_sub", value)

    def to(self, device):
        call("keel_variable_to", self, encode(device) if device else None)

    def write(self, how, value):
        keep, values = pointers(self.context(), [value])
        call("keel_variable_write", self, None, encode(how), C.c_void_p(values[0]))


class Graph(Handle):
    def param(self, name, dtype, dims):
        return self.value("keel_graph_param", encode(name), C.c_uint32(dt(dtype)), int64s(dims), len(dims))

    def constant(self, array, name=None):
        keep, values = pointers(self.keep[0].keep[0], [array])
        return self.value("keel_graph_constant", encode(name), C.c_void_p(values[0]))

    def value(self, function, *args):
        out = C.c_uint32()
        call(function, self, *args, C.byref(out))
        return out.value

    def node(self, op, *inputs, n_out=1, name=None, version=0, **attrs):
        args, keep = attributes(attrs)
        out, ins = (C.c_uint32 * n_out)(), (C.c_uint32 * max(1, len(inputs)))(*inputs)
        call("keel_graph_node", self, encode(name), encode(op), version, *args, ins, len(inputs), out, n_out)
        return out[0] if n_out == 1 else list(out)

    def result(self, name, value):
        call("keel_graph_result", self, encode(name), C.c_uint32(value))

    def find(self, name):
        call("keel_graph_find", self, encode(name), C.byref(out := C.c_uint32()), None)
        return out.value

    def copy(self, name):
        out = C.c_void_p()
        call("keel_graph_new", None, encode(name), self, C.byref(out))
        return Graph(out, *self.keep)

    def gradient(self, ys, xs, seeds=None, zeros=False, flags=0):
        """Returns a value for each x; None where no y depends on it. seeds: values, or None for ones."""
        def array(values):
            return (C.c_uint32 * max(1, len(values)))(*[NO_VALUE if v is None else v for v in values])
        out = (C.c_uint32 * max(1, len(xs)))()
        call("keel_graph_gradient", self, array(ys), len(ys), None if seeds is None else array(seeds), array(xs),
             len(xs), C.c_uint32(flags | zeros), out)
        return [None if v == NO_VALUE else v for v in out[:len(xs)]]

    def jacobian(self, y, x):
        return self.gradient([y], [x], zeros=True, flags=2)[0]

    @property
    def number(self):
        call("keel_graph_number", self, C.byref(out := C.c_int64()))
        return GraphNumber(out.value)

    def type(self, value):
        dtype, shape, ndim = C.c_uint32(), (C.c_int64 * 8)(), C.c_int32()
        call("keel_graph_value_at", self, C.c_uint32(value), None, None, C.byref(dtype), shape, C.byref(ndim))
        return dtype_of(dtype.value & 255, dtype.value >> 8 & 255), list(shape[:ndim.value])


class Module(Handle):
    free = "keel_module_free"
    fixed = ()

    def dim(self, expression):
        out = C.c_int64()
        call("keel_module_dim", self, encode(expression), C.byref(out))
        return Dim(out.value)

    def graph(self, name):
        return self.make(Graph, "keel_graph_new", encode(name), None)

    def graph_of(self, entry=None):
        return self.make(Graph, "keel_module_graph", encode(entry))

    def variable(self, name, add=None):
        number, out = C.c_uint32(), C.c_void_p()
        call("keel_module_variable", self, encode(name), add, C.byref(number), C.byref(out))
        made = Variable(out, self)
        made.number = VariableNumber(number.value)
        return made

    def entry(self, name, graph):
        call("keel_module_entry", self, encode(name), graph)

    def add_case(self, name, entry, inputs, expected, rtol=0.0, atol=0.0):
        context = self.keep[0]
        (keep, ins), (kept, outs) = pointers(context, inputs), pointers(context, expected)
        call("keel_module_add_case", self, encode(name), encode(entry), ins, len(inputs), outs, len(expected),
             C.c_double(rtol), C.c_double(atol))

    def save(self, path):
        call("keel_module_save", self, encode(path))

    def to_text(self): return self.text("keel_module_report", b"text")
    def info(self): return json.loads(self.text("keel_module_report", b"info"))

    def session(self, device, **opts):
        return self.make(Session, "keel_session_new", encode(device), *options(opts))


class Session(Handle):
    free = "keel_session_free"

    @property
    def context(self):
        return self.keep[0].keep[0]

    def prepare(self, feeds=None, fetches=None, targets=None):
        return self.make(Plan, "keel_plan_new", *names(feeds), *names(fetches), *names(targets))

    def run(self, feeds, fetches, targets=None):
        """feeds: {name: array}; returns a list of arrays."""
        keep, ins = pointers(self.context, list(feeds.values()))
        out = (C.c_void_p * max(1, len(fetches)))()
        call("keel_session_run", self, names(feeds)[0], ins, len(feeds), names(fetches)[0], out, len(fetches),
             *names(targets))
        return [Array(C.c_void_p(p), self).numpy() for p in out[:len(fetches)]]


class Plan(Handle):
    free = "keel_plan_free"

    def outputs(self):
        lib().keel_plan_counts(self, None, C.byref(n := C.c_uint32()))
        return n.value

    def run(self, *inputs):
        return [array.numpy() for array in self.run_arrays(*inputs)]

    def run_arrays(self, *inputs):
        keep, ins = pointers(self.keep[0].context, inputs)
        n = self.outputs()
        out = (C.c_void_p * max(1, n))()
        call("keel_plan_run", self, ins, len(inputs), out, n)
        return [Array(C.c_void_p(p), self) for p in out[:n]]

    def report(self, *inputs):
        keep, ins = pointers(self.keep[0].context, inputs)
        return json.loads(self.text("keel_plan_report", ins if inputs else None, len(inputs)))
