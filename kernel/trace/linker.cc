// linker.cc: see linker.h.
#include "kernel/trace/linker.h"

#include "kernel/base/free_name.h"

namespace keel {

absl::StatusOr<int64_t> Linker::GraphFor(int64_t number) {
  int64_t& there = graphs_[static_cast<size_t>(number)];
  if (there >= 0) return there;
  const Graph& source = *from_.graphs[static_cast<size_t>(number)];
  for (const Node& node : source.nodes)
    for (uint32_t body : BodiesOf(node.attrs)) RETURN_IF_ERROR(GraphFor(body).status());
  std::string name = FreeName(source.name, [&](const std::string& n) { return to_.FindGraph(n).ok(); });
  ASSIGN_OR_RETURN(Graph * made, to_.AddGraph(name));
  RETURN_IF_ERROR(Copy(source, *made));
  made->rules = source.rules;
  ASSIGN_OR_RETURN(there, to_.GraphNumber(name));
  return there;
}

absl::StatusOr<uint32_t> Linker::ConstantFor(uint32_t number, const Graph* user) {
  Constant c = from_.constants[number];
  auto used = [&](const std::string& name) { return user && name != c.name && user->by_name.contains(name); };
  for (uint32_t k = 0; c.data && k < to_.constants.size(); k++)
    if (const Constant& same = to_.constants[k];
        same.data == c.data && same.type == c.type && !used(same.name))
      return k;
  if (!c.name.empty())
    c.name = FreeName(c.name, [&](const std::string& n) { return to_.FindConstant(n).ok() || used(n); });
  return to_.AddConstant(std::move(c));
}

absl::StatusOr<Attrs> Linker::AttrsOf(const Node& node) {
  Attrs attrs = node.attrs;
  for (uint32_t body : BodiesOf(attrs)) RETURN_IF_ERROR(GraphFor(body).status());
  RETURN_IF_ERROR(MapDims(rules_.dims, &attrs));
  for (Attr& a : attrs) RETURN_IF_ERROR(MapNumbers(a.value));
  return attrs;
}

absl::StatusOr<TensorType> Linker::TypeOf(TensorType type) const {
  RETURN_IF_ERROR(MapDims(rules_.dims, &type));
  return type;
}

absl::StatusOr<Origin> Linker::ScopeOf(const Node& node) {
  auto [file, line] = from_.SourceOf(node.origin);
  Origin origin{0, to_.Source(file, line)};
  if (uint32_t device = node.origin.device) {
    ASSIGN_OR_RETURN(origin.device, to_.DeviceScope(from_.devices[device - 1]));
  }
  return origin;
}

absl::Status Linker::Copy(const Graph& source, Graph& made) {
  std::vector<ValueId> values(source.values.size(), kNoValue);
  for (ValueId v : source.params) {
    ASSIGN_OR_RETURN(TensorType type, TypeOf(source.values[v].type));
    ASSIGN_OR_RETURN(values[v], made.AddParam(source.values[v].name, std::move(type)));
  }
  for (ValueId v = 0; v < values.size(); v++) {
    if (source.values[v].kind != ValueKind::kConstant) continue;
    ASSIGN_OR_RETURN(uint32_t number, ConstantFor(source.values[v].index, &source));
    ASSIGN_OR_RETURN(values[v], made.AddConstant(number));
  }
  for (const Node& node : source.nodes) RETURN_IF_ERROR(CopyNode(source, node, values, made));
  for (size_t i = 0; i < source.results.size(); i++)
    RETURN_IF_ERROR(made.AddResult(source.result_names[i], values[source.results[i]]));
  return absl::OkStatus();
}

absl::Status Linker::CopyNode(const Graph& source, const Node& node, std::vector<ValueId>& values,
                              Graph& made) {
  std::vector<ValueId> in;
  for (ValueId v : node.in) in.push_back(v == kNoValue ? v : values[v]);
  std::vector<std::string> names{node.name};
  std::vector<TensorType> types;
  if (!node.out.empty()) names.clear();
  for (ValueId v : node.out) {
    names.push_back(source.values[v].name);
    ASSIGN_OR_RETURN(types.emplace_back(), TypeOf(source.values[v].type));
  }
  ASSIGN_OR_RETURN(Attrs attrs, AttrsOf(node));
  ASSIGN_OR_RETURN(made.scope, ScopeOf(node));
  ASSIGN_OR_RETURN(NodeId id, made.AddNode(node.op, std::move(in), std::move(attrs), names, types));
  for (size_t i = 0; i < node.out.size(); i++) values[node.out[i]] = made.nodes[id].out[i];
  return absl::OkStatus();
}

// Maps graph and variable numbers of an attribute; AttrsOf has copied the graphs.
absl::Status Linker::MapNumbers(AttrValue& value) {
  if (value.kind == KEEL_ATTR_GRAPH && value.i >= 0) value.i = graphs_[static_cast<size_t>(value.i)];
  if (value.kind == KEEL_ATTR_GRAPHS)
    for (int64_t& body : value.list) body = graphs_[static_cast<size_t>(body)];
  if (value.kind == KEEL_ATTR_VAR) {
    const ModuleVariable& variable = from_.variables[static_cast<size_t>(value.i)];
    ASSIGN_OR_RETURN(value.i, rules_.variable ? rules_.variable(variable)
                                              : to_.AddVariable(variable.name, variable.storage));
  }
  return absl::OkStatus();
}

}  // namespace keel
