"""keel.function: when code is traced, signatures, methods, functions in functions, threads, and saved traces."""
import threading

import keel
import numpy as np
import pytest


def counted(**options):
    """A function and the list of its traces."""
    seen = []

    @keel.function(**options)
    def f(x, n=2):
        seen.append(n)
        return x * n
    return f, seen


def test_code_is_traced_once_for_each_signature():
    f, seen = counted()
    for x, n in ((1., 2), (2., 2), (np.float32(3), 2), (keel.array(4.), 2)):
        assert float(f(x if isinstance(x, keel.Tensor) else keel.array(x), n)) == float(x) * n
    assert seen == [2] and f.trace_count == 1
    f(keel.array(1.), 3), f(keel.array(1), 2), f(keel.array([1.]), 2)
    assert len(seen) == 4 and [t["calls"] for t in f.traces()][0] == 4


def test_numbers_are_static_by_type_and_value_and_arrays_are_not():
    f, seen = counted()
    assert f(2).dtype is keel.i32 and f(2.).dtype is keel.f32 and f(2).dtype is keel.i32
    assert len(seen) == 2
    assert f(np.int32(2)).item() == 4 and f(np.int32(3)).item() == 6 and len(seen) == 3


def test_defaults_and_names_do_not_retrace():
    f, seen = counted()
    x = keel.array(1.)
    f(x), f(x, 2), f(x, n=2), f(x=x), f(n=2, x=x)
    assert seen == [2]
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(x, m=3)
    with pytest.raises(TypeError, match="missing"):
        f()


def test_the_third_size_of_a_dim_makes_it_a_symbol():
    f, seen = counted()
    for n in (2, 3, 4, 5, 6):
        np.testing.assert_array_equal(f(np.ones(n, "f4")), np.full(n, 2, "f4"))
    assert len(seen) == 3
    assert f.traces()[1]["reason"] == "argument x was f32[2], now f32[3]" and "f32[" in f.explain() and f.signatures().startswith("f(x, n=2)")


def test_each_trace_of_the_ledger_has_its_text_and_svg():
    f, seen = counted()
    f(keel.array([1., 2.])), f(keel.array(1.), 2.5), f(keel.array(1.), 2.)
    assert [block.split("\n")[0] for block in f.signatures().split("\n\n")] == ["f(x, n=2)", "f(x, n=2.5)", "f(x, n=2.0)"]
    assert "f32[2]" in f.trace(0).text() and f.trace(-1).text() == f.trace(2).text() != f.trace(1).text()
    assert f.trace(1)(keel.array(2.)).item() == 5
    assert len(seen) == 3 and [t["calls"] for t in f.traces()] == [1, 1, 1]
    with pytest.raises(IndexError, match="f has 3 traces; got number 3"):
        f.trace(3)


def test_wrong_options_are_said_once():
    for name in ("max_traces", "any_after"):
        with pytest.raises(keel.InvalidError, match=f'^option "{name}": got "-1", expected a number from'):
            keel.function(lambda x: x, **{name: -1})(keel.array(1.))


def test_what_the_code_raises_comes_out_unchanged():
    class Own(Exception):
        pass
    own = Own("mine")

    @keel.function
    def f(x):
        raise own
    with pytest.raises(Own) as caught:
        f(keel.array(1.))
    assert caught.value is own and f.trace_count == 0
    g = keel.function(lambda x: f(x))
    with pytest.raises(Own):
        g(keel.array(1.))
    assert keel.executing_eagerly() and keel.add(1, 1).item() == 2


def test_python_effects_happen_while_tracing_only_and_tensors_are_captured():
    log, scale = [], keel.array(3.)

    @keel.function
    def f(x):
        log.append("Tracing!")
        return x * scale
    assert [f(keel.array(v)).item() for v in (1., 2.)] == [3, 6] and log == ["Tracing!"]
    with keel.Eagerly():
        f(keel.array(1.)), f(keel.array(1.))
    assert len(log) == 3
    f.run_eagerly(), f(keel.array(1.)), f.run_eagerly(False), f(keel.array(1.))
    assert len(log) == 4
    keel.run_eagerly(True)
    try:
        assert f(keel.array(1.)).item() == 3 and len(log) == 5
    finally:
        keel.run_eagerly(False)


def test_check_captures_finds_what_changed():
    scale = [2]
    f = keel.function(lambda x: x * scale[0], check_captures=True)
    assert f(keel.array(1.)).item() == 2
    scale[0] = 3
    with pytest.raises(keel.PreconditionError):
        f(keel.array(1.))


def test_signatures_fix_types_for_one_trace():
    f = keel.function(lambda x, y: keel.reshape(x, (x.shape[0] * 3,)) + y, signature=[keel.f32["b", 3], keel.f32[()], "b % 2 == 0"])
    assert f(keel.ones((2, 3)), keel.array(1.)).shape == (6,) and f(keel.ones((4, 3)), keel.array(1.)).shape == (12,)
    assert f.trace_count == 1
    for wrong in (lambda: f(keel.ones((2, 4)), keel.array(1.)), lambda: f(keel.ones((3, 3)), keel.array(1.)),
                  lambda: f(keel.ones((2, 3), "f64"), keel.array(1.))):
        with pytest.raises(keel.InvalidError):
            wrong()
    assert keel.function(lambda x: x, signature="x: f32[n]")(keel.zeros(5)).shape == (5,)


def test_sizes_of_a_trace_compute():
    def f(x):
        n = x.shape[0]
        return keel.reshape(x, (n * x.shape[1],)), keel.zeros((n + 1, 2 * n)), x[:, -1], x[1:, None], x[:-1:2], x[-2:], keel.broadcast_to(keel.array(1.), [n // 2])
    traced = keel.function(f, signature="x: f32[n, 3]")
    for n in (4, 6):
        x = keel.array(np.arange(3. * n, dtype="f4").reshape(n, 3))
        for a, b in zip(traced(x), f(x), strict=True):
            np.testing.assert_array_equal(a, b)


def test_methods_belong_to_their_object():
    class Model:
        def __init__(self, k):
            self.k, self.traces = k, 0

        @keel.function
        def call(self, x):
            self.traces += 1
            return x * self.k
    a, b = Model(2), Model(3)
    assert [a.call(keel.array(1.)).item(), b.call(keel.array(1.)).item(), a.call(keel.array(2.)).item()] == [2, 3, 4]
    assert (a.traces, b.traces) == (1, 1)


def test_a_bound_method_that_is_a_function_keeps_its_object():
    class Model:
        k = 3

        @keel.function
        def call(self, x):
            return x * self.k if x > 0 else x

        @keel.function
        def scaled(self, x, *, by):
            return x * by * self.k
    bound = keel.function(Model().call)
    assert keel.function(Model().scaled)(keel.array(2.), by=5).item() == 30
    assert keel.function(Model().scaled, signature="x: f32[], by: f32[]")(2, by=5).item() == 30
    assert bound(keel.array(2.)).item() == 6 and keel.function(bound)(keel.array(-2.)).item() == -2
    assert "keel_.choose" in keel.convert.to_code(bound)


def test_functions_call_functions():
    inner = keel.function(lambda x: {"y": x + 1})
    outer = keel.function(lambda x: inner(x)["y"] * inner(x * 2)["y"])
    assert [outer(keel.array(v)).item() for v in (1., 2., 3.)] == [6, 15, 28]


def test_concrete_functions_are_modules():
    f, _ = counted()
    module = f.concrete(keel.f32[2], 5)
    assert "mul" in module.text() and keel.parse(module.text()).text() == module.text()
    assert f.concrete(keel.zeros(2), n=5).signatures() == module.signatures()
    with pytest.raises(ValueError, match="symbolic sizes"):
        f.concrete(keel.f32["n"])


def test_many_threads_call_one_function():
    f, seen = counted()
    wrong = []

    def work(k):
        for n in (2, 3):
            for _ in range(50):
                if f(keel.array(float(k)), n).item() != k * n:
                    wrong.append((k, n))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not wrong and f.trace_count == 2


TRACING_AND_CALLING = """
import random, sys, threading
sys.setswitchinterval(1e-5)
import keel

@keel.function(any_after="never", max_traces=3)
def double(x):
    return x * 2

@keel.function(any_after="never", max_traces=3)
def f(x, n):
    for _ in range(n):
        x = double(x) + 1
    return x

def work(seed):
    draw = random.Random(seed)
    for _ in range(1500):
        n, size = draw.choice([1, 2, 3]), draw.choice([1, 1, 1, 2, 3, 4, 5])
        assert (f(keel.zeros(size), n).numpy() == 2**n - 1).all()
        double(keel.zeros(draw.randrange(9)))
    done.append(seed)

done = []
threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
[t.start() for t in threads], [t.join() for t in threads]
print(sorted(done), f.trace_count > 100)
"""


def test_threads_that_trace_do_not_wait_for_those_that_call(script):
    assert script(TRACING_AND_CALLING) == "[0, 1, 2, 3, 4, 5] True\n"


class Scaled:
    def __init__(self, k):
        self.k = k

    @keel.function(signature="x: f32[n]")
    def text(self, x):
        return x * self.k

    @keel.function(signature=[keel.f32["n"], keel.f32["n"], "n in 2..9"])
    def types(this, x, y):
        return (x + y) * this.k

    @keel.function(signature="self.k: f32[], x: f32[n]")
    def fields(self, x):
        return x * self

    @staticmethod
    @keel.function(signature=[keel.f32["n"]])
    def static(x):
        return x * 3

    @classmethod
    @keel.function(signature=[keel.f32["n"]])
    def of_class(cls, x):
        return x * len(cls.__name__)


def test_signatures_of_methods_leave_out_their_object():
    two, three, x = Scaled(2), Scaled(3), keel.array([1., 2.])
    for k, each in ((2, two), (3, three), (2, two)):
        assert each.text(x).tolist() == [k, 2 * k] and each.types(x, y=x).tolist() == [2 * k, 4 * k]
        assert each.text(keel.zeros(5)).shape == (5,) and each.static(x).tolist() == [3, 6]
    assert Scaled.text(two, x).tolist() == [2, 4] and Scaled.text.concrete(two, x)(x).tolist() == [2, 4]
    assert len(two.text.traces()) == len(three.types.traces()) == 1 and two.text is two.text
    with pytest.raises(keel.Error, match="n in 2..9"):
        two.types(keel.zeros(10), keel.zeros(10))
    with pytest.raises(keel.InvalidError, match="self"):
        keel.function(lambda x, y: x, signature=[keel.f32[2]])
    if hasattr(Scaled.of_class, "traces"):  # before Python 3.13 a class method binds its wrapped object
        assert Scaled.of_class(x).tolist() == [6, 12]
