// graph_sink.h: writes bodies and rules of ops to the end of a graph, and takes back what was written.
#pragma once

#include <memory>
#include <vector>

#include "kernel/graph/graph.h"

namespace keel {

class GraphSink : public BodySink {
 public:
  explicit GraphSink(Graph& graph) : graph_(graph), start_(Here()) {}

  // A node that would give back its first operand as it is, is not written.
  absl::StatusOr<std::vector<Value>> Node(std::string_view op, std::span<const Value> in,
                                          const Attrs& attrs) override;
  absl::StatusOr<std::vector<Value>> Node(const OpDef& op, std::vector<Value> in, const Attrs& attrs);
  absl::StatusOr<Value> Literal(DType dtype, double value) override;
  TensorType Type(Value value) override { return graph_.values[value].type; }
  // That number everywhere. (By value: types of values move when the graph grows.)
  absl::StatusOr<Value> Filled(TensorType type, double number);

  // Other operands and attributes for a node, for results that stand behind those that it has.
  absl::Status Widen(NodeId node, std::vector<Value> in, Attrs attrs);

  Graph& graph() { return graph_; }
  void TakeBack();  // all that was written since construction

 private:
  struct Mark {
    size_t values, nodes;
    uint32_t depth;
    Origin scope;
    uint64_t expanded;
  };
  Mark Here() const {
    return {graph_.values.size(), graph_.nodes.size(), graph_.depth, graph_.scope, graph_.expanded};
  }
  void Rewind(const Mark& mark);

  Graph& graph_;
  Mark start_;
  std::vector<std::pair<NodeId, keel::Node>> widened_;  // as they were
};

}  // namespace keel
