// ops.cc: the instructions of each op; the bits equal those of its loop (*_loops.inc). A row lists the
// supported dtypes. The result's register is never an operand's, so an emitter may write it before it has
// read all operands.
#include <bit>
#include <cstring>
#include <limits>

#include "plugins/cpu/jit/jit.h"

#if defined(KEEL_JIT)
#include "plugins/cpu/jit/assembler.h"

namespace keel_cpu {
namespace {

using Xbyak::Operand;
using Xbyak::Xmm;
using J = JitAssembler;

enum Compare : uint8_t {  // predicates of vcmpps and vpcmpd; NaN compares unequal and unordered
  kEqualOrdered = 0,
  kUnordered = 3,
  kNotEqual = 4,
  kNotLessEqual = 6,
  kLessOrdered = 0x11,
  kLessEqualOrdered = 0x12,
  kGreaterEqualOrdered = 0x1d,
  kGreaterOrdered = 0x1e,
};
constexpr uint8_t kIntLess = 1, kIntLessEqual = 2, kIntGreaterEqual = 5, kIntGreater = 6;

uint64_t Bits(double x, int width) {
  return width == 4 ? std::bit_cast<uint32_t>(static_cast<float>(x)) : std::bit_cast<uint64_t>(x);
}
uint64_t SignBit(int width) { return uint64_t{1} << (8 * width - 1); }

// The dtype that an op computes in: that of its first operand.
keel_dt TypeOf(const J& j, const JitOp& op) { return j.TypeOf(op.in[0]); }
int Width(const J& j, const JitOp& op) { return WidthOf(TypeOf(j, op)); }

// One instruction per dtype. AVX2 has none for some of 64-bit integers; see the predicates below.
using Three = void (*)(J&, const Xmm& to, const Xmm& a, const Xmm& b);
struct ByType {
  Three f32, f64, i32, i64;
  void operator()(J& j, keel_dt dt, const Xmm& to, const Xmm& a, const Xmm& b) const {
    (IsFloat(dt) ? (WidthOf(dt) == 4 ? f32 : f64) : WidthOf(dt) == 4 ? i32 : i64)(j, to, a, b);
  }
};
void AndBits(J& j, const Xmm& to, const Xmm& a, const Xmm& b) {
  J::HasMasks() ? j.vpandd(to, a, b) : j.vpand(to, a, b);
}
void OrBits(J& j, const Xmm& to, const Xmm& a, const Xmm& b) {
  J::HasMasks() ? j.vpord(to, a, b) : j.vpor(to, a, b);
}
void XorBits(J& j, const Xmm& to, const Xmm& a, const Xmm& b) {
  J::HasMasks() ? j.vpxord(to, a, b) : j.vpxor(to, a, b);
}
#define KEEL_I(name) [](J& j, const Xmm& to, const Xmm& a, const Xmm& b) { j.name(to, a, b); }
constexpr ByType kAdd = {KEEL_I(vaddps), KEEL_I(vaddpd), KEEL_I(vpaddd), KEEL_I(vpaddq)},
                 kSub = {KEEL_I(vsubps), KEEL_I(vsubpd), KEEL_I(vpsubd), KEEL_I(vpsubq)},
                 kMul = {KEEL_I(vmulps), KEEL_I(vmulpd), KEEL_I(vpmulld), KEEL_I(vpmullq)},
                 kDiv = {KEEL_I(vdivps), KEEL_I(vdivpd), nullptr, nullptr},
                 kMax = {KEEL_I(vmaxps), KEEL_I(vmaxpd), KEEL_I(vpmaxsd), KEEL_I(vpmaxsq)},
                 kMin = {KEEL_I(vminps), KEEL_I(vminpd), KEEL_I(vpminsd), KEEL_I(vpminsq)},
                 kMaxUnsigned = {nullptr, nullptr, KEEL_I(vpmaxud), KEEL_I(vpmaxuq)},
                 kMinUnsigned = {nullptr, nullptr, KEEL_I(vpminud), KEEL_I(vpminuq)},
                 kAnd = {AndBits, AndBits, AndBits, AndBits}, kOr = {OrBits, OrBits, OrBits, OrBits},
                 kXor = {XorBits, XorBits, XorBits, XorBits},
                 kShiftLeft = {nullptr, nullptr, KEEL_I(vpsllvd), KEEL_I(vpsllvq)},
                 kShiftRight = {nullptr, nullptr, KEEL_I(vpsrlvd), KEEL_I(vpsrlvq)};
#undef KEEL_I

void Zero(J& j, const Xmm& x) { XorBits(j, x, x, x); }
void Move(J& j, const Xmm& to, const Xmm& from) { j.vmovaps(to, from); }
// to = mask ? from : to
void MoveWhere(J& j, Mask m, int width, const Xmm& to, const Xmm& from) { j.Choose(m, width, to, from, to); }
void AndLiteral(J& j, int width, const Xmm& to, const Xmm& a, uint64_t bits) {
  j.WithLiteral(width, bits, [&](const Operand& literal) {
    if (!J::HasMasks()) return j.vpand(to, a, literal);
    width == 4 ? j.vpandd(to, a, literal) : j.vpandq(to, a, literal);  // the width of the broadcast
  });
}
void XorLiteral(J& j, int width, const Xmm& to, const Xmm& a, uint64_t bits) {
  j.WithLiteral(width, bits, [&](const Operand& literal) {
    if (!J::HasMasks()) return j.vpxor(to, a, literal);
    width == 4 ? j.vpxord(to, a, literal) : j.vpxorq(to, a, literal);
  });
}

template <const ByType& kInstruction>
void Plain(J& j, const JitOp& op) {
  kInstruction(j, TypeOf(j, op), j.V(op.out), j.V(op.in[0]), j.V(op.in[1]));
}

// The instruction returns its second operand if either is NaN or both are zero, so only a NaN in the first
// operand needs a fix.
template <const ByType& kSignedOrFloat, const ByType& kUnsigned>
void Extreme(J& j, const JitOp& op) {
  const keel_dt dt = TypeOf(j, op);
  const Xmm to = j.V(op.out), a = j.V(op.in[0]), b = j.V(op.in[1]);
  (IsFloat(dt) || IsSigned(dt) ? kSignedOrFloat : kUnsigned)(j, dt, to, a, b);
  if (!IsFloat(dt)) return;
  j.Compare(dt, j.SpareMask(), a, a, kUnordered);
  MoveWhere(j, j.SpareMask(), WidthOf(dt), to, a);
}

template <uint8_t kFloatHow, uint8_t kIntHow>
void Comparison(J& j, const JitOp& op) {
  const keel_dt dt = TypeOf(j, op);
  j.Compare(dt, j.M(op.out), j.V(op.in[0]), j.V(op.in[1]), IsFloat(dt) ? kFloatHow : kIntHow);
}
void EqualOp(J& j, const JitOp& op) {
  if (!j.IsMask(op.in[0])) return Comparison<kEqualOrdered, kEqualOrdered>(j, op);
  j.Xor(j.M(op.out), j.M(op.in[0]), j.M(op.in[1]));
  j.Not(j.M(op.out), j.M(op.out));
}
void NotEqualOp(J& j, const JitOp& op) {
  if (j.IsMask(op.in[0])) return j.Xor(j.M(op.out), j.M(op.in[0]), j.M(op.in[1]));
  Comparison<kNotEqual, kNotEqual>(j, op);
}
template <void (J::*kInstruction)(Mask, Mask, Mask)>
void OfMasks(J& j, const JitOp& op) {
  (j.*kInstruction)(j.M(op.out), j.M(op.in[0]), j.M(op.in[1]));
}
void LogicalNot(J& j, const JitOp& op) { j.Not(j.M(op.out), j.M(op.in[0])); }

void Neg(J& j, const JitOp& op) {
  const keel_dt dt = TypeOf(j, op);
  const int width = WidthOf(dt);
  const Xmm to = j.V(op.out), a = j.V(op.in[0]);
  if (IsFloat(dt)) return XorLiteral(j, width, to, a, SignBit(width));
  Zero(j, to);
  kSub(j, dt, to, to, a);
}
void Abs(J& j, const JitOp& op) {
  const keel_dt dt = TypeOf(j, op);
  const int width = WidthOf(dt);
  const Xmm to = j.V(op.out), a = j.V(op.in[0]);
  if (IsFloat(dt))
    AndLiteral(j, width, to, a, SignBit(width) - 1);
  else if (!IsSigned(dt))
    Move(j, to, a);
  else
    width == 4 ? j.vpabsd(to, a) : j.vpabsq(to, a);
}
void Square(J& j, const JitOp& op) { kMul(j, TypeOf(j, op), j.V(op.out), j.V(op.in[0]), j.V(op.in[0])); }
void SquareRoot(J& j, int width, const Xmm& to, const Xmm& a) {
  width == 4 ? j.vsqrtps(to, a) : j.vsqrtpd(to, a);
}
void Sqrt(J& j, const JitOp& op) { SquareRoot(j, Width(j, op), j.V(op.out), j.V(op.in[0])); }
void Inverse(J& j, keel_dt dt, const Xmm& to, const Xmm& a, const Xmm& spare) {
  j.SpreadLiteral(WidthOf(dt), spare, Bits(1, WidthOf(dt)));
  kDiv(j, dt, to, spare, a);
}
void Reciprocal(J& j, const JitOp& op) {
  Inverse(j, TypeOf(j, op), j.V(op.out), j.V(op.in[0]), j.Spare(op.out));
}
void Rsqrt(J& j, const JitOp& op) {
  SquareRoot(j, Width(j, op), j.V(op.out), j.V(op.in[0]));
  Inverse(j, TypeOf(j, op), j.V(op.out), j.V(op.out), j.Spare(op.out));
}
// NaN and positive numbers are unchanged; -0 becomes +0.
void Relu(J& j, const JitOp& op) {
  const keel_dt dt = TypeOf(j, op);
  const Xmm to = j.V(op.out), a = j.V(op.in[0]);
  Zero(j, to);
  if (!IsFloat(dt)) return kMax(j, dt, to, a, to);
  j.Compare(dt, j.SpareMask(), a, to, kNotLessEqual);
  MoveWhere(j, j.SpareMask(), WidthOf(dt), to, a);
}
template <uint8_t kMode>
void Rounded(J& j, const JitOp& op) {
  const Xmm to = j.V(op.out), a = j.V(op.in[0]);
  if (J::HasMasks())
    Width(j, op) == 4 ? j.vrndscaleps(to, a, kMode) : j.vrndscalepd(to, a, kMode);
  else
    Width(j, op) == 4 ? j.vroundps(to, a, kMode) : j.vroundpd(to, a, kMode);
}
void Sign(J& j, const JitOp& op) {
  const keel_dt dt = TypeOf(j, op);
  const int width = WidthOf(dt);
  const Xmm to = j.V(op.out), a = j.V(op.in[0]), one = j.Spare(op.out);
  Move(j, to, a);
  for (const auto& [sign, how] : {std::pair{1.0, kGreaterOrdered}, {-1.0, kLessOrdered}}) {
    j.CompareLiteral(width, j.SpareMask(), a, Bits(0, width), how);
    j.SpreadLiteral(width, one, Bits(sign, width));
    MoveWhere(j, j.SpareMask(), width, to, one);
  }
}
void IsNan(J& j, const JitOp& op) {
  j.Compare(TypeOf(j, op), j.M(op.out), j.V(op.in[0]), j.V(op.in[0]), kUnordered);
}
template <uint8_t kHow>
void CompareMagnitude(J& j, const JitOp& op) {
  const int width = Width(j, op);
  const double limit = kHow == kEqualOrdered ? std::numeric_limits<double>::infinity()
                       : width == 4          ? std::numeric_limits<float>::max()
                                             : std::numeric_limits<double>::max();
  const Xmm size = j.Spare(op.in[0]);
  AndLiteral(j, width, size, j.V(op.in[0]), SignBit(width) - 1);
  j.CompareLiteral(width, j.M(op.out), size, Bits(limit, width), kHow);
}
void BitNot(J& j, const JitOp& op) { XorLiteral(j, Width(j, op), j.V(op.out), j.V(op.in[0]), ~uint64_t{0}); }

void SelectOp(J& j, const JitOp& op) {
  const Mask chosen = j.M(op.in[0]);
  if (!j.IsMask(op.out))
    return j.Choose(chosen, WidthOf(j.TypeOf(op.out)), j.V(op.out), j.V(op.in[1]), j.V(op.in[2]));
  j.AndNot(j.SpareMask(), chosen, j.M(op.in[2]));
  j.And(j.M(op.out), chosen, j.M(op.in[1]));
  j.Or(j.M(op.out), j.M(op.out), j.SpareMask());
}
// Replaces v by the bound if low <= high (v is at or beyond the bound) or the bound is NaN.
void Bound(J& j, keel_dt dt, const Xmm& v, const Xmm& bound, const Xmm& low, const Xmm& high) {
  const Mask k = j.SpareMask();
  j.Compare(dt, k, low, high, kLessEqualOrdered);
  MoveWhere(j, k, WidthOf(dt), v, bound);
  j.Compare(dt, k, bound, bound, kUnordered);
  MoveWhere(j, k, WidthOf(dt), v, bound);
}
void ClampOp(J& j, const JitOp& op) {
  const keel_dt dt = TypeOf(j, op);
  const Xmm to = j.V(op.out), lo = j.V(op.in[1]), hi = j.V(op.in[2]);
  if (IsFloat(dt)) {
    Move(j, to, j.V(op.in[0]));
    Bound(j, dt, to, lo, to, lo);
    return Bound(j, dt, to, hi, hi, to);
  }
  (IsSigned(dt) ? kMax : kMaxUnsigned)(j, dt, to, j.V(op.in[0]), lo);
  (IsSigned(dt) ? kMin : kMinUnsigned)(j, dt, to, to, hi);
}

// ---- casts that the hardware rounds like the loops

struct CastRow {
  keel_dt from, to;
  void (*emit)(J&, const Xmm& to, const Xmm& from);
  bool avx512 = false;  // needs it
};
#define KEEL_CAST(name) [](J& j, const Xmm& to, const Xmm& from) { j.name(to, from); }
constexpr CastRow kCasts[] = {
    {KEEL_F32, KEEL_F64, KEEL_CAST(vcvtps2pd)},       {KEEL_F64, KEEL_F32, KEEL_CAST(vcvtpd2ps)},
    {KEEL_I32, KEEL_F32, KEEL_CAST(vcvtdq2ps)},       {KEEL_U32, KEEL_F32, KEEL_CAST(vcvtudq2ps), true},
    {KEEL_I32, KEEL_F64, KEEL_CAST(vcvtdq2pd)},       {KEEL_U32, KEEL_F64, KEEL_CAST(vcvtudq2pd), true},
    {KEEL_I64, KEEL_F32, KEEL_CAST(vcvtqq2ps), true}, {KEEL_I64, KEEL_F64, KEEL_CAST(vcvtqq2pd), true},
    {KEEL_I32, KEEL_I64, KEEL_CAST(vpmovsxdq)},       {KEEL_I32, KEEL_U64, KEEL_CAST(vpmovsxdq)},
    {KEEL_U32, KEEL_I64, KEEL_CAST(vpmovzxdq)},       {KEEL_U32, KEEL_U64, KEEL_CAST(vpmovzxdq)},
    {KEEL_I64, KEEL_I32, KEEL_CAST(vpmovqd), true},   {KEEL_I32, KEEL_U32, KEEL_CAST(vmovaps)},
    {KEEL_U32, KEEL_I32, KEEL_CAST(vmovaps)},
};
#undef KEEL_CAST
const CastRow* FindCastRow(keel_dt from, keel_dt to) {
  for (const CastRow& row : kCasts)
    if (row.from == from && row.to == to) return row.avx512 && !J::HasMasks() ? nullptr : &row;
  return nullptr;
}
void CastOp(J& j, const JitOp& op) {
  const keel_dt from = TypeOf(j, op), to = j.TypeOf(op.out);
  if (from == KEEL_BOOL) {
    const uint64_t one = IsFloat(to) ? Bits(1, WidthOf(to)) : 1;
    return j.KeepWhere(j.M(op.in[0]), WidthOf(to), j.V(op.out), one);
  }
  if (to != KEEL_BOOL) return FindCastRow(from, to)->emit(j, j.V(op.out), j.V(op.in[0]));
  const Xmm zero = j.Spare(op.in[0]);
  Zero(j, zero);
  j.Compare(from, j.M(op.out), j.V(op.in[0]), zero, kNotEqual);
}

// ---- dtype predicates

bool IsNumber(keel_dt dt) {
  return dt == KEEL_F32 || dt == KEEL_F64 || dt == KEEL_I32 || dt == KEEL_I64 || dt == KEEL_U32 ||
         dt == KEEL_U64;
}
bool Numbers(const keel_dt* in, keel_dt) { return IsNumber(in[0]); }
// Without products, extremes and magnitudes of 64-bit integers, which AVX2 lacks.
bool MostNumbers(const keel_dt* in, keel_dt) {
  return IsNumber(in[0]) && (J::HasMasks() || IsFloat(in[0]) || WidthOf(in[0]) == 4);
}
bool Floats(const keel_dt* in, keel_dt) { return in[0] == KEEL_F32 || in[0] == KEEL_F64; }
bool SignedNumbers(const keel_dt* in, keel_dt out) { return MostNumbers(in, out) && (in[0] & 0xff) != 1; }
bool Integers(const keel_dt* in, keel_dt) { return IsNumber(in[0]) && !IsFloat(in[0]); }
bool Bools(const keel_dt* in, keel_dt) { return in[0] == KEEL_BOOL; }
bool Both(const keel_dt* in, keel_dt) { return HasRegisters(in[0]); }
bool Chosen(const keel_dt* in, keel_dt) { return HasRegisters(in[1]); }
bool CastsOf(const keel_dt* in, keel_dt out) {
  if (in[0] == KEEL_BOOL) return IsNumber(out);
  return out == KEEL_BOOL ? IsNumber(in[0]) : FindCastRow(in[0], out) != nullptr;
}

constexpr JitRow kRows[] = {
    {"add", Numbers, Plain<kAdd>},
    {"sub", Numbers, Plain<kSub>},
    {"mul", MostNumbers, Plain<kMul>},
    {"div", Floats, Plain<kDiv>},
    {"maximum", MostNumbers, Extreme<kMax, kMaxUnsigned>},
    {"minimum", MostNumbers, Extreme<kMin, kMinUnsigned>},
    {"bit_and", Integers, Plain<kAnd>},
    {"bit_or", Integers, Plain<kOr>},
    {"bit_xor", Integers, Plain<kXor>},
    {"bit_not", Integers, BitNot},
    {"shift_left", Integers, Plain<kShiftLeft>},
    {"shift_right", Integers, Plain<kShiftRight>},
    {"equal", Both, EqualOp},
    {"not_equal", Both, NotEqualOp},
    {"less", Numbers, Comparison<kLessOrdered, kIntLess>},
    {"less_equal", Numbers, Comparison<kLessEqualOrdered, kIntLessEqual>},
    {"greater", Numbers, Comparison<kGreaterOrdered, kIntGreater>},
    {"greater_equal", Numbers, Comparison<kGreaterEqualOrdered, kIntGreaterEqual>},
    {"logical_and", Bools, OfMasks<&J::And>},
    {"logical_or", Bools, OfMasks<&J::Or>},
    {"logical_xor", Bools, OfMasks<&J::Xor>},
    {"logical_not", Bools, LogicalNot},
    {"neg", Numbers, Neg},
    {"abs", MostNumbers, Abs},
    {"square", MostNumbers, Square},
    {"sign", Floats, Sign},
    {"sqrt", Floats, Sqrt},
    {"rsqrt", Floats, Rsqrt},
    {"reciprocal", Floats, Reciprocal},
    {"relu", SignedNumbers, Relu},
    {"floor", Floats, Rounded<1>},
    {"ceil", Floats, Rounded<2>},
    {"round", Floats, Rounded<4>},
    {"is_nan", Floats, IsNan},
    {"is_inf", Floats, CompareMagnitude<kEqualOrdered>},
    {"is_finite", Floats, CompareMagnitude<kLessEqualOrdered>},
    {"select", Chosen, SelectOp},
    {"clamp", MostNumbers, ClampOp},
    {"cast", CastsOf, CastOp},
};

}  // namespace

bool HasRegisters(keel_dt dt) { return IsNumber(dt) || dt == KEEL_BOOL; }

const JitRow* FindJit(const char* op, const keel_dt* in, keel_dt out) {
  for (const JitRow& row : kRows)
    if (std::strcmp(row.op, op) == 0) return row.takes(in, out) ? &row : nullptr;
  return nullptr;
}

}  // namespace keel_cpu

#else

namespace keel_cpu {

bool HasRegisters(keel_dt) { return false; }
const JitRow* FindJit(const char*, const keel_dt*, keel_dt) { return nullptr; }

}  // namespace keel_cpu

#endif
