"""Random programs of nested if, while, for, break, continue, return and try: each runs as plain Python on numbers, and converted,
once with tensors as arguments and once with numbers.

Python on numbers is the oracle. All values are small whole numbers, and each loop has a bound, so programs end.
"""
import itertools
import random

import keel
import pytest

MODULUS = 97
VARIABLES = ("a", "b", "c")


class Programs:
    """Writes one function f(a, b, c, n, xs) as text; the seed determines each choice."""

    def __init__(self, seed):
        self.random, self.numbers = random.Random(seed), itertools.count()

    def value(self, depth=0):
        pick = self.random.random()
        if depth > 2 or pick < .5:
            return self.random.choice(VARIABLES + ("n", str(self.random.randrange(7))))
        if pick < .6:
            return f"({self.value(depth + 1)} if {self.test(depth + 1)} else {self.value(depth + 1)})"
        return f"({self.value(depth + 1)} {self.random.choice('+-*')} {self.value(depth + 1)}) % {MODULUS}"

    def test(self, depth=0):
        pick = self.random.random()
        if depth > 1 or pick < .55:
            return f"{self.value(2)} {self.random.choice(('<', '<=', '==', '!=', '>'))} {self.value(2)}"
        if pick < .65:
            return f"not {self.test(depth + 1)}"
        if pick < .75:
            return f"{self.value(2)} < {self.value(2)} <= {self.value(2)}"
        return f"({self.test(depth + 1)} {self.random.choice(('and', 'or'))} {self.test(depth + 1)})"

    def block(self, depth, loop, indent):
        lines = []
        for _ in range(self.random.randrange(1, 4)):
            lines += self.statement(depth, loop, indent)
        return lines

    def statement(self, depth, loop, indent):
        kinds = ["assign"] * 4 + ["aug"]
        kinds += ["if"] * 5 + ["set", "while", "for", "rows", "python", "with"] if depth < 3 else []
        kinds += ["return"] * (depth > 0) + (["break", "continue"] * 2 if loop else [])
        return getattr(self, "_" + self.random.choice(kinds))(depth, loop, indent)

    def _assign(self, depth, loop, indent):
        return [f"{indent}{self.random.choice(VARIABLES)} = {self.value()}"]

    def _aug(self, depth, loop, indent):
        return [f"{indent}{self.random.choice(VARIABLES)} += {self.random.randrange(5)}"]

    def _return(self, depth, loop, indent):
        return [f"{indent}return {self.value()}"]

    def _break(self, depth, loop, indent):
        return [f"{indent}break"]

    def _continue(self, depth, loop, indent):
        return [f"{indent}continue"]

    def _if(self, depth, loop, indent):
        lines = [f"{indent}if {self.test()}:"] + self.block(depth + 1, loop, indent + "  ")
        if self.random.random() < .3:
            lines += [f"{indent}elif {self.test()}:"] + self.block(depth + 1, loop, indent + "  ")
        return lines + self._else(.5, depth, loop, indent)

    def _else(self, chance, depth, loop, indent):
        return [f"{indent}else:"] + self.block(depth + 1, loop, indent + "  ") if self.random.random() < chance else []

    def _set(self, depth, loop, indent):
        """A new variable, assigned on each path that continues."""
        own = f"v{next(self.numbers)}"
        ways = [[f"{indent}  {own} = {self.value()}"] for _ in range(self.random.randrange(2, 4))]
        if depth or loop:
            jump = self.random.choice(["return " + self.value()] + ["break", "continue"] * bool(loop))
            ways.append([f"{indent}  {jump}"])
        self.random.shuffle(ways)
        heads = [f"if {self.test()}:"] + [f"elif {self.test()}:" for _ in ways[2:]] + ["else:"]
        lines = [line for head, way in zip(heads, ways) for line in [indent + head] + way]
        return lines + self.block(depth + 1, loop, indent) + [f"{indent}{self.random.choice(VARIABLES)} = {own}"]

    def _loop(self, head, first, depth, loop, indent):
        lines = [indent + head] + [indent + "  " + line for line in first] + self.block(depth + 1, True, indent + "  ")
        return lines + self._else(.25, depth, loop, indent)

    def _while(self, depth, loop, indent):
        k = f"k{next(self.numbers)}"
        forever = self.random.random() < .3
        first = [f"{k} += 1"] + ([f"if {k} > n: break"] if forever else [])
        head = "while True:" if forever else f"while {k} < n and {self.test()}:"
        return [f"{indent}{k} = 0"] + self._loop(head, first, depth, loop, indent)

    def _for(self, depth, loop, indent):
        ends = self.random.choice(("n", "1, n", "n, 0, -1", "0, n, 2"))
        return self._loop(f"for i in range({ends}):", [f"{self.random.choice(VARIABLES)} += i"], depth, loop, indent)

    def _rows(self, depth, loop, indent):
        head = self.random.choice(("for v in xs:", "for i, v in enumerate(xs):", "for v, w in zip(xs, xs):"))
        return self._loop(head, [f"{self.random.choice(VARIABLES)} += v"], depth, loop, indent)

    def _python(self, depth, loop, indent):
        return self._loop("for j in (1, 2):", [f"{self.random.choice(VARIABLES)} += j"], depth, loop, indent)

    def _with(self, depth, loop, indent):
        kinds = (("try:", "finally:"), ("try:", "except KeyError:"), ("with keel.no_record():", ""))
        head, last = self.random.choice(kinds)
        lines = [indent + head] + self.block(depth + 1, loop, indent + "  ")
        return lines + [indent + last, f"{indent}  {self.random.choice(VARIABLES)} += 1"] * bool(last)

    def text(self):
        lines = ["def f(a, b, c, n, xs):"] + self.block(0, False, "  ") + self.block(0, False, "  ")
        return "\n".join(lines + [f"  return (a + 3 * b + 5 * c) % {MODULUS}"]) + "\n"


def loaded(text, path):
    """Loads f from a file: the conversion needs a source."""
    path.write_text(text)
    space = {"keel": keel}
    exec(compile(text, str(path), "exec"), space)
    return space["f"]


@pytest.mark.parametrize("seed", range(60))
def test_converted_programs_do_what_python_does(seed, tmp_path):
    text = Programs(seed).text()
    f = loaded(text, tmp_path / f"program_{seed}.py")
    on_tensors, on_numbers = keel.function(f), keel.function(f)
    pick = random.Random(seed)
    for _ in range(4):
        numbers = [pick.randrange(-3, 12) for _ in VARIABLES] + [pick.randrange(0, 5)]
        xs = [pick.randrange(9) for _ in range(3)]
        want = f(*numbers, xs)
        assert on_tensors(*map(keel.array, numbers), keel.array(xs)).item() == want, text
        assert on_numbers(*numbers, keel.array(xs)).item() == want, text
