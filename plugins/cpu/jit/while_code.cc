// while_code.cc: see jit.h. All inputs, carried values and constants have a register for the whole loop, so
// an iteration accesses no memory. A scalar fills its register: all lanes are equal.
#include "plugins/cpu/jit/jit.h"

#if defined(KEEL_JIT)
#include <algorithm>

#include "plugins/cpu/jit/assembler.h"

namespace keel_cpu {
namespace {

using Xbyak::Reg64;
using Xbyak::Xmm;

class While {
 public:
  While(const JitWhile& loop, void* buffer, size_t bytes)
      : loop_(loop), ops_(loop.body.ops), j_(loop.body, 1, buffer, bytes) {
    last_.assign(loop.body.values.size(), -1);
    for (size_t i = 0; i < ops_.size(); i++)
      for (int k = 0; k < ops_[i].n_in; k++) last_[ops_[i].in[k]] = static_cast<int64_t>(i);
    last_[loop.go] = std::max<int64_t>(last_[loop.go], static_cast<int64_t>(loop.test_ops));
    for (uint32_t v : loop.next) last_[v] = kAlways;
    for (uint32_t v = 0; v < loop.given; v++) last_[v] = kAlways;
    for (const auto& [v, bits] : loop.literals) last_[v] = kAlways;
  }

  std::string Make() {
    const int frame = 16 * static_cast<int>(loop_.body.values.size() + 1) + 8;  // one spill slot per value
    j_.push(kAt);
    j_.push(kCancelled);
    j_.sub(j_.rsp, frame);
    j_.mov(kAt, j_.rdi);
    j_.mov(kCancelled, j_.rsi);
    for (uint32_t v = 0; v < loop_.given; v++) Read(v);
    for (const auto& [v, bits] : loop_.literals) ReadLiteral(v, bits);
    Xbyak::Label next, end, stopped, leave;
    j_.align(32);
    j_.L(next);
    j_.cmp(j_.dword[kCancelled], 0);
    j_.jne(stopped, j_.T_NEAR);
    Ops(0, loop_.test_ops);
    j_.LowestBit(j_.eax, j_.M(loop_.go));
    Release(loop_.go, static_cast<int64_t>(loop_.test_ops));
    j_.test(j_.eax, j_.eax);
    j_.je(end, j_.T_NEAR);
    Ops(loop_.test_ops, ops_.size());
    CarryOn();
    j_.jmp(next, j_.T_NEAR);
    j_.L(stopped);
    j_.mov(j_.eax, 1);
    j_.jmp(leave, j_.T_NEAR);
    j_.L(end);
    for (uint32_t i = 0; i < loop_.next.size(); i++) Write(i);
    j_.xor_(j_.eax, j_.eax);
    j_.L(leave);
    j_.add(j_.rsp, frame);
    j_.pop(kCancelled);
    j_.pop(kAt);
    j_.vzeroupper();
    j_.ret();
    j_.PutLiterals();
    return std::string(reinterpret_cast<const char*>(j_.getCode()), j_.getSize());
  }

 private:
  static constexpr int64_t kAlways = INT64_MAX;
  inline static const Reg64 kAt = Xbyak::util::rbx, kCancelled = Xbyak::util::rbp, kSpare = Xbyak::util::rax;

  int Width(uint32_t v) const { return WidthOf(j_.TypeOf(v)); }
  void Release(uint32_t v, int64_t after) {
    if (j_.Placed(v) && last_[v] <= after) j_.Free(v);
  }
  void Read(uint32_t v) {
    j_.Allocate(v);
    j_.mov(kSpare, j_.ptr[kAt + 8 * v]);
    j_.Spread(v, kSpare);
  }
  void ReadLiteral(uint32_t v, uint64_t bits) {
    j_.Allocate(v);
    if (!j_.IsMask(v)) return j_.SpreadLiteral(Width(v), j_.V(v), bits);
    j_.mov(j_.eax, -static_cast<int32_t>(bits));
    j_.MaskFrom(j_.M(v), j_.eax);
  }
  void Write(uint32_t carry) {
    j_.mov(kSpare, j_.ptr[kAt + 8 * (loop_.given + carry)]);
    j_.WriteOne(kSpare, carry, j_.ecx);
  }

  void Ops(size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) {
      const JitOp& op = ops_[i];
      if (op.row) {
        j_.Allocate(op.out);
        op.row->emit(j_, op);
      } else {
        CallFunction(op);
      }
      for (int k = 0; k < op.n_in; k++) Release(op.in[k], static_cast<int64_t>(i));
      Release(op.out, static_cast<int64_t>(i));
    }
  }

  static int Home(uint32_t v) { return 16 * static_cast<int>(v); }
  // Calls preserve no vector registers: live values are spilled and reloaded.
  void CallFunction(const JitOp& op) {
    std::vector<uint32_t> alive;
    for (uint32_t v = 0; v < last_.size(); v++)
      if (j_.Placed(v)) alive.push_back(v);
    for (uint32_t v : alive) j_.WriteOne(j_.rsp + Home(v), v, j_.ecx);
    const Reg64 kArguments[] = {j_.rdi, j_.rsi, j_.rdx, j_.rcx};
    int n = 0;
    for (; n < op.n_in; n++) j_.lea(kArguments[n], j_.ptr[j_.rsp + Home(op.in[n])]);
    j_.lea(kArguments[n++], j_.ptr[j_.rsp + Home(op.out)]);
    j_.mov(kArguments[n], 1);
    j_.mov(kSpare, reinterpret_cast<uint64_t>(op.function));
    j_.call(kSpare);
    j_.Allocate(op.out);
    alive.push_back(op.out);
    for (uint32_t v : alive) j_.Spread(v, j_.rsp + Home(v));
  }

  void Move(uint32_t to, const Xmm& from) { j_.vmovaps(j_.V(to), from); }
  // Moves the next values into the registers of the carried values. A next value that is itself a carried
  // value goes through its spill slot.
  void CarryOn() {
    const auto waits = [&](uint32_t i) { return loop_.next[i] < loop_.given && loop_.next[i] != i; };
    const auto count = static_cast<uint32_t>(loop_.next.size());
    for (uint32_t i = 0; i < count; i++)
      if (waits(i)) j_.WriteOne(j_.rsp + Home(i), loop_.next[i], j_.ecx);
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t from = loop_.next[i];
      if (waits(i))
        j_.Spread(i, j_.rsp + Home(i));
      else if (from != i)
        j_.IsMask(i) ? j_.Copy(j_.M(i), j_.M(from)) : Move(i, j_.V(from));
    }
    const auto is_literal = [&](uint32_t v) {
      return std::any_of(loop_.literals.begin(), loop_.literals.end(),
                         [=](const auto& l) { return l.first == v; });
    };
    for (uint32_t v : loop_.next)
      if (v >= loop_.given && !is_literal(v) && j_.Placed(v)) j_.Free(v);
  }

  const JitWhile& loop_;
  const std::vector<JitOp>& ops_;
  JitAssembler j_;
  std::vector<int64_t> last_;  // by value: the last op that reads it
};

}  // namespace

std::shared_ptr<WhileLoop> CompileWhile(const JitWhile& loop) {
  return Assembled<WhileLoop>([&](void* buffer, size_t bytes) { return While(loop, buffer, bytes).Make(); });
}

}  // namespace keel_cpu

#else

namespace keel_cpu {

std::shared_ptr<WhileLoop> CompileWhile(const JitWhile&) { return nullptr; }

}  // namespace keel_cpu

#endif
