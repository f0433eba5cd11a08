// taped.cc: see taped.h.
#include "kernel/trace/taped.h"

#include "kernel/graph/graph.h"

namespace keel {
namespace {

// A variadic operand or result is one to its rule; it stands for all from its place on.
uint64_t Bits(const std::vector<bool>& read, bool variadic) {
  uint64_t bits = 0;
  for (size_t i = 0; i < read.size(); i++) {
    if (!read[i]) continue;
    bits |= variadic && i + 1 == read.size() ? ~(Taped::Bit(i) - 1) : Taped::Bit(i);
  }
  return bits;
}

template <typename Infos>
bool EndsVariadic(const Infos& infos) {
  return !infos.empty() && infos.back().variadic;
}

}  // namespace

std::shared_ptr<const Taped> Taped::Of(const OpDef& op, Attrs attrs) {
  auto taped = std::make_shared<Taped>();
  taped->op = &op;
  taped->attrs = std::move(attrs);
  Vjp how = VjpOf(op);
  taped->differentiable = how != Vjp::kNone;
  bool in = EndsVariadic(OpOperands(op)), out = EndsVariadic(OpResults(op));
  for (const VjpReads& r : VjpReadsOf(op))
    taped->reads.push_back({Bits(r.operands, in), Bits(r.results, out)});
  if (how == Vjp::kBody || taped->reads.empty()) taped->reads.assign(1, {~uint64_t{0}, ~uint64_t{0}});
  return taped;
}

std::shared_ptr<const Taped> Taped::Of(std::shared_ptr<const Module> owner, const Graph* graph,
                                       std::vector<ValueId> feeds, std::vector<ValueId> fetches) {
  auto taped = std::make_shared<Taped>();
  taped->owner = std::move(owner);
  taped->graph = graph;
  taped->feeds = std::move(feeds);
  taped->fetches = std::move(fetches);
  taped->reads.assign(1, {~uint64_t{0}, 0});
  return taped;
}

absl::StatusOr<std::vector<ValueId>> Taped::Write(Graph* to, std::vector<ValueId> operands) const {
  if (op) {
    ASSIGN_OR_RETURN(NodeId node, to->AddNode(op, std::move(operands), attrs));
    return to->nodes[node].out;
  }
  std::vector<ValueId> at(graph->values.size(), kNoValue);
  for (size_t i = 0; i < feeds.size(); i++) at[feeds[i]] = operands[i];
  auto here = [&](ValueId v) -> absl::StatusOr<ValueId> {
    if (v == kNoValue || at[v] != kNoValue || graph->values[v].kind != ValueKind::kConstant)
      return v == kNoValue ? kNoValue : at[v];
    Constant constant = graph->module->constants[graph->values[v].index];
    constant.name.clear();
    ASSIGN_OR_RETURN(uint32_t number, to->module->AddConstant(std::move(constant)));
    ASSIGN_OR_RETURN(at[v], to->AddConstant(number));
    return at[v];
  };
  std::vector<bool> needed = NeededNodes(*graph, feeds, fetches, {});
  for (NodeId n = 0; n < graph->nodes.size(); n++) {
    if (!needed[n]) continue;
    const Node& node = graph->nodes[n];
    std::vector<ValueId> in;
    for (ValueId v : node.in) {
      ASSIGN_OR_RETURN(in.emplace_back(), here(v));
    }
    ASSIGN_OR_RETURN(NodeId made, to->AddNode(node.op, std::move(in), node.attrs));
    for (size_t r = 0; r < node.out.size(); r++)
      if (at[node.out[r]] == kNoValue) at[node.out[r]] = to->nodes[made].out[r];
  }
  std::vector<ValueId> results;
  for (ValueId v : fetches) {
    ASSIGN_OR_RETURN(results.emplace_back(), here(v));
  }
  return results;
}

}  // namespace keel
