// body.cc: graphs called by nodes, as Body and BodyView.
#include "kernel/runtime/plugin/body.h"

#include <algorithm>

namespace keel {
namespace {

// Converts a graph to a Body.
class BodyBuilder {
 public:
  BodyBuilder(const Graph& graph, DimTable& dims, const DimMap& map)
      : graph_(graph), dims_(dims), map_(map), body_(std::make_shared<Body>()) {}

  absl::StatusOr<std::shared_ptr<const Body>> Run() {
    numbers_.assign(graph_.values.size(), kNoValue);
    for (ValueId v : graph_.params) RETURN_IF_ERROR(AddValue(v));
    body_->n_params = static_cast<uint32_t>(graph_.params.size());
    for (const Node& node : graph_.nodes) RETURN_IF_ERROR(AddNode(node));
    for (ValueId v : graph_.results) {
      RETURN_IF_ERROR(AddConstant(v));
      body_->results.push_back(numbers_[v]);
    }
    return std::shared_ptr<const Body>(std::move(body_));
  }

 private:
  absl::Status AddValue(ValueId v) {
    numbers_[v] = static_cast<uint32_t>(body_->values.size());
    body_->values.push_back(graph_.values[v].type);
    return MapDims(map_, &body_->values.back());
  }

  absl::Status AddConstant(ValueId v) {
    if (v == kNoValue || numbers_[v] != kNoValue) return absl::OkStatus();
    RETURN_IF_ERROR(AddValue(v));
    body_->constants[numbers_[v]] = graph_.module->constants[graph_.values[v].index];
    return absl::OkStatus();
  }

  absl::Status AddNode(const Node& from) {
    Body::Node node{from.op, "", {}, {}, from.attrs, nullptr};
    node.name = graph_.NodeName(static_cast<NodeId>(&from - graph_.nodes.data()));
    for (ValueId v : from.in) {
      RETURN_IF_ERROR(AddConstant(v));
      node.in.push_back(v == kNoValue ? kNoValue : numbers_[v]);
    }
    std::vector<Operand> operands = OperandsOf(node.in, [&](uint32_t v) { return body_->values[v]; });
    for (ValueId v : from.out) {
      RETURN_IF_ERROR(AddValue(v));
      node.out.push_back(numbers_[v]);
    }
    RETURN_IF_ERROR(MapDims(map_, &node.attrs));
    ASSIGN_OR_RETURN(node.body, BodyOf(*graph_.module, *node.op, node.attrs, dims_, map_));
    RETURN_IF_ERROR(Complete(operands, graph_.module->SourceText(from.origin), &node));
    body_->nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  // Fills in default attributes; checks that depend on symbols become checks of the whole body.
  absl::Status Complete(const std::vector<Operand>& operands, const std::string& source, Body::Node* node) {
    GraphTypesOf types = [&](int64_t graph) -> absl::StatusOr<GraphTypes> {
      ASSIGN_OR_RETURN(GraphTypes t, graph_.module->BodyTypes(graph));
      for (auto* side : {&t.params, &t.results})
        for (TensorType& type : *side) RETURN_IF_ERROR(MapDims(map_, &type));
      return t;
    };
    Inferred inferred;
    VarTypeOf vars = [&](int64_t v) { return graph_.module->VariableType(v); };
    RETURN_IF_ERROR(Infer(*node->op, operands, node->attrs, dims_, &inferred, &types, &vars));
    node->attrs = std::move(inferred.attrs);
    auto& checks = body_->checks;
    for (Inferred::Check& check : inferred.checks)
      if (!source.empty()) absl::StrAppend(&check.message, " (", source, ")");
    checks.insert(checks.end(), inferred.checks.begin(), inferred.checks.end());
    if (node->body) checks.insert(checks.end(), node->body->checks.begin(), node->body->checks.end());
    for (size_t i = 0; i < node->out.size(); i++) {
      const Dims &is = body_->values[node->out[i]].dims, &was = inferred.results[i].dims;
      for (size_t d = 0; d < is.size(); d++)
        if (is[d] != was[d])
          checks.push_back({was[d], is[d], true,
                            absl::StrCat("dim ", d, " of \"", node->name, "\" is declared as ",
                                         dims_.Print(is[d]), " but is inferred as ", dims_.Print(was[d]))});
    }
    return absl::OkStatus();
  }

  const Graph& graph_;
  DimTable& dims_;
  const DimMap& map_;
  std::shared_ptr<Body> body_;
  std::vector<uint32_t> numbers_;  // by value of the graph: its number in the body
};

keel_node::Side SideOf(const TensorType& type) {
  keel_node::Side side;
  side.dtype = type.dtype;
  side.dims.assign(type.dims.begin(), type.dims.end());
  return side;
}

}  // namespace

absl::Status MapDims(const DimMap& map, TensorType* type) {
  if (!map) return absl::OkStatus();
  for (Dim& d : type->dims) {
    ASSIGN_OR_RETURN(d, map(d));
  }
  return absl::OkStatus();
}

absl::Status MapDims(const DimMap& map, Attrs* attrs) {
  if (!map) return absl::OkStatus();
  for (Attr& a : *attrs) {
    if (a.value.kind == KEEL_ATTR_DIM) {
      ASSIGN_OR_RETURN(a.value.i, map(a.value.i));
    }
    if (a.value.kind != KEEL_ATTR_DIMS) continue;
    for (int64_t& d : a.value.list) {
      ASSIGN_OR_RETURN(d, map(d));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Body>> CreateBody(const Graph& graph, DimTable& dims,
                                                       const DimMap& map) {
  return BodyBuilder(graph, dims, map).Run();
}

absl::StatusOr<std::shared_ptr<const Body>> BodyOf(const Module& module, const OpDef& op, const Attrs& attrs,
                                                   DimTable& dims, const DimMap& map) {
  if (!IsTypedByGraph(op)) return nullptr;
  for (const Attr& a : attrs)
    if (a.value.kind == KEEL_ATTR_GRAPH)
      return CreateBody(*module.graphs[static_cast<size_t>(a.value.i)], dims, map);
  return Internal(OpName(op), " names no graph");
}

bool MentionsSymbols(const Dims& dims) { return std::ranges::any_of(dims, IsSymbolic); }

bool MentionsSymbols(const Attrs& attrs) {
  return std::ranges::any_of(attrs, [](const Attr& a) {
    return a.value.kind == KEEL_ATTR_DIM
               ? IsSymbolic(a.value.i)
               : a.value.kind == KEEL_ATTR_DIMS && std::ranges::any_of(a.value.list, IsSymbolic);
  });
}

bool MentionsSymbols(const Body& body) {
  for (const TensorType& type : body.values)
    if (MentionsSymbols(type.dims)) return true;
  for (const Body::Node& node : body.nodes)
    if (MentionsSymbols(node.attrs) || (node.body && MentionsSymbols(*node.body))) return true;
  return false;
}

absl::StatusOr<std::shared_ptr<const BodyView>> ViewBody(const Body& body, const DimMap& of_values,
                                                         const DimMap& of_attrs) {
  auto view = std::make_shared<BodyView>();
  std::vector<TensorType> types = body.values;
  for (TensorType& type : types) RETURN_IF_ERROR(MapDims(of_values, &type));
  for (const Body::Node& from : body.nodes) {
    keel_node node;
    node.op = from.op;
    node.name = from.name;
    for (uint32_t v : from.in) {
      node.in.push_back(v == kNoValue ? keel_node::Side{} : SideOf(types[v]));
      if (auto constant = body.constants.find(v); constant != body.constants.end())
        node.in.back().data = constant->second.data;
    }
    for (uint32_t v : from.out) node.out.push_back(SideOf(types[v]));
    node.attrs = from.attrs;
    RETURN_IF_ERROR(MapDims(of_attrs, &node.attrs));
    if (from.body) {
      ASSIGN_OR_RETURN(node.body, ViewBody(*from.body, of_values, of_attrs));
    }
    view->in.push_back(from.in);
    view->nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < body.nodes.size(); i++) {
    const Body::Node& from = body.nodes[i];
    view->rows.push_back({&view->nodes[i], view->in[i].data(), static_cast<uint32_t>(from.in.size()),
                          static_cast<uint32_t>(from.out.size()), from.out.empty() ? kNoValue : from.out[0],
                          0});
  }
  view->results = body.results;
  view->n_values = static_cast<uint32_t>(types.size());
  return std::shared_ptr<const BodyView>(std::move(view));
}

}  // namespace keel
