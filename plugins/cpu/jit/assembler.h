// assembler.h: Xbyak with a register allocator for the values of a program.
//
// Numbers are in vector registers, `lanes` elements each, as wide as their dtype requires. Bools are masks:
// with AVX-512 mask registers; with AVX2 vectors whose lanes, as wide as the widest dtype of the program, are
// all ones or 0. The emitters of ops.cc access values by number through V and M, and may use three spare
// vectors and a spare mask.
#pragma once

#include <xbyak/xbyak.h>

#include <map>

#include "plugins/cpu/common.h"
#include "plugins/cpu/jit/jit.h"
#include "plugins/cpu/jit/memory.h"
#include "plugins/cpu/simd/simd.h"

namespace keel_cpu {

inline int WidthOf(keel_dt dt) { return static_cast<int>(dt >> 8 & 0xff) / 8; }
inline bool IsFloat(keel_dt dt) { return (dt & 0xff) == 2; }
inline bool IsSigned(keel_dt dt) { return (dt & 0xff) == 0; }

struct OutOfRegisters {};

// A register for bools; masks.cc has its instructions.
struct Mask {
  int index;
};

class JitAssembler : public Xbyak::CodeGenerator {
 public:
  JitAssembler(const JitBody& body, int lanes, void* buffer, size_t bytes)
      : CodeGenerator(bytes, buffer), body_(body), lanes_(lanes), place_(body.values.size(), -1) {}

  static bool HasMasks() { return SimdLevel() == 2; }  // AVX-512; otherwise AVX2
  static int RegisterBytes() { return HasMasks() ? 64 : 32; }

  keel_dt TypeOf(uint32_t value) const { return body_.values[value]; }
  bool IsMask(uint32_t value) const { return TypeOf(value) == KEEL_BOOL; }
  void OneLane() { lanes_ = 1; }  // from here on; values in registers have equal lanes
  // As wide as `lanes` elements of this width, but at least 128 bits.
  Xbyak::Xmm Vector(int width, int index) const {
    const int bytes = width * lanes_;
    return Xbyak::Xmm(bytes > 32   ? Xbyak::Operand::ZMM
                      : bytes > 16 ? Xbyak::Operand::YMM
                                   : Xbyak::Operand::XMM,
                      index);
  }
  Xbyak::Xmm V(uint32_t value) const { return Vector(WidthOf(TypeOf(value)), place_[value]); }
  Mask M(uint32_t value) const { return {place_[value]}; }
  // A spare vector for an op's emitter, as wide as the value `like`.
  Xbyak::Xmm Spare(uint32_t like, int i = 0) const { return SpareOf(WidthOf(TypeOf(like)), i); }
  Xbyak::Xmm SpareOf(int width, int i = 0) const { return Vector(width, Vectors() + i); }
  Mask SpareMask() const { return {HasMasks() ? kMasks : 15}; }

  // ---- masks
  void And(Mask to, Mask a, Mask b);
  void AndNot(Mask to, Mask a, Mask b);  // not a, and b
  void Or(Mask to, Mask a, Mask b);
  void Xor(Mask to, Mask a, Mask b);
  void Not(Mask to, Mask a);
  void Copy(Mask to, Mask a);
  // `how` is a predicate of vcmpps for floats, of vpcmpd for integers. With AVX2, unsigned order takes two
  // spares.
  void Compare(keel_dt, Mask to, const Xbyak::Xmm& a, const Xbyak::Xmm& b, uint8_t how);
  void CompareLiteral(int width, Mask to, const Xbyak::Xmm& a, uint64_t bits, uint8_t how);  // floats
  void Choose(Mask, int width, const Xbyak::Xmm& to, const Xbyak::Xmm& yes, const Xbyak::Xmm& no);
  void KeepWhere(Mask, int width, const Xbyak::Xmm& to, uint64_t bits);  // these bits, or 0
  void MaskFrom(Mask to, const Xbyak::Reg32& all_ones_or_0);
  void LowestBit(const Xbyak::Reg32& to, Mask);
  void LoadBytes(Mask to, const Xbyak::Address&);  // `lanes` bools
  void StoreBytes(const Xbyak::Address&, Mask);
  // For part of the lanes, AVX-512 only.
  void SetTail(const Xbyak::Reg32& bits) { kmovd(Tail(), bits); }
  Xbyak::Opmask Tail() const { return Xbyak::Opmask(kMasks + 1); }
  void LoadTail(uint32_t value, const Xbyak::Address&);
  void StoreTail(const Xbyak::Address&, uint32_t value);

  // Broadcasts the element at `there` to all lanes of a value's register. For bools, clobbers eax.
  void Spread(uint32_t value, const Xbyak::RegExp& there) {
    if (!IsMask(value))
      return WidthOf(TypeOf(value)) == 4 ? vpbroadcastd(V(value), dword[there])
                                         : vpbroadcastq(V(value), qword[there]);
    cmp(byte[there], 1);  // sets the carry if the byte is 0
    sbb(eax, eax);
    not_(eax);
    MaskFrom(M(value), eax);
  }
  // Writes the lowest lane. `spare` is for bools.
  void WriteOne(const Xbyak::RegExp& there, uint32_t value, const Xbyak::Reg32& spare) {
    if (!IsMask(value))
      return WidthOf(TypeOf(value)) == 4 ? vmovss(dword[there], V(value)) : vmovsd(qword[there], V(value));
    LowestBit(spare, M(value));
    mov(byte[there], spare.cvt8());
  }

  // A constant next to the code: the bits of an element.
  Xbyak::Address LiteralScalar(uint64_t bits, int width) { return ptr[rip + literals_[{bits, width}]]; }
  void SpreadLiteral(int width, const Xbyak::Xmm& to, uint64_t bits) {
    width == 4 ? vpbroadcastd(to, LiteralScalar(bits, 4)) : vpbroadcastq(to, LiteralScalar(bits, 8));
  }
  // Calls f with an operand that has the bits in each lane: memory, or spare vector 1.
  template <class F>
  void WithLiteral(int width, uint64_t bits, F f) {
    if (HasMasks()) return f(ptr_b[rip + literals_[{bits, width}]]);
    SpreadLiteral(width, SpareOf(width, 1), bits);
    f(SpareOf(width, 1));
  }

  bool Placed(uint32_t value) const { return place_[value] >= 0; }
  void Allocate(uint32_t value) {
    const bool in_mask = IsMask(value) && HasMasks();
    uint32_t& used = in_mask ? used_masks_ : used_vectors_;
    const int first = in_mask ? 1 : 0, end = in_mask ? kMasks : Vectors();
    for (int i = first; i < end; i++)
      if (!(used >> i & 1)) {
        used |= 1u << i;
        place_[value] = i;
        return;
      }
    throw OutOfRegisters{};
  }
  void Free(uint32_t value) {
    (IsMask(value) && HasMasks() ? used_masks_ : used_vectors_) &= ~(1u << place_[value]);
    place_[value] = -1;
  }
  void PutLiterals() {
    align(8);
    for (auto& [bits, label] : literals_) {
      L(label);
      if (bits.second == 8)
        dq(bits.first);
      else
        dd(static_cast<uint32_t>(bits.first));
    }
  }

 private:
  // Available to values: vectors 0 to 28 and masks 1 to 5, or vectors 0 to 11.
  static int Vectors() { return HasMasks() ? 29 : 12; }
  static constexpr int kMasks = 6;
  static Xbyak::Opmask K(Mask m) { return Xbyak::Opmask(m.index); }
  // With AVX2: the register of a mask, and the mask for lanes of another width, in spare vector 2 if it
  // differs.
  Xbyak::Xmm Lanes(Mask m) const {
    return lanes_ == 1 ? Xbyak::Xmm(m.index) : Xbyak::Xmm(Xbyak::Ymm(m.index));
  }
  Xbyak::Xmm LanesOf(Mask m, int width);
  void CompareVectors(keel_dt, const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b, uint8_t how);
  void WidenMask(Mask m, int width);

  const JitBody& body_;
  int lanes_;
  std::vector<int> place_;
  uint32_t used_vectors_ = 0, used_masks_ = 0;
  std::map<std::pair<uint64_t, int>, Xbyak::Label> literals_;
};

struct JitRow {
  const char* op;
  bool (*takes)(const keel_dt* in, keel_dt out);
  void (*emit)(JitAssembler&, const JitOp&);
};

// Runs `make` with a JitAssembler and returns the executable code. Null: AVX2 is missing, or there are too
// many values or too much code.
template <class Function, class Make>
std::shared_ptr<Function> Assembled(Make make) {
  constexpr size_t kMost = 256 * 1024;
  if (SimdLevel() < 1) return nullptr;
  const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(kMost);
  try {
    const std::shared_ptr<const void> code = PublishCode(make(buffer.get(), kMost));
    return {code, reinterpret_cast<Function*>(const_cast<void*>(code.get()))};
  } catch (const OutOfRegisters&) {
    return nullptr;
  } catch (const Xbyak::Error& e) {
    if (e == Xbyak::ERR_CODE_IS_TOO_BIG) return nullptr;
    Throw(KEEL_INTERNAL, std::string("Xbyak rejects an instruction: ") + e.what());
  }
}

}  // namespace keel_cpu
