// flatten.cc: see flatten.h.
#include "kernel/runtime/pass/flatten.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "kernel/base/free_name.h"
#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/graph_sink.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/pass/rewrite.h"

namespace keel {
namespace {

struct Work {
  const Module& from;
  Module& to;
  HashSet<std::string> whole;
  const std::function<bool(const keel_node&)>& keeps;
  std::vector<uint32_t> written;            // variables
  HashMap<uint32_t, uint32_t> graphs;       // bodies of control ops, by number
  HashMap<uint32_t, uint32_t> constants;    // by number
  HashMap<uint32_t, uint32_t> of_variable;  // constants of variables, by number
};

absl::StatusOr<uint32_t> FlattenGraph(Work& work, const Graph& from);

class Flattener : public GraphSink {
 public:
  Flattener(Work& work, Graph& to) : GraphSink(to), work_(work), to_(to) {}

  absl::Status Run(const Graph& from) {
    std::vector<ValueId> map(from.values.size(), kNoValue);
    for (ValueId v : from.params) {
      ASSIGN_OR_RETURN(map[v], to_.AddParam(from.values[v].name, from.values[v].type));
    }
    RETURN_IF_ERROR(AddNodes(from, map, true));
    for (size_t i = 0; i < from.results.size(); i++) {
      ASSIGN_OR_RETURN(ValueId v, Find(from, map, from.results[i]));
      RETURN_IF_ERROR(to_.AddResult(from.result_names[i], v));
    }
    return absl::OkStatus();
  }

  // Nodes of the bodies of ops.
  absl::StatusOr<std::vector<Value>> Node(std::string_view op, std::span<const Value> in,
                                          const Attrs& attrs) override {
    ASSIGN_OR_RETURN(const OpDef* def, work_.to.catalogue->Find(op, 0));
    return Emit(*def, {in.begin(), in.end()}, attrs, {}, {});
  }

 private:
  absl::StatusOr<ValueId> Find(const Graph& from, std::vector<ValueId>& map, ValueId v) {
    if (v == kNoValue || map[v] != kNoValue) return v == kNoValue ? v : map[v];
    const keel::Value& value = from.values[v];
    if (value.kind != ValueKind::kConstant)
      return Internal("value ", from.ValueName(v), " is not a result of a flattened node");
    auto [known, fresh] = work_.constants.try_emplace(value.index, 0);
    if (fresh) {
      ASSIGN_OR_RETURN(known->second, work_.to.AddConstant(work_.from.constants[value.index]));
    }
    ASSIGN_OR_RETURN(map[v], to_.AddConstant(known->second));
    return map[v];
  }

  // named: values keep their names.
  absl::Status AddNodes(const Graph& from, std::vector<ValueId>& map, bool named) {
    std::vector<bool> needed = NeededNodes(from, from.params, from.results, MustRunNodes(from));
    for (NodeId n = 0; n < from.nodes.size(); n++) {
      if (!needed[n]) continue;
      const keel::Node& node = from.nodes[n];
      if (absl::Status s = AddNode(from, map, node, named); !s.ok())
        return Annotate(Annotate(s, kErrorNode, from.NodeName(n)), kErrorOp, OpName(*node.op));
    }
    return absl::OkStatus();
  }

  absl::Status AddNode(const Graph& from, std::vector<ValueId>& map, const keel::Node& node, bool named) {
    std::vector<ValueId> in;
    for (ValueId v : node.in) {
      ASSIGN_OR_RETURN(in.emplace_back(), Find(from, map, v));
    }
    std::vector<std::string> names;
    std::vector<TensorType> types;
    for (ValueId v : node.out) {
      const std::string& name = from.values[v].name;
      names.push_back(named && !to_.by_name.contains(name) ? name : "");
      types.push_back(from.values[v].type);
    }
    if (IsTypedByGraph(*node.op)) return Inline(node, std::move(in), map);
    ASSIGN_OR_RETURN(std::vector<Value> out, Emit(*node.op, std::move(in), node.attrs, names, types));
    for (size_t i = 0; i < out.size(); i++) map[node.out[i]] = out[i];
    return absl::OkStatus();
  }

  absl::Status Inline(const keel::Node& call, std::vector<ValueId> in, std::vector<ValueId>& map) {
    const Graph& body = *work_.from.graphs[BodiesOf(call.attrs)[0]];
    std::vector<ValueId> inner(body.values.size(), kNoValue);
    for (size_t i = 0; i < in.size(); i++) inner[body.params[i]] = in[i];
    RETURN_IF_ERROR(AddNodes(body, inner, false));
    for (size_t i = 0; i < call.out.size(); i++) {
      ASSIGN_OR_RETURN(map[call.out[i]], Find(body, inner, body.results[i]));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> StaysWhole(const OpDef& op, const std::vector<Value>& in, const Attrs& attrs) {
    if (!HasBody(op)) return true;
    if (!work_.whole.contains(std::string(OpName(op)))) return false;
    std::vector<Operand> operands = OperandsOf(in, [&](Value v) { return Type(v); });
    Inferred inferred;
    RETURN_IF_ERROR(Infer(op, operands, attrs, work_.to.dims, &inferred));
    keel_node view;
    view.op = &op;
    for (Value v : in) view.in.push_back(ViewValue(to_, v, true));
    for (const TensorType& type : inferred.results) view.out.push_back(ViewType(type));
    view.attrs = std::move(inferred.attrs);
    return work_.keeps(view);
  }

  absl::StatusOr<std::vector<Value>> Emit(const OpDef& op, std::vector<Value> in, Attrs attrs,
                                          const std::vector<std::string>& names,
                                          const std::vector<TensorType>& types) {
    if (EffectOf(op) == EffectKind::kRead) {
      auto variable = static_cast<uint32_t>(IntAttr(attrs, VarAttr(op)));
      if (std::ranges::find(work_.written, variable) == work_.written.end()) return Freeze(variable);
    }
    ASSIGN_OR_RETURN(const bool whole, StaysWhole(op, in, attrs));
    if (!whole) return ExpandBody(*work_.to.catalogue, op, in, attrs, work_.to.dims, *this);
    for (Attr& a : attrs) {
      absl::Status status;
      ForEachBody(a, [&](int64_t& body) {
        auto made = FlattenGraph(work_, *work_.from.graphs[static_cast<size_t>(body)]);
        if (made.ok())
          body = *made;
        else
          status = made.status();
      });
      RETURN_IF_ERROR(status);
    }
    ASSIGN_OR_RETURN(NodeId made, to_.AddNode(&op, std::move(in), std::move(attrs), names, types));
    return to_.nodes[made].out;
  }

  absl::StatusOr<std::vector<Value>> Freeze(uint32_t number) {
    auto [known, fresh] = work_.of_variable.try_emplace(number, 0);
    if (fresh) {
      const ModuleVariable& variable = work_.from.variables[number];
      ASSIGN_OR_RETURN(ArrayRef value, variable.storage->ReadOnHost());
      auto taken = [&](const std::string& name) {
        if (work_.from.FindConstant(name).ok()) return true;
        return std::ranges::any_of(work_.from.graphs,
                                   [&](const auto& graph) { return graph->by_name.contains(name); });
      };
      ASSIGN_OR_RETURN(known->second,
                       work_.to.AddConstant(ConstantOf(FreeName(variable.name, taken), std::move(value))));
    }
    ASSIGN_OR_RETURN(ValueId v, to_.AddConstant(known->second));
    return std::vector<Value>{v};
  }

  Work& work_;
  Graph& to_;
};

// The number of the new graph.
absl::StatusOr<uint32_t> FlattenGraph(Work& work, const Graph& from) {
  ASSIGN_OR_RETURN(uint32_t number, work.from.GraphNumber(from.name));
  if (auto known = work.graphs.find(number); known != work.graphs.end()) return known->second;
  ASSIGN_OR_RETURN(Graph * to, work.to.AddGraph(from.name));
  auto made = static_cast<uint32_t>(work.to.graphs.size() - 1);
  RETURN_IF_ERROR(Flattener(work, *to).Run(from));
  return work.graphs[number] = made;
}

}  // namespace

absl::StatusOr<Flat> Flatten(const Graph& graph, std::string_view whole,
                             const std::function<bool(const keel_node&)>& keeps) {
  const Module& from = *graph.module;
  auto to = std::make_shared<Module>(from.catalogue);
  to->dims.CopyFrom(from.dims);
  for (const ModuleVariable& variable : from.variables)  // with the same numbers
    RETURN_IF_ERROR(to->AddVariable(variable.name, variable.storage).status());
  Work work{from, *to, {}, keeps, graph.effects.writes, {}, {}, {}};
  for (absl::string_view op : absl::StrSplit(whole, ' ', absl::SkipEmpty()))
    work.whole.insert(std::string(op));
  ASSIGN_OR_RETURN(uint32_t number, FlattenGraph(work, graph));
  return Flat{to, to->graphs[number].get()};
}

}  // namespace keel
