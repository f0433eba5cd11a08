// request.h: what a plan is made for.
#pragma once

#include <span>
#include <vector>

#include "kernel/language/graph/graph.h"
#include "kernel/runtime/plugin/registry.h"

namespace keel {

// What a plan computes, and where. Nothing is owned.
struct PlanRequest {
  const Graph* graph;
  Device* device;
  std::span<const ValueId> feeds, fetches;
  std::span<const NodeId> targets;
  // By feed: the constant that every run feeds, or null; may be empty. Of bodies only (control.h).
  std::span<const Constant* const> known = {};
  std::vector<bool> Needed() const { return NeededNodes(*graph, feeds, fetches, targets); }
};

// Fails unless all parameters that the needed nodes and the fetches use are fed. Called before passes and
// devices receive the graph.
absl::Status CheckFed(const PlanRequest& request, const std::vector<bool>& needed);

}  // namespace keel
