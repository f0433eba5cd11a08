// pen.cc: see pen.h.
#include "kernel/grad/pen.h"

namespace keel {

using Values = std::vector<ValueId>;

Attrs MakeAttrs(std::initializer_list<Number> numbers) {
  Attrs attrs(numbers.size());
  auto to = attrs.begin();
  for (const Number& number : numbers) {
    to->name = number.name;
    to->value.kind = number.kind;
    (to++)->value.i = number.value;
  }
  return attrs;
}

bool Pen::Check(const absl::Status& status) {
  if (ok()) status_ = status;
  return ok();
}

uint32_t Pen::Take(const absl::StatusOr<uint32_t>& value) { return Check(value.status()) ? *value : 0; }

ValueId Pen::Node(const char* op, std::initializer_list<ValueId> in, std::initializer_list<Number> attrs) {
  Values out = Nodes(op, Values(in), MakeAttrs(attrs));
  return out.empty() ? 0 : out[0];
}

Values Pen::Nodes(std::string_view op, const Values& in, const Attrs& attrs) {
  if (!ok()) return {};
  absl::StatusOr<Values> out = GraphSink(graph_).Node(op, in, attrs);
  return Check(out.status()) ? *std::move(out) : Values();
}

ValueId Pen::Int(int64_t value) { return Filled({DType::kI64, {}}, static_cast<double>(value)); }

ValueId Pen::Filled(const TensorType& type, double value) {
  return ok() ? Take(GraphSink(graph_).Filled(type, value)) : 0;
}

ValueId Pen::Param(const TensorType& type) { return ok() ? Take(graph_.AddParam("", type)) : 0; }

void Pen::Results(const Values& values, size_t first) {
  for (; ok() && first < values.size(); first++) Check(graph_.AddResult("", values[first]));
}

}  // namespace keel
