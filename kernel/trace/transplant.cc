// transplant.cc: see transplant.h.
#include "kernel/trace/transplant.h"

#include "kernel/grad/slice.h"

namespace keel {

void Transplant::BindSymbols(const TensorType& type, const TensorType& given) {
  for (size_t d = 0; d < type.dims.size() && d < given.dims.size(); d++)
    if (auto symbol = from_.dims.symbol_index(type.dims[d])) symbols_[*symbol] = given.dims[d];
}

absl::StatusOr<Dim> Transplant::Size(Dim dim) const {
  if (!IsSymbolic(dim)) return dim;
  std::vector<size_t> used;
  from_.dims.Symbols(dim, &used);
  for (size_t symbol : used)
    if (symbols_[symbol] < 0)
      return Internal("the size ", from_.dims.Print(dim), " is unknown in the target module");
  return from_.dims.Evaluate(dim, symbols_);
}

absl::StatusOr<Attrs> Transplant::AttrsOf(Attrs attrs) {
  for (Attr& attr : attrs) {
    AttrValue& v = attr.value;
    auto each = [&](auto change) -> absl::Status {
      if (v.list.empty()) {
        ASSIGN_OR_RETURN(v.i, change(v.i));
      }
      for (int64_t& i : v.list) {
        ASSIGN_OR_RETURN(i, change(i));
      }
      return absl::OkStatus();
    };
    if (v.kind == KEEL_ATTR_DIM || v.kind == KEEL_ATTR_DIMS)
      RETURN_IF_ERROR(each([&](int64_t i) { return Size(i); }));
    if (v.kind == KEEL_ATTR_GRAPH || v.kind == KEEL_ATTR_GRAPHS)
      RETURN_IF_ERROR(each([&](int64_t i) { return Body(i); }));
  }
  return attrs;
}

absl::StatusOr<int64_t> Transplant::Body(int64_t number) {
  if (number < 0) return number;  // none
  if (auto it = bodies_.find(number); it != bodies_.end()) return it->second;
  const Graph& body = *from_.graphs[static_cast<size_t>(number)];
  auto made = static_cast<int64_t>(to_.graphs.size());
  ASSIGN_OR_RETURN(Graph * to, NewGraph(to_, body.name));
  std::vector<ValueId> at(body.values.size(), kNoValue);
  for (ValueId param : body.params) {
    TensorType type = body.values[param].type;
    for (Dim& dim : type.dims) {
      ASSIGN_OR_RETURN(dim, Size(dim));
    }
    ASSIGN_OR_RETURN(at[param], to->AddParam("", std::move(type)));
  }
  RETURN_IF_ERROR(Write(body, NeededNodes(body, body.params, body.results, {}), to, &at));
  for (ValueId v : body.results) {
    ASSIGN_OR_RETURN(ValueId here, Find(body, v, to, &at));
    RETURN_IF_ERROR(to->AddResult("", here));
  }
  return bodies_[number] = made;
}

absl::StatusOr<ValueId> Transplant::Find(const Graph& from, ValueId v, Graph* to, std::vector<ValueId>* at) {
  if (v == kNoValue) return v;
  ValueId& here = (*at)[v];
  if (here != kNoValue || from.values[v].kind != ValueKind::kConstant) return here;
  Constant constant = from_.constants[from.values[v].index];
  constant.name.clear();
  ASSIGN_OR_RETURN(uint32_t number, to_.AddConstant(std::move(constant)));
  ASSIGN_OR_RETURN(here, to->AddConstant(number));
  return here;
}

absl::Status Transplant::Write(const Graph& from, const std::vector<bool>& nodes, Graph* to,
                               std::vector<ValueId>* at) {
  for (NodeId n = 0; n < from.nodes.size(); n++) {
    if (!nodes[n]) continue;
    const Node& node = from.nodes[n];
    if (HasEffect(*node.op))
      return Unimplemented("its gradient would recompute '", from.NodeName(n), "' of graph '", from.name,
                           "' (", OpName(*node.op), "), which has an effect");
    std::vector<ValueId> in;
    for (ValueId v : node.in) {
      ASSIGN_OR_RETURN(in.emplace_back(), Find(from, v, to, at));
    }
    ASSIGN_OR_RETURN(Attrs attrs, AttrsOf(node.attrs));
    ASSIGN_OR_RETURN(NodeId made, to->AddNode(node.op, std::move(in), std::move(attrs)));
    for (size_t r = 0; r < node.out.size(); r++)
      if ((*at)[node.out[r]] == kNoValue) (*at)[node.out[r]] = to->nodes[made].out[r];
  }
  return absl::OkStatus();
}

}  // namespace keel
