// twins.cc: which nodes do the same with the same operands. Numbers are compared bit by bit.
#include <bit>

#include "kernel/pass/rewrite.h"

namespace keel {
namespace {

std::vector<uint64_t> Bits(const AttrValue& v) {
  std::vector<uint64_t> bits{static_cast<uint64_t>(v.kind), static_cast<uint64_t>(v.i),
                             std::bit_cast<uint64_t>(v.f)};
  bits.insert(bits.end(), v.list.begin(), v.list.end());
  for (double f : v.floats) bits.push_back(std::bit_cast<uint64_t>(f));
  return bits;
}

}  // namespace

uint64_t Rewrite::Hash(NodeId n) {
  if (!Alive(n)) return 0;
  const Node& node = graph_->nodes[n];
  if (node.out.empty() || (HasAnyEffect(*graph_, node) && EffectOf(*node.op) != EffectKind::kRead)) return 0;
  size_t hash = absl::HashOf(node.op, node.device);
  for (const Attr& a : node.attrs) hash = absl::HashOf(hash, a.name, a.value.s, Bits(a.value));
  return hash | 1;
}

bool Rewrite::Same(NodeId one, NodeId other) {
  if (!Hash(one) || !Alive(other)) return false;
  const Node &a = graph_->nodes[one], &b = graph_->nodes[other];
  return a.op == b.op && a.device == b.device &&
         std::ranges::equal(a.attrs, b.attrs, [](const Attr& x, const Attr& y) {
           return x.name == y.name && x.value.s == y.value.s && Bits(x.value) == Bits(y.value);
         });
}

}  // namespace keel
