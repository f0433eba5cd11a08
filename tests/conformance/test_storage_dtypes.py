"""The storage dtypes (8-bit floats, 4- and 2-bit elements packed in bytes): cast to and from all dtypes, packing, texts and
files, and what refuses them. The oracle is ml_dtypes, or exact arithmetic where it has another rule."""
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from keel_abi import KeelError, dt
from keel_types import STORAGE, pack, storage_dtype, unpack
from tested_devices import DEVICES

FLOATS = ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1"]  # with a sign
INTEGERS = ["i4", "u4", "i2", "u2"]
PACKED = [name for name, (_, _, bits) in STORAGE.items() if bits < 8]
COMPUTING = [np.dtype(t) for t in "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8".split()] + [np.dtype(ml_dtypes.bfloat16)]
SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 1023, 1024, 1025, 5003]


def codes(name):
    """An array of all values of a dtype, in the order of their bits."""
    bits = STORAGE[name][2]
    return unpack(pack_codes(np.arange(1 << bits), bits), storage_dtype(name), (1 << bits,))


def pack_codes(numbers, bits):
    return np.packbits(np.unpackbits(numbers.astype(np.uint8)[:, None], axis=1, count=bits, bitorder="little"), bitorder="little")


def bits_of(array):
    """Comparable: bits, with one NaN."""
    out = array.view(np.uint8).astype(int)
    if array.dtype.name.startswith(("int", "uint")):
        return array.astype(int)
    return np.where(np.isnan(array.astype(np.float64)), 999, out)


def assert_bits(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(bits_of(got), bits_of(want))


def range_of(name):
    signed, bits = name[0] == "i", STORAGE[name][2]
    least = -(1 << bits - 1) if signed else 0
    return least, least + (1 << bits) - 1


@pytest.fixture(params=DEVICES)
def cast(context, request):
    def run(x, to, **attrs):
        return context.apply(request.param, "cast", x, to=storage_dtype(to) if isinstance(to, str) else to, **attrs)
    return run


# ---- values

@pytest.mark.parametrize("to", COMPUTING, ids=str)
@pytest.mark.parametrize("name", STORAGE)
def test_every_value_is_read(cast, name, to):
    x = codes(name)
    exact = x.astype(np.float64)
    got = cast(x, to)
    assert got.dtype == to
    if to.kind in "iu":
        whole = np.clip(np.where(np.isnan(exact), 0, np.trunc(exact)), -1e30, 1e30)
        info = np.iinfo(to)
        if name in INTEGERS:
            want = x.astype(np.int64).astype(to)  # wraps
        else:
            want = np.array([int(min(max(int(v), info.min), info.max)) for v in whole], dtype=to)
    else:
        with np.errstate(over="ignore"):
            want = exact != 0 if to.kind == "b" else exact.astype(to)
    if to.kind == "V":  # bf16
        got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(got, want)
    if to.kind == "f":
        np.testing.assert_array_equal(np.signbit(got)[~np.isnan(exact)], np.signbit(want)[~np.isnan(exact)])


def probes(name):
    """Numbers around all values of a small float: themselves, the middles between neighbours, and what is next to those."""
    with np.errstate(invalid="ignore"):
        v = codes(name).astype(np.float64)
    v = np.unique(v[np.isfinite(v)])
    step = v[-1] - v[-2]
    v = np.concatenate([v, (v[1:] + v[:-1]) / 2, [v[-1] + step / 2, v[-1] + step, -v[-1] - step / 2, -v[-1] - step]])
    near = [np.nextafter(v.astype(np.float32), np.float32(side)) for side in (-np.inf, np.inf)]
    rest = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, -1e30, 3.4e38]
    return np.concatenate([v, *near, rest])


def rounded(x, name, saturate):
    """By ml_dtypes; saturating as ONNX says: what rounds to more than the largest number, and infinities."""
    dtype = storage_dtype(name)
    most = float(ml_dtypes.finfo(dtype).max)
    if name == "f4e2m1":
        x = np.where(np.isnan(x), 0, x)
    if saturate or name == "f4e2m1":
        x = np.clip(x, -most, most)
    return x.astype(dtype)


@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("source", ["f2", "f4", "f8", "bfloat16"])
@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_rounded_once(cast, name, source, saturate):
    source = np.dtype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.arange(1 << 16, dtype=np.uint16).view(source) if source.itemsize == 2 else probes(name).astype(source)
    assert_bits(cast(x, name, saturate=saturate), rounded(x.astype(np.float32), name, saturate))


@pytest.mark.parametrize("name", FLOATS)
def test_f64_is_not_rounded_to_f32_first(cast, name):
    v = codes(name).astype(np.float64)
    v = np.unique(v[np.isfinite(v) & (v >= 0)])
    middle = (v[1:] + v[:-1]) / 2
    for side, want in ((0, v[:-1]), (9, v[1:])):
        np.testing.assert_array_equal(cast(np.nextafter(middle, side * 1e9), name).astype(np.float64), want)
    np.testing.assert_array_equal(cast(-middle * (1 + 2.0**-40), name).astype(np.float64), -v[1:])


@pytest.mark.parametrize("source", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("name", FLOATS)
def test_integers_are_rounded(cast, name, source):
    source = np.dtype(source)
    x = np.array([0, 1], source) if source.kind == "b" else np.concatenate([
        np.arange(127, dtype=source), np.iinfo(source).max - np.arange(9, dtype=source),
        np.iinfo(source).min + np.arange(9, dtype=source)])
    assert_bits(cast(x, name), rounded(x.astype(np.float64), name, True))


@pytest.mark.parametrize("source", COMPUTING, ids=str)
@pytest.mark.parametrize("name", INTEGERS)
def test_to_packed_integers(cast, name, source):
    least, most = range_of(name)
    if source.kind in "iu":
        x = np.arange(-40, 300).astype(source)  # wraps
        want = [(int(v) - least) % (most - least + 1) + least for v in x]
    elif source.kind == "b":
        x, want = np.array([False, True]), [0, 1 if most >= 1 else most]
    else:
        x = np.array([-300, -9, -8.5, -2.5, -1.5, -1, -0.75, -0.0, 0.25, 0.75, 1, 1.5, 2.9, 3, 7.9, 8, 15.9, 16, 1e4, np.inf, -np.inf,
                      np.nan]).astype(source)
        want = [0 if math.isnan(v) else min(max(v, least), most) if math.isinf(v) else min(max(int(v), least), most)
                for v in x.astype(np.float64)]
    assert_bits(cast(x, name), np.array(want, np.int64).astype(storage_dtype(name)))


@pytest.mark.parametrize("name", STORAGE)
@pytest.mark.parametrize("source", STORAGE)
def test_between_storage_dtypes(cast, source, name):
    x = codes(source)
    if source == name:
        return assert_bits(cast(x, name), x)
    wide = x.astype(np.int32) if source in INTEGERS else x.astype(np.float32)  # exact
    assert_bits(cast(x, name), cast(wide, name))


# ---- f8e8m0

def power(x, saturate, mode):
    if math.isnan(x) or x < 0:
        return 255
    if x == 0:
        return 0 if saturate else 255
    if math.isinf(x):
        return 254 if saturate else 255
    x, e = Fraction(x), x.bit_length() - 1 if isinstance(x, int) else math.frexp(x)[1] - 1
    rest = x / Fraction(2)**e
    e += {"down": 0, "up": int(rest > 1), "nearest": int(rest >= Fraction(3, 2))}[mode]
    if -127 <= e <= 127:
        return e + 127
    return 255 if not saturate else 0 if e < 0 else 254


@pytest.mark.parametrize("mode", ["nearest", "up", "down"])
@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("source", ["f2", "f4", "f8", "bfloat16", "i8"])
def test_powers_of_two(cast, source, saturate, mode):
    source = np.dtype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    grid = [s * 2.0**e for e in range(-149, 128) for s in (1, 1.25, 1.5, 1.75)]
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, -1, 3e38, *grid])
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.array([0, 1, 2, 3, 5, 6, 7, -1, 2**53 + 1, 2**62 + 1, 2**63 - 1]) if source.kind == "i" else x.astype(source)
    want = [power(int(v) if source.kind == "i" else float(v), saturate, mode) for v in x]
    np.testing.assert_array_equal(cast(x, "f8e8m0", saturate=saturate, round=mode).view(np.uint8), want)


def test_powers_of_two_of_onnx(cast):
    """ONNX's own helper, where it follows ONNX's table: positive normal numbers."""
    numpy_helper = pytest.importorskip("onnx.numpy_helper")
    x = np.random.default_rng(3).lognormal(0, 20, 4000).astype(np.float32)
    for mode in ("nearest", "up", "down"):
        assert_bits(cast(x, "f8e8m0", round=mode), numpy_helper.to_float8e8m0(x, True, mode))


# ---- packing

@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", STORAGE)
def test_sizes(cast, name, size):
    rng = np.random.default_rng(size)
    x = rng.choice(codes(name), size)
    wide = np.int32 if name in INTEGERS else np.float32
    np.testing.assert_array_equal(cast(x, wide), x.astype(wide))
    assert_bits(cast(x.astype(wide), name, saturate=False), x)


def test_elements_begin_in_the_lowest_bits(context):
    for device in DEVICES:
        for name, numbers, want in (("i4", [1, -2, 3], "e103"), ("u2", [1, 2, 3, 0, 2], "3902"), ("f4e2m1", [0.5, -6], "f1"),
                                    ("i2", [-1, 1], "07"), ("f8e4m3fn", [1, 448], "387e")):
            source = np.array(numbers, np.float32)
            out = context.bind(device, "cast", to=storage_dtype(name)).arrays(context.array(source))[0]
            raw = out.numpy()
            assert pack(raw).tobytes().hex() == want
            np.testing.assert_array_equal(raw.astype(np.float32), source)


@pytest.mark.parametrize("name", PACKED)
def test_strided_packed_arrays_are_refused(context, name):
    from keel_abi import tensor_of
    import ctypes as C
    from keel_abi import call, int64s
    tensor = tensor_of(np.zeros((3, 4), storage_dtype(name)))
    tensor.strides = int64s([1, 3])
    with pytest.raises(KeelError, match=f"a tensor of {name} is strided; its elements are packed, so it must be row-major"):
        call("keel_array_from_tensor", context, C.byref(tensor), None, None, C.byref(C.c_void_p()))


# ---- what takes them

REFUSE = [("add", 2, {}), ("neg", 1, {}), ("equal", 2, {}), ("transpose", 1, {}), ("concat", 2, {}), ("reduce_sum", 1, {}),
          ("slice", 1, {"start": [0, 0], "stop": [1, 1]}), ("matmul", 2, {})]


@pytest.mark.parametrize("op, count, attrs", REFUSE, ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.parametrize("name", STORAGE)
def test_other_ops_refuse_them(context, name, op, count, attrs):
    x = np.zeros((2, 2), storage_dtype(name))
    for device in DEVICES:
        with pytest.raises(KeelError, match=f" is {name} but must be one of ") as caught:
            context.apply(device, op, *[x] * count, **attrs)
        assert caught.value.code == "INVALID" and "cast(x){to=f32}" in caught.value.hint


def test_no_op_but_cast_makes_them(context):
    for op, attrs in (("iota", {"dims": [2]}), ("dim", {"of": 2}), ("random", {"dims": [2]})):
        inputs = [np.uint64(1)] if op == "random" else []
        with pytest.raises(KeelError, match="attribute dtype is i4, a storage dtype, which only cast makes"):
            context.apply("reference", op, *inputs, dtype=storage_dtype("i4"), **attrs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", STORAGE)
def test_moved_whole(context, device, name):
    x = np.random.default_rng(1).choice(codes(name), (3, 5))
    assert_bits(context.apply(device, "identity", x), x)
    assert_bits(context.apply(device, "reshape", x, to=[5, 3]), x.reshape(5, 3))
    variable = context.variable(x)
    assert_bits(variable.read(), x)


TEXT = """keel 1
const w: {name}[3] = {data}
const empty: {name}[0] = []

var v: {name}[3] = {data}

fn @first(a: {name}[3], b: {name}[3]) -> {name}[3] {{
  return a
}}

fn @second(a: {name}[3], b: {name}[3]) -> {name}[3] {{
  return b
}}

fn @main(x: {name}[3], p: bool[]) -> f32[3], {name}[3], {name}[3], {name}[0] {{
  a = cast(w){{to=f32}}
  b = cond(p, x, w){{then=@first, else=@second}}
  c = read(v)
  return a, b, c, empty
}}

entry main = @main
"""
LITERALS = {"f8e8m0": "[1.0, 0.25, nan]", "i4": "[-8, 7, 1]", "u4": "[0, 15, 1]", "i2": "[-2, 1, 0]", "u2": "[3, 0, 2]",
            "f4e2m1": "[6.0, -0.5, 0.0]"}


@pytest.mark.parametrize("name", STORAGE)
def test_texts_and_files(context, name, tmp_path):
    data = LITERALS.get(name, "[448.0, -0.5, nan]" if name == "f8e4m3fn" else "[1.5, -0.5, nan]")
    text = TEXT.format(name=name, data=data)
    module = context.parse(text)
    again = module.to_text()
    assert data in again and context.parse(again).to_text() == again
    module.save(tmp_path / "m.keel")
    loaded = context.load(tmp_path / "m.keel")
    assert loaded.to_text() == again
    wanted = np.array([float(v) for v in data[1:-1].split(",")]).astype(storage_dtype(name))
    x = codes(name)[:3]
    for device in DEVICES:
        for p in (True, False):
            a, b, c, none = loaded.session(device).prepare().run(x, np.bool_(p))
            np.testing.assert_array_equal(a, wanted.astype(np.float32))
            assert_bits(b, x if p else wanted)
            assert_bits(c, wanted)
            assert none.shape == (0,)


@pytest.mark.parametrize("declared, message", [
    ('i4[3] = hex"0102"', None), ('i4[3] = hex"01"', "expected 4 hex digits, got 2"), ('i4[3] = hex"010203"', "expected 4 hex digits, got 6"),
    ('u2[9] = hex"0102"', "expected 6 hex digits, got 4"), ("i4[2] = [1]", "the type has 2 elements, got 1"),
    ("i4[1] = [8]", "'8' is not a number that i4 can hold"), ("u2[1] = [-1]", "'-1' is not a number that u2 can hold"),
    ("f4e2m1[1] = [nan]", "'nan' is not a number that f4e2m1 can hold"), ("f8e4m3fn[1] = [1e9]", "is not a number that f8e4m3fn can hold"),
    ("f8e8m0[1] = [3.0]", "'3.0' is not a number that f8e8m0 can hold"), ("f8e4m3fn[1] = [inf]", "is not a number that f8e4m3fn can hold")])
def test_malformed_constants(context, declared, message):
    text = f"keel 1\nconst w: {declared}\n\nfn @main() -> {declared.split(' =')[0]} {{\n  return w\n}}\n"
    if message is None:
        context.parse(text)
        return
    with pytest.raises(KeelError, match=message):
        context.parse(text)


def test_a_file_cut_within_a_packed_constant(context, tmp_path):
    path = tmp_path / "m.keel"
    context.parse("keel 1\nconst w: i4[20001] = hex\"" + "12" * 10001 + "\"\n\nfn @main() -> i4[20001] {\n  return w\n}\n").save(path)
    whole = path.read_bytes()
    for cut in (1, 10001):
        path.write_bytes(whole[:-cut])
        with pytest.raises(KeelError, match="truncated or damaged"):
            context.load(path)


def test_scans_do_not_cut_bytes(context):
    text = """keel 1
fn @body(x: i4[3]) -> i4[3] {
  return x
}

fn @main(x: i4[2, 3]) -> i4[2, 3] {
  y = scan(x){body=@body}
  return y
}
"""
    with pytest.raises(KeelError, match="is i4, whose elements are packed: an entry may begin within a byte; cast it first"):
        context.parse(text)


@pytest.mark.parametrize("device", DEVICES)
def test_passes_keep_them(context, device):
    """Folding, common subexpressions, and casts next to transposes, reshapes and arithmetic."""
    text = """keel 1
const w: i4[2, 3] = [1, -2, 3, -4, 5, -6]

fn @main(x: f32[2, 3]) -> f32[3, 2], f32[3, 2], f8e4m3fn[3, 2] {
  a = cast(w){to=f32}
  b = mul(a, 0.5)
  c = transpose(b)
  d = cast(x){to=f16}
  e = cast(d){to=f8e4m3fn, saturate=false}
  f = cast(e){to=f32}
  g = transpose(f)
  h = add(g, c)
  i = transpose(x)
  j = cast(i){to=f32}
  k = cast(j){to=f8e4m3fn, saturate=false}
  return c, h, k
}
"""
    x = np.array([[0.3, 1, 500], [-1e4, 17, -0.7]], np.float32)
    c, h, k = context.parse(text).session(device).prepare().run(x)
    want = np.arange(1, 7, dtype=np.float32).reshape(2, 3) * [[1, -1, 1], [-1, 1, -1]] / 2
    np.testing.assert_array_equal(c, want.T)
    small = x.astype(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(h, small.astype(np.float32).T + want.T)
    assert_bits(k, np.ascontiguousarray(small.T))
    assert dt(k.dtype) == 0x1080A


@pytest.mark.parametrize("device", DEVICES)
def test_only_equal_packed_constants_are_merged(context, device):
    """They are too large to be folded, and differ in their last element."""
    text = f"""keel 1
const a: i4[2049] = hex"{"12" * 1024}03"
const b: i4[2049] = hex"{"12" * 1024}04"
const c: i4[2049] = hex"{"12" * 1024}03"

fn @main(x: f32[2049]) -> f32[2049], f32[2049] {{
  u = cast(a){{to=f32}}
  v = cast(b){{to=f32}}
  w = cast(c){{to=f32}}
  s = sub(v, u)
  t = sub(w, u)
  y = add(x, s)
  z = add(x, t)
  return y, z
}}
"""
    y, z = context.parse(text).session(device).prepare().run(np.zeros(2049, np.float32))
    np.testing.assert_array_equal(y, [0] * 2048 + [1])
    np.testing.assert_array_equal(z, [0] * 2049)
