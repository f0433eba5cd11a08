// node_queries.cc: equality and hash of nodes, their effects, and the graphs that they call. Numbers are
// compared bitwise.
#include <bit>

#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/pass/rewrite.h"

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
  size_t hash = absl::HashOf(node.op, node.origin.device);
  for (const Attr& a : node.attrs) hash = absl::HashOf(hash, a.name, a.value.s, Bits(a.value));
  return hash | 1;
}

uint32_t Rewrite::EffectsAt(NodeId n) {
  if (!Alive(n)) return 0;
  Effects e = EffectsOf(*graph_, graph_->nodes[n]);
  // Passes leave bodies with new sizes as they are: a copy would name other sizes alike.
  const bool stays = e.MustRun() || BodiesMakeSizes(*graph_->module, graph_->nodes[n].attrs);
  uint32_t reads = e.rng || !e.reads.empty() ? KEEL_READS : 0, runs = stays ? KEEL_MUST_RUN : 0;
  return reads | runs | (e.fails ? uint32_t{KEEL_MAY_FAIL} : 0);
}

bool Rewrite::Same(NodeId one, NodeId other) {
  if (!Hash(one) || !Alive(other)) return false;
  const Node &a = graph_->nodes[one], &b = graph_->nodes[other];
  return a.op == b.op && a.origin.device == b.origin.device &&
         std::ranges::equal(a.attrs, b.attrs, [](const Attr& x, const Attr& y) {
           return x.name == y.name && x.value.s == y.value.s && Bits(x.value) == Bits(y.value);
         });
}

absl::StatusOr<Rewriter*> Rewrite::Body(int64_t number) {
  const auto& graphs = edit_.module->graphs;
  auto at = static_cast<size_t>(number);
  if (at >= graphs.size()) return NotFound("there is no graph ", number);
  if (bodies_.size() <= at) bodies_.resize(at + 1);
  if (!bodies_[at]) {
    const Graph& g = *graphs[at];
    bodies_[at] =
        std::make_unique<Rewrite>(PassGraph{nullptr, &g, g.params, g.results, {}, MustRunNodes(g)}, target_);
    bodies_[at]->read_only_ = true;
  }
  return bodies_[at].get();
}

}  // namespace keel
