// taped.cc: see taped.h.
#include "kernel/trace/taped.h"

#include "kernel/graph/graph.h"
#include "kernel/trace/transplant.h"

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
  std::vector<ValueId> at(graph->values.size(), kNoValue), results;
  Transplant here(*graph->module, *to->module);
  for (size_t i = 0; i < feeds.size(); i++) {
    at[feeds[i]] = operands[i];
    if (operands[i] != kNoValue) here.Learn(graph->values[feeds[i]].type, to->values[operands[i]].type);
  }
  RETURN_IF_ERROR(here.Write(*graph, NeededNodes(*graph, feeds, fetches, {}), to, &at));
  for (ValueId v : fetches) {
    ASSIGN_OR_RETURN(results.emplace_back(), here.Find(*graph, v, to, &at));
  }
  return results;
}

}  // namespace keel
