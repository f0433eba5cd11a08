// masks.cc: the instructions of bools, see assembler.h: for mask registers (AVX-512) and for vectors (AVX2).
#include "plugins/cpu/jit/jit.h"

#if defined(KEEL_JIT)
#include <utility>

#include "plugins/cpu/jit/assembler.h"

namespace keel_cpu {

using Xbyak::Address;
using Xbyak::Operand;
using Xbyak::Reg32;
using Xbyak::Xmm;
using Xbyak::Ymm;

void JitAssembler::And(Mask to, Mask a, Mask b) {
  HasMasks() ? kandw(K(to), K(a), K(b)) : vpand(Lanes(to), Lanes(a), Lanes(b));
}
void JitAssembler::AndNot(Mask to, Mask a, Mask b) {
  HasMasks() ? kandnw(K(to), K(a), K(b)) : vpandn(Lanes(to), Lanes(a), Lanes(b));
}
void JitAssembler::Or(Mask to, Mask a, Mask b) {
  HasMasks() ? korw(K(to), K(a), K(b)) : vpor(Lanes(to), Lanes(a), Lanes(b));
}
void JitAssembler::Xor(Mask to, Mask a, Mask b) {
  HasMasks() ? kxorw(K(to), K(a), K(b)) : vpxor(Lanes(to), Lanes(a), Lanes(b));
}
void JitAssembler::Not(Mask to, Mask a) {
  if (HasMasks()) return knotw(K(to), K(a));
  const Xmm ones = Lanes({Vectors() + 2});
  vpcmpeqd(ones, ones, ones);
  vpxor(Lanes(to), Lanes(a), ones);
}
void JitAssembler::Copy(Mask to, Mask a) { HasMasks() ? kmovw(K(to), K(a)) : vmovdqa(Lanes(to), Lanes(a)); }

// ---- comparisons

namespace {
enum : uint8_t { kEqual = 0, kLess = 1, kLessEqual = 2, kNotEqual = 4, kGreaterEqual = 5, kGreater = 6 };
}

// Integers with AVX2, which has equal and greater of signed ones.
void JitAssembler::CompareVectors(keel_dt dt, const Xmm& to, const Xmm& a, const Xmm& b, uint8_t how) {
  const bool narrow = WidthOf(dt) == 4;
  if (how == kEqual || how == kNotEqual) {
    narrow ? vpcmpeqd(to, a, b) : vpcmpeqq(to, a, b);
  } else {
    Xmm x = a, y = b;
    if (!IsSigned(dt)) {  // the order of unsigned numbers is that of signed ones with the other sign
      x = SpareOf(WidthOf(dt), 0), y = SpareOf(WidthOf(dt), 1);
      SpreadLiteral(WidthOf(dt), y, uint64_t{1} << (8 * WidthOf(dt) - 1));
      vpxor(x, a, y);
      vpxor(y, b, y);
    }
    if (how == kLess || how == kGreaterEqual) std::swap(x, y);
    narrow ? vpcmpgtd(to, x, y) : vpcmpgtq(to, x, y);
  }
  if (how != kNotEqual && how != kLessEqual && how != kGreaterEqual) return;
  const Xmm ones = SpareOf(WidthOf(dt), 2);
  vpcmpeqd(ones, ones, ones);
  vpxor(to, to, ones);
}

void JitAssembler::WidenMask(Mask m, int width) {
  if (width * lanes_ == 16 && lanes_ != 1) vpmovsxdq(Ymm(m.index), Xmm(m.index));
}

void JitAssembler::Compare(keel_dt dt, Mask to, const Xmm& a, const Xmm& b, uint8_t how) {
  const bool narrow = WidthOf(dt) == 4;
  if (!HasMasks()) {
    const Xmm result = Vector(WidthOf(dt), to.index);
    if (IsFloat(dt))
      narrow ? vcmpps(result, a, b, how) : vcmppd(result, a, b, how);
    else
      CompareVectors(dt, result, a, b, how);
    return WidenMask(to, WidthOf(dt));
  }
  if (IsFloat(dt))
    narrow ? vcmpps(K(to), a, b, how) : vcmppd(K(to), a, b, how);
  else if (IsSigned(dt))
    narrow ? vpcmpd(K(to), a, b, how) : vpcmpq(K(to), a, b, how);
  else
    narrow ? vpcmpud(K(to), a, b, how) : vpcmpuq(K(to), a, b, how);
}
void JitAssembler::CompareLiteral(int width, Mask to, const Xmm& a, uint64_t bits, uint8_t how) {
  WithLiteral(width, bits, [&](const Operand& literal) {
    if (HasMasks())
      width == 4 ? vcmpps(K(to), a, literal, how) : vcmppd(K(to), a, literal, how);
    else
      width == 4 ? vcmpps(Vector(4, to.index), a, literal, how)
                 : vcmppd(Vector(8, to.index), a, literal, how);
  });
  if (!HasMasks()) WidenMask(to, width);
}

// ---- use

Xmm JitAssembler::LanesOf(Mask m, int width) {
  if (lanes_ == 1 || width * lanes_ == 32) return Lanes(m);
  const Xmm low(Vectors() + 2);  // the low halves of the lanes
  vextracti128(low, Ymm(m.index), 1);
  vshufps(low, Xmm(m.index), low, 0x88);
  return low;
}
void JitAssembler::Choose(Mask m, int width, const Xmm& to, const Xmm& yes, const Xmm& no) {
  if (HasMasks()) return width == 4 ? vblendmps(to | K(m), no, yes) : vblendmpd(to | K(m), no, yes);
  const Xmm lanes = LanesOf(m, width);
  width == 4 ? vblendvps(to, no, yes, lanes) : vblendvpd(to, no, yes, lanes);
}
void JitAssembler::KeepWhere(Mask m, int width, const Xmm& to, uint64_t bits) {
  if (HasMasks()) return SpreadLiteral(width, to | K(m) | Xbyak::util::T_z, bits);
  SpreadLiteral(width, to, bits);
  vpand(to, to, LanesOf(m, width));
}
void JitAssembler::MaskFrom(Mask to, const Reg32& all_ones_or_0) {
  if (HasMasks()) return kmovw(K(to), all_ones_or_0);
  vmovd(Xmm(to.index), all_ones_or_0);
  vpbroadcastd(Ymm(to.index), Xmm(to.index));
}
void JitAssembler::LowestBit(const Reg32& to, Mask m) {
  HasMasks() ? kmovw(to, K(m)) : vmovd(to, Xmm(m.index));
  and_(to, 1);
}

// ---- memory

void JitAssembler::LoadBytes(Mask to, const Address& from) {
  const Xmm bytes = HasMasks() ? SpareOf(1, 2) : Lanes({Vectors() + 2});
  if (HasMasks()) {
    lanes_ == 16 ? vmovdqu8(bytes, from) : vmovq(bytes, from);
    return vptestmb(K(to), bytes, bytes);
  }
  const Xmm lanes = Lanes(to);
  vpxor(bytes, bytes, bytes);
  if (lanes_ == 8) {
    vpmovzxbd(lanes, from);
    vpcmpgtd(lanes, lanes, bytes);
  } else {
    vpmovzxbq(lanes, from);
    vpcmpgtq(lanes, lanes, bytes);
  }
}
void JitAssembler::StoreBytes(const Address& to, Mask m) {
  if (HasMasks()) {
    const Xmm bytes = SpareOf(1, 2);
    vpmovm2b(bytes, K(m));
    vpabsb(bytes, bytes);
    return lanes_ == 16 ? vmovdqu8(to, bytes) : vmovq(to, bytes);
  }
  Xmm words(Vectors() + 2);
  if (lanes_ == 8) {
    vextracti128(words, Ymm(m.index), 1);
    vpackssdw(words, Xmm(m.index), words);
  } else {
    LanesOf(m, 4);
    vpackssdw(words, words, words);
  }
  vpacksswb(words, words, words);
  vpabsb(words, words);
  lanes_ == 8 ? vmovq(to, words) : vmovd(to, words);
}
void JitAssembler::LoadTail(uint32_t value, const Address& from) {
  if (IsMask(value)) {
    vmovdqu8(SpareOf(1, 2) | Tail() | Xbyak::util::T_z, from);
    return vptestmb(K(M(value)), SpareOf(1, 2), SpareOf(1, 2));
  }
  const Xmm to = V(value) | Tail() | Xbyak::util::T_z;
  WidthOf(TypeOf(value)) == 4 ? vmovups(to, from) : vmovupd(to, from);
}
void JitAssembler::StoreTail(const Address& to, uint32_t value) {
  if (IsMask(value)) {
    vpmovm2b(SpareOf(1, 2), K(M(value)));
    vpabsb(SpareOf(1, 2), SpareOf(1, 2));
    return vmovdqu8(to | Tail(), SpareOf(1, 2));
  }
  WidthOf(TypeOf(value)) == 4 ? vmovups(to | Tail(), V(value)) : vmovupd(to | Tail(), V(value));
}

}  // namespace keel_cpu

#endif
