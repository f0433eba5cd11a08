// optimize.h: runs passes before planning, and on a module.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernel/base/json.h"
#include "kernel/pass/pass.h"
#include "kernel/plan/plan.h"

namespace keel {

// The passes of a session. A pass is specific to one device, so each part of a placed plan is optimised
// alone.
struct Optimizer {
  Passes* passes;  // null: none
  PassChoice choice;
  // Plan::Make of the optimised graph; the report of the plan includes the report of the passes.
  absl::StatusOr<std::shared_ptr<Plan>> Make(const Graph& graph, Device* device,
                                             std::span<const ValueId> feeds, std::span<const ValueId> fetches,
                                             std::span<const NodeId> targets, PlanOptions options) const;
};

// The arguments of Plan::Make; the owner must live until it returns.
struct PlannedGraph {
  std::shared_ptr<Module> owner;
  const Graph* graph;
  std::vector<ValueId> feeds, fetches;
  std::vector<NodeId> targets;
};
// Inlines calls with effects, so that each node can be placed.
absl::StatusOr<PlannedGraph> WriteOutEffects(const Graph& graph, Device* device,
                                             std::span<const ValueId> feeds, std::span<const ValueId> fetches,
                                             std::span<const NodeId> targets);

// A copy of the graph's module in which passes have rewritten the graph; null if they changed nothing.
absl::StatusOr<std::shared_ptr<Module>> OptimizeModule(Passes& passes, const PassChoice& choice,
                                                       const Graph& graph, Device* device,
                                                       const PlanOptions& options, PassReport* report);

void WriteReport(Json& json, const PassReport& report);  // members "level" and "passes"

}  // namespace keel
