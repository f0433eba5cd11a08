// place.h: assigns nodes to devices, and plans with several parts.
//
// How to read it: Place chooses the device of each node and records the reason. Plan::MakePlaced (parts.cc)
// splits the graph into parts. Each part is a plan for one device, fed with results of earlier parts.
// Parts::Run (parts_run.cc) runs the parts in order and copies arrays between devices. It does not wait for
// the outcomes of parts on devices, unless a part has effects on the host.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel/plan/plan.h"

namespace keel {

class SumPlans;  // variable_steps.h

struct PlaceRule {
  std::string pattern;  // glob with * and ?, of node or value names
  Device* device;
};
// Placement options of a session. A node follows the first matching rule, else its scope, else the default.
struct Placing {
  std::vector<PlaceRule> rules;
  Device* fallback = nullptr;  // runs nodes that have no impl on their device; null: fail
  std::function<absl::StatusOr<Device*>(const std::string&)> find;  // the device with a scope's name
};
bool NeedsPlacing(const Graph& graph, const Placing& placing);
// Whether the node calls a graph with effects.
bool CallsEffects(const Graph& graph, const Node& node);
// Whether some needed nodes must run on the host even if the device has its own memory.
bool NeedsHost(const Graph& graph, const std::vector<bool>& needed);
bool MatchesGlob(std::string_view pattern, std::string_view text);

struct PlacedNode {
  NodeId node;
  Device* device;
  std::string why;
};
// The needed nodes, in program order.
// host: of PlanOptions.
absl::StatusOr<std::vector<PlacedNode>> Place(const Graph& graph, Device* device, const Placing& placing,
                                              Device* host, const std::vector<bool>& needed,
                                              std::span<const ValueId> feeds, std::span<const ValueId> wanted,
                                              std::span<const NodeId> targets);

// The parts of a placed plan, and the placement for its report.
struct Parts {
  struct Source {    // of a feed of a part
    bool outside;    // a feed of the plan; else the result of an earlier part
    uint32_t index;  // number of the feed, or slot
    bool used;       // false: only its sizes are read
  };
  struct Part {
    Device* device;
    std::shared_ptr<Plan> plan;
    std::vector<Source> feeds;
    std::vector<uint32_t> results;   // slots
    std::vector<uint32_t> last_use;  // slots to release after this part
    bool effects = false;            // on the host: requires that all earlier parts succeeded
  };
  struct Crossing {  // a value that is copied between memories
    ValueId value;
    std::string from, to;
  };
  struct Row {  // of `keel plan`
    std::string node, op, device, why;
  };
  std::vector<Row> rows;
  std::vector<Crossing> crossings;
  std::vector<uint32_t> value_of;  // by graph value: value of the whole plan's Lowered, for sizes and names
  std::vector<Part> parts;         // empty if all nodes are on one device: the plan itself runs
  std::vector<uint32_t> fetches;   // slots
  uint32_t slots = 0;
  bool results_on_device = false;
  std::unique_ptr<SumPlans> sums;  // of variables

  Parts();
  ~Parts();
  absl::Status Run(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer, void* arg,
                   const Deadline* end) const;
};

}  // namespace keel
