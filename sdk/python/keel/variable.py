"""The operators of keel.Variable: each reads the value at this point of the program; assignments such as v += 1 write
it, and v remains the variable.
"""
import operator

from . import _keel

_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_OTHERS = ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "bool", "int", "float", "index", "len",
           "iter", "getitem", "array", "format")


def _forward(name):
    def forward(self, *args, **keywords):
        return getattr(self.value(), name)(*args, **keywords)
    forward.__name__ = name
    return forward


def _assigning(name):
    compute = getattr(operator, name)

    def assigning(self, other):
        self.assign(compute(self.value(), other))
        return self
    assigning.__name__ = f"__i{name.strip('_')}__"
    return assigning


def _adding(method):
    def adding(self, other):
        delta = _keel.array(other, self.dtype if isinstance(other, (bool, int, float, list, tuple)) else None)
        getattr(self, method)(delta if delta.shape == self.shape else _keel.ops.broadcast_to(delta, self.shape))
        return self
    return adding


def _install():
    names = [f"__{n}__" for n in _BINARY + _OTHERS] + [f"__r{n}__" for n in _BINARY]
    for name in _BINARY:
        setattr(_keel.Variable, f"__i{name}__", _assigning(f"{name}_" if name in ("and", "or") else name))
    _keel.Variable.__iadd__, _keel.Variable.__isub__ = _adding("assign_add"), _adding("assign_sub")  # atomically
    for name in names + ["numpy", "item", "tolist"]:
        setattr(_keel.Variable, name, _forward(name))
    _keel.Variable.__hash__ = lambda self: hash(self.id)  # == is elementwise; as dict keys variables compare by identity
    _keel.Variable.__array_priority__ = _keel.Tensor.__array_priority__
    _keel.Variable.__repr__ = lambda self: f"Variable {self.name}: {self.value()!r}"
    _keel.Variable.__reduce__ = lambda self: (_keel.Variable, (self.value(), self.name, self.trainable))
    _keel.Variable.__str__ = lambda self: str(self.value())


_install()
