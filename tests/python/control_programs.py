"""Differentiable programs with control flow: PROGRAMS by hand, (name, text of @main, inputs by name); and random ones. The tests
differentiate with respect to float64 inputs. Branches and counts depend only on integers, so that a step of finite differences
never takes another branch."""
import numpy as np
from control_cases import Writer

RNG = np.random.default_rng(7)


def draw(*shape):
    return RNG.uniform(-1, 1, shape)


def i(value, dtype=np.int32):
    return np.array(value, dtype)


COND = """
fn @main(k: i32[], x: f64[n], w: f64[], u: f64[2]) {
  p = greater(k, 0)
  a, y = cond(p, x, w, k)
    then(x, w, k) { t = x * w
      b = sin(t)
      c = b * x
      yield c, b }
    else(x, w, k) { f = cast(k){to=f64}
      c = exp(x) + f
      yield x, c }
  r = a * x
  return y, r
}"""
SWITCH = """
fn @main(k: i64[], x: f64[n], w: f64[n]) {
  y, z = switch(k, x, w)
    branches(x, w) { a = x * w
      c = x - w
      yield a, c }
    branches(x, w) { yield w, x }
    branches(x, w) {
      s = reduce_sum(x)
      p = greater(w, 0.0)
      q = select(p, w, x)
      z = q * s
      zero = fill(0.0){dims=[n]}
      o = cast(zero){to=f64}
      yield z, o }
  return y, z
}"""
NESTED = """
fn @main(k: i32[], j: i32[], x: f64[3]) {
  p = greater(k, 0)
  q = greater(j, 0)
  y = cond(p, q, x)
    then(q, x) {
      e = exp(x)
      r = cond(q, e, x) then(e, x) { a = e * x
          yield a } else(e, x) { a = e / (x * x + 1.0)
          yield a }
      yield r }
    else(q, x) { r = sin(x)
      yield r }
  return y
}"""
SCAN = """
fn @main(x: f64[n, 2], c: f64[2], w: f64[2], m: f64[]) {
  y, z, o = scan(c, w, m, x){carry=1, invariants=2%s}
    body(c, w, m, row) {
      t = c * w + row
      d = tanh(t)
      e = d * c * m
      yield d, e, row }
  r = z * o
  return y, r
}"""
# Products in the body; a carried number; a value passed through; unused results.
RNN = """
fn @main(x: f64[n, 2], h: f64[1, 3], w: f64[2, 3], u: f64[3, 3], b: f64[3]) {
  k, g, y, s, unused = scan(0, b, h, w, u, x){carry=3, invariants=2}
    body(k, b, h, w, u, row) {
      r = reshape(row){to=[1, 2]}
      p = matmul(r, w)
      q = matmul(h, u)
      f = cast(k){to=f64}
      t = tanh(p + q + b + f * 0.1)
      j = k + 1
      v = reduce_sum(t * h)
      o = exp(t)
      yield j, b, t, v, o }
  return y, s
}"""
LENGTH = """
fn @main(x: f64[]) {
  a, y = scan(x){carry=1, length=4} body(a) { b = a * a * 0.5 + 0.1
    yield b, a }
  return a, y
}"""
COUNTED = """
fn @main(n: i64[], x: f64[5], c: f64[]) {
  y, z = scan(c, x, n){carry=1, counted=true%s} body(c, e) { d = c * e + 1.0
    s = sin(d)
    yield s, d }
  return y, z
}"""
POWER = """
fn @main(k: i32[], x: f64[n]) {
  one = x * 0.0 + 1.0
  i, y = while(0, one, x, k){carry=2}
    test(i, a, x, k) { t = less(i, k)
      yield t }
    body(i, a, x, k) { j = i + 1
      b = mul(a, x)
      yield j, b }
  return y
}"""
# The number of iterations depends on computed values: roots by Newton's method.
NEWTON = """
fn @main(x: f64[]) {
  y = while(x, x){carry=1}
    test(a, x) { d = abs(a * a - x)
      t = greater(d, 0.00000001)
      yield t }
    body(a, x) { b = (a + x / a) * 0.5
      yield b }
  return y
}"""
LONG = """
fn @main(k: i32[], x: f64[]) {
  i, y, z = while(0, x, x, k){carry=3}
    test(i, a, c, k) { t = less(i, k)
      yield t }
    body(i, a, c, k) { j = i + 1
      b = a * 0.999 + sin(c) * 0.001
      d = c - b * 0.001
      yield j, b, d }
  return y, z
}"""
LOOPS = """
fn @main(k: i32[], x: f64[n], s: f64[]) {
  y, z = scan(s, k, x){carry=1, invariants=1}
    body(s, k, e) {
      i, a = while(0, e, k, s){carry=2}
        test(i, a, k, s) { t = less(i, k)
          yield t }
        body(i, a, k, s) {
          odd = equal(i % 2, 1)
          b = cond(odd, a, s)
            then(a, s) { r = a * s
              yield r }
            else(a, s) { r = sin(a) + s
              yield r }
          j = i + 1
          yield j, b }
      v = tanh(a)
      yield v, a }
  return y, z
}"""
SCANS = """
fn @main(k: i32[], x: f64[3], w: f64[2]) {
  i, y = while(0, w, x, k){carry=2}
    test(i, a, x, k) { t = less(i, k)
      yield t }
    body(i, a, x, k) {
      c, o = scan(a, x){carry=1} body(a, e) { b = a * e
        d = cos(b)
        yield d, d }
      m = reduce_sum(o){axes=[0]}
      f = c * m
      j = i + 1
      yield j, f }
  return y
}"""
WHILES = """
fn @main(k: i32[], x: f64[2]) {
  i, y = while(0, x, k){carry=2}
    test(i, a, k) { t = less(i, k)
      yield t }
    body(i, a, k) {
      m, b = while(i, a){carry=2}
        test(m, a) { t = greater(m, 0)
          yield t }
        body(m, a) { n = m - 1
          b = sin(a) * 1.5
          yield n, b }
      j = i + 1
      c = b + a
      yield j, c }
  return y
}"""
CALL = """
fn @cube(x: f64[n]) -> f64[n] {
  y = x * x * x
  return y
}

fn @main(k: i32[], x: f64[n]) {
  p = greater(k, 0)
  y = cond(p, x) then(x) { r = call(x){body=@cube}
      yield r } else(x) { yield x }
  return y
}"""
# Inputs are returned unchanged: nothing is computed. A result independent of x; an integer carried twice.
PLAIN = """
fn @main(k: i32[], x: f64[2], w: f64[2]) {
  a, y, z = while(k, x, w){carry=3}
    test(k, a, b) { t = greater(k, 0)
      yield t }
    body(k, a, b) { j = k - 1
      yield j, b, a }
  return y, z
}"""

PROGRAMS = (
    [(f"cond {k} {n}", COND, {"k": i(k), "x": draw(n), "w": draw(), "u": draw(2)}) for k in (1, -1) for n in (3, 1, 0)]
    + [(f"switch {k} {n}", SWITCH, {"k": i(k, np.int64), "x": draw(n), "w": draw(n)}) for k in (0, 1, 2) for n in (2, 1, 0)]
    + [(f"nested {k} {j}", NESTED, {"k": i(k), "j": i(j), "x": draw(3)}) for k, j in ((1, 1), (1, 0), (0, 1))]
    + [(f"scan {n}{more}", SCAN % more, {"x": draw(n, 2), "c": draw(2), "w": draw(2), "m": draw()})
       for n in (0, 1, 4) for more in ("", ", reverse=true")]
    + [(f"rnn {n}", RNN, {"x": draw(n, 2), "h": draw(1, 3), "w": draw(2, 3), "u": draw(3, 3), "b": draw(3)}) for n in (0, 1, 3)]
    + [("length", LENGTH, {"x": draw()})]
    + [(f"counted {n}{more}", COUNTED % more, {"n": i(n, np.int64), "x": draw(5), "c": draw()})
       for n in (0, 1, 3, 5) for more in ("", ", reverse=true")]
    + [(f"power {k}", POWER, {"k": i(k), "x": draw(2) * 0.2 + 1}) for k in (-1, 0, 1, 2, 5)]
    + [(f"power {k}", POWER, {"k": i(k), "x": draw(2) * 0.01 + 1}) for k in (32, 33, 70)]
    + [("newton", NEWTON, {"x": draw() + 5}), ("long", LONG, {"k": i(1030), "x": draw()})]
    + [(f"loops {k} {n}", LOOPS, {"k": i(k), "x": draw(n), "s": draw()}) for k, n in ((0, 2), (3, 0), (3, 2))]
    + [(f"scans {k}", SCANS, {"k": i(k), "x": draw(3), "w": draw(2)}) for k in (0, 2)]
    + [(f"whiles {k}", WHILES, {"k": i(k), "x": draw(2)}) for k in (1, 4)]
    + [(f"call {k}", CALL, {"k": i(k), "x": draw(2)}) for k in (0, 1)]
    + [(f"plain {k}", PLAIN, {"k": i(k), "x": draw(2), "w": draw(2)}) for k in (0, 3)]
    + [(f"power 3 {n}", POWER, {"k": i(3), "x": draw(n) * 0.2 + 1}) for n in (0, 1)]
    + [(f"call 1 {n}", CALL, {"k": i(1), "x": draw(n)}) for n in (0, 1)])


class Random(Writer):
    """Writes bodies line by line. Values are scalars (S), vectors (V) and one integer, k."""

    def simple(self, env, depth):
        a, b, out = self.random.choice(list(env)), self.random.choice(list(env)), self.fresh()
        kind = "V" if "V" in (env[a], env[b]) else "S"
        line = self.random.choice(["{} = sin({a}) * {b}", "{} = {a} - {b}", "{} = {a} * {b}", "{} = tanh({a} + {b})"])
        env[out] = kind
        return [line.format(out, a=a, b=b)]

    def body(self, kinds, wanted, depth, first, last):
        """`first`: names of the body's first parameters; `last`: its first yielded values, after their lines."""
        params = {self.fresh(): kind for kind in kinds}
        env = dict(params)
        lines = self.block(env, depth - 1, 2)
        results = last[1] + [self.pick(env, kind) for kind in wanted]
        lines += last[0]
        return f"({', '.join(first + list(params))}) {{\n" + "\n".join(lines) + f"\nyield {', '.join(results)}\n}}"

    def given(self, env):
        return [self.pick(env, "S"), self.pick(env, "V")] + [self.random.choice(list(env))]

    def branches(self, env, depth):
        given, p = self.given(env), self.fresh()
        wanted = [self.random.choice("SV") for _ in range(2)]
        bodies = [self.body([env[g] for g in given], wanted, depth, ["k"], ([], [])) for _ in range(2)]
        out = [self.fresh() for _ in wanted]
        env.update(zip(out, wanted))
        return [f"{p} = greater(k % {self.random.randint(2, 3)}, 0)", f"{', '.join(out)} = cond({', '.join([p, 'k'] + given)})",
                "then" + bodies[0], "else" + bodies[1]]

    def loop(self, env, depth):
        given, n = self.given(env), self.random.randint(0, 3)
        kinds = [env[g] for g in given]
        at, j, t = self.fresh(), self.fresh(), self.fresh()
        body = self.body(kinds, kinds[:2], depth, [at], ([f"{j} = {at} + 1"], [j]))
        # k is an operand too, so that inner bodies receive it
        head, rest = body.split(")", 1)
        params = head + ", k)"
        out = [self.fresh(), self.fresh()]
        env.update(zip(out, kinds))
        return [f"{self.fresh()}, {', '.join(out)} = while(0, {', '.join(given)}, k){{carry=3}}",
                f"test{params} {{\n{t} = less({at}, {n})\nyield {t}\n}}", f"body{params}{rest}"]

    def scan(self, env, depth):
        given, over = self.given(env), self.pick(env, "V")
        kinds = [env[g] for g in given]
        body = self.body(kinds + ["S"], kinds[:2] + ["S"], depth, [], ([], []))
        head, rest = body.split("(", 1)[1].split(")", 1)
        params = head.split(", ")
        out = [self.fresh() for _ in range(3)]
        env.update(zip(out, kinds[:2] + ["V"]))
        reverse = self.random.choice(("true", "false"))
        return [f"{', '.join(out)} = scan({', '.join(given + ['k', over])}){{carry=2, invariants=2, reverse={reverse}}}",
                f"body({', '.join(params[:3] + ['k'] + params[3:])}){rest}"]

    def block(self, env, depth, count):
        lines = []
        for _ in range(count):
            kinds = [self.simple] + ([self.branches, self.loop, self.scan] if depth > 0 else [])
            lines += self.random.choice(kinds)(env, depth)
        return lines


def random_program(seed, depth=2):
    """Text of @main(k, a, x) and its results, all floats."""
    made = Random(seed)
    env = {"a": "S", "x": "V"}
    lines = made.block(env, depth, 3)
    results = [n for n in env if n not in "ax"]
    return "\nfn @main(k: i32[], a: f64[], x: f64[n]) {\n" + "\n".join(lines) + f"\nreturn {', '.join(results)}\n}}", results
