// linker.h: copies graphs into another module, including called graphs; constants and variables are reused if
// the target has them. A taken name gets a numeric suffix.
#pragma once

#include "kernel/graph/graph.h"
#include "kernel/plugin/body.h"

namespace keel {

// Maps dims and variables of the source module to the target module.
struct LinkRules {
  DimMap dims;
  std::function<absl::StatusOr<uint32_t>(const ModuleVariable&)> variable = {};  // absent: added by name
};

class Linker {
 public:
  Linker(Module& to, const Module& from, LinkRules rules)
      : to_(to), from_(from), rules_(std::move(rules)), graphs_(from.graphs.size(), -1) {}

  // The number of the graph in the target module; called graphs are copied before it.
  absl::StatusOr<int64_t> GraphFor(int64_t number);
  // Reuses a constant with the same memory. `user` (may be null): a graph whose value names must stay unique.
  absl::StatusOr<uint32_t> ConstantFor(uint32_t number, const Graph* user);
  // The mapped attributes of a node; copies the graphs that it calls.
  absl::StatusOr<Attrs> AttrsOf(const Node& node);
  absl::StatusOr<TensorType> TypeOf(TensorType type) const;
  absl::StatusOr<Origin> ScopeOf(const Node& node);  // for Graph::scope

 private:
  absl::Status Copy(const Graph& source, Graph& made);
  absl::Status CopyNode(const Graph& source, const Node& node, std::vector<ValueId>& values, Graph& made);
  absl::Status MapNumbers(AttrValue& value);

  Module& to_;
  const Module& from_;
  LinkRules rules_;
  std::vector<int64_t> graphs_;  // number in the target module; -1: not copied yet
};

}  // namespace keel
