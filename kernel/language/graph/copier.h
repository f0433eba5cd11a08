// copier.h: copies nodes of a graph into another graph. Derived classes change what differs: the draft of a
// node, the numbers of constants, the function that adds a node.
#pragma once

#include <string>
#include <vector>

#include "kernel/language/graph/graph.h"

namespace keel {

class GraphCopier {
 public:
  // map: values that are known in advance.
  GraphCopier(const Graph& from, Graph& to, std::vector<ValueId> map = {})
      : map(std::move(map)), from_(from), to_(to) {
    this->map.resize(from.values.size(), kNoValue);
  }
  virtual ~GraphCopier() = default;

  // The value in the other graph. A constant is copied on first use.
  absl::StatusOr<ValueId> Find(ValueId v);
  // Adds a parameter of the value's type. A name that is taken is omitted.
  absl::Status AddParam(ValueId v, std::string_view name = "");
  // Results that already have a value keep it.
  absl::Status CopyNode(NodeId n);
  absl::Status CopyNodes(const std::vector<bool>& wanted);
  absl::Status AddResults(std::span<const ValueId> values, std::span<const std::string> names = {});

  std::vector<ValueId> map;  // by value: its value in the other graph; kNoValue: none yet

 protected:
  struct Draft {  // a node to add
    const OpDef* op;
    std::vector<ValueId> in;  // values of the other graph
    Attrs attrs;
    std::vector<std::string> names;
    std::vector<TensorType> types;
    Origin origin;
  };
  // The draft is a copy of node n, without names that are taken.
  virtual absl::Status Adapt(NodeId, Draft*) { return absl::OkStatus(); }
  virtual absl::StatusOr<uint32_t> ConstantFor(uint32_t number) { return number; }
  virtual absl::StatusOr<std::vector<ValueId>> Add(Draft draft);

  const Graph& from_;
  Graph& to_;

 private:
  std::string NameIfFree(const std::string& name) const { return to_.by_name.contains(name) ? "" : name; }
};

// The error of a copy that would repeat the effect of the node.
absl::Status RepeatsEffect(const Graph& graph, NodeId n);

}  // namespace keel
