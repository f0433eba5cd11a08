"""Random programs with effects, and the model that runs them node by node in Python.

A program is a list of nodes in order; `text` writes it as graph text, `run` applies the rules: a node runs if a requested value
needs it, or for its effect; the first failure ends the run, and earlier effects stay.
"""
import random

import numpy as np

SHAPE = (4,)
VARS = {"a": np.array([1, 2, 3, 4], np.int32), "layer.b": np.array([5, -6, 7, 0], np.int32)}
BINARY = {"add": np.add, "sub": np.subtract, "maximum": np.maximum}


class Failed(Exception):
    pass


def show(x):
    """The output of `print` for a tensor with at most one dim."""
    x = np.asarray(x)
    word = lambda v: str(bool(v)).lower() if x.dtype == bool else str(int(v))
    if not x.ndim:
        return word(x)
    words = [word(v) for v in x]
    return "[" + " ".join(words if len(words) <= 6 else words[:3] + ["..."] + words[-3:]) + "]"


class Node:
    def __init__(self, kind, name, ins=(), var=None, text=""):
        self.kind, self.name, self.ins, self.var, self.text = kind, name, ins, var, text

    def line(self):
        args = ", ".join(([self.var] if self.var else []) + list(self.ins))
        label = f"{self.name}: " if self.must() else f"{self.name} = "
        return f"  {label}{self.kind}({args}){self.text}"

    def must(self):
        return self.kind in ("print", "assert", "assign", "assign_add", "assign_sub")


def program(seed, length=24):
    """Nodes; their values are i32[4], except conditions, which are bool[]."""
    r = random.Random(seed)
    values, oks, nodes = ["x", "c"], [], []
    for n in range(length):
        kind = r.choices(["read", "binary", "gather", "less", "assign", "assign_add", "assign_sub", "print", "assert"],
                         [4, 5, 2, 2, 2, 2, 1, 3, 2])[0]
        var, pick = r.choice(list(VARS)), lambda: r.choice(values[-6:])
        if kind == "assert" and not oks:
            kind = "less"
        if kind == "read":
            nodes.append(Node("read", f"n{n}", (), var))
        elif kind == "binary":
            nodes.append(Node(r.choice(list(BINARY)), f"n{n}", (pick(), pick())))
        elif kind == "gather":
            nodes.append(Node("gather", f"n{n}", (pick(), "i")))
        elif kind == "less":
            nodes.append(Node("reduce_max", f"m{n}", (pick(),)))
            nodes.append(Node("less", f"ok{n}", (f"m{n}", "limit")))
            oks.append(f"ok{n}")
            continue
        elif kind == "print":
            nodes.append(Node("print", f"e{n}", (pick(), pick()), None, f'{{format="{n}: {{}} and {{}}"}}'))
            continue
        elif kind == "assert":
            nodes.append(Node("assert", f"e{n}", (r.choice(oks), pick()), None, f'{{message="rule {n}"}}'))
            continue
        else:
            nodes.append(Node(kind, f"e{n}", (pick(),), var))
            continue
        values.append(f"n{n}")
    return nodes, [r.choice(values), r.choice(values)]


def text(nodes, results):
    declared = "".join(f"var {k}: i32[4] = {[int(e) for e in v]}\n" for k, v in VARS.items())
    lines = "\n".join(n.line() for n in nodes)
    return (f"keel 1\nconst c: i32[4] = [3, 1, 4, 1]\n{declared}"
            f"fn @main(x: i32[4], i: i32[4], limit: i32[]) -> i32[4], i32[4] {{\n{lines}\n"
            f"  return {', '.join(results)}\n}}\nentry main = @main (x, i, limit) -> (_, _)\n")


def needed(nodes, wanted, targets, strict):
    """Names of the nodes that run."""
    run, need = set(), set(wanted)
    for node in reversed(nodes):
        if strict or node.name in need or node.name in targets:
            run.add(node.name)
            need.update(node.ins)
    return run


def step(node, env, state, lines):
    args = [env[i] for i in node.ins]
    if node.kind == "read":
        env[node.name] = state[node.var].copy()
    elif node.kind in BINARY:
        env[node.name] = BINARY[node.kind](*args)
    elif node.kind == "reduce_max":
        env[node.name] = args[0].max()
    elif node.kind == "less":
        env[node.name] = args[0] < args[1]
    elif node.kind == "gather":
        if ((args[1] < 0) | (args[1] >= 4)).any():
            raise Failed(node.name)
        env[node.name] = args[0][args[1]]
    elif node.kind == "print":
        n = node.text.split('"')[1].split(":")[0]
        lines.append(f"{n}: {show(args[0])} and {show(args[1])}\n")
    elif node.kind == "assert":
        if not args[0]:
            raise Failed(node.name)
    else:
        sign = {"assign": 0, "assign_add": 1, "assign_sub": -1}[node.kind]
        state[node.var] = args[0].copy() if not sign else state[node.var] + sign * args[0]


def run(nodes, results, feeds, state, strict=False, fetches=None, targets=()):
    """Returns (values or None, name of the node that failed or None, printed lines); changes state."""
    env, lines = {**feeds, "c": np.array([3, 1, 4, 1], np.int32)}, []
    wanted = results if fetches is None else fetches
    if fetches is None:
        targets = [n.name for n in nodes if n.must()]
    names = needed(nodes, wanted, targets, strict)
    try:
        for node in nodes:
            if node.name in names:
                step(node, env, state, lines)
    except Failed as failed:
        return None, str(failed), lines
    return [env[r] for r in wanted], None, lines


# ---- effects inside bodies
NESTED = """keel 1
var w: i32[2] = [0, 0]
fn @inner(x: i32[2], i: i32[]) -> i32[] {
  said: print(x){format="inner {}"}
  y = gather(x, i)
  far = add(i, i)
  unused = gather(x, far)
  assign_add(w, x)
  return y
}
fn @outer(x: i32[2], i: i32[]) -> i32[] {
  a = call(x, i){body=@inner}
  print(a){format="outer {}"}
  b = call(x, i){body=@inner}
  c = add(a, b)
  return c
}
fn @main(x: i32[2], i: i32[]) -> i32[2] {
  c = call(x, i){body=@outer}
  z = read(w)
  return z
}
entry main = @main (x, i) -> (_)
"""


def check_nested(plan, w, lines):
    """Effects of bodies happen where they are called; unused nodes in bodies do not fail."""
    import keel_abi
    import pytest
    x = np.array([3, 4], np.int32)
    np.testing.assert_array_equal(plan.run(x, np.int32(1))[0], [6, 8])
    assert "".join(lines) == "inner [3 4]\nouter 4\ninner [3 4]\n"
    lines.clear()
    with pytest.raises(keel_abi.KeelError, match="index"):
        plan.run(x, np.int32(5))
    assert "".join(lines) == "inner [3 4]\n"
    np.testing.assert_array_equal(w.read(), [6, 8])


IN_CONTROL = """keel 1
var n: i32[] = [0]
fn @main(k: i32[], stop: i32[]) -> i32[], i32[] {
  i = while(0, k, stop){carry=1}
    test(i, k, stop) { t = i < k
      yield t }
    body(i, k, stop) {
      p = equal(i % 2, 0)
      cond(p, i)
        then(i) { print(i){format="even {}"}
          yield }
        else(i) { assign_add(n, i)
          yield }
      go = i < stop
      assert(go){message="too far"}
      j = i + 1
      yield j
    }
  print(i){format="end {}"}
  now = read(n)
  return i, now
}
"""


def check_control(plan, n, lines):
    """Effects of branches and loops happen in program order; a failure keeps the earlier ones."""
    import keel_abi
    import pytest
    before = int(n.read())
    i, now = plan.run(np.int32(6), np.int32(100))
    assert (i, now, int(n.read())) == (6, before + 9, before + 9)
    assert lines == ["even 0\n", "even 2\n", "even 4\n", "end 6\n"]
    lines.clear()
    with pytest.raises(keel_abi.KeelError, match="too far"):
        plan.run(np.int32(6), np.int32(3))
    assert lines == ["even 0\n", "even 2\n"] and int(n.read()) == before + 13
    lines.clear()


# A loop reads and writes a variable; after an index out of range, nothing else happens.
IN_LOOP = """keel 1
const zeros: f32[4] = [0.0, 0.0, 0.0, 0.0]
var w: f32[4] = [1.0, 2.0, 3.0, 4.0]
fn @main(k: i32[], at: i32[]) -> f32[4] {
  i, last = while(0, zeros, k, at){carry=2}
    test(i, s, k, at) { t = i < k
      yield t }
    body(i, s, k, at) {
      now = read(w)
      print(now, i){format="{} at {}"}
      j = i + at
      x = gather(now, j)
      more = now + x
      assign(w, more)
      again = read(w)
      assign_sub(w, now)
      n = i + 1
      yield n, again
    }
  return last
}
"""


def check_loop(plan, w, lines):
    import keel_abi
    import pytest
    w.assign(np.array([1, 2, 3, 4], np.float32))
    np.testing.assert_array_equal(plan.run(np.int32(3), np.int32(1))[0], [4, 4, 4, 4])
    np.testing.assert_array_equal(w.read(), [2, 2, 2, 2])
    assert lines == ["[1 2 3 4] at 0\n", "[2 2 2 2] at 1\n", "[2 2 2 2] at 2\n"]
    lines.clear()
    w.assign(np.array([1, 2, 3, 4], np.float32))
    with pytest.raises(keel_abi.KeelError, match="index"):
        plan.run(np.int32(3), np.int32(3))
    np.testing.assert_array_equal(w.read(), [4, 4, 4, 4])
    assert lines == ["[1 2 3 4] at 0\n", "[4 4 4 4] at 1\n"]
    lines.clear()
