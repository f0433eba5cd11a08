// build.cc: parameters and nodes from C ABI types, shared by importers (edit.cc) and the graph functions of
// keel.h.
#include <algorithm>

#include "kernel/plugin/host.h"

namespace keel {

absl::StatusOr<TensorType> ParamType(std::string_view name, keel_dt code, const keel_dim* dims,
                                     int32_t ndim) {
  std::optional<DType> dtype = DTypeOf(code);
  if (!dtype) return Invalid("parameter \"", name, "\": dtype code ", code, " is not one of Keel's");
  if (ndim < 0 || ndim > KEEL_MAX_RANK || (ndim && !dims))
    return Invalid("parameter \"", name, "\": ", ndim, " dims; 0 to ", KEEL_MAX_RANK, " are possible");
  return TensorType{*dtype, Dims(dims, dims + ndim)};
}

absl::StatusOr<ValueId> BuildParam(Graph& graph, const char* name, keel_dt code, const keel_dim* dims,
                                   int32_t ndim) {
  if (!name) name = "";
  ASSIGN_OR_RETURN(TensorType type, ParamType(name, code, dims, ndim));
  return graph.AddParam(name, std::move(type));
}

absl::Status BuildNode(Graph& graph, const keel_node_spec& spec, std::span<keel_value> out) {
  ASSIGN_OR_RETURN(const OpDef* op, graph.module->catalogue->Find(spec.op, spec.version));
  ASSIGN_OR_RETURN(Attrs attrs, OwnAttrs(spec.attr_names, spec.attrs, spec.n_attrs));
  std::vector<std::string> names;
  if (spec.name && spec.name[0]) names.emplace_back(spec.name);
  ASSIGN_OR_RETURN(NodeId node, graph.AddNode(op, std::vector<ValueId>(spec.in, spec.in + spec.n_in),
                                              std::move(attrs), names));
  const std::vector<ValueId>& results = graph.nodes[node].out;
  if (results.size() != out.size())
    return Invalid(spec.op, " has ", results.size(), " results here, but 'out' has room for ", out.size());
  std::copy(results.begin(), results.end(), out.begin());
  return absl::OkStatus();
}

}  // namespace keel
