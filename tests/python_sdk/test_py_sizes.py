"""Sizes of a trace: arithmetic against that of ints, decisions, and programs on sizes at many sizes against eager runs.

KEEL_SIZES_DRAWN=2000 draws that many programs and expressions instead of a sample.
"""
import math
import os
import random

import keel
import numpy as np
import pytest

DRAWN = int(os.environ.get("KEEL_SIZES_DRAWN", 0))
SIZES = (0, 1, 2, 3, 5, 8, 12)


def outcome(f, *args):
    """The result of a call as arrays, or its failure."""
    try:
        out = f(*args)
    except (keel.Error, ArithmeticError, IndexError, ValueError) as error:
        return type(error).__mro__[-3].__name__, str(error)  # RangeError is Keel's IndexError
    return [np.asarray(leaf) for leaf in (out if isinstance(out, (tuple, list)) else [out])]


def agree(got, want, what):
    if isinstance(want, tuple) or isinstance(got, tuple):
        assert isinstance(want, tuple) and isinstance(got, tuple), f"{what}: {got}, but eagerly {want}"
        return
    assert len(got) == len(want), what
    for g, w in zip(got, want):
        assert g.dtype == w.dtype and g.shape == w.shape, f"{what}: {g.dtype}{g.shape}, but eagerly {w.dtype}{w.shape}"
        np.testing.assert_allclose(g, w, rtol=2e-6, atol=1e-6, err_msg=what)


def check(program, sizes, what, rank=1, dtype="f4", limit=None):
    """The program at all sizes, traced with and without a symbolic signature, against eager runs."""
    shape = ("a",) if rank == 1 else ("a", 3)
    declared = "f32" if dtype == "f4" else "i32"
    plain = keel.function(program)
    signed = keel.function(program, signature=f"x: {declared}[{', '.join(map(str, shape))}]")
    for n in sizes:
        x = keel.array((np.arange(n * 3 ** (rank - 1)) * 7 % 11 - 4.).astype(dtype).reshape((n,) + (3,) * (rank - 1)))
        want = outcome(program, x)
        for f, name in ((plain, "traced"), (signed, "with a signature")):
            agree(outcome(f, x), want, f"{what}, {name}, of size {n} in {sizes}")
    if limit:
        assert (plain.trace_count, signed.trace_count) == limit, what + plain.explain() + signed.explain()


# ---- arithmetic

def test_derived_sizes_compute_as_their_numbers_do():
    x = keel.zeros(5)

    @keel.function(signature="x: f32[a]")
    def f(x):
        tail = x[1:].shape[0]
        return (keel.dim(tail * 2), keel.zeros([10 - tail]), keel.dim(20 // keel.concat([x, x]).shape[0]), keel.dim(-tail),
                keel.dim(20 - (tail - 1)), keel.dim((tail + 2) % 4), keel.dim(7 - 2 * (tail - 3) // 2))
    d, z, q, negative, minus, rest, mixed = f(x)
    assert (d.item(), z.shape, q.item(), negative.item(), minus.item(), rest.item(), mixed.item()) == (8, (6,), 2, -4, 17, 2, 6)
    assert f.trace_count == 1


def test_halves_come_back_in_one_piece():
    @keel.function(signature="x: f32[a]")
    def halves(x):
        half = x.shape[0] // 2
        left, right = keel.split(x, [half, x.shape[0] - half])
        return keel.concat([right, left])
    for n in (2, 5, 9):
        x = np.arange(n, dtype="f4")
        np.testing.assert_array_equal(halves(x), np.roll(x, n - n // 2))


def expression(draw, sizes, depth):
    """A Python expression in names of sizes."""
    if not depth or draw.random() < .15:
        return draw.choice(sizes) if draw.random() < .7 else str(draw.randint(-3, 9))
    kind = draw.choice(["+", "-", "*", "//", "%", "-1", "min", "max", "+", "-", "*"])
    a, b = (expression(draw, sizes, depth - 1) for _ in range(2))
    if kind == "-1":
        return f"(-{a})"
    return f"{kind}({a}, {b})" if kind in ("min", "max") else f"({a} {kind} {b})"


def test_random_expressions_of_sizes_are_those_of_ints():
    draw = random.Random(22)
    sizes = ["a", "b", "t", "c", "h", "r"]  # two of the signature, then derived ones

    def derived(x, y):
        a, b = x.shape[0], y.shape[0]
        left, _ = keel.split(y, [b // 2, b - b // 2])
        return dict(a=a, b=b, t=x[1:].shape[0], c=keel.concat([x, y]).shape[0], h=left.shape[0],
                    r=keel.reshape(keel.zeros((a, 2)), (-1,)).shape[0])
    for number in range(DRAWN or 25):
        texts = [expression(draw, sizes, 4) for _ in range(6)]

        def program(x, y):
            names = derived(x, y)
            values = [eval(t, {"min": smaller, "max": larger}, names) for t in texts]  # noqa: S307
            return [keel.array(v) if isinstance(v, int) else keel.dim(v) for v in values]

        def smaller(a, b):
            return keel._keel.dim_min(a, b)

        def larger(a, b):
            return keel._keel.dim_max(a, b)
        f = keel.function(program, signature="x: f32[a], y: f32[b]")
        for a, b in ((4, 3), (0, 1), (9, 6)):
            names = derived(keel.zeros(a), keel.zeros(b))
            try:
                want = [eval(t, {"min": min, "max": max}, names) for t in texts]  # noqa: S307
            except ZeroDivisionError:
                with pytest.raises(ZeroDivisionError):
                    f(keel.zeros(a), keel.zeros(b))
                continue
            if all(abs(v) < 2**31 for v in want):
                assert [v.item() for v in f(keel.zeros(a), keel.zeros(b))] == want, (texts, a, b)


# ---- decisions

def test_a_comparison_decides_and_the_trace_says_so():
    @keel.function
    def f(x):
        return x * 2 if x.shape[0] == 5 else x
    for n in (2, 3, 4, 5, 6, 4, 5, 9):
        assert f(keel.ones(n)).tolist() == [2. if n == 5 else 1.] * n
    guards = [t["guards"] for t in f.traces()]
    assert guards == [[], [], ["s0 <= 4"] if ["s0 <= 4"] in guards else guards[2], guards[3], guards[4]]
    assert ["s0+1 <= 5"] in guards and ["s0 == 5"] in guards and ["6 <= s0"] in guards and f.trace_count == 5


DECISIONS = {
    "equal": lambda x, n: x * 2 if n == 5 else x,
    "unequal": lambda x, n: x * 2 if n != 5 else x,
    "turned": lambda x, n: x * 2 if 5 == n else x,  # noqa: SIM300
    "of a tuple": lambda x, n: x * 2 if x.shape == (5,) else x,
    "in": lambda x, n: x * 2 if n in (1, 5, 8) else x,
    "a key": lambda x, n: x * {5: 2., 8: 3.}.get(n, 1.),
    "a hash": lambda x, n: x * int(hash(n) == hash(5)),
    "a float": lambda x, n: x * 2 if n == 5. else x,
    "an array": lambda x, n: x * 2 if n == np.array(5) or n == np.float32(8) else x,
    "in an array": lambda x, n: x * 2 if n in np.array([5, 8]) else x,
    "nothing": lambda x, n: x * 2 if n == "5" or n == None or n == (5,) else x,  # noqa: E711
    "truth": lambda x, n: x * 2 if bool(n - 5) else x,
    "less": lambda x, n: x * 2 if n < 5 else x,
    "an int": lambda x, n: x * int(n) + float(n),
    "a chain": lambda x, n: x * 2 if 2 <= n < 8 else x,
    "rounding": lambda x, n: x * math.isqrt(n),
    "bits": lambda x, n: x * (n & 1) + (n >> 1),
    "a list": lambda x, n: x + sum(i for i in range(n) if i < n),
    "derived": lambda x, n: x * 2 if x[1:].shape[0] == 4 else x,
}


@pytest.mark.parametrize("name", DECISIONS)
@pytest.mark.parametrize("convert", (True, False))
def test_decisions_are_those_of_eager(name, convert):
    decide = DECISIONS[name]

    def program(x):
        return decide(x, x.shape[0])
    traced = keel.function(program, convert=convert)
    signed = keel.function(program, convert=convert, signature="x: f32[n]")
    for n in (3, 8, 5, 0, 12, 5, 1, 2, 4):
        want = program(keel.ones(n)).tolist()
        assert traced(keel.ones(n)).tolist() == want and signed(keel.ones(n)).tolist() == want, n


DIVISIONS = {"nothing over it": lambda n: 0 // n, "itself over it": lambda n: n // n, "its multiples": lambda n: 6 * n // (2 * n),
             "a rest of it": lambda n: n % n, "a number over it": lambda n: 20 // n, "what is left over": lambda n: 20 % n,
             "a product": lambda n: n * 3 // n + n * n % n, "unused": lambda n: (7 // n, n)[1], "a float": lambda n: n / n,
             "divmod": lambda n: divmod(7, n)[1], "a difference": lambda n: (n - 3) * 2 // (n - 3)}


@pytest.mark.parametrize("name", DIVISIONS)
def test_nothing_is_divided_by_a_size_of_zero(name):
    """Simplifications of a trace (n // n is 1) hold where the size is not zero."""
    def program(x):
        return keel.array(DIVISIONS[name](x.shape[0]))
    for f in (keel.function(program), keel.function(program, signature="x: f32[n]")):
        for n in (4, 2, 5, 0, 3, 6, 0, 1, 3):
            try:
                want = program(keel.zeros(n)).item()
            except ZeroDivisionError:
                with pytest.raises(ZeroDivisionError):
                    f(keel.zeros(n))
            else:
                assert f(keel.zeros(n)).item() == want, n


def test_a_graph_divides_by_sizes_that_only_a_run_knows():
    with keel.Graph().as_default() as g:
        x = keel.placeholder(keel.f32, [None], name="x")
        n = x.shape[0]
        keel.named(keel.dim(20 // n + 0 // n), "y"), keel.named(keel.array(3. / n), "z")
    assert [r.item() for r in keel.Session(g).run(["y", "z"], {"x": keel.zeros(3)})] == [6, 1]
    with pytest.raises(keel.InvalidError, match="divided by zero"):
        keel.Session(g).run("y", {"x": keel.zeros(0)})


def test_a_size_that_is_needed_as_a_number_stays_one():
    @keel.function
    def f(x, y):
        return x + np.zeros(x.shape[0], "f4"), y * 2
    for n in range(2, 8):
        f(keel.ones(n), keel.ones(n + 1))
    assert "the program needs s0 as a number" in f.traces()[2]["reason"]
    assert f.traces()[2]["signature"] == "f(x: f32[4], y: f32[s0]) -> (f32[4], f32[s0])"
    f(keel.ones(7), keel.ones(20))
    assert f.trace_count == 6 and all("s0" in t["signature"] for t in f.traces()[2:])


def test_a_graph_for_single_sizes_is_not_taken_for_one_of_all():
    f = keel.function(lambda x: x * np.ones(x.shape[0], "f4"), signature="x: f32[n]")
    assert f(keel.ones(3)).shape == (3,) and f(keel.ones(0)).shape == (0,)
    with pytest.raises(keel.PreconditionError, match="no graph for all sizes of its signature.*needs n as a number"):
        f.concrete(keel.ones(3))
    with pytest.raises(keel.ShapeError, match="Cannot feed value of shape"):
        f(keel.ones((2, 2)))
    guarded = keel.function(lambda x: x * 2 if x.shape[0] == 5 else x, signature="x: f32[n]").concrete(keel.ones(3))
    assert "where n+1 <= 5" in guarded.text()
    with pytest.raises(keel.InvalidError, match="does not hold"):
        guarded(keel.ones(5))


def test_what_the_code_raises_is_raised_once_more_and_no_trace_kept():
    calls = []

    @keel.function
    def f(x):
        calls.append(x.type)
        if len(calls) > 2:
            raise KeyError("mine")
        return x
    f(keel.ones(2)), f(keel.ones(3))
    with pytest.raises(KeyError, match="mine"):
        f(keel.ones(4))
    assert calls[2:] == ["f32[?]", "f32[4]"] and f.trace_count == 2


# ---- forms that work for two sizes and must work for the third

FORMS = {
    "len": lambda x: x * len(x),
    "size": lambda x: keel.reduce_sum(x) + x.size,
    "over": lambda x: x * (1.0 / x.shape[0]),
    "operators": lambda x: ((x + x.shape[0]) * x.shape[0] - x.shape[0]) / (x.shape[0] + 1),
    "turned": lambda x: (x.shape[0] - x) + x.shape[0] / (x + 20) + (x.shape[0] + 1) ** keel.abs(x / 8),
    "arange": lambda x: x * keel.arange(x.shape[0]).astype("f32"),
    "last": lambda x: x[-1],
    "last column": lambda x: keel.reshape(x, (-1, 1))[:, -1],
    "reversed": lambda x: x[::-1],
    "slice": lambda x: x[2:9],
    "tail": lambda x: x[-4:],
    "table": lambda x: x[:8] + keel.array(np.arange(8, dtype="f4"))[:x.shape[0]],
    "before last": lambda x: x[:x.shape[0] - 1],
    "mask": lambda x: keel.select(keel.arange(x.shape[0])[:, None] >= keel.arange(x.shape[0]), x, 0.),
    "triangle": lambda x: keel.triangle(keel.ones((x.shape[0], x.shape[0])) * x),
    "differences": lambda x: x[1:] - x[:-1],
    "neighbours": lambda x: x[1:] * x[:x.shape[0] - 1],
    "scale": lambda x: x / x.shape[0] ** 0.5,
    "mean": lambda x: keel.reduce_sum(x) / x.shape[0],
    "every second": lambda x: x[::2],
    "backwards by two": lambda x: x[-2::-2],
    "a part backwards": lambda x: x[6:1:-1],
    "middle": lambda x: x[x.shape[0] // 4: -(x.shape[0] // 4) or None],
    "window": lambda x: x[x.shape[0] - 3:],
    "by tensors": lambda x: x[keel.array([-1, 0])],
    "rows": lambda x: keel.stack([row * 2 for row in x]) if x.shape[0] else x,
    "counted": lambda x: x + sum(range(x.shape[0])),
    "numbered rows": lambda x: keel.stack([row * i for i, row in enumerate(x)]) if x.shape[0] else x,
    "paired rows": lambda x: sum([a * b for a, b in zip(x, x[::-1])], keel.array(0.)),
    "pairs with sizes": lambda x: sum((a * k for a, k in zip(x, range(x.shape[0]))), keel.array(0.)),
    "a list": lambda x: keel.stack([row for _, row in list(enumerate(x, 1))[::-1]]) if x.shape[0] else x,
    "halves": lambda x: keel.concat([x[x.shape[0] // 2:], x[:x.shape[0] // 2]]),
    "pairs": lambda x: keel.reshape(x[:x.shape[0] // 2 * 2], (x.shape[0] // 2, 2)),
    "broadcast": lambda x: x + x[:1],
    "power": lambda x: x * x.shape[0] ** 2 - 2 ** x.shape[0],
    "compared": lambda x: x + max(x.shape[0], 4) - min(3, x.shape[0]),
    "weak": lambda x: keel.cast(x, "f64") * (0.1 / (x.shape[0] + 1)),
    "of ints": lambda x: keel.cast(x, "i32") // (x.shape[0] + 1) + x.shape[0],
    "narrow": lambda x: keel.cast(keel.abs(x), "u8") + x.shape[0],
}


@pytest.mark.parametrize("form", FORMS)
def test_what_works_for_two_sizes_works_for_the_third(form):
    draw = random.Random(form)
    sizes = list(SIZES) + [5, 2]
    draw.shuffle(sizes)
    check(FORMS[form], sizes, form)


def test_most_forms_need_one_trace():
    for form in ("size", "arange", "last", "reversed", "slice", "tail", "table", "before last", "mask", "triangle", "differences",
                 "neighbours", "mean", "every second", "backwards by two", "halves", "operators", "len"):
        f = keel.function(FORMS[form])
        for n in (9, 3, 5, 6, 12):
            f(keel.array(np.arange(n, dtype="f4")))
        assert f.trace_count == 3 and all("numbers" not in t["reason"] for t in f.traces()), form + f.explain()


# ---- random programs

STEPS = [
    "v = x[{i}:]", "v = x[:{i}]", "v = x[{i}:{j}]", "v = x[::{s}]", "v = x[:n - {k}]", "v = x[n // {k}:]", "v = x[-{k}:]",
    "v = keel.concat([x, x[:{k}]])", "v = x * n + {k}", "v = x * ({f} / (n + 1))", "v = x + keel.arange(n).astype('f32')",
    "v = x * 2 if n == {k} else x", "v = x[:{k}] if n > {k} else x", "v = x + len(x)", "v = x[max(n - {k}, 0):]",
    "v = x[:min(n, {k})]", "v = keel.zeros(n + {k}) + 1.", "v = x + x[:1] if n else x", "v = x[::-1]",
    "v = keel.reshape(x[:n // 2 * 2], (-1, 2))[:, {b}]", "v = x - keel.reduce_sum(x) / (x.size + 1)", "v = x[n % {k}:]",
    "v = x + int(n in (2, 5))", "v = x[{i}:] + x[{i}:]", "v = x[1:] - x[:-1]", "v = keel.broadcast_to(keel.reduce_sum(x), (n,))",
    "v = x[-1] + x if n else x", "v = keel.select(keel.arange(n) < {k}, x, 0.)", "v = keel.pad(x, 0., lo=[{k}], hi=[n // 2])",
    "v = keel.tile(x, [1 + n % 2])", "v = x * np.float32(1) ** n", "v = x + sum(1 for i in range(n) if i % 2)",
]


def drawn(draw):
    lines = ["def program(x):"]
    for _ in range(draw.randint(1, 4)):
        step = draw.choice(STEPS).format(i=draw.randint(-4, 6), j=draw.randint(-4, 9), s=draw.choice((1, 2, 3, -1, -2)),
                                         k=draw.randint(1, 5), f=draw.choice(("1.0", "0.5", "3")), b=draw.randint(0, 1))
        lines += ["    n = x.shape[0]", "    " + step, "    x = v"]
    return "\n".join(lines + ["    return x, keel.array(x.shape[0])"])


@pytest.mark.parametrize("seed", range(DRAWN or 20))
def test_drawn_programs_of_sizes_are_those_of_eager(seed, tmp_path):
    draw = random.Random(seed)
    text = drawn(draw)
    file = tmp_path / "drawn.py"
    file.write_text(text)
    names = {"keel": keel, "np": np}
    exec(compile(text, str(file), "exec"), names)  # noqa: S102
    sizes = list(SIZES)
    draw.shuffle(sizes)
    check(names["program"], sizes, text)
