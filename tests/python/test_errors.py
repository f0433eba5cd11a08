"""Misuse of the C ABI: each error has the right code and names the object, the actual and the expected value; afterwards
everything still works."""
import ctypes as C
from contextlib import contextmanager

import numpy as np
import pytest
from keel_abi import Context, KeelError, call, dt, int64s

F = np.float32


@contextmanager
def refused(code, *parts):
    """The error has this code, and its texts contain all the parts."""
    with pytest.raises(KeelError) as caught:
        yield
    assert caught.value.code in code.split("|"), str(caught.value)
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in: {caught.value}"


@pytest.fixture
def module(context):
    """Entry main: c = a @ b, a: f32[n, 3], b: f32[3, 2]."""
    module = context.module()
    graph = module.graph("main")
    a = graph.param("a", F, [module.dim("n"), 3])
    b = graph.param("b", F, [3, 2])
    graph.result("c", graph.node("matmul", a, b, name="c"))
    module.entry("main", graph)
    return module


@pytest.fixture
def plan(module, device):
    plan = module.session(device).prepare()
    yield plan
    assert plan.run(np.ones((1, 3), F), np.ones((3, 2), F))[0].tolist() == [[3, 3]]  # it is unharmed


def test_missing_feed(plan, module, device):
    with refused("INVALID", '"b"', "f32[3, 2]"):
        plan.run(np.ones((1, 3), F), None)
    with refused("INVALID", "takes 2 inputs, got 1"):
        plan.run(np.ones((1, 3), F))
    with refused("INVALID", 'parameter "b"', "f32[3, 2]"):
        module.session(device).run({"a": np.ones((1, 3), F)}, ["c"])


def test_wrong_shape_rank_and_dtype(plan):
    b = np.ones((3, 2), F)
    with refused("INVALID", '"a"', "[1, 4]", "f32[n, 3]", "dim 1 is 4, not 3"):
        plan.run(np.ones((1, 4), F), b)
    with refused("INVALID", '"a"', "[3]", "f32[n, 3]"):
        plan.run(np.ones(3, F), b)
    with refused("INVALID", '"a"', "f64", "f32"):
        plan.run(np.ones((1, 3)), b)
    with refused("INVALID", '"b"', "i32", "f32"):
        plan.run(np.ones((1, 3), F), np.ones((3, 2), np.int32))


def test_unknown_names(context, module, device):
    with refused("NOT_FOUND", '"nowhere"', device):
        module.session("nowhere")
    with refused("NOT_FOUND", "other", "main"):
        module.session(device, entry="other")
    with refused("NOT_FOUND", "zz"):
        module.session(device).run({"a": np.ones((1, 3), F), "b": np.ones((3, 2), F)}, ["zz"])
    with refused("NOT_FOUND", "zz"):
        module.session(device).run({"zz": np.ones((1, 3), F)}, ["c"])
    with refused("NOT_FOUND", "ad"):
        context.bind(device, "ad")
    with refused("INVALID", "keel_context_report: 'what'", '"nonsense"'):
        context.report("nonsense")
    with refused("NOT_FOUND", "missing.keel"):
        context.load("missing.keel")
    with refused("INVALID", '"speed"', "threads"):
        module.session(device, speed=1)
    with refused("INVALID", '"threads"', '"many"', "number"):
        Context(plugins=False, threads="many")


def test_attributes(context, device):
    x = np.ones((2, 3), F)
    with refused("INVALID|NOT_FOUND", "axs"):
        context.apply(device, "reduce_sum", x, axs=[0])
    with refused("INVALID|RANGE", "axes", "5"):
        context.apply(device, "reduce_sum", x, axes=[5])
    with refused("INVALID", "perm"):
        context.apply(device, "transpose", x, perm="up")
    with refused("INVALID", "gather", "axis"):
        context.apply(device, "gather", x, np.int64([0]), axis=1.5)


def test_operands(context, device):
    x = np.ones((2, 3), F)
    with refused("INVALID", "matmul", "3", "2"):
        context.apply(device, "matmul", x, x)
    with refused("INVALID", "add"):
        context.apply(device, "add", x)
    with refused("INVALID", "add", "f32", "i32"):
        context.apply(device, "add", x, x.astype(np.int32))
    with refused("INVALID", "add", "1", "2"):
        context.apply(device, "add", x, x, n_out=2)
    with refused("INVALID", "reshape"):
        context.apply(device, "reshape", x, to=[4])


@pytest.mark.parametrize("index", [3, -4, 2**31, -2**63])
def test_index_out_of_range(context, device, index):
    with refused("RANGE", "gather", str(index)):
        context.apply(device, "gather", np.arange(3, dtype=F), np.int64([0, index]))


def test_negative_index_into_a_dim_that_its_dtype_cannot_count(context, device):
    """Zeros that are never read take no memory."""
    zeros = np.zeros(2**32 + 8, np.uint8)
    try:
        assert context.apply(device, "gather", zeros, np.int32([0])) == [0]
    except KeelError as e:
        if e.code == "UNIMPLEMENTED" and "expected at most" in e.message:  # of elements
            pytest.skip(e.message)
        raise
    with refused("RANGE", "gather", "-1"):
        context.apply(device, "gather", zeros, np.int32([-1]))


@pytest.mark.parametrize("op", ["div", "mod", "rem"])
@pytest.mark.parametrize("kind", ["i1", "i4", "i8", "u2", "u8"])
def test_integer_division_by_zero(context, device, op, kind):
    a, b = np.array([7, 7, 7], kind), np.array([1, 0, 2], kind)
    with refused("RANGE", op, "division by zero"):
        context.apply(device, op, a, b)
    assert context.apply(device, "div", a, np.array([1, 7, 2], kind)).tolist() == [7, 1, 3]


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8"])
def test_the_one_overflowing_division_wraps(context, device, kind):
    least = np.array([np.iinfo(kind).min], kind)
    assert context.apply(device, "div", least, np.array([-1], kind)).tolist() == least.tolist()
    for op in ("mod", "rem"):
        assert context.apply(device, op, least, np.array([-1], kind)).tolist() == [0]


def test_shapes_beyond_any_memory(context, device):
    out = C.c_void_p()
    for shape in ([2**40, 2**40], [2**62], [-1], [2**40, 2**20]):
        with refused("INVALID|OOM", str(shape[0])):
            call("keel_array_new", context, C.c_uint32(dt("f4")), int64s(shape), len(shape), C.byref(out))
    with refused("INVALID|OOM"):
        context.apply(device, "fill", F(1), dims=[2**40, 2**30])
    with refused("INVALID|OOM|RANGE"):
        context.apply(device, "pad", np.ones(3, F), F(0), lo=[2**62], hi=[2**62])


def test_memory_limit(context, device):
    small = Context(memory=2**20)
    with refused("OOM", "memory", str(2**20)):
        out = C.c_void_p()
        call("keel_array_new", small, C.c_uint32(dt("f4")), int64s([2**19]), 1, C.byref(out))
    with refused("OOM", "needs", str(2**20)):
        small.apply(device, "fill", F(1), dims=[2**19])
    assert small.apply(device, "fill", F(1), dims=[2**10]).sum() == 2**10
    module = context.parse("keel 1\n\nfn @main(x: f32[n]) -> f32[n] {\n  y = add(exp(x), reverse(x))\n"
                           "  return y\n}\n\nentry main = @main (x) -> (y)\n")
    plan = module.session(device, memory=2**16).prepare()
    assert plan.run(np.zeros(16, F))[0].tolist() == [1] * 16
    with refused("OOM", str(2**16)):
        plan.run(np.zeros(2**16, F))


def test_graphs_that_make_no_sense(context):
    module = context.module()
    graph = module.graph("main")
    x = graph.param("x", F, [2, 3])
    with refused("NOT_FOUND|INVALID", "77"):
        graph.node("relu", 77)
    with refused("INVALID", "matmul"):
        graph.node("matmul", x, x)
    with refused("NOT_FOUND", "nosuchop"):
        graph.node("nosuchop", x)
    with refused("EXISTS|INVALID", "x"):
        graph.param("x", F, [2])
    with refused("EXISTS|INVALID", "main"):
        module.graph("main")
    with refused("INVALID", "n*"):
        module.dim("n*")
    with refused("INVALID", "-2"):
        graph.param("z", F, [-2])
    assert graph.type(graph.node("relu", x)) == (F, [2, 3])


@pytest.mark.parametrize("data", [b"", b"\0", b"KEEL" * 4, b"\x10\0\0\0\0\0\0\0KEEL" + b"\xff" * 100], ids=["empty", "short", "magic only", "huge"])
def test_bytes_that_are_no_graph(context, data):
    with refused("INVALID"):
        context.load_bytes(data)


@pytest.mark.parametrize("text", ["", "keel 2", "fn @", "keel 1\nfn @m(x: f32[2]) -> f32[2] { y = add(x, y) return y }",
                                  "keel 1\nfn @m(x: f32[2]) -> f32[2] {\n  y = relu(x)\n  return q\n}\n"],
                         ids=["empty", "version", "cut", "cycle", "unknown"])
def test_texts_that_are_no_graph(context, text):
    with refused("INVALID|NOT_FOUND"):
        context.parse(text)


def test_a_file_that_no_importer_knows(context, tmp_path):
    path = tmp_path / "photo.jpg"
    path.write_bytes(b"\xff\xd8\xff\xe0 no model")
    with refused("INVALID|NOT_FOUND|UNIMPLEMENTED", "photo.jpg"):
        context.import_file(path)


def test_a_plugin_that_is_none(context, tmp_path):
    path = tmp_path / "keel-fake.so"
    path.write_bytes(b"\x7fELF is what it is not")
    with refused("INVALID|UNAVAILABLE|NOT_FOUND", "keel-fake.so"):
        call("keel_plugin_load", context, str(path).encode())


def test_dims_of_another_module_are_refused(context):
    theirs, graph = context.module().dim("2*m"), context.module().graph("g")
    with pytest.raises(KeelError) as caught:
        graph.param("x", "f4", [theirs])
    assert caught.value.code == "INVALID" and "another module" in caught.value.message


def test_a_case_that_does_not_fit_leaves_nothing_behind(module):
    a, b, c = np.ones((1, 3), F), np.ones((3, 2), F), np.full((1, 2), 3, F)
    with refused("INVALID", "case 'one'", "expected results 0", "f32[2, 1]", "f32[n, 2]"):
        module.add_case("one", "main", [a, b], [c.T])
    with refused("INVALID", "case 'one'", "inputs", "1 given"):
        module.add_case("one", "main", [a], [c])
    with refused("INVALID", "case 'one'", "tolerances"):
        module.add_case("one", "main", [a, b], [c], rtol=-1)
    with refused("NOT_FOUND", "no entry 'other'", "'main'"):
        module.add_case("one", "other", [a, b], [c])
    module.add_case("one", "main", [a, b], [c])
    with refused("EXISTS", "case 'one'"):
        module.add_case("one", "main", [a, b], [c])


def test_text_of_more_than_a_gigabyte_is_refused_before_it_is_made(context):
    module = context.module()
    graph = module.graph("main")
    graph.result("y", graph.constant(np.zeros(300_000_000, F), "w"))  # untouched pages
    with refused("OOM", "1200000000 bytes", "the limit of the text form is 1073741824", "file"):
        module.to_text()
