// place.h: chooses the device of each node, and records the reason.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/runtime/plan/options.h"
#include "kernel/runtime/plan/request.h"

namespace keel {

struct PlaceRule {
  std::string pattern;  // glob with * and ?, of node or value names
  Device* device;
};
// Placement options of a session. A node follows the first matching rule, else its scope, else the default.
struct Placing {
  std::vector<PlaceRule> rules;
  std::vector<Device*> fallbacks;  // the first that can runs a node that its own device cannot
  std::function<absl::StatusOr<Device*>(const std::string&)> find;  // the device with a scope's name
};
bool NeedsPlacing(const Graph& graph, const Placing& placing);
bool CallsEffects(const Graph& graph, const Node& node);
// Whether the nodes of the node's body take its place before nodes are placed: it calls a graph with effects,
// or its op finds a size in its body.
bool IsWrittenOut(const Graph& graph, const Node& node);
// Whether some needed nodes must run on the host even if the device has its own memory.
bool NeedsHost(const Graph& graph, const std::vector<bool>& needed);
// Whether a needed node has a result whose size only a run knows.
bool HasNewSizes(const Graph& graph, const std::vector<bool>& needed);
bool MatchesGlob(std::string_view pattern, std::string_view text);

struct PlacedNode {
  NodeId node;
  Device* device;
  std::string why;
};
// The needed nodes, in program order.
absl::StatusOr<std::vector<PlacedNode>> Place(const PlanRequest& request, const Placing& placing,
                                              const PlanOptions& options);

// The device of a request for "auto": the first that has all ops of the nodes placed on it (with a fallback:
// the first that opens). request.device is ignored.
absl::StatusOr<Device*> ChooseDevice(Registry& registry, PlanRequest request, const Placing& placing,
                                     const PlanOptions& options);

}  // namespace keel
