"""Uses of storage dtypes (8-bit floats, packed elements) other than casts, and refusals: ops, texts and files, scans, passes. The oracles
are literals and bits."""
import ml_dtypes
import numpy as np
import pytest
from keel_abi import KeelError, dt
from keel_types import STORAGE, storage_dtype
from storage_bits import assert_bits, codes
from tested_devices import DEVICES

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
