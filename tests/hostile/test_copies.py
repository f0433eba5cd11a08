"""Ops that a device has no impl for and that the kernel runs by copies and fills (`lacking`), against NumPy; transfers without staging
memory; tensors that leave and enter device memory. In any order that the device may choose."""
import ctypes as C

import hostile
import keel_abi
import numpy as np
import pytest
from test_fallback import context
from test_place import session

DTYPES = ("f32", "f16", "i64", "bool", "i8")
NUMPY = {"f32": "f4", "f16": "f2", "i64": "i8", "bool": "?", "i8": "i1"}


def values(dtype, *shape):
    return (np.arange(int(np.prod(shape))).reshape(shape) % 7 - 3).astype(NUMPY[dtype])


def run(seed, dtype, body, out, feeds, dims=None, **options):
    """The result of a graph of one node y with operands a, b... of the shapes of the feeds, or of these dims."""
    dims = dims or [", ".join(map(str, feed.shape)) for feed in feeds]
    params = ", ".join(f"{n}: {dtype}[{d}]" for n, d in zip("abcd", dims))
    text = f"keel 1\nfn @main({params}) -> y: {out} {{\n  {body}\n  return y\n}}\nentry main = @main ({', '.join('abcd'[:len(feeds)])}) -> (y)\n"
    c = context(seed)
    return session(c, c.parse(text), "lacking", level=0, **options).prepare().run(*feeds)[0]


CASES = {
    "fill": (lambda v: np.full((3, 5), v), "y = fill(a){dims=[3, 5]}", "[3, 5]", [()]),
    "fill_none": (lambda v: np.full((0, 5), v), "y = fill(a){dims=[0, 5]}", "[0, 5]", [()]),
    "fill_one": (lambda v: np.full((1, 1), v), "y = fill(a){dims=[1, 1]}", "[1, 1]", [()]),
    "broadcast_scalar": (lambda v: np.broadcast_to(v, (7, 3)), "y = broadcast_to(a){dims=[7, 3]}", "[7, 3]", [()]),
    "broadcast_rows": (lambda v: np.broadcast_to(v, (5, 2, 3)), "y = broadcast_to(a){dims=[5, 2, 3]}", "[5, 2, 3]", [(2, 3)]),
    "slice_rows": (lambda v: v[1:3], "y = slice(a){start=[1, 0], stop=[3, 4]}", "[2, 4]", [(5, 4)]),
    "slice_columns": (lambda v: v[:, 1:3], "y = slice(a){start=[0, 1], stop=[5, 3]}", "[5, 2]", [(5, 4)]),
    "slice_steps": (lambda v: v[1:7:2, ::3], "y = slice(a){start=[1, 0], stop=[7, 5], step=[2, 3]}", "[3, 2]", [(7, 5)]),
    "concat_rows": (lambda a, b, c: np.concatenate([a, b, c]), "y = concat(a, b, c)", "[7, 2]", [(4, 2), (0, 2), (3, 2)]),
    "concat_columns": (lambda a, b: np.concatenate([a, b], 1), "y = concat(a, b){axis=1}", "[3, 5]", [(3, 1), (3, 4)]),
    "split": (lambda a: a[:, 1:3], "x, y, z = split(a){sizes=[1, 2, 1], axis=1}", "[5, 2]", [(5, 4)]),
    "pad": (lambda a, b: np.pad(a, ((1, 2), (0, 1)), constant_values=b), "y = pad(a, b){lo=[1, 0], hi=[2, 1]}", "[5, 4]", [(2, 3), ()]),
    "pad_gaps": (lambda a, b: spread(a, b), "y = pad(a, b){gap=[1, 0]}", "[5, 2]", [(3, 2), ()]),
}


def spread(a, b):
    y = np.full((2 * a.shape[0] - 1, a.shape[1]), b)
    y[::2] = a
    return y


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_copies_and_fills_give_what_numpy_gives(case, dtype):
    want, body, out, shapes = CASES[case]
    for seed in hostile.seeds_of(case + dtype):
        feeds = [values(dtype, *shape) for shape in shapes]
        got = run(seed, dtype, body, dtype + out, feeds)
        assert got.dtype == feeds[0].dtype
        np.testing.assert_array_equal(got, want(*feeds))


@pytest.mark.parametrize("value", ["0.0", "2.5"])
def test_a_constant_fills_by_one_fill(value):
    text = f"keel 1\nconst v: f32[] = {value}\nfn @main(x: f32[n, 2]) -> y: f32[n, 3] {{\n  y = fill(v){{dims=[n, 3]}}\n  return y\n}}\nentry main = @main (x) -> (y)\n"
    c = context(3)
    plan = session(c, c.parse(text), "lacking", level=0).prepare()
    for n in (4, 0, 1):
        np.testing.assert_array_equal(plan.run(np.zeros((n, 2), np.float32))[0], np.full((n, 3), float(value)))


def test_dims_of_a_run():
    text = """keel 1
fn @main(x: f32[n, m]) -> y: f32[2, m], d: i64[], e: f32[] {
  y = slice(x){start=[n - 2, 0], stop=[n, m]}
  d = dim(){of=n * m}
  e = dim(){of=n, dtype=f32}
  return y, d, e
}
entry main = @main (x) -> (y, d, e)
"""
    for seed in hostile.seeds_of("dims"):
        c = context(seed)
        plan = session(c, c.parse(text), "lacking", level=0).prepare()
        for n, m in ((3, 2), (2, 5), (70, 1)):
            x = values("f32", n, m)
            y, d, e = plan.run(x)
            np.testing.assert_array_equal(y, x[-2:])
            assert (d, e) == (n * m, n)


def test_too_many_copies_need_an_impl():
    body, x = "y = slice(a){start=[0, 0], stop=[%s, 1]}", values("f32", 65, 2)
    np.testing.assert_array_equal(run(1, "f32", body % 64, "f32[64, 1]", [x[:64]]), x[:64, :1])
    with pytest.raises(keel_abi.KeelError, match="slice") as e:
        run(1, "f32", body % 65, "f32[65, 1]", [x])
    assert e.value.code == "UNIMPLEMENTED" and "no impl" in e.value.message
    with pytest.raises(keel_abi.KeelError, match="more than 64 copies") as e:  # known when it runs
        run(1, "f32", body % "n", "f32[n, 1]", [x], dims=["n, 2"])
    assert e.value.code == "UNIMPLEMENTED"
    for fallback in (body % 65, body % "n"):
        out, dims = ("f32[n, 1]", ["n, 2"]) if "[n" in fallback else ("f32[65, 1]", None)
        np.testing.assert_array_equal(run(1, "f32", fallback, out, [x], dims=dims, fallback="reference"), x[:, :1])


BETWEEN = """keel 1
fn @main(x: f32[6]) -> y: f32[6] {
  a = neg(x)
  b = neg(a)
  head = slice(b){start=[0], stop=[2]}
  rest = slice(b){start=[2], stop=[6]}
  c = concat(rest, head)
  d = neg(c)
  e = neg(d)
  front = slice(e){start=[0], stop=[5]}
  last = slice(d){start=[5], stop=[6]}
  f = concat(last, front)
  y = neg(f)
  return y
}
entry main = @main (x) -> (y)
"""


def test_launches_between_copies():
    x = np.arange(6, dtype=np.float32)
    rolled = np.roll(x, -2)
    want = -np.concatenate([-rolled[5:], rolled[:5]])
    for seed in hostile.seeds_of("between"):
        c = context(seed)
        plan = session(c, c.parse(BETWEEN), "lacking", level=0).prepare()
        for _ in range(3):
            np.testing.assert_array_equal(plan.run(x)[0], want)


LOOP = """keel 1
fn @main(x: f32[3], n: i32[]) -> y: f32[3], i: i32[] {
  i, y = while(0, x, n){carry=2}
    test(i, x, n) { c = less(i, n)
      yield c }
    body(i, x, n) { k = i + 1
      head = slice(x){start=[0], stop=[1]}
      rest = slice(x){start=[1], stop=[3]}
      y = concat(rest, head)
      yield k, y }
  return y, i
}
entry main = @main (x, n) -> (y, i)
"""


def test_copies_in_the_body_of_a_loop():
    for seed in hostile.seeds_of("loop"):
        c = context(seed)
        got, rounds = session(c, c.parse(LOOP), "lacking", level=0).prepare().run(np.array([1, 2, 3], np.float32), np.int32(5))
        assert rounds == 5
        np.testing.assert_array_equal(got, [3, 1, 2])


@pytest.mark.parametrize("wraps", [0, 1])
@pytest.mark.parametrize("downloads", [0, 1])
def test_large_arrays_in_any_order(wraps, downloads):
    big = np.arange(5 << 20, dtype=np.float32)  # 20 MiB
    for seed in hostile.seeds_of(f"large{wraps}{downloads}"):
        hostile.put(wraps=wraps, downloads=downloads)
        c = hostile.context(seed)
        neg = c.bind("hostile", "neg")
        a, small = c.array(big).to("hostile"), c.array(big[:3]).to("hostile")
        b = neg.arrays(a)[0]
        np.testing.assert_array_equal(small.numpy(), big[:3])
        np.testing.assert_array_equal(b.numpy(), -big)
        np.testing.assert_array_equal(a.numpy(), big)


@pytest.mark.parametrize("function", ["segment_wrap", "copy", "submit", "host_wait"])
def test_a_failed_transfer_gives_the_memory_back(function):
    """The fixture checks that nothing is left wrapped."""
    big, c = np.arange(5 << 20, dtype=np.float32), hostile.context(4)
    x = c.array(big[:3]).to("hostile").wait()
    hostile.fail(function, 1)
    with pytest.raises(keel_abi.KeelError, match="injected failure of " + function):
        c.array(big).to("hostile")
    hostile.fail()
    y = c.array(big).to("hostile")
    hostile.fail(function, 1)
    with pytest.raises(keel_abi.KeelError, match="injected failure of " + function):
        y.numpy()
    hostile.fail()
    np.testing.assert_array_equal(x.numpy(), big[:3])


def exported(array):
    """The versioned DLPack tensor of an array."""
    out = C.c_void_p()
    keel_abi.call("keel_array_to_dlpack", array, C.byref(out), None)
    return out


def test_dlpack_through_c():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for seed in hostile.seeds_of("dlpack"):
        c = hostile.context(seed)
        neg = c.bind("hostile", "neg")
        there = neg.arrays(c.array(x))[0]
        managed, out = exported(there), C.c_void_p()
        keel_abi.call("keel_array_from_dlpack", c, managed, None, C.byref(out))
        del there
        back = keel_abi.Array(out, c)
        assert back.device == "hostile:0"
        further = neg.arrays(back)[0]
        np.testing.assert_array_equal(further.numpy(), x)
        np.testing.assert_array_equal(back.numpy(), -x)
        del back, further


def test_a_tensor_of_another_device_stays_with_its_owner():
    c = hostile.context(1)
    managed, out = exported(c.bind("hostile:1", "neg").arrays(c.array(np.ones(3, np.float32)))[0]), C.c_void_p()
    hostile.put(wraps=0)
    with pytest.raises(keel_abi.KeelError, match=r"device \(12, 0\)") as e:
        keel_abi.call("keel_array_from_dlpack", c, managed, None, C.byref(out))
    assert e.value.code == "UNIMPLEMENTED" and "host memory" in e.value.hint
    hostile.put(wraps=1)  # the caller still has it
    keel_abi.call("keel_array_from_dlpack", c, managed, None, C.byref(out))
    back = keel_abi.Array(out, c)
    assert back.device == "hostile:1"
    np.testing.assert_array_equal(back.numpy(), -1)
