// instructions.cc: see instructions.h.
#include "plugins/cpu/map/instructions.h"

#include <algorithm>
#include <cstring>

#include "plugins/cpu/elementwise/cast_loops.h"

namespace keel_cpu {
namespace {

bool Is(const char* op, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [=](const char* n) { return std::strcmp(op, n) == 0; });
}

std::optional<Instruction> OneOfThree(const Node& node, const char* op) {
  const keel_tensor y = node.Out(0);
  Instruction c;
  if (Is(op, {"select"})) {
    c.step.kind = MapStep::kSelect;
    c.step.select = Selects().select(ItemSize(y));
  } else if (Is(op, {"clamp"})) {
    c.step.kind = MapStep::kClamp;
    c.step.clamp = Selects().clamp(keel_dt_of(&y));
  } else {
    return std::nullopt;
  }
  return c;
}
std::optional<Instruction> OneOfTwo(const Node& node, const char* op) {
  const keel_tensor x = node.In(0);
  const BinaryOp* found = FindBinary(op, keel_dt_of(&x));
  if (found == nullptr) return std::nullopt;
  Instruction c;
  c.step.kind = MapStep::kBinary;
  c.step.binary = found->loops;
  c.step.failure = found->failure;
  c.cost = found->cost;
  return c;
}
std::optional<Instruction> OneOfOne(const Node& node, const char* op) {
  const keel_tensor x = node.In(0), y = node.Out(0);
  const bool cast = Is(op, {"cast"});
  const UnaryOp* found = cast ? nullptr : FindUnary(node);
  const UnaryLoop loop = cast ? FindCast(keel_dt_of(&x), keel_dt_of(&y)) : found ? found->loop : nullptr;
  if (loop == nullptr) return std::nullopt;
  Instruction c;
  c.step.kind = MapStep::kUnary;
  c.step.unary = loop;
  c.cost = cast ? 2 : found->cost;
  return c;
}

template <int kSize>
void CopyLoop(const void* x, void* y, int64_t n) {
  if (x != y) std::memcpy(y, x, static_cast<size_t>(n * kSize));
}

}  // namespace

std::optional<Instruction> FindInstruction(const Node& node, const keel_body_node& n) {
  constexpr std::optional<Instruction> (*kByArity[])(const Node&, const char*) = {OneOfOne, OneOfTwo,
                                                                                  OneOfThree};
  if (n.n_out != 1 || n.n_in < 1 || n.n_in > 3) return std::nullopt;
  std::optional<Instruction> c = kByArity[n.n_in - 1](node, node.host->node_op(node.node));
  if (!c) return c;
  c->step.n_in = static_cast<uint8_t>(n.n_in);
  c->step.size_out = static_cast<uint8_t>(ItemSize(node.Out(0)));
  keel_dt in[3];
  for (uint32_t i = 0; i < n.n_in; i++) in[i] = TypeOf(node.In(i));
  if (!c->step.failure) c->jit = FindJit(node.host->node_op(node.node), in, TypeOf(node.Out(0)));
  return c;
}

MapStep CopyStep(uint16_t from, uint16_t to, uint8_t size) {
  MapStep s = {};
  s.kind = MapStep::kUnary;
  s.n_in = 1;
  s.size_out = size;
  s.in[0] = from;
  s.out = to;
  s.unary = size == 1 ? CopyLoop<1> : size == 2 ? CopyLoop<2> : size == 4 ? CopyLoop<4> : CopyLoop<8>;
  return s;
}

}  // namespace keel_cpu
