// linker.cc: see linker.h.
#include "kernel/program/trace/linker.h"

#include "kernel/base/free_name.h"

namespace keel {

absl::StatusOr<int64_t> Linker::GraphFor(int64_t number) {
  int64_t& there = graphs_[static_cast<size_t>(number)];
  if (there >= 0) return there;
  const Graph& source = *from_.graphs[static_cast<size_t>(number)];
  std::vector<bool> wanted(source.nodes.size(), true);
  if (rules_.recompute) wanted = NeededNodes(source, source.params, source.results, {});
  for (NodeId n = 0; n < wanted.size(); n++)
    for (uint32_t body : wanted[n] ? BodiesOf(source.nodes[n].attrs) : std::vector<uint32_t>())
      RETURN_IF_ERROR(GraphFor(body).status());
  auto number_there = static_cast<int64_t>(to_.graphs.size());
  ASSIGN_OR_RETURN(Graph * made, to_.AddFreshGraph(source.name));
  RETURN_IF_ERROR(Copy(source, wanted, *made));
  return there = number_there;
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

absl::StatusOr<Origin> Linker::OriginOf(const Node& node) {
  auto [file, line] = from_.SourceOf(node.origin);
  Origin origin{0, to_.Source(file, line)};
  if (uint32_t device = node.origin.device) {
    ASSIGN_OR_RETURN(origin.device, to_.DeviceScope(from_.devices[device - 1]));
  }
  return origin;
}

absl::Status Linker::Copy(const Graph& source, const std::vector<bool>& wanted, Graph& made) {
  LinkedCopy copy(*this, source, made, &source);
  for (ValueId v : source.params) {
    TensorType type = source.values[v].type;
    RETURN_IF_ERROR(MapDims(rules_.dims, &type));
    ASSIGN_OR_RETURN(copy.map[v], made.AddParam(source.values[v].name, std::move(type)));
  }
  if (!rules_.recompute) made.rules = source.rules;
  RETURN_IF_ERROR(copy.CopyNodes(wanted));
  return copy.AddResults(source.results, source.result_names);
}

// Copies the graphs that the attributes name; maps dims, graphs and variables.
absl::Status Linker::MapAttrs(Attrs* attrs) {
  for (uint32_t body : BodiesOf(*attrs)) RETURN_IF_ERROR(GraphFor(body).status());
  RETURN_IF_ERROR(MapDims(rules_.dims, attrs));
  for (Attr& a : *attrs) {
    ForEachBody(a, [&](int64_t& body) { body = graphs_[static_cast<size_t>(body)]; });
    if (a.value.kind != KEEL_ATTR_VAR) continue;
    const ModuleVariable& variable = from_.variables[static_cast<size_t>(a.value.i)];
    ASSIGN_OR_RETURN(a.value.i, rules_.variable ? rules_.variable(variable)
                                                : to_.AddVariable(variable.name, variable.storage));
  }
  return absl::OkStatus();
}

absl::Status LinkedCopy::Adapt(NodeId n, Draft* draft) {
  RETURN_IF_ERROR(linker_.MapAttrs(&draft->attrs));
  if (!linker_.rules_.recompute) {
    for (TensorType& type : draft->types) RETURN_IF_ERROR(MapDims(linker_.rules_.dims, &type));
    ASSIGN_OR_RETURN(draft->origin, linker_.OriginOf(from_.nodes[n]));
    return absl::OkStatus();
  }
  if (HasEffect(*draft->op)) return RepeatsEffect(from_, n);
  draft->names.clear();
  draft->types.clear();
  draft->origin = {};
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> LinkedCopy::ConstantFor(uint32_t number) {
  if (!linker_.rules_.recompute) return linker_.ConstantFor(number, user_);
  Constant constant = linker_.from_.constants[number];
  constant.name.clear();
  return linker_.to_.AddConstant(std::move(constant));
}

}  // namespace keel
