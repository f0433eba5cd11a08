"""Types of arguments as programs spell them: keel.f32["b", 784] is a matrix whose first size is called b."""
from .errors import InvalidError


class Spec:
    """A dtype with dims: numbers, names ("b") and expressions ("2*b"); keel.f32[()] is a scalar."""

    def __init__(self, dtype, dims):
        self.dtype, self.dims = dtype, dims if isinstance(dims, tuple) else (dims,)

    def __repr__(self):
        return f"{self.dtype.name}[{', '.join(str(d) for d in self.dims)}]"

    def example(self):
        """Zeros of the type, where all dims are numbers."""
        from .shapes import zeros
        if not all(isinstance(d, int) for d in self.dims):
            raise ValueError(f"{self} has sizes without a number: give them as keel.function(signature=...)")
        return zeros(self.dims, self.dtype)


def as_text(signature, names):
    """The text that libkeel takes: "x: f32[b, 784], y: i32[b] where b % 8 == 0". A list has a Spec for each
    parameter, then rules as strings."""
    if isinstance(signature, str):
        return signature
    specs = [s for s in signature if isinstance(s, Spec)]
    rules = [s for s in signature if not isinstance(s, Spec)]
    if len(specs) != len(names):
        raise InvalidError(f"the signature has {len(specs)} types, the function {len(names)} parameters: {list(names)}")
    types = ", ".join(f"{name}: {spec}" for name, spec in zip(names, specs))
    return types + (" where " + ", ".join(rules) if rules else "")
