"""The operators of keel.Variable: each reads the value at this place of the program and goes on with it."""
from . import _keel

_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_OTHERS = ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "bool", "int", "float", "index", "len",
           "iter", "getitem", "array", "format")


def _forward(name):
    def forward(self, *args, **keywords):
        return getattr(self.value(), name)(*args, **keywords)
    forward.__name__ = name
    return forward


def _install():
    names = [f"__{n}__" for n in _BINARY + _OTHERS] + [f"__r{n}__" for n in _BINARY]
    for name in names + ["numpy", "item", "tolist"]:
        setattr(_keel.Variable, name, _forward(name))
    _keel.Variable.__hash__ = lambda self: hash(self.id)  # == goes by element; as keys variables count by identity
    _keel.Variable.__array_priority__ = _keel.Tensor.__array_priority__
    _keel.Variable.__repr__ = lambda self: f"Variable {self.name}: {self.value()!r}"
    _keel.Variable.__reduce__ = lambda self: (_keel.Variable, (self.value(), self.name, self.trainable))
    _keel.Variable.__str__ = lambda self: str(self.value())


_install()
