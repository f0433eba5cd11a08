// assembler.h: Xbyak with a register allocator for the values of a program.
//
// Numbers are in vector registers, `lanes` elements each, as wide as their dtype requires; bools are in mask
// registers. The emitters of ops.cc access values by number through V and K, and may use three spare vectors
// and a spare mask.
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

class JitAssembler : public Xbyak::CodeGenerator {
 public:
  JitAssembler(const JitBody& body, int lanes, void* buffer, size_t bytes)
      : CodeGenerator(bytes, buffer), body_(body), lanes_(lanes), place_(body.values.size(), -1) {}

  keel_dt TypeOf(uint32_t value) const { return body_.values[value]; }
  bool IsMask(uint32_t value) const { return TypeOf(value) == KEEL_BOOL; }
  // As wide as `lanes` elements of this width, but at least 128 bits.
  Xbyak::Xmm Vector(int width, int index) const {
    const int bytes = width * lanes_;
    return Xbyak::Xmm(bytes > 32   ? Xbyak::Operand::ZMM
                      : bytes > 16 ? Xbyak::Operand::YMM
                                   : Xbyak::Operand::XMM,
                      index);
  }
  Xbyak::Xmm V(uint32_t value) const { return Vector(WidthOf(TypeOf(value)), place_[value]); }
  Xbyak::Opmask K(uint32_t value) const { return Xbyak::Opmask(place_[value]); }
  Xbyak::Xmm Bytes() const { return Vector(1, kVectors + 2); }  // the last spare vector, one byte per lane
  // A spare vector for an op's emitter, as wide as the value `like`.
  Xbyak::Xmm Spare(uint32_t like, int i = 0) const { return Vector(WidthOf(TypeOf(like)), kVectors + i); }
  Xbyak::Opmask SpareMask() const { return Xbyak::Opmask(kMasks); }
  Xbyak::Opmask Tail() const { return Xbyak::Opmask(kMasks + 1); }

  // Broadcasts the element at `there` to all lanes of a value's register. For bools, clobbers eax.
  void Spread(uint32_t value, const Xbyak::RegExp& there) {
    if (!IsMask(value))
      return WidthOf(TypeOf(value)) == 4 ? vpbroadcastd(V(value), dword[there])
                                         : vpbroadcastq(V(value), qword[there]);
    cmp(byte[there], 1);  // sets the carry if the byte is 0
    sbb(eax, eax);
    not_(eax);
    kmovw(K(value), eax);
  }

  // A constant next to the code: the bits of an element, broadcast to all lanes by the instruction.
  Xbyak::Address Literal(uint64_t bits, int width) { return ptr_b[rip + literals_[{bits, width}]]; }
  Xbyak::Address LiteralScalar(uint64_t bits, int width) { return ptr[rip + literals_[{bits, width}]]; }

  bool Placed(uint32_t value) const { return place_[value] >= 0; }
  void Allocate(uint32_t value) {
    uint32_t& used = IsMask(value) ? used_masks_ : used_vectors_;
    const int first = IsMask(value) ? 1 : 0, end = IsMask(value) ? kMasks : kVectors;
    for (int i = first; i < end; i++)
      if (!(used >> i & 1)) {
        used |= 1u << i;
        place_[value] = i;
        return;
      }
    throw OutOfRegisters{};
  }
  void Free(uint32_t value) {
    (IsMask(value) ? used_masks_ : used_vectors_) &= ~(1u << place_[value]);
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
  static constexpr int kVectors = 29, kMasks = 6;  // available to values: vectors 0 to 28, masks 1 to 5
  const JitBody& body_;
  const int lanes_;
  std::vector<int> place_;
  uint32_t used_vectors_ = 0, used_masks_ = 0;
  std::map<std::pair<uint64_t, int>, Xbyak::Label> literals_;
};

struct JitRow {
  const char* op;
  bool (*takes)(const keel_dt* in, keel_dt out);
  void (*emit)(JitAssembler&, const JitOp&);
};

// Runs `make` with a JitAssembler and returns the executable code. Null: AVX-512 is missing, or there are too
// many values or too much code.
template <class Function, class Make>
std::shared_ptr<Function> Assembled(Make make) {
  constexpr size_t kMost = 256 * 1024;
  if (SimdLevel() < 2) return nullptr;
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
