"""bit_cast: the bits of an array as another dtype, which moves nothing. The oracle is NumPy's view."""
import ml_dtypes
import numpy as np
import pytest
from keel_abi import KeelError
from keel_types import STORAGE, storage_dtype

BITS = np.array([0, 1, 0x7f80_0000, 0x7fc0_1234, 0x8000_0000, 0xffff_ffff, 0x3f80_0000], np.uint32)  # a NaN with a payload, -0
PAIRS = [("u4", "f4"), ("f4", "i4"), ("i4", "u4"), ("u2", "f2"), ("f2", "i2"), ("u8", "f8"), ("f8", "i8"), ("u1", "i1"), ("?", "u1"), ("f4", "f4")]


def values(kind, shape):
    count = int(np.prod(shape))
    if kind == "?":
        return (np.arange(count) % 2 == 1).reshape(shape)
    return np.resize(BITS, max(count, 1) * 2).view(kind)[:count].reshape(shape)


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (2, 3), (2, 0, 3)], ids=str)
@pytest.mark.parametrize("kind, to", PAIRS)
def test_bits_are_kept(context, device, kind, to, shape):
    x = values(kind, shape)
    same(context.apply(device, "bit_cast", x, to=np.dtype(to)), x.view(to))


def test_bfloat16(context, device):
    x = np.array([1.5, -0.0, np.nan, np.inf], ml_dtypes.bfloat16)
    same(context.apply(device, "bit_cast", x, to=np.dtype(np.uint16)), x.view(np.uint16))


@pytest.mark.parametrize("name", [name for name, (_, _, bits) in STORAGE.items() if bits == 8])
def test_storage_dtypes_of_one_byte(context, device, name):
    x = np.arange(256, dtype=np.uint8)
    there = context.apply(device, "bit_cast", x, to=storage_dtype(name))
    assert there.dtype == storage_dtype(name)
    same(context.apply(device, "bit_cast", there, to=np.dtype(np.uint8)), x)


PROGRAM = """
keel 1
const three: f32[3] = [1.0, -1.0, 0.5]
var w: i32[] = 0
fn @main(x: f32[n]) -> f32[n], i32[n], u32[3], f64[3], i32[2], i32[] {
  bits = bit_cast(x){to=i32}
  next = bit_cast(bits + 1){to=f32}
  known = bit_cast(three){to=u32}
  folded = cast(known){to=f64}
  sum = bit_cast(reduce_sum(x)){to=i32}
  assign(w, sum)
  both = concat(reshape(bit_cast(reduce_max(x)){to=i32}){to=[1]}, reshape(sum){to=[1]})
  now = read(w)
  return next, bits, known, folded, both, now
}
entry main = @main (x) -> (next, bits, known, folded, both, now)
"""


@pytest.mark.parametrize("n", [1, 5])
def test_operands_results_constants_and_assigned_values_in_a_graph(context, device, n):
    """The parameter itself, folded constants, parts of a concatenation, assigned values."""
    x, known = np.linspace(0.5, 2.5, n, dtype=np.float32), np.array([1, -1, 0.5], np.float32).view(np.uint32)
    module = context.parse(PROGRAM)
    plan = module.session(device).prepare()
    total = np.array([x.max(), x.sum()], np.float32).view(np.int32)
    for _ in range(2):
        got = plan.run(x)
        for one, want in zip(got, [np.nextafter(x, np.float32(9)), x.view(np.int32), known, known.astype(np.float64), total, total[1]], strict=True):
            same(one, np.asarray(want))
        same(module.variable("w").read(), total[1:].reshape(()))


@pytest.mark.parametrize("kind, to, words", [("f4", "f8", "have 32 bits, .* f64 have 64"), ("u1", "?", "bits of u8 may be no bool")])
def test_what_has_no_such_bits_is_refused(context, device, kind, to, words):
    with pytest.raises(KeelError, match=words) as e:
        context.apply(device, "bit_cast", np.zeros(2, kind), to=np.dtype(to))
    assert (e.value.code, e.value.op) == ("INVALID", "bit_cast")
