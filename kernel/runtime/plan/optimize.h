// optimize.h: runs passes before planning, or on a module.
#pragma once

#include <memory>
#include <vector>

#include "kernel/base/json.h"
#include "kernel/runtime/pass/pass.h"
#include "kernel/runtime/plan/plan.h"

namespace keel {

// A request with an optimised graph; `owner` must outlive the planning.
struct PlannedGraph {
  std::shared_ptr<Module> owner;
  const Graph* graph;
  std::vector<ValueId> feeds, fetches;
  std::vector<NodeId> targets;
  PlanRequest Request(Device* device) const { return {graph, device, feeds, fetches, targets}; }
};

// The passes of a session. Passes target one device, so each part of a placed plan is optimised separately.
struct Optimizer {
  Passes* passes = nullptr;  // null: none
  PassChoice choice;
  // The optimised graph; *options get the report of the passes.
  absl::StatusOr<PlannedGraph> Run(const PlanRequest& request, PlanOptions* options) const;
  // Optimises the graph and makes a plan of it for one device.
  absl::StatusOr<std::shared_ptr<Plan>> Make(const PlanRequest& request, PlanOptions options) const;
};

// Replaces the nodes that IsWrittenOut by the nodes of their bodies, so that each can be placed separately. A
// body may contain such nodes again.
absl::StatusOr<PlannedGraph> WriteOut(const PlanRequest& request);

// A copy of the graph's module with the optimised graph; null if the passes changed nothing.
absl::StatusOr<std::shared_ptr<Module>> OptimizeModule(Passes& passes, const PassChoice& choice,
                                                       const Graph& graph, Device* device,
                                                       const PlanOptions& options, PassReport* report);

}  // namespace keel
