// dtypes.cc: see dtypes.h.
#include "dtypes.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace keel_spirv {
namespace {

// ---- half floats. The bits of an f32 whose value an f16 or bf16 holds, or is to hold after rounding.

Value HalfBits(Value x) {
  const Value bits = Bits(x), magnitude = bits & 0x7fffffff, sign = (bits >> 16) & 0x8000;
  const Value even = magnitude + 0xfff + ((magnitude >> 13) & 1);  // rounds; may carry into the exponent
  const Value normal = (even >> 13) - (112 << 10);
  // Denormal: the significand is shifted by 126 - exponent, at most 25, and the bits lost decide.
  const Value exponent = magnitude >> 23, least = Select(exponent < 102, Like(bits, 102), exponent);
  const Value shift = 126 - Select(least > 112, Like(bits, 112), least);
  const Value full = (magnitude & 0x7fffff) | 0x800000, cut = full >> shift;
  const Value lost = full - (cut << shift), half = Like(bits, 1) << (shift - 1);
  const Value up = (lost > half) | ((lost == half) & ((cut & 1) == 1));
  const Value tiny = Select(exponent < 102, Like(bits, 0), cut + Select(up, Like(bits, 1), Like(bits, 0)));
  const Value finite = Select(exponent < 113, tiny, normal);
  const Value large = Select(magnitude > 0x7f800000, Like(bits, 0x7e00), Like(bits, 0x7c00));
  return sign | Select(magnitude >= 0x477ff000, large, finite);
}
Value FromHalf(Value h) {
  const Value magnitude = h & 0x7fff, sign = (h & 0x8000) << 16;
  const Value normal = (magnitude << 13) + (112 << 23), large = (magnitude << 13) | 0x7f800000;
  const Value scaled = h.code->Unary(kConvertUToF, Reg::kF32, magnitude) * 0x1p-24;
  const Value finite = Select(magnitude < 0x400, Bits(scaled), normal);
  return FromBits(sign | Select(magnitude >= 0x7c00, large, finite));
}
Value BrainBits(Value x) {
  const Value bits = Bits(x), up = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Value nan = (bits & 0x7fffffff) > 0x7f800000;
  return Select(nan, (bits >> 16) | 0x40, up);
}
Value FromBrain(Value b) { return FromBits(b << 16); }

// The f32 next to x on the side of zero with its last bit set, unless x is exact: a second rounding to fewer
// bits is then correct.
Value RoundedToOdd(Value nearest, Value above, Value exact) {
  const Value bits = Bits(nearest), one = Like(bits, 1), zero = Like(bits, 0);
  const Value finite = (bits & 0x7fffffff) != 0x7f800000;
  const Value odd = (bits - Select(above, one, zero)) | one;
  return FromBits(Select(exact | !(finite | above), bits, odd));
}
Value NarrowToOdd(Value wide) {
  Code& c = *wide.code;
  const Value f = c.Unary(kFConvert, Reg::kF32, wide), back = c.Unary(kFConvert, Reg::kF64, f);
  for (Value v : {f, back}) c.module.Decorate(v.id, {kNoContraction});  // Mesa 25 took back for wide
  return RoundedToOdd(f, Abs(back) > Abs(wide), (back == wide) | IsNan(wide));
}

// ---- integers

bool IsNarrow(keel_dt dt) { return BitsOf(dt) < 32; }

Value Wrap(keel_dt dt, Value v) {
  if (!IsNarrow(dt)) return v;
  if (IsUnsigned(dt)) return v & static_cast<double>((1u << BitsOf(dt)) - 1);
  Code& c = *v.code;
  return {&c,
          c.module.Emit(kBitFieldSExtract, c.TypeOf(Reg::kU32), {v.id, c.U32(0).id, c.U32(BitsOf(dt)).id}),
          Reg::kU32};
}
Value Resize(keel_dt from, keel_dt to, Value v) {
  if (BitsOf(to) == 64 && BitsOf(from) != 64) return IsSigned(from) ? WidenSigned(v) : Widen(v);
  return Wrap(to, BitsOf(from) == 64 && BitsOf(to) != 64 ? Narrow(v) : v);
}

// m >> bits where that leaves more than 16 bits, with the last bit set if a set bit is lost: the rounding to
// bf16 stays as it was.
void Shorten(Value* m, Value* scale, int bits) {
  const Value kept = *m >> bits, large = kept >= 0x1p16, lost = (kept << bits) != *m;
  *m = Select(large, kept | Select(lost, Like(*m, 1), Like(*m, 0)), *m);
  *scale = *scale * Select(large, Like(*scale, std::ldexp(1.0, bits)), Like(*scale, 1));
}
// Integer to f32 for bf16: f32 alone would round twice. At most 24 bits are converted, which is exact.
Value ToShortFloat(keel_dt from, Value v) {
  Code& c = *v.code;
  const Value below = IsSigned(from) ? SignedLess(v, Like(v, 0)) : c.True(false);
  Value m = Select(below, -v, v), scale = c.Literal(Reg::kF32, 1);
  if (BitsOf(from) == 64)
    for (int bits : {32, 16}) Shorten(&m, &scale, bits);
  Shorten(&m, &scale, 8);
  const Value f = c.Unary(kConvertUToF, Reg::kF32, BitsOf(from) == 64 ? Narrow(m) : m) * scale;
  return Select(below, -f, f);
}
Value IntegerToFloat(keel_dt from, keel_dt to, Value v) {
  Code& c = *v.code;
  if (to == KEEL_BF16 && !IsNarrow(from)) return Round(to, ToShortFloat(from, v));
  return Round(to, c.Unary(IsSigned(from) ? kConvertSToF : kConvertUToF, RegOf(to), v));
}

// Truncates and saturates; NaN gives 0. The bounds are powers of two, which each float type holds.
Value FloatToInteger(keel_dt to, Value v) {
  Code& c = *v.code;
  const Reg reg = RegOf(to);
  const int digits = static_cast<int>(BitsOf(to)) - IsSigned(to);
  const double end = std::ldexp(1.0, digits), start = IsSigned(to) ? -end : 0.0;
  const uint64_t most = ~uint64_t{0} >> (64 - digits);
  const Value inside = (v > start) & (v < end), safe = Select(inside, v, Like(v, 0));
  const Value whole = c.Unary(IsSigned(to) ? kConvertFToS : kConvertFToU, reg, safe);
  const Value lowest = c.Integer(reg, IsSigned(to) ? ~most : 0);
  return Select(v >= end, c.Integer(reg, most), Select(v <= start, lowest, whole));
}

Value FloatToFloat(keel_dt from, keel_dt to, Value v) {
  Code& c = *v.code;
  if (from == to) return v;
  if (to == KEEL_F64) return c.Unary(kFConvert, Reg::kF64, v);
  if (from != KEEL_F64) return Round(to, v);
  return to == KEEL_F32 ? c.Unary(kFConvert, Reg::kF32, v) : Round(to, NarrowToOdd(v));
}

}  // namespace

bool IsKnown(keel_dt dt) {
  constexpr keel_dt kAll[] = {KEEL_BOOL, KEEL_I8,  KEEL_I16, KEEL_I32,  KEEL_I64, KEEL_U8, KEEL_U16,
                              KEEL_U32,  KEEL_U64, KEEL_F16, KEEL_BF16, KEEL_F32, KEEL_F64};
  return std::find(std::begin(kAll), std::end(kAll), dt) != std::end(kAll);
}
Reg RegOf(keel_dt dt) {
  if (dt == KEEL_BOOL) return Reg::kBool;
  if (IsFloat(dt)) return dt == KEEL_F64 ? Reg::kF64 : Reg::kF32;
  return BitsOf(dt) == 64 ? Reg::kU64 : Reg::kU32;
}

Value LoadElement(Code& code, keel_dt dt, Value address) {
  const Value v = code.Load(address, BitsOf(dt), RegOf(dt));
  if (dt == KEEL_BOOL) return v != 0;
  if (dt == KEEL_F16) return FromHalf(v);
  if (dt == KEEL_BF16) return FromBrain(v);
  return IsInteger(dt) && IsSigned(dt) ? Wrap(dt, v) : v;
}
void StoreElement(keel_dt dt, Value address, Value v) {
  if (dt == KEEL_BOOL) v = Select(v, v.code->U32(1), v.code->U32(0));
  if (dt == KEEL_F16) v = HalfBits(v);
  if (dt == KEEL_BF16) v = BrainBits(v);
  v.code->Store(address, BitsOf(dt), v);
}

Value Round(keel_dt dt, Value v) {
  if (dt == KEEL_F16) return FromHalf(HalfBits(v));
  if (dt == KEEL_BF16) return FromBrain(BrainBits(v));
  return IsInteger(dt) ? Wrap(dt, v) : v;
}

Value Cast(keel_dt from, keel_dt to, Value v) {
  Code& c = *v.code;
  if (to == KEEL_BOOL) return from == KEEL_BOOL ? v : v != 0;
  if (from == KEEL_BOOL) return Select(v, c.Literal(RegOf(to), 1), c.Literal(RegOf(to), 0));
  if (IsFloat(from)) return IsFloat(to) ? FloatToFloat(from, to, v) : FloatToInteger(to, v);
  return IsFloat(to) ? IntegerToFloat(from, to, v) : Resize(from, to, v);
}

Value LessThan(keel_dt dt, Value a, Value b) { return IsSigned(dt) ? SignedLess(a, b) : a < b; }

}  // namespace keel_spirv
