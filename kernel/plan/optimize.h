// optimize.h: passes on the way to a plan, and on a module itself.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernel/base/json.h"
#include "kernel/pass/pass.h"
#include "kernel/plan/lower.h"

namespace keel {

// What Plan::Make takes, after the passes; the owner (if any) must live until it returns.
struct Optimized {
  std::shared_ptr<Module> owner;
  const Graph* graph;
  std::vector<ValueId> feeds, fetches;
  std::vector<NodeId> targets;
  std::shared_ptr<const PassReport> report;
};
absl::StatusOr<Optimized> OptimizeForPlan(Passes& passes, const PassChoice& choice, const Graph& graph,
                                          Device* device, std::span<const ValueId> feeds,
                                          std::span<const ValueId> fetches, std::span<const NodeId> targets,
                                          const PlanOptions& options);

// With the bodies of calls that have effects in place of those calls, so that each node can be placed.
absl::StatusOr<Optimized> WriteOutEffects(const Graph& graph, Device* device, std::span<const ValueId> feeds,
                                          std::span<const ValueId> fetches, std::span<const NodeId> targets);

// A copy of the graph's module in which passes have rewritten the graph; null if they changed nothing.
absl::StatusOr<std::shared_ptr<Module>> OptimizeModule(Passes& passes, const PassChoice& choice,
                                                       const Graph& graph, Device* device,
                                                       const PlanOptions& options, PassReport* report);

void WriteReport(Json& json, const PassReport& report);  // members "level" and "passes"

}  // namespace keel
