"""Programs with control flow as text, each with the same program in Python on NumPy arrays as the oracle.

CASES: by hand, (name, text of the graph, inputs, function of the inputs that returns the list of results). `random_program(seed)`
generates nested programs of cond, switch, while and scan on i32, so that answers are exact.
"""
import random

import numpy as np

F, I = np.float32, np.int32


def f(*values):
    return np.array(values, F)


def i(value):
    return np.array(value, I)


def powers(x, k):
    a = F(1)
    for _ in range(k):
        a = F(a * x)
    return [i(max(k, 0)), np.array(a, F)]


def collatz(n):
    steps = 0
    while n > 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return [i(steps)]


def cumsum(x, reverse=False):
    rows = x[::-1] if reverse else x
    c, ys = np.zeros(x.shape[1:], F), []
    for row in rows:
        c = (c + row).astype(F)
        ys.append(c)
    stacked = np.array(ys[::-1] if reverse else ys, F).reshape(x.shape)
    return [c, stacked]


def triangle(x):
    """A while in a scan: entry k of the result is x[k] doubled k times."""
    return [np.array([v * F(2) ** k for k, v in enumerate(x)], F)]


RELU = """
fn @main(x: i32[]) -> i32[] {
  p = greater(x, 0)
  r = cond(p, x) then(x) { yield x } else(x) { yield 0 }
  return r
}"""
POWERS = """
fn @main(x: f32[], k: i32[]) -> i32[], f32[] {
  i, a = while(0, 1.0, x, k){carry=2}
    test(i, a, x, k) { t = less(i, k)
      yield t }
    body(i, a, x, k) { j = i + 1
      b = mul(a, x)
      yield j, b }
  return i, a
}"""
COLLATZ = """
fn @main(n: i32[]) -> i32[] {
  m, steps = while(n, 0){carry=2}
    test(n, s) { t = greater(n, 1)
      yield t }
    body(n, s) {
      odd = equal(n % 2, 1)
      m = cond(odd, n)
        then(n) { r = n * 3 + 1
          yield r }
        else(n) { r = n / 2
          yield r }
      u = s + 1
      yield m, u
    }
  return steps
}"""
CUMSUM = """
fn @main(x: f32[n, m], zero: f32[m]) -> f32[m], f32[n, m] {
  c, ys = scan(zero, x){carry=1%s} body(c, row) { d = c + row
      yield d, d }
  return c, ys
}"""
TRIANGLE = """
fn @main(x: f32[n]) -> f32[n] {
  k, ys = scan(0, x){carry=1}
    body(k, v) {
      i, w = while(0, v, k){carry=2}
        test(i, w, k) { t = less(i, k)
          yield t }
        body(i, w, k) { j = i + 1
          u = w * 2.0
          yield j, u }
      n = k + 1
      yield n, w
    }
  return ys
}"""
SWITCH = """
fn @main(i: i64[], x: f32[n]) -> f32[n], f32[n] {
  a, b = switch(i, x)
    branches(x) { y = neg(x)
      yield x, y }
    branches(x) { y = x * 3.0
      yield y, x }
    branches(x) { yield x, x }
  return a, b
}"""
# Pairs that swap: results that are other operands; an operand passed through unchanged.
FIBONACCI = """
fn @main(n: i32[]) -> i32[], i32[], i32[] {
  k, a, b, c = while(n, 0, 1, 7){carry=4}
    test(k, a, b, c) { t = greater(k, 0)
      yield t }
    body(k, a, b, c) { j = k - 1
      s = a + b
      yield j, b, s, c }
  return a, b, c
}"""
LENGTH = """
fn @main(x: f32[]) -> f32[], f32[5] {
  a, ys = scan(x){carry=1, length=5} body(a) { b = a + 0.5
    yield b, a }
  return a, ys
}"""
INVARIANT = """
fn @main(x: f32[n, 3], w: f32[3, 2], s: f32[2]) -> f32[2], f32[n, 2], f32[n, 3] {
  a, ys, zs = scan(s, w, x){carry=1, invariants=1}
    body(s, w, row) {
      r = reshape(row){to=[1, 3]}
      p = matmul(r, w)
      q = reshape(p){to=[2]}
      t = s + q
      yield t, q, row
    }
  return a, ys, zs
}"""


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return [i(a), i(b), i(7)]


def invariant(x, w, s):
    ys = np.array([row @ w for row in x], F).reshape(len(x), 2)
    return [(s + ys.sum(0, dtype=F)).astype(F), ys, x]


def switch(index, x):
    return [[x, -x], [(x * F(3)).astype(F), x], [x, x]][index]


X = np.arange(12, dtype=F).reshape(4, 3) - 5
CASES = (
    [(f"relu {v}", RELU, [i(v)], lambda x: [np.maximum(x, I(0))]) for v in (1, -1)]
    + [(f"powers {k}", POWERS, [np.array(1.5, F), i(k)], powers) for k in (0, 1, 2, 7, -3)]
    + [(f"collatz {n}", COLLATZ, [i(n)], collatz) for n in (1, 2, 27)]
    + [(f"cumsum {n}x{m}", CUMSUM % "", [X[:n, :m], np.zeros(m, F)], lambda x, z: cumsum(x))
       for n in (0, 1, 4) for m in (0, 1, 3)]
    + [(f"cumsum reverse {n}", CUMSUM % ", reverse=true", [X[:n], np.zeros(3, F)], lambda x, z: cumsum(x, True))
       for n in (0, 1, 4)]
    + [(f"triangle {n}", TRIANGLE, [np.linspace(1, 2, n, dtype=F)], triangle) for n in (0, 1, 6)]
    + [(f"switch {k} of {n}", SWITCH, [np.array(k, np.int64), np.arange(n, dtype=F)], switch)
       for k in (0, 1, 2) for n in (0, 1, 5)]
    + [(f"fibonacci {n}", FIBONACCI, [i(n)], fibonacci) for n in (0, 1, 2, 9)]
    + [("length", LENGTH, [np.array(1, F)], lambda x: [x + F(2.5), (x + np.arange(5, dtype=F) / 2).astype(F)])]
    + [(f"invariant {n}", INVARIANT, [X[:n], X[:3, :2] + 1, f(1, 2)], invariant) for n in (0, 1, 4)])


class Writer:
    """Shared by generators of random programs: names, and the choice of a value by its kind."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = 0

    def fresh(self):
        self.count += 1
        return f"t{self.count}"

    def pick(self, env, kind):
        return self.random.choice([name for name, k in env.items() if k == kind])


class Random(Writer):
    """Writes a program and, line by line, closures that compute it. Values are scalars (S) or vectors (V)."""
    OPS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum}

    def simple(self, env):
        op = self.random.choice(list(self.OPS))
        a, b = self.random.choice(list(env)), self.random.choice(list(env))
        name, kind = self.fresh(), "V" if "V" in (env[a], env[b]) else "S"
        return [f"{name} = {op}({a}, {b})"], {name: kind}, lambda v: {name: self.OPS[op](v[a], v[b])}

    def body(self, operands, wanted, depth):
        """Parameters and text of a body with operands of these kinds, and its function."""
        params = {self.fresh(): kind for kind in operands}
        lines, run = self.block(dict(params), depth - 1, self.random.randint(0, 2))
        scope, results = dict(params), []
        scope.update({n: k for step in run for n, k in step[1].items()})
        for kind in wanted:
            results.append(self.pick(scope, kind))

        def compute(*values):
            v = dict(zip(params, values))
            for _, _, step in run:
                v.update(step(v))
            return [v[name] for name in results]
        text = "(" + ", ".join(params) + ") {\n" + "\n".join(lines) + f"\nyield {', '.join(results)}\n}}"
        return text, compute

    def given(self, env):
        """Operands for bodies: at least one scalar and one vector, so that any kind can be picked."""
        names = [self.pick(env, "S"), self.pick(env, "V")]
        return names + [self.random.choice(list(env)) for _ in range(self.random.randint(0, 2))]

    def branches(self, env, depth):
        count = self.random.choice((2, 3))
        given = self.given(env)
        wanted = [self.random.choice("SV") for _ in range(self.random.randint(1, 3))]
        out = [self.fresh() for _ in wanted]
        bodies = [self.body([env[g] for g in given], wanted, depth) for _ in range(count)]
        a, b, p = self.pick(env, "S"), self.pick(env, "S"), self.fresh()
        if count == 2:
            lines = [f"{p} = less({a}, {b})", f"{', '.join(out)} = cond({', '.join([p] + given)})",
                     "then" + bodies[0][0], "else" + bodies[1][0]]

            def choose(v):
                return 0 if v[a] < v[b] else 1
        else:
            q = self.fresh()
            lines = [f"{q} = maximum({a}, 0)", f"{p} = mod({q}, 3)",
                     f"{', '.join(out)} = switch({', '.join([p] + given)})"]
            lines += ["branches" + text for text, _ in bodies]

            def choose(v):
                return int(max(v[a], 0) % 3)
        return lines, dict(zip(out, wanted)), lambda v: dict(
            zip(out, bodies[choose(v)][1](*(v[g] for g in given))))

    def loop(self, env, depth):
        carried, fixed = self.given(env), self.given(env)
        kinds = [env[c] for c in carried]
        text, compute = self.body(kinds + [env[n] for n in fixed], kinds, depth)
        a, limit, q, out = self.pick(env, "S"), self.fresh(), self.fresh(), [self.fresh() for _ in carried]
        # The counter is the first carried value, the limit the first invariant.
        inner = [self.fresh() for _ in carried + fixed]
        k, end, j, t = self.fresh(), self.fresh(), self.fresh(), self.fresh()
        params = ", ".join([k] + inner[:len(carried)] + [end] + inner[len(carried):])
        step = self.fresh()
        results = [self.fresh() for _ in carried]
        lines = [f"{q} = maximum({a}, 0)", f"{limit} = mod({q}, 4)",
                 f"{step}, {', '.join(out)} = while(0, {', '.join(carried)}, {limit}, {', '.join(fixed)})"
                 f"{{carry={len(carried) + 1}}}",
                 f"test({params}) {{\n{t} = less({k}, {end})\nyield {t}\n}}",
                 f"body({params}) {{\n{j} = add({k}, 1)\n"
                 f"{', '.join(results)} = cond(true, {', '.join(inner)})\nthen{text}\nelse{text}\n"
                 f"yield {', '.join([j] + results)}\n}}"]

        def run(v):
            now, rest = [v[c] for c in carried], [v[n] for n in fixed]
            for _ in range(int(max(v[a], 0) % 4)):
                now = compute(*now, *rest)
            return dict(zip(out, now))
        return lines, dict(zip(out, kinds)), run

    def scan(self, env, depth):
        carried, over = self.given(env), [self.pick(env, "V"), self.pick(env, "V")]
        kinds = [env[c] for c in carried]
        text, compute = self.body(kinds + ["S", "S"], kinds + ["S"], depth)
        out, stacked, reverse = [self.fresh() for _ in carried], self.fresh(), self.random.random() < 0.5
        lines = [f"{', '.join(out)}, {stacked} = scan({', '.join(carried + over)})"
                 f"{{carry={len(carried)}, reverse={str(reverse).lower()}}}", "body" + text]

        def run(v):
            now, ys = [v[c] for c in carried], np.zeros_like(v[over[0]])
            order = range(len(ys))
            for at in reversed(order) if reverse else order:
                *now, ys[at] = compute(*now, *(v[x][at] for x in over))
            return {**dict(zip(out, now)), stacked: ys}
        return lines, {**dict(zip(out, kinds)), stacked: "V"}, run

    def block(self, env, depth, count):
        lines, steps = [], []
        for _ in range(count):
            kinds = [self.simple] * 2 + ([self.branches, self.loop, self.scan] if depth > 0 else [])
            step = self.random.choice(kinds)
            made = step(env) if step == self.simple else step(env, depth)
            env.update(made[1])
            lines += made[0]
            steps.append(made)
        return lines, steps


def random_program(seed, depth=3):
    """Text, and a function of a (scalar) and x (vector) that returns the list of results."""
    made = Random(seed)
    env = {"a": "S", "x": "V"}
    lines, steps = made.block(env, depth, 4)
    results = list(env)[2:]
    types = {"S": "i32[]", "V": "i32[n]"}
    text = "keel 1\nfn @main(a: i32[], x: i32[n]) -> " + ", ".join(types[env[r]] for r in results) + " {\n"
    text += "\n".join(lines) + f"\nreturn {', '.join(results)}\n}}\n"

    def run(a, x):
        v = {"a": a, "x": x}
        with np.errstate(all="ignore"):
            for _, _, step in steps:
                v.update(step(v))
        return [np.asarray(v[r], I) for r in results]
    return text, run
