// build.cc: see build.h.
#include "kernel/runtime/plugin/build.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "kernel/language/graph/constant.h"

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

absl::StatusOr<Constant> BuildConstant(const char* name, ArrayRef array) {
  if (!array->contiguous) {
    ASSIGN_OR_RETURN(array, CopyArray(array->view));
  }
  return ConstantOf(name ? name : "", std::move(array));
}

namespace {

absl::Status Build(Graph& graph, const keel_node_spec& spec, std::span<keel_value> out) {
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

}  // namespace

absl::Status BuildNode(Graph& graph, const keel_node_spec& spec, std::span<keel_value> out) {
  absl::Status status = Build(graph, spec, out);
  if (status.ok()) return status;
  std::string_view name = spec.name ? spec.name : "";
  if (!name.empty() && !absl::StartsWith(status.message(), "node '"))
    status = Reword(status, absl::StrCat("node '", name, "': ", status.message()));
  return Annotate(Annotate(std::move(status), kErrorOp, spec.op), kErrorNode, name);
}

absl::Status CheckHasValue(const Graph& graph, keel_value value) {
  if (value < graph.values.size()) return absl::OkStatus();
  return NotFound("value ", value, " is not one of the ", graph.values.size(), " values of graph \"",
                  graph.name, "\"");
}

absl::Status BuildResult(Graph& graph, const char* name, keel_value value) {
  RETURN_IF_ERROR(CheckHasValue(graph, value));
  return graph.AddResult(name ? name : "", value);
}

keel_attr ViewAttr(const AttrValue& v) {
  keel_attr a{};
  a.kind = v.kind;
  a.i = v.i;
  a.f = v.f;
  if (v.kind == KEEL_ATTR_DTYPE) a.i = Info(static_cast<DType>(v.i)).code;
  if (v.kind == KEEL_ATTR_STR) a.p = v.s.data(), a.count = static_cast<uint32_t>(v.s.size());
  if (v.kind == KEEL_ATTR_I64S || v.kind == KEEL_ATTR_DIMS || v.kind == KEEL_ATTR_GRAPHS)
    a.p = v.list.data(), a.count = static_cast<uint32_t>(v.list.size());
  if (v.kind == KEEL_ATTR_F64S) a.p = v.floats.data(), a.count = static_cast<uint32_t>(v.floats.size());
  return a;
}

static absl::StatusOr<AttrValue> OwnAttr(const keel_attr& a) {
  constexpr uint32_t kMaxEntries = 1 << 20;
  AttrValue v;
  v.kind = a.kind;
  v.i = a.i;
  v.f = a.f;
  if (a.count && !a.p && a.kind >= KEEL_ATTR_STR && a.kind != KEEL_ATTR_DTYPE && a.kind != KEEL_ATTR_DIM &&
      a.kind != KEEL_ATTR_GRAPH && a.kind != KEEL_ATTR_VAR)
    return Invalid("an attribute of ", a.count, " entries without data");
  if (a.count > kMaxEntries)
    return Invalid("an attribute of ", a.count, " entries; at most ", kMaxEntries, " are possible");
  if (a.kind == KEEL_ATTR_STR) v.s.assign(static_cast<const char*>(a.p), a.count);
  if (a.kind == KEEL_ATTR_I64S || a.kind == KEEL_ATTR_DIMS || a.kind == KEEL_ATTR_GRAPHS)
    v.list.assign(static_cast<const int64_t*>(a.p), static_cast<const int64_t*>(a.p) + a.count);
  if (a.kind == KEEL_ATTR_F64S)
    v.floats.assign(static_cast<const double*>(a.p), static_cast<const double*>(a.p) + a.count);
  if (a.kind == KEEL_ATTR_DTYPE) {
    std::optional<DType> dtype = DTypeOf(static_cast<keel_dt>(a.i));
    if (!dtype) return Invalid("attribute value ", a.i, " is not a dtype of Keel");
    v.i = static_cast<int64_t>(*dtype);
  }
  if (a.kind < KEEL_ATTR_BOOL || a.kind > KEEL_ATTR_GRAPHS)
    return Invalid("attribute kind ", a.kind, " is not known");
  return v;
}

absl::StatusOr<Attrs> OwnAttrs(const char* const* names, const keel_attr* attrs, uint32_t n) {
  Attrs out;
  for (uint32_t i = 0; i < n; i++) {
    if (!names || !attrs || !names[i]) return Invalid("attribute ", i, " has no name or no value");
    absl::StatusOr<AttrValue> value = OwnAttr(attrs[i]);
    if (!value.ok()) return Invalid("attribute \"", names[i], "\": ", value.status().message());
    out.push_back({names[i], *std::move(value)});
  }
  SortAttrs(&out);
  for (size_t i = 1; i < out.size(); i++)
    if (out[i].name == out[i - 1].name) return Invalid("attribute \"", out[i].name, "\" is given twice");
  return out;
}

}  // namespace keel
