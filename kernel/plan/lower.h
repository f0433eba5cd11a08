// lower.h: the first half of planning. Lowers a graph with feeds and fetches to a list of steps for a device:
// prunes unneeded nodes, replaces composites that the device has no impl for by their bodies, resolves
// aliases and folds constants. bind.h does the second half, which depends on sizes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/plan/lowered.h"
#include "kernel/plan/options.h"

namespace keel {

// What a plan computes, and where. Nothing is owned.
struct PlanRequest {
  const Graph* graph;
  Device* device;
  std::span<const ValueId> feeds, fetches;
  std::span<const NodeId> targets;
  std::vector<bool> Needed() const { return NeededNodes(*graph, feeds, fetches, targets); }
};

// Fails unless all parameters that the needed nodes and the fetches use are fed. Called before passes and
// devices receive the graph.
absl::Status CheckFed(const PlanRequest& request, const std::vector<bool>& needed);
absl::StatusOr<std::unique_ptr<Lowered>> Lower(const PlanRequest& request, const PlanOptions& options);

}  // namespace keel
