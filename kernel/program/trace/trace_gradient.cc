// trace_gradient.cc: gradients inside a trace, through the nodes that a tape would have recorded.
#include <algorithm>

#include "kernel/language/graph/constant.h"
#include "kernel/program/grad/gradient.h"
#include "kernel/program/grad/lift.h"
#include "kernel/program/trace/gradient_cache.h"
#include "kernel/program/trace/tape.h"

namespace keel {

// The watched values after the last node, and in `through` the nodes that read a value after it was watched:
// the same that a tape records in an eager run.
std::vector<bool> Trace::WatchedValues(const TraceWatch& watch, std::vector<bool>* through) const {
  std::vector<bool> watched(graph_->values.size());
  std::vector<std::pair<NodeId, ValueId>> sources;
  for (auto [value, since] : watch.values) sources.emplace_back(since, value);
  for (const TraceLink& link : links_)
    if (link.array && watch.tape->Watches(link.array.get())) watched[link.value] = true;
  std::sort(sources.begin(), sources.end());
  through->assign(graph_->nodes.size(), false);
  auto source = sources.begin();
  auto hidden = watch.hidden.begin();
  for (NodeId n = 0; n < graph_->nodes.size(); n++) {
    for (; source != sources.end() && source->first <= n; ++source) watched[source->second] = true;
    while (hidden != watch.hidden.end() && hidden->second <= n) ++hidden;
    const Node& node = graph_->nodes[n];
    if (hidden != watch.hidden.end() && hidden->first <= n) continue;
    if (VjpOf(*node.op) == Vjp::kNone) continue;
    if (std::none_of(node.in.begin(), node.in.end(), [&](ValueId v) { return v != kNoValue && watched[v]; }))
      continue;
    (*through)[n] = true;
    for (ValueId v : node.out) watched[v] = true;
  }
  for (; source != sources.end(); ++source) watched[source->second] = true;
  return watched;
}

bool IsShared(const Graph& graph, ValueId value) {
  const Value& v = graph.values[value];
  return v.kind == ValueKind::kConstant && IsFloating(v.type.dtype) &&
         graph.module->constants[v.index].name.empty();
}

// Watched constants that bodies contain become operands of the control nodes.
absl::Status Trace::LiftWatched(const TraceWatch& watch) {
  std::vector<ValueId> constants;
  for (const TraceLink& link : links_)
    if (link.array && watch.tape->Watches(link.array.get())) constants.push_back(link.value);
  for (ValueId value : constants)
    if (IsShared(*graph_, value))
      return Annotate(Unimplemented("gradient: ", Print(graph_->values[value].type, module_->dims),
                                    " was used in the trace of \"", graph_->name,
                                    "\" before a tape watched it; equal scalars share one constant"),
                      kErrorHint, "watch it before its first use");
  for (auto [value, since] : watch.values)
    if (graph_->values[value].kind == ValueKind::kConstant) constants.push_back(value);
  return LiftConstants(*graph_, constants);
}

// A gradient inside a body cannot continue in outer traces: captures must not depend on watched values.
absl::Status Trace::CheckBodyBoundary(const TraceWatch& watch) {
  const TraceWatch* around = parent_ ? watch.tape->WatchOf(parent_.get()) : nullptr;
  if (!around) return absl::OkStatus();
  RETURN_IF_ERROR(parent_->LiftWatched(*around));
  std::vector<bool> through, watched = parent_->WatchedValues(*around, &through);
  for (const auto& [outer, param] : captures_)
    if (watched[outer])
      return Annotate(
          Unimplemented("gradient in the body \"", graph_->name, "\" of the outer value \"",
                        parent_->graph_->ValueName(outer), "\", which was watched before the body began"),
          kErrorHint, "begin the tape in the body, or take the gradient after the branch or loop");
  return parent_->CheckBodyBoundary(*around);
}

absl::Status Trace::Gradient(const TapeGradientRequest& request, const TraceWatch& watch,
                             std::span<ArrayRef> out) {
  std::lock_guard lock(*mutex_);
  RETURN_IF_ERROR(CheckOpen("add a gradient"));
  RETURN_IF_ERROR(CheckBodyBoundary(watch));
  RETURN_IF_ERROR(LiftWatched(watch));
  ASSIGN_OR_RETURN(std::vector<ValueId> ys, ValuesFor(request.ys));
  ASSIGN_OR_RETURN(std::vector<ValueId> seeds, ValuesFor(request.seeds));
  ASSIGN_OR_RETURN(std::vector<ValueId> xs, ValuesFor(request.xs));
  std::vector<bool> through, watched = WatchedValues(watch, &through);
  std::vector<ValueId> sources, others;
  for (ValueId x : xs) (watched[x] ? sources : others).push_back(x);
  graph_->scope = {0, source_};
  auto gradient = [&](std::span<const ValueId> of_ys, std::span<const ValueId> seed,
                      std::span<const ValueId> by) {
    return request.jacobian ? Jacobians(*graph_, ys, by, request.zeros, &through)
                            : keel::Gradient(*graph_, {of_ys, seed, by, request.zeros, &through});
  };
  ASSIGN_OR_RETURN(std::vector<ValueId> found, gradient(ys, seeds, sources));
  through.assign(graph_->nodes.size(), false);
  std::vector<ValueId> zeros(others.size(), kNoValue);
  if (request.zeros) {
    ASSIGN_OR_RETURN(zeros, gradient({}, {}, others));
  }
  std::vector<ValueId> parts;
  for (size_t i = 0, f = 0, z = 0; i < xs.size(); i++)
    parts.push_back(watched[xs[i]] ? found[f++] : zeros[z++]);
  ASSIGN_OR_RETURN(std::vector<ValueId> sums, AddUp(graph_, parts, request.to, request.count));
  for (size_t i = 0; i < sums.size(); i++) {
    if (sums[i] == kNoValue) continue;
    ASSIGN_OR_RETURN(out[i], Symbol(sums[i]));
  }
  return absl::OkStatus();
}

}  // namespace keel
