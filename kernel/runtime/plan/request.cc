// request.cc: see request.h.
#include "kernel/runtime/plan/request.h"

#include "kernel/runtime/plan/node_facts.h"

namespace keel {

absl::Status CheckFed(const PlanRequest& request, const std::vector<bool>& needed) {
  const Graph& graph = *request.graph;
  std::vector<bool> open(graph.values.size());
  for (ValueId v : graph.params) open[v] = true;
  for (ValueId v : request.feeds) open[v] = false;
  for (ValueId v : request.fetches)
    if (open[v]) return NotFed(graph, v);
  for (size_t n = 0; n < needed.size(); n++)
    for (ValueId v : graph.nodes[n].in)
      if (needed[n] && v != kNoValue && open[v]) return NotFed(graph, v);
  return absl::OkStatus();
}

}  // namespace keel
