#include "kernel/program/grad/node_writer.h"

namespace keel {

using Values = std::vector<ValueId>;

bool NodeWriter::Check(const absl::Status& status) {
  if (ok()) status_ = status;
  return ok();
}

uint32_t NodeWriter::ValueOf(const absl::StatusOr<uint32_t>& value) {
  return Check(value.status()) ? *value : 0;
}

ValueId NodeWriter::Node(const char* op, std::initializer_list<ValueId> in,
                         std::initializer_list<IntegerAttr> attrs) {
  Values out = Nodes(op, Values(in), MakeAttrs(attrs));
  return out.empty() ? 0 : out[0];
}

Values NodeWriter::Nodes(std::string_view op, const Values& in, const Attrs& attrs) {
  if (!ok()) return {};
  absl::StatusOr<Values> out = GraphSink(graph_).Node(op, in, attrs);
  return Check(out.status()) ? *std::move(out) : Values();
}

ValueId NodeWriter::Int(int64_t value) { return Filled({DType::kI64, {}}, static_cast<double>(value)); }

ValueId NodeWriter::Filled(const TensorType& type, double value) {
  return ok() ? ValueOf(GraphSink(graph_).Filled(type, value)) : 0;
}

ValueId NodeWriter::Shaped(const char* op, const char* attr, ValueId value, const Dims& dims) {
  return ok() ? ValueOf(GraphSink(graph_).Shaped(op, attr, value, dims)) : 0;
}

ValueId NodeWriter::Param(const TensorType& type) { return ok() ? ValueOf(graph_.AddParam("", type)) : 0; }

void NodeWriter::Results(const Values& values, size_t first) {
  for (; ok() && first < values.size(); first++) Check(graph_.AddResult("", values[first]));
}

}  // namespace keel
