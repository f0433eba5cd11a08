#include "kernel/language/graph/graph_sink.h"

#include "kernel/language/graph/element.h"

namespace keel {

Attrs MakeAttrs(std::initializer_list<IntegerAttr> numbers) {
  Attrs attrs(numbers.size());
  auto to = attrs.begin();
  for (const IntegerAttr& number : numbers) {
    to->name = number.name;
    to->value.kind = number.kind;
    (to++)->value.i = number.value;
  }
  return attrs;
}

Attrs DimsAttrs(const char* name, const Dims& dims) {
  Attrs attrs = MakeAttrs({{name, KEEL_ATTR_DIMS, 0}});
  attrs[0].value.list.assign(dims.begin(), dims.end());
  return attrs;
}

absl::StatusOr<std::vector<BodySink::Value>> GraphSink::Node(std::string_view op, std::span<const Value> in,
                                                             const Attrs& attrs) {
  ASSIGN_OR_RETURN(const OpDef* def, graph_.module->catalogue->Find(op, 0));
  return Node(*def, {in.begin(), in.end()}, attrs);
}

absl::StatusOr<std::vector<BodySink::Value>> GraphSink::Node(const OpDef& op, std::vector<Value> in,
                                                             const Attrs& attrs) {
  Mark before = Here();
  Value first = in.empty() ? kNone : in[0];
  ASSIGN_OR_RETURN(NodeId node, graph_.AddNode(&op, std::move(in), attrs));
  std::vector<Value> out = graph_.nodes[node].out;
  if (Has(op, Trait::kNoopIfSame) && first != kNone &&
      graph_.values[first].type == graph_.values[out[0]].type) {
    Rewind(before);
    return std::vector<Value>{first};
  }
  return out;
}

absl::StatusOr<BodySink::Value> GraphSink::Literal(DType dtype, double value) {
  alignas(16) unsigned char element[16] = {};
  RETURN_IF_ERROR(ElementFromDouble(dtype, value, element));
  return graph_.AddScalar(dtype, element);
}

absl::StatusOr<BodySink::Value> GraphSink::Filled(TensorType type, double number) {
  ASSIGN_OR_RETURN(Value scalar, Literal(type.dtype, number));
  if (type.dims.empty()) return scalar;
  return Shaped("fill", "dims", scalar, type.dims);
}

absl::StatusOr<BodySink::Value> GraphSink::Shaped(const char* op, const char* attr, Value in,
                                                  const Dims& dims) {
  ASSIGN_OR_RETURN(std::vector<Value> out, Node(op, {&in, 1}, DimsAttrs(attr, dims)));
  return out[0];
}

// The extended node is appended, which checks it, and then replaces the original, so that its users are
// unchanged. Only additional results are new values.
absl::Status GraphSink::ExtendNode(NodeId node, std::vector<Value> in, Attrs attrs) {
  graph_.scope = graph_.nodes[node].origin;
  originals_.emplace_back(node, graph_.nodes[node]);
  ASSIGN_OR_RETURN(NodeId made, graph_.AddNode(graph_.nodes[node].op, std::move(in), std::move(attrs)));
  keel::Node wide = std::move(graph_.nodes[made]), &old = graph_.nodes[node];
  graph_.nodes.pop_back();
  auto first = graph_.values.begin() + wide.out[0];
  graph_.values.erase(first, first + static_cast<ptrdiff_t>(old.out.size()));
  for (auto id = wide.out[0]; id < graph_.values.size(); id++) {
    graph_.values[id].index = node;
    old.out.push_back(id);
  }
  old.in = std::move(wide.in);
  old.attrs = std::move(wide.attrs);
  return absl::OkStatus();
}

void GraphSink::Rollback() {
  Rewind(start_);
  for (; !originals_.empty(); originals_.pop_back())
    graph_.nodes[originals_.back().first] = std::move(originals_.back().second);
}

// Constants of the module remain; unused ones are harmless.
void GraphSink::Rewind(const Mark& mark) {
  for (size_t v = mark.values; v < graph_.values.size(); v++) {
    const keel::Value& value = graph_.values[v];
    if (value.kind == ValueKind::kConstant) graph_.constant_values.erase(value.index);
    if (!value.name.empty()) graph_.by_name.erase(value.name);
  }
  graph_.values.erase(graph_.values.begin() + static_cast<ptrdiff_t>(mark.values), graph_.values.end());
  graph_.nodes.erase(graph_.nodes.begin() + static_cast<ptrdiff_t>(mark.nodes), graph_.nodes.end());
  graph_.depth = mark.depth;
  graph_.scope = mark.scope;
  graph_.expanded = mark.expanded;
}

GraphTransaction::~GraphTransaction() {
  if (done_) return;
  sink.Rollback();
  module_.DropGraphs(graphs_);
}

void GraphTransaction::Commit() {
  if (module_.graphs.size() > graphs_) DropUnusedGraphs(&module_, graphs_, &sink.graph());
  done_ = true;
}

}  // namespace keel
