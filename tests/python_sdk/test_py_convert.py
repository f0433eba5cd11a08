"""keel.function converts Python code with decisions on tensors: which functions are converted, carried variables, lines, to_code.
"""
import functools
import inspect
import sys

import keel
import numpy as np
import pytest
from convert_check import same
from keel.convert import build


def twice_if_small(x):
    if x < 3:
        return x * 2
    return x


def relu(x):
    if keel.greater(x, 0):
        return x
    else:
        return 0


def collatz(x, n):
    steps = 0
    while x > 1 and steps < 100:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    return steps, x


def skips(x, n):
    total = 0
    for i in range(1, 3 * n, 2):
        if i % 3 == 0:
            continue
        total += i * x
    return total


def test_literals_take_the_dtype_of_the_other_branch():
    f = keel.function(relu)
    assert [f(keel.array(v)).item() for v in (1, -1, 1.5, -1.5)] == [1, 0, 1.5, 0]
    assert f(keel.array(-1.5)).dtype is keel.f32 and f.trace_count == 2


def test_loops_over_rows_and_sizes():
    def f(x):
        total, rows = 0, 0
        for row in x:
            total += keel.reduce_sum(row)
            rows += 1
        for i in range(len(x)):
            total += x[i, 0]
        for a, (k, b) in zip(x, enumerate(x, start=1)):
            total += keel.reduce_max(a * b)
            rows += k
        if x.shape[0] > 3:
            total = -total
        return total, rows
    static, symbolic = keel.function(f), keel.function(f, signature="x: f32[n, 2]")
    for n in (1, 3, 4, 5):
        x = keel.array(np.arange(2. * n, dtype="f4").reshape(n, 2))
        total, rows = f(x)
        for g in (static, symbolic):
            same(g(x), (keel.array(total), keel.array(rows)))
    assert "scan" in symbolic.concrete(x).text()


def test_what_a_loop_sets_is_there_afterwards_if_it_surely_runs():
    def f(x):
        for i, row in enumerate(x):
            last = row * 2
        return last, i
    same(keel.function(f)(keel.array([1., 5.])), (keel.array(10.), keel.array(1)))


def test_loops_over_numbers_unroll():
    def power(x, y):
        result = keel.eye(2, dtype="i32")
        for _ in range(y):
            result = keel.matmul(x, result)
        return result
    f = keel.function(power)
    want = [[764848393, 1820529360], [1820529360, -1055680967]]  # Fibonacci numbers, wrapped in i32
    assert f(keel.array([[1, 1], [1, 0]]), 60).tolist() == want
    assert f.concrete(keel.array([[1, 1], [1, 0]]), 5).text().count("matmul") == 5
    assert f(keel.array([[1, 1], [1, 0]]), keel.array(60)).tolist() == want and f.trace_count == 3
    assert "while" in f.concrete(keel.array([[1, 1], [1, 0]]), keel.array(60)).text()


def test_float_and_bool_carry():
    def f(x):
        seen, scale, count = False, 1, 0
        while scale < x:
            scale *= 1.5
            if scale > 3:
                seen = True
            count += 1
        return seen, scale, count
    for v in (0., 2., 10.):
        got, want = keel.function(f)(keel.array(v)), f(keel.array(v))
        np.testing.assert_allclose([float(w) for w in want], [g.item() for g in got], rtol=1e-6)


def test_reached_functions_methods_and_objects_are_converted():
    class Base:
        __scale = 3

        def call(self, x):
            return x * self.__scale if x > 0 else x

        @staticmethod
        def plus(x):
            return x + 1 if x > 2 else x

        @classmethod
        def minus(cls, x):
            if x < 0:
                return x - cls.__scale
            return x

    class Model(Base):
        def call(self, x):
            if x > 5:
                return super().call(x)
            return super().call(x) + 1

        def __call__(self, x):
            return self.call(x) if x > -2 else self.plus(x) + self.minus(x)

        @keel.function
        def run(self, x):
            return self(x) + self.plus(x)

    def logged(f):
        @functools.wraps(f)
        def wrapper(*args, **keywords):
            return f(*args, **keywords) if args[0] > -100 else args[0]
        return wrapper
    model = Model()
    f = keel.function(lambda x: logged(model)(x) + model.run(x))
    for v in (-5, -1, 1, 4, 9):
        x = keel.array(v)
        assert f(x).item() == (model(x) + (model(x) + model.plus(x))).item()


def test_functions_given_to_keel_are_converted():
    def grow(v):
        return v * 2 if v < 5 else v + 1

    def step(s, v):
        if v > 1:
            s = s + v
        return s, s

    def f(x):
        a = keel.while_loop(keel.reduce_sum(x), lambda v: v < 20, grow)
        b, _ = keel.scan(keel.array(0.), x, step)
        c = keel.cond(a > b, functools.partial(grow, a), lambda: grow(b))
        return a, b, c, keel.grad(lambda v: v * v if v > 1 else v)(a)
    x = keel.array([1., 2., 3.])
    same(keel.function(f)(x), f(x))


def test_gradients_go_through():
    def cube(x):
        y = x
        for _ in range(2):
            y = y * x
        return y

    def looped(x, n):
        y = x
        for i in range(n):
            if i % 2 == 0:
                y = y * x
            else:
                y = y + x * x
        return y if y > 0 else -y

    def broken(x, n):
        y = x
        while True:
            y = y * x
            if y > n:
                return y * 3
    n = keel.array(3)
    for f, arguments in ((cube, ()), (looped, (n,)), (broken, (keel.array(20.),))):
        def gradient(x, *rest, f=f):
            with keel.Tape() as tape:
                tape.watch(x)
                y = f(x, *rest)
            return tape.gradient(y, x)
        for v in (1.5, 3.):
            x = keel.array(v)
            want = gradient(x, *arguments)
            np.testing.assert_allclose(keel.function(gradient)(x, *arguments), want, rtol=1e-6)
            np.testing.assert_allclose(keel.grad(keel.function(f))(x, *arguments), want, rtol=1e-6)


def test_eagerly_the_code_itself_runs():
    seen = []

    @keel.function
    def f(x):
        seen.append(sys._getframe().f_code)
        return x if x > 0 else -x
    f(keel.array(1.))
    with keel.Eagerly():
        f(keel.array(1.))
    f.run_eagerly()
    assert f(keel.array(-1.)).item() == 1
    f.run_eagerly(False)
    assert seen[0] is not seen[1] and seen[1] is seen[2] is f.__wrapped__.__code__
    assert seen[0].co_filename == seen[1].co_filename and seen[0].co_firstlineno == seen[1].co_firstlineno
    assert inspect.getsource(f).count("seen.append") == 1


def test_lines_run_are_the_lines_of_the_source():
    lines = set()

    def tracer(frame, event, _):
        if frame.f_code.co_filename == __file__ and event in ("line", "call"):
            lines.add(frame.f_lineno)
        return tracer
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        keel.function(collatz)(keel.array(3), keel.array(0))
    finally:
        sys.settrace(before)
    start = collatz.__code__.co_firstlineno
    assert {start + k for k in (1, 2, 3, 4, 6, 7, 8)} <= lines


def test_conversion_can_be_turned_off():
    @keel.convert.skip
    def of_python(x):
        return x if x.shape else sys._getframe().f_code

    codes = []

    def f(x):
        codes.append(of_python(x))
        return x + 1 if x > 0 else x
    assert keel.function(f)(keel.array(1)).item() == 2 and codes == [of_python.__code__]
    with pytest.raises(keel.PreconditionError):
        keel.function(f, convert=False)(keel.array(1))

    @keel.function
    def outer(x):
        return keel.function(f, convert=False)(x) if x > 0 else x
    with pytest.raises(keel.PreconditionError):
        outer(keel.array(1))
    assert keel.function(lambda x: twice_if_small(x))(keel.array(1)).item() == 2


def test_generators_run_as_they_are():
    def some(n):
        for k in range(n):
            if k != 1:
                yield k

    def f(x):
        def inside():
            for k in (1, x):
                if k is not None:
                    yield k
        for k in some(3):
            x = x + k if x > 1 else x
        return x, [v for v in some(3)], sum(k for k in some(4) if k > 1) + sum(inside())
    same(keel.function(f)(keel.array(2)), (keel.array(4), [keel.array(0), keel.array(2)], keel.array(10)))


def test_python_functions_may_call_themselves():
    def power(x, n):
        return x if n == 1 else power(x, n - 1) * x
    assert keel.function(power)(keel.array(3), 4).item() == 81 and keel.function(factorial)(5).item() == 120


def factorial(n):
    return 1 if n == 0 else n * factorial(n - 1)


def test_lambdas_of_one_line_are_told_apart():
    a, b = (lambda x: x + 1 if x > 0 else x), (lambda x: x - 1 if x > 0 else x)
    if sys.version_info >= (3, 11):
        assert (keel.function(a)(keel.array(1)).item(), keel.function(b)(keel.array(1)).item()) == (2, 0)


def test_to_code_is_readable():
    def branch(x):
        y = 1
        if x > y:
            t = x * 2
            y = t
        return y

    assert keel.convert.to_code(keel.function(relu)).split("\n", 1)[1] == '''def relu(x):

    def then():
        return x

    def otherwise():
        return 0
    return keel_.if_(keel.greater(x, 0), then, otherwise)
'''
    assert keel.convert.to_code(branch).split("\n", 1)[1] == '''def branch(x):
    y = 1

    def then():
        nonlocal y
        t = x * 2
        y = t
    keel_.if_(x > y, then, None, 'y')
    return y
'''
    assert keel.convert.to_code(skips).split("\n", 1)[1] == '''def skips(x, n):
    total = 0

    def body(i):

        def then():
            return

        def otherwise():
            nonlocal total
            total += i * x
        return keel_.if_(i % 3 == 0, then, otherwise, 'total')
    keel_.for_(keel_.range(1, 3 * n, 2), body, 'total')
    return total
'''
    for wrong in (len, 3, eval("lambda x: x")):
        with pytest.raises(keel.InvalidError):
            keel.convert.to_code(wrong)


def test_conversion_happens_once():
    part = "  if x > {0}:\n    x = x - {0}\n  else:\n    for i in range(n):\n      x = x + i * {0}\n"
    text = "def f(x, n):\n" + "".join(part.format(k) for k in range(10)) + "  return x\n"
    import linecache
    linecache.cache["<quick>"] = (len(text), None, text.splitlines(True), "<quick>")
    space = {}
    exec(compile(text, "<quick>", "exec"), space)
    first = build.convert(space["f"])
    assert first.__code__ is build.convert(space["f"]).__code__ is not space["f"].__code__


def test_passes_take_a_loop_in_a_loop(capfd):
    """A node that `loop` hoists from the inner body had the name of a value of the outer one."""
    def nested(b, c, n):
        for i in range(n, 0, -1):
            b += i
            for i in range(1, n):
                if (b * n) % 97 < n:
                    c = (c - b) % 97
        return b + c
    assert keel.function(nested)(*map(keel.array, (4, 5, 3))).item() == nested(4, 5, 3) == 15
    assert "is disabled" not in capfd.readouterr().err
