#include "kernel/program/grad/active.h"

#include <algorithm>

namespace keel {

bool AnyActive(const Node& node, const std::vector<bool>& active) {
  return std::any_of(node.in.begin(), node.in.end(), [&](ValueId v) { return v != kNoValue && active[v]; });
}

void MarkActive(const Graph& graph, NodeId first, NodeId last, std::vector<bool>* active,
                const std::vector<bool>* through) {
  for (NodeId n = first; n < last; n++) {
    const Node& node = graph.nodes[n];
    if (through && n < through->size() && !(*through)[n]) continue;
    if (VjpOf(*node.op) == Vjp::kNone || !AnyActive(node, *active)) continue;
    for (ValueId v : node.out) (*active)[v] = (*active)[v] || IsFloating(graph.values[v].type.dtype);
  }
}

}  // namespace keel
