"""Composites spelled out at random, right and nearly right: axes, kept axes, operands, transposes that differ, values that
others use. All dims are 3, so that what broadcasts or multiplies the wrong way is still a graph.

In f64 on the reference, before and after compose for cpu, and after it on cpu: a wrong composite is far off.
"""
import numpy as np
import pytest
from optimizer import dump, optimize
from test_compose import on_cpu
from test_numbers import run

KEPT = {0: "[1, 3, 3]", 1: "[3, 1, 3]", 2: "[3, 3, 1]"}
PARAMETERS = ["x", "y", "z"]


class Writer:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.lines, self.results = [], []

    def pick(self, *among):
        """The first in two cases of three."""
        return among[0] if self.random.random() < 0.67 else among[self.random.integers(len(among))]

    def add(self, expression):
        name = f"n{len(self.lines)}"
        self.lines.append(f"  {name} = {expression}")
        if self.random.random() < 0.03:
            self.results.append(name)
        return name

    def value(self):
        return self.random.choice(PARAMETERS)

    def pair(self, op, a, b):
        return self.add(f"{op}({a}, {b})" if self.random.random() < 0.5 else f"{op}({b}, {a})")

    def reduced(self, op, x, axis):
        axis = self.pick(axis, axis, axis, (axis + 1) % 3)
        kind = self.pick("keep", "keep", "reshape", "none")
        y = self.add(f"{op}({x}){{axes=[{axis}], keep={'true' if kind == 'keep' else 'false'}}}")
        return y if kind != "reshape" else self.add(f"reshape({y}){{to={KEPT[self.pick(axis, axis, 0, 1, 2)]}}}")

    def mean(self, x, axis):
        if self.random.random() < 0.7:
            return self.reduced("reduce_mean", x, axis)
        total = self.reduced("reduce_sum", x, axis)
        return self.add(f"div({total}, {self.pick('3.0', '3.0', '2.0')})")

    def softmax(self, x=None, axis=None):
        x, axis = x or self.value(), self.random.integers(3) if axis is None else axis
        most = self.reduced("reduce_max", self.pick(x, x, x, self.value()), axis)
        e = self.add(f"exp({self.add(f'sub({x}, {most})')})")
        total = self.reduced("reduce_sum", e, axis)
        return self.add(f"div({e}, {total})") if self.random.random() < 0.6 else \
            self.pair("mul", e, self.add(f"reciprocal({total})"))

    def norm(self):
        x, axis = self.value(), self.pick(2, 2, 1)
        d = self.add(f"sub({x}, {self.mean(x, axis)})") if self.random.random() < 0.6 else x
        square = self.pick(f"mul({d}, {d})", f"pow({d}, 2.0)", f"square({d})", f"mul({d}, {x})", f"pow({d}, 4.0)")
        variance = self.mean(self.add(square), axis)
        w = self.add(f"add({self.pick('0.5', '0.25', '0.5')}, {variance})")
        y = self.pick(f"div({d}, sqrt({w}))", f"mul({d}, rsqrt({w}))", f"mul(pow({w}, -0.5), {d})", f"div({d}, {w})",
                      f"mul(rsqrt({w}), {x})")
        y = self.pair("mul", self.add(y), self.pick("g", "g", "s"))
        return self.pair("add", y, self.pick("h", "h", "s"))

    def turned(self, v):
        perm = self.pick([0, 2, 1], [0, 2, 1], [2, 1, 0], [1, 2, 0], [0, 1, 2])
        return self.add(f"transpose({v}){{perm={perm}}}")

    def attention(self):
        q, k, v = (self.value() for _ in range(3))
        q = self.add(f"mul({q}, 0.5)") if self.random.random() < 0.3 else q
        flag = self.random.random() < 0.4
        scores = self.add(f"matmul({q}, {k}){{tb=true}}" if flag else f"matmul({q}, {self.turned(k)})")
        if self.random.random() < 0.5:
            scores = self.pair("mul", scores, self.pick("0.25", "0.25", "s"))
        if self.random.random() < 0.5:
            scores = self.pair("add", scores, self.pick(self.value(), "g", "s"))
        weights = self.add(f"softmax({scores}){{axis={self.pick(2, 2, 1)}}}") if self.random.random() < 0.6 else \
            self.softmax(scores, self.pick(2, 2, 1))
        flags = self.pick("", "", "{tb=true}", "{ta=true}")
        return self.add(f"matmul({weights}, {v}){flags}")

    def text(self):
        for make in (self.softmax, self.norm, self.attention) * 3:
            self.results.append(make())
        head = "x: f64[3, 3, 3], y: f64[3, 3, 3], z: f64[3, 3, 3], g: f64[3], h: f64[1, 1, 3], s: f64[3, 1]"
        body = "\n".join(self.lines)
        return f"keel 1\n\nfn @main({head}) {{\n{body}\n  return {', '.join(dict.fromkeys(self.results))}\n}}\n\n" \
            "entry main = @main (x, y, z, g, h, s)\n"


def rewritten(tmp_path, seed):
    before, after, again = (tmp_path / f"{name}.keelt" for name in ("before", "after", "again"))
    before.write_text(Writer(seed).text())
    optimize(before, after, "cpu", only="compose")
    optimize(after, again, "cpu", only="compose")
    assert dump(again) == dump(after), "a second run changed something"
    return dump(before), dump(after)


@pytest.mark.parametrize("seed", range(40))
def test_random(context, tmp_path, seed):
    before, after = rewritten(tmp_path, seed)
    random = np.random.default_rng(seed)
    inputs = [random.standard_normal(shape) for shape in ((3, 3, 3),) * 3 + ((3,), (1, 1, 3), (3, 1))]
    expected = run(context, before, inputs)
    for got in (run(context, after, inputs), on_cpu(context, after, inputs)):
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-10, err_msg=f"{before}\n{after}")


def test_many_are_found(tmp_path):
    found = "".join(rewritten(tmp_path, seed)[1] for seed in range(20))
    for op in ("softmax", "layer_norm", "rms_norm", "attention"):
        made = found.count(f"= {op}(")
        assert made >= 5, f"{made} of {op}"
