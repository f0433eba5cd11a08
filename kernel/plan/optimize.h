// optimize.h: runs passes before planning, or on a module.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernel/base/json.h"
#include "kernel/pass/pass.h"
#include "kernel/plan/plan.h"

namespace keel {

// The passes of a session. Passes target one device, so each part of a placed plan is optimised separately.
struct Optimizer {
  Passes* passes;  // null: none
  PassChoice choice;
  // Optimises the graph and makes a plan of it; the plan's report lists the passes and their edits.
  absl::StatusOr<std::shared_ptr<Plan>> Make(const Graph& graph, Device* device,
                                             std::span<const ValueId> feeds, std::span<const ValueId> fetches,
                                             std::span<const NodeId> targets, PlanOptions options) const;
};

// Arguments of Plan::Make; `owner` must outlive the call.
struct PlannedGraph {
  std::shared_ptr<Module> owner;
  const Graph* graph;
  std::vector<ValueId> feeds, fetches;
  std::vector<NodeId> targets;
};
// Inlines all calls with effects, so that each node can be placed separately.
absl::StatusOr<PlannedGraph> WriteOutEffects(const Graph& graph, Device* device,
                                             std::span<const ValueId> feeds, std::span<const ValueId> fetches,
                                             std::span<const NodeId> targets);

// A copy of the graph's module with the optimised graph; null if the passes changed nothing.
absl::StatusOr<std::shared_ptr<Module>> OptimizeModule(Passes& passes, const PassChoice& choice,
                                                       const Graph& graph, Device* device,
                                                       const PlanOptions& options, PassReport* report);

void WriteReport(Json& json, const PassReport& report);  // writes the members "level", "passes", "dumps"

}  // namespace keel
