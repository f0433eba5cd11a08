// place.h: the assignment of nodes to devices, and plans of several parts.
//
// How to read it: Place chooses a device for each node and records the reason; Split cuts the graph into
// parts, each a plan for one device, fed by earlier parts. Parts::Run runs them in order and moves arrays
// between devices.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel/plan/plan.h"

namespace keel {

struct PlaceRule {
  std::string pattern;  // of names of nodes or values; * and ?
  Device* device;
};
struct Placing {  // from the session; a node follows its first matching rule, else its scope, else the
                  // default
  std::vector<PlaceRule> rules;
  Device* fallback = nullptr;  // for nodes without an impl on their device; null: that is an error
  std::function<absl::StatusOr<Device*>(const std::string&)> find;  // the device of a scope's name
};
bool NeedsPlacing(const Graph& graph, const Placing& placing);
// Nodes that the host runs while others are on a device with memory of its own.
bool CallsEffects(const Graph& graph, const Node& node);  // a call of a graph with effects
bool NeedsHost(const Graph& graph, const std::vector<bool>& needed);
bool MatchesGlob(std::string_view pattern, std::string_view text);

struct PlacedNode {
  NodeId node;
  Device* device;
  std::string why;
};
// The needed nodes, in program order.
absl::StatusOr<std::vector<PlacedNode>> Place(const Graph& graph, Device* device, const Placing& placing,
                                              const std::vector<bool>& needed, std::span<const ValueId> feeds,
                                              std::span<const ValueId> wanted,
                                              std::span<const NodeId> targets);

// The parts of a placed plan, and their report.
struct Parts {
  struct Source {  // where a feed of a part comes from
    bool outside;  // a feed of the plan; else a value that an earlier part made
    uint32_t index;
    bool used;  // false: only its sizes are used
  };
  struct Part {
    Device* device;
    std::shared_ptr<Plan> plan;
    std::vector<Source> feeds;
    std::vector<uint32_t> results;   // slots
    std::vector<uint32_t> last_use;  // slots whose last use is in this part
  };
  struct Crossing {  // a value that is copied
    ValueId value;
    std::string from, to;
  };
  struct Row {  // of `keel plan`
    std::string node, op, device, why;
  };
  std::vector<Row> rows;
  std::vector<Crossing> crossings;
  std::vector<uint32_t> value_of;  // graph value -> value of the whole plan's Lowered, for sizes and names
  std::vector<Part> parts;         // one part: empty, the plan itself runs
  std::vector<uint32_t> fetches;   // slots
  uint32_t slots = 0;
  bool results_on_device = false;

  absl::Status Run(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer, void* arg,
                   const Deadline* end) const;
};

}  // namespace keel
