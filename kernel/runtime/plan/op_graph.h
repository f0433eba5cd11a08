// op_graph.h: graphs of a single op, to plan: of eager ops, casts of feeds, sums of variables and constant
// folding.
#pragma once

#include <vector>

#include "kernel/runtime/plan/request.h"

namespace keel {

struct OpGraph {
  const Graph* graph;
  NodeId node;
  // Its feeds are the operands that are neither omitted nor constant; it fetches all results. Refers to this.
  PlanRequest On(Device* device) const {
    return {graph, device, graph->params, graph->nodes[node].out, {&node, 1}};
  }
};

// module: owns the graph, and the dims of the types; a plan needs neither. operands: dtype kNone: omitted.
// constants: by operand, null: a feed; may be shorter.
absl::StatusOr<OpGraph> BuildOp(Module& module, const OpDef& op, const Attrs& attrs,
                                const std::vector<TensorType>& operands,
                                const std::vector<const Constant*>& constants = {});

}  // namespace keel
