// graph_sink.h: appends expanded bodies and rules to a graph, with rollback.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "kernel/language/graph/graph.h"

namespace keel {

struct IntegerAttr {  // an attribute with an integer payload
  const char* name;
  int32_t kind;
  int64_t value;
};
Attrs MakeAttrs(std::initializer_list<IntegerAttr> numbers);
Attrs DimsAttrs(const char* name, const Dims& dims);

class GraphSink : public BodySink {
 public:
  explicit GraphSink(Graph& graph) : graph_(graph), start_(Here()) {}

  // A node that would return its first operand unchanged is omitted.
  absl::StatusOr<std::vector<Value>> Node(std::string_view op, std::span<const Value> in,
                                          const Attrs& attrs) override;
  absl::StatusOr<std::vector<Value>> Node(const OpDef& op, std::vector<Value> in, const Attrs& attrs);
  absl::StatusOr<Value> Literal(DType dtype, double value) override;
  TensorType Type(Value value) override { return graph_.values[value].type; }
  // A tensor filled with `number`. (The type is passed by value, because types move when the graph grows.)
  absl::StatusOr<Value> Filled(TensorType type, double number);
  // A node of an op with one operand whose attribute `attr` is the dims of its result: reshape or fill.
  absl::StatusOr<Value> Shaped(const char* op, const char* attr, Value in, const Dims& dims);

  // Replaces operands and attributes of a node; the number of its results may grow.
  absl::Status ExtendNode(NodeId node, std::vector<Value> in, Attrs attrs);

  Graph& graph() { return graph_; }
  void Rollback();  // undoes everything since construction

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
  std::vector<std::pair<NodeId, keel::Node>> originals_;  // the originals
};

// A transaction on a graph and its module: rolled back by the destructor, also when memory runs out, unless
// Commit is called.
class GraphTransaction {
 public:
  explicit GraphTransaction(Graph& graph)
      : sink(graph), module_(*graph.module), graphs_(graph.module->graphs.size()) {}
  GraphTransaction(const GraphTransaction&) = delete;
  GraphTransaction& operator=(const GraphTransaction&) = delete;
  ~GraphTransaction();
  void Commit();
  GraphSink sink;

 private:
  Module& module_;
  const size_t graphs_;
  bool done_ = false;
};

}  // namespace keel
