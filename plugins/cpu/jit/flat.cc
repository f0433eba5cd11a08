// flat.cc: see jit.h. The function broadcasts one-element operands to a register each, then processes as many
// elements at a time as fit a vector of the widest dtype. The remainder goes through the same ops under a
// mask; with AVX2 one by one.
#include "plugins/cpu/jit/jit.h"

#if defined(KEEL_JIT)
#include <algorithm>

#include "plugins/cpu/jit/assembler.h"

namespace keel_cpu {
namespace {

using Xbyak::Reg64;

class Flat {
 public:
  Flat(const JitBody& body, const std::vector<JitPort>& in, const std::vector<JitPort>& out, void* buffer,
       size_t bytes)
      : body_(body), in_(in), out_(out), lanes_(Lanes(body)), j_(body, lanes_, buffer, bytes) {
    FindUses();
  }

  std::string Make() {
    for (const Reg64& r : kKept) j_.push(r);
    for (const JitPort& p : in_)
      if (p.one && last_[p.value] >= 0) SpreadOne(p);
    for (const JitPort* p : Varying()) {
      if (pointers_.size() == std::size(kPointers)) break;
      const Reg64 r = kPointers[pointers_.size()];
      j_.mov(r, j_.ptr[kAt + 8 * p->slot]);
      pointers_.emplace_back(p->slot, r);
    }
    Xbyak::Label loop, tail, end;
    j_.xor_(kIndex.cvt32(), kIndex.cvt32());
    j_.mov(kLimit, kCount);
    j_.and_(kLimit, -lanes_);
    j_.je(tail, j_.T_NEAR);
    j_.align(32);
    j_.L(loop);
    Pass(false);
    j_.add(kIndex, lanes_);
    j_.cmp(kIndex, kLimit);
    j_.jl(loop, j_.T_NEAR);
    j_.L(tail);
    j_.cmp(kIndex, kCount);
    j_.je(end, j_.T_NEAR);
    J::HasMasks() ? MaskedRest() : SingleRest();
    j_.L(end);
    for (size_t i = std::size(kKept); i-- > 0;) j_.pop(kKept[i]);
    j_.vzeroupper();
    j_.ret();
    j_.PutLiterals();
    return std::string(reinterpret_cast<const char*>(j_.getCode()), j_.getSize());
  }

 private:
  using J = JitAssembler;
  inline static const Reg64 kAt = Xbyak::util::rdi, kCount = Xbyak::util::rsi, kIndex = Xbyak::util::rcx,
                            kLimit = Xbyak::util::rdx, kSpare = Xbyak::util::rax;
  inline static const Reg64 kKept[] = {Xbyak::util::rbx, Xbyak::util::rbp, Xbyak::util::r12,
                                       Xbyak::util::r13, Xbyak::util::r14, Xbyak::util::r15};
  inline static const Reg64 kPointers[] = {
      Xbyak::util::r8,  Xbyak::util::r9,  Xbyak::util::r10, Xbyak::util::r11, Xbyak::util::rbx,
      Xbyak::util::rbp, Xbyak::util::r12, Xbyak::util::r13, Xbyak::util::r14, Xbyak::util::r15};

  static int Lanes(const JitBody& body) {
    int widest = 4;
    for (keel_dt dt : body.values) widest = std::max(widest, WidthOf(dt));
    return J::RegisterBytes() / widest;
  }
  // By value: the last op that reads it; the number of ops if it is stored; -1 if unused.
  void FindUses() {
    last_.assign(body_.values.size(), -1);
    for (size_t i = 0; i < body_.ops.size(); i++)
      for (int k = 0; k < body_.ops[i].n_in; k++) last_[body_.ops[i].in[k]] = static_cast<int64_t>(i);
    for (const JitPort& p : out_) last_[p.value] = static_cast<int64_t>(body_.ops.size());
    port_of_.assign(body_.values.size(), nullptr);
    for (const JitPort& p : in_) port_of_[p.value] = &p;
  }
  std::vector<const JitPort*> Varying() const {
    std::vector<const JitPort*> ports;
    for (const JitPort& p : in_)
      if (!p.one && last_[p.value] >= 0) ports.push_back(&p);
    for (const JitPort& p : out_) ports.push_back(&p);
    return ports;
  }

  void SpreadOne(const JitPort& p) {
    j_.Allocate(p.value);
    j_.mov(kSpare, j_.ptr[kAt + 8 * p.slot]);
    j_.Spread(p.value, kSpare);
  }

  // The current elements of a slot.
  Xbyak::Address At(const JitPort& p) {
    Reg64 base = kSpare;
    const auto known = std::find_if(pointers_.begin(), pointers_.end(),
                                    [&](const auto& entry) { return entry.first == p.slot; });
    if (known != pointers_.end())
      base = known->second;
    else
      j_.mov(kSpare, j_.ptr[kAt + 8 * p.slot]);
    return j_.ptr[base + kIndex * WidthOf(j_.TypeOf(p.value))];
  }

  void MaskedRest() {
    j_.sub(kCount, kIndex);
    j_.mov(j_.eax, -1);
    j_.bzhi(j_.eax, j_.eax, kCount.cvt32());
    j_.SetTail(j_.eax);
    Pass(true);
  }
  void SingleRest() {
    j_.OneLane();
    Xbyak::Label next;
    j_.L(next);
    Pass(true);
    j_.inc(kIndex);
    j_.cmp(kIndex, kCount);
    j_.jl(next, j_.T_NEAR);
  }

  void Load(const JitPort& p, bool tail) {
    j_.Allocate(p.value);
    const Xbyak::Address from = At(p);
    if (p.ahead > 0 && !tail) j_.prefetcht1(j_.ptr[from.getRegExp() + p.ahead * WidthOf(j_.TypeOf(p.value))]);
    if (tail)
      J::HasMasks() ? j_.LoadTail(p.value, from) : j_.Spread(p.value, from.getRegExp());
    else if (j_.IsMask(p.value))
      j_.LoadBytes(j_.M(p.value), from);
    else
      j_.vmovups(j_.V(p.value), from);
  }
  void Store(const JitPort& p, bool tail) {
    const Xbyak::Address to = At(p);
    if (tail)
      J::HasMasks() ? j_.StoreTail(to, p.value) : j_.WriteOne(to.getRegExp(), p.value, kLimit.cvt32());
    else if (j_.IsMask(p.value))
      j_.StoreBytes(to, j_.M(p.value));
    else
      j_.vmovups(to, j_.V(p.value));
  }

  // Emits the ops once. Results are stored last, as they may share memory with an operand.
  void Pass(bool tail) {
    for (size_t i = 0; i < body_.ops.size(); i++) {
      const JitOp& op = body_.ops[i];
      for (int k = 0; k < op.n_in; k++)
        if (!j_.Placed(op.in[k])) Load(*port_of_[op.in[k]], tail);
      j_.Allocate(op.out);
      op.row->emit(j_, op);
      for (int k = 0; k < op.n_in; k++) Release(op.in[k], static_cast<int64_t>(i));
      Release(op.out, static_cast<int64_t>(i));
    }
    for (const JitPort& p : out_) Store(p, tail);
    for (const JitPort& p : out_) Release(p.value, last_[p.value]);
  }
  void Release(uint32_t value, int64_t after) {
    const JitPort* p = port_of_[value];
    if (j_.Placed(value) && last_[value] <= after && !(p && p->one)) j_.Free(value);
  }

  const JitBody& body_;
  const std::vector<JitPort>&in_, &out_;
  const int lanes_;
  JitAssembler j_;
  std::vector<int64_t> last_;
  std::vector<const JitPort*> port_of_;
  std::vector<std::pair<uint16_t, Reg64>> pointers_;
};

}  // namespace

FlatCode CompileFlat(const JitBody& body, const std::vector<JitPort>& in, const std::vector<JitPort>& out) {
  return Assembled<FlatLoop>(
      [&](void* buffer, size_t bytes) { return Flat(body, in, out, buffer, bytes).Make(); });
}

}  // namespace keel_cpu

#else

namespace keel_cpu {

FlatCode CompileFlat(const JitBody&, const std::vector<JitPort>&, const std::vector<JitPort>&) {
  return nullptr;
}

}  // namespace keel_cpu

#endif
