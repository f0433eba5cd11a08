#include "kernel/language/graph/copier.h"

namespace keel {

absl::StatusOr<ValueId> GraphCopier::Find(ValueId v) {
  if (v == kNoValue || map[v] != kNoValue) return v == kNoValue ? v : map[v];
  if (from_.values[v].kind != ValueKind::kConstant)
    return Invalid("\"", from_.ValueName(v), "\" is used before it is computed");
  ASSIGN_OR_RETURN(uint32_t number, ConstantFor(from_.values[v].index));
  ASSIGN_OR_RETURN(map[v], to_.AddConstant(number));
  return map[v];
}

absl::Status GraphCopier::AddParam(ValueId v, std::string_view name) {
  ASSIGN_OR_RETURN(map[v], to_.AddParam(NameIfFree(std::string(name)), from_.values[v].type));
  return absl::OkStatus();
}

absl::Status GraphCopier::CopyNode(NodeId n) {
  const Node& node = from_.nodes[n];
  Draft draft{node.op, {}, node.attrs, {}, {}, node.origin};
  for (ValueId v : node.in) {
    ASSIGN_OR_RETURN(draft.in.emplace_back(), Find(v));
  }
  for (ValueId v : node.out) {
    draft.names.push_back(NameIfFree(from_.values[v].name));
    draft.types.push_back(from_.values[v].type);
  }
  if (node.out.empty()) draft.names.push_back(NameIfFree(node.name));
  RETURN_IF_ERROR(Adapt(n, &draft));
  ASSIGN_OR_RETURN(std::vector<ValueId> made, Add(std::move(draft)));
  for (size_t i = 0; i < made.size(); i++)
    if (ValueId& known = map[node.out[i]]; known == kNoValue) known = made[i];
  return absl::OkStatus();
}

absl::Status GraphCopier::CopyNodes(const std::vector<bool>& wanted) {
  for (NodeId n = 0; n < wanted.size(); n++)
    if (wanted[n]) RETURN_IF_ERROR(CopyNode(n));
  return absl::OkStatus();
}

absl::Status GraphCopier::AddResults(std::span<const ValueId> values, std::span<const std::string> names) {
  for (size_t i = 0; i < values.size(); i++) {
    ASSIGN_OR_RETURN(ValueId v, Find(values[i]));
    RETURN_IF_ERROR(to_.AddResult(i < names.size() ? names[i] : "", v));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ValueId>> GraphCopier::Add(Draft draft) {
  to_.scope = draft.origin;
  ASSIGN_OR_RETURN(NodeId made, to_.AddNode(draft.op, std::move(draft.in), std::move(draft.attrs),
                                            draft.names, draft.types));
  return to_.nodes[made].out;
}

absl::Status RepeatsEffect(const Graph& graph, NodeId n) {
  return Unimplemented("its gradient would recompute '", graph.NodeName(n), "' of graph '", graph.name, "' (",
                       OpName(*graph.nodes[n].op), "), which has an effect");
}

}  // namespace keel
