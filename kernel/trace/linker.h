// linker.h: graphs of one module in another, with all that they run: constants and variables are found again
// or made anew there. A name that is taken gets a number.
#pragma once

#include "kernel/graph/graph.h"
#include "kernel/plugin/body.h"

namespace keel {

// What becomes of what a graph names.
struct LinkRules {
  DimMap dims;                                                                   // of the other module
  std::function<absl::StatusOr<uint32_t>(const ModuleVariable&)> variable = {};  // absent: under its name
};

class Linker {
 public:
  Linker(Module& to, const Module& from, LinkRules rules)
      : to_(to), from_(from), rules_(std::move(rules)), graphs_(from.graphs.size(), -1) {}

  // The number of that graph in the other module; those that it runs come first.
  absl::StatusOr<int64_t> GraphFor(int64_t number);
  // The same memory is one constant. `user` (may be null): a graph that brings names of its own.
  absl::StatusOr<uint32_t> ConstantFor(uint32_t number, const Graph* user);
  // Of a node; the graphs that it runs come along.
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
  std::vector<int64_t> graphs_;  // by number: that in the other module; -1: not there yet
};

}  // namespace keel
