"""Random graphs of ops that the rules are about: whatever the passes make of them computes the same.

The reference device runs both; the seed of a graph is its number, so a failure repeats alone.
"""
import numpy as np
import pytest
from optimizer import dump, optimize
from operands import operands, same_bits
from test_numbers import run, same_outcome

UNARY = ["neg", "abs", "relu", "floor", "exp", "tanh", "sign", "square", "reciprocal", "sqrt"]
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "pow"]
NUMBERS = ["0.0", "-0.0", "1.0", "-1.0", "2.0", "0.5", "inf", "-inf", "nan", "3.0", "8.0"]
SHAPES = [(2, 3, 4), (4, 6), (24,), (2, 1, 4), (1, 4), (3, 1), (2, 3, 1)]


class Writer:
    """Writes a graph node by node and knows the shape of each value."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.values = [(f"p{i}", shape) for i, shape in enumerate(SHAPES)]
        self.lines = []

    def pick(self, fits=lambda shape: True):
        among = [v for v in self.values[-12:] + self.values[:4] if fits(v[1])]
        return among[self.random.integers(len(among))] if among else None

    def add(self, expression, shape):
        self.values.append((f"n{len(self.lines)}", tuple(shape)))
        self.lines.append(f"  {self.values[-1][0]} = {expression}")

    def one(self):
        name, shape = self.pick()
        kind = self.random.integers(9)
        if kind < 2:
            self.add(f"{self.random.choice(UNARY)}({name})", shape)
        elif kind < 4:
            other, second = self.pick(lambda s: fit(s, shape))
            self.add(f"{self.random.choice(BINARY)}({name}, {other})", np.broadcast_shapes(shape, second))
        elif kind == 4:
            both = [name, self.random.choice(NUMBERS)]
            self.random.shuffle(both)
            self.add(f"{self.random.choice(BINARY)}({both[0]}, {both[1]})", shape)
        elif kind == 5:
            to = SHAPES[self.random.integers(3)] if np.prod(shape) == 24 else (int(np.prod(shape)), 1)
            self.add(f"reshape({name}){{to={list(to)}}}", to)
        elif kind == 6:
            perm = [int(i) for i in self.random.permutation(len(shape))]
            self.add(f"transpose({name}){{perm={perm}}}", [shape[i] for i in perm])
        elif kind == 7:
            axis = int(self.random.integers(len(shape)))
            op = self.random.choice(["reduce_max", "reduce_sum", "reduce_min"])
            self.add(f"{op}({name}){{axes=[{axis}], keep=true}}", [1 if i == axis else d for i, d in enumerate(shape)])
        elif len(shape) > 1 and (found := self.pick(lambda s: len(s) > 1 and s[-1] == shape[-1] and fit(s[:-2], shape[:-2]))):
            other, second = found
            turned = list(range(len(second) - 2)) + [len(second) - 1, len(second) - 2]
            batch = np.broadcast_shapes(shape[:-2], second[:-2])
            self.add(f"matmul({name}, transpose({other}){{perm={turned}}})", (*batch, shape[-2], second[-2]))

    def text(self, count):
        while len(self.lines) < count:
            self.one()
        params = ", ".join(f"{n}: f32{list(s)}" for n, s in self.values[:len(SHAPES)])
        results = ", ".join(n for n, _ in self.values[-4:])
        names = ", ".join(n for n, _ in self.values[:len(SHAPES)])
        return f"keel 1\n\nfn @main({params}) {{\n" + "\n".join(self.lines) + f"\n  return {results}\n}}\n\n" \
            f"entry main = @main ({names})\n"


def fit(a, b):
    try:
        return len(np.broadcast_shapes(a, b)) <= 3
    except ValueError:
        return False


@pytest.mark.parametrize("seed", range(40))
def test_random(context, tmp_path, seed):
    before, after, again = (tmp_path / f"{name}.keelt" for name in ("before", "after", "again"))
    before.write_text(Writer(seed).text(30))
    device = f"claims:{seed % 3}"
    optimize(before, after, device, only="fold,simplify,cse,transpose,layout,epilogue,map")
    optimize(after, again, device, only="fold,simplify,cse,transpose,layout,epilogue,map")
    text, changed = dump(before), dump(after)
    assert dump(again) == changed, "a second run changed something"
    for special in (False, True):
        inputs = operands(text, np.random.default_rng(seed), special, 1)
        expected, got = run(context, text, inputs), run(context, changed, inputs)
        if same_outcome(expected, got):
            assert all(same_bits(a, b) for a, b in zip(expected, got, strict=True)), (text, changed)
