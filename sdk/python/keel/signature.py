"""Argument types: keel.f32["b", 784] is a matrix with the symbol b as its first size."""
import re

from . import _keel
from .errors import InvalidError


class Spec:
    """A dtype with dims: numbers, names ("b") and expressions ("2*b"); keel.f32[()] is a scalar."""

    def __init__(self, dtype, dims):
        self.dtype, self.dims = dtype, dims if isinstance(dims, tuple) else (dims,)

    def __repr__(self):
        return f"{self.dtype.name}[{', '.join(str(d) for d in self.dims)}]"

    def example(self):
        """Zeros of the type in host memory, made without an op. Raises ValueError unless all dims are numbers."""
        if not all(isinstance(d, int) for d in self.dims):
            raise ValueError(f"{self} has symbolic sizes; pass it as keel.function(signature=...)")
        return _keel.host_zeros(self.dims, self.dtype)


def of_method(code, signature, names):
    """Whether the signature omits the first parameter, self of a method."""
    in_class = getattr(code, "__qualname__", "").split(".")[-2:-1] not in ([], ["<locals>"])
    if not names or not (in_class or names[0] in ("self", "cls")):
        return False
    if isinstance(signature, str):
        return names[0] not in dtypes(signature, bare=True)
    return sum(isinstance(s, Spec) for s in signature) == len(names) - 1


def dtypes(text, bare=False):
    """The names in a signature's text with their dtypes; bare: only parameter names, "x" of "x.w" or "x[0]"."""
    found = re.findall(r"([^\s,:]+)\s*:\s*(\w+)\[", text)
    return {re.split(r"[.\[]", name)[0] if bare else name: dtype for name, dtype in found}


def as_text(signature, names):
    """The signature as text for libkeel: "x: f32[b, 784], y: i32[b] where b % 8 == 0". A list has a Spec for each
    parameter, then rules as strings."""
    if isinstance(signature, str):
        return signature
    specs = [s for s in signature if isinstance(s, Spec)]
    rules = [s for s in signature if not isinstance(s, Spec)]
    if len(specs) != len(names):
        raise InvalidError(f"the signature has {len(specs)} types, the function {len(names)} parameters: {list(names)}",
                           hint="give a type for each parameter, except self of a method")
    types = ", ".join(f"{name}: {spec}" for name, spec in zip(names, specs))
    return types + (" where " + ", ".join(rules) if rules else "")
