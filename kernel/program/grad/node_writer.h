// node_writer.h: writes sequences of nodes. It stores the first error and writes nothing after it.
#pragma once

#include <initializer_list>

#include "kernel/language/graph/graph_sink.h"

namespace keel {

class NodeWriter {
 public:
  NodeWriter(Graph& graph, absl::Status* status) : graph_(graph), status_(*status) {}
  bool ok() const { return status_.ok(); }

  // After an error: value 0, no values.
  ValueId Node(const char* op, std::initializer_list<ValueId> in,
               std::initializer_list<IntegerAttr> attrs = {});
  std::vector<ValueId> Nodes(std::string_view op, const std::vector<ValueId>& in, const Attrs& attrs);
  ValueId Int(int64_t value);  // an i64[] literal
  ValueId Filled(const TensorType& type, double value);
  ValueId Shaped(const char* op, const char* attr, ValueId value, const Dims& dims);
  ValueId Param(const TensorType& type);
  void Results(const std::vector<ValueId>& values, size_t first = 0);
  bool Check(const absl::Status& status);

  uint32_t ValueOf(const absl::StatusOr<uint32_t>& value);  // also for graph indices

 private:
  Graph& graph_;
  absl::Status& status_;
};

}  // namespace keel
