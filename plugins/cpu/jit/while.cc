// while.cc: a `while` over scalars as one launch in machine code (jit.h). Other carried values, ops that may
// fail and effects are declined; libkeel then runs the loop's bodies launch by launch.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "plugins/cpu/body_reader.h"
#include "plugins/cpu/elementwise/binary_loops.h"
#include "plugins/cpu/elementwise/cast_loops.h"
#include "plugins/cpu/elementwise/unary_loops.h"
#include "plugins/cpu/jit/jit.h"

namespace keel_cpu {
namespace {

bool IsScalar(const keel_tensor& t) {
  return std::all_of(t.shape, t.shape + t.ndim, [](int64_t d) { return d == 1; });
}

// The loop function of an op without machine code; null: none, or one that may fail.
const void* FunctionOf(const Node& node, std::string_view op, uint32_t n_in) {
  const keel_tensor x = node.In(0), y = node.Out(0);
  if (n_in == 1) {
    if (op == "cast") return reinterpret_cast<const void*>(FindCast(TypeOf(x), TypeOf(y)));
    const UnaryOp* found = FindUnary(node);
    return found ? reinterpret_cast<const void*>(found->loop) : nullptr;
  }
  const BinaryOp* found = n_in == 2 ? FindBinary(node.host->node_op(node.node), TypeOf(x)) : nullptr;
  return found && !found->failure ? reinterpret_cast<const void*>(found->loops[0]) : nullptr;
}

// Flattens the two graphs into one list of ops.
class Compiler final : BodyReader {
 public:
  explicit Compiler(const Node& node) : BodyReader(node.host), node_(node) { ok_ = ReadLoop(); }
  bool ok() const { return ok_; }
  const JitWhile& loop() const { return loop_; }

 private:
  bool ReadLoop() {
    Numbers operands;
    for (uint32_t i = 0; i < node_.InCount(); i++) {
      const Number operand = Add(node_.In(i));
      if (!operand) return false;
      operands.push_back(*operand);
    }
    loop_.given = static_cast<uint32_t>(operands.size());
    const std::optional<keel_body> test = GraphOf(node_, 0), step = GraphOf(node_, 1);
    if (!test || !step) return false;
    const std::optional<Numbers> go = ReadNodes(*test, operands);
    if (!go || go->size() != 1) return false;
    loop_.go = go->front();
    loop_.test_ops = loop_.body.ops.size();
    std::optional<Numbers> next = ReadNodes(*step, std::move(operands));
    if (!next || next->size() != static_cast<size_t>(node_.Int("carry"))) return false;
    loop_.next = std::move(*next);
    return true;
  }
  // Adds a value of one element whose dtype has registers.
  Number Add(const keel_tensor& t) {
    if (!HasRegisters(TypeOf(t)) || !IsScalar(t)) return std::nullopt;
    loop_.body.values.push_back(TypeOf(t));
    return static_cast<uint32_t>(loop_.body.values.size() - 1);
  }
  Number AddConstant(const keel_tensor& t) override {
    const Number number = Add(t);
    if (!number) return std::nullopt;
    uint64_t bits = 0;
    std::memcpy(&bits, keel_ptr(&t), static_cast<size_t>(ItemSize(t)));
    loop_.literals.emplace_back(*number, bits);
    return number;
  }
  Number AddOp(const Node& node, const keel_body_node& n, const Numbers& in) override {
    if (in.empty() || in.size() > 3) return std::nullopt;
    const char* op = node.host->node_op(n.node);
    keel_dt types[3];
    for (uint32_t k = 0; k < n.n_in; k++) types[k] = TypeOf(node.In(k));
    JitOp made = {FindJit(op, types, TypeOf(node.Out(0))), {}, 0, static_cast<uint8_t>(n.n_in)};
    if (!made.row) made.function = FunctionOf(node, op, n.n_in);
    const Number out = Add(node.Out(0));
    if ((!made.row && !made.function) || !out) return std::nullopt;
    std::copy(in.begin(), in.end(), made.in);
    made.out = *out;
    loop_.body.ops.push_back(made);
    return out;
  }

  Node node_;
  bool ok_ = false;
  JitWhile loop_;
};

struct While {
  std::shared_ptr<WhileLoop> code;
};
constexpr int kMost = 32;  // limit of operands and of results

keel_rc RunWhile(const keel_call* call) {
  char* at[kMost];
  for (int i = 0; i < call->n_in; i++) at[i] = const_cast<char*>(In<char>(call, i));
  for (int i = 0; i < call->n_out; i++) at[call->n_in + i] = Out<char>(call, i);
  return (*State<While>(call).code)(at, call->env->cancelled) ? KEEL_CANCELLED : KEEL_OK;
}

int32_t MatchWhile(keel_dev, const keel_host* host, const keel_node* node) {
  try {
    const Compiler compiler(Node{host, node});
    return compiler.ok() && compiler.loop().given + compiler.loop().next.size() <= kMost &&
           CompileWhile(compiler.loop()) != nullptr;
  } catch (...) {
    return 0;
  }
}
keel_rc PrepareWhile(const Node& node, keel_launch* launch) {
  const Compiler compiler(node);
  While made = {compiler.ok() ? CompileWhile(compiler.loop()) : nullptr};
  if (!made.code) Throw(KEEL_UNIMPLEMENTED, "no machine code for this loop");
  return Keep(launch, std::move(made), RunWhile);
}

constexpr keel_impl kImpls[] = {{"while", 1, 1, nullptr, "loop over scalars", 0, KEEL_IMPL_ANY_DIMS,
                                 MatchWhile, Prepare<PrepareWhile>, nullptr}};

}  // namespace

Impls WhileImpls() { return kImpls; }

}  // namespace keel_cpu
