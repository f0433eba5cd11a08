#include "kernel/grad/slice.h"

#include "kernel/base/free_name.h"
#include "kernel/graph/node_effects.h"

namespace keel {
namespace {

class GraphExtractor {
 public:
  GraphExtractor(const Graph& from, Graph& to, Keep keep)
      : from_(from), to_(to), keep_(keep), map_(from.values.size(), kNoValue) {}

  absl::Status Run(std::span<const ValueId> params, std::span<const ValueId> results) {
    for (ValueId v : params) {
      ASSIGN_OR_RETURN(map_[v], to_.AddParam(Name(v), from_.values[v].type));
    }
    std::vector<NodeId> targets;
    if (keep_ == Keep::kEffects) targets = MustRunNodes(from_);
    std::vector<bool> needed = NeededNodes(from_, params, results, targets);
    for (NodeId n = 0; n < needed.size(); n++)
      if (needed[n]) RETURN_IF_ERROR(AddNode(from_.nodes[n]));
    for (ValueId v : results) {
      ASSIGN_OR_RETURN(ValueId here, Mapped(v));
      RETURN_IF_ERROR(to_.AddResult("", here));
    }
    return absl::OkStatus();
  }

 private:
  // "" if an unnamed parameter already has this name.
  std::string Name(ValueId v) const {
    const std::string& name = from_.values[v].name;
    return to_.by_name.contains(name) ? "" : name;
  }

  absl::StatusOr<ValueId> Mapped(ValueId v) {
    if (v == kNoValue || map_[v] != kNoValue) return v == kNoValue ? v : map_[v];
    ASSIGN_OR_RETURN(map_[v], to_.AddConstant(from_.values[v].index));
    return map_[v];
  }

  absl::Status AddNode(const Node& node) {
    std::vector<ValueId> in;
    std::vector<std::string> names;
    std::vector<TensorType> types;
    for (ValueId v : node.in) {
      ASSIGN_OR_RETURN(in.emplace_back(), Mapped(v));
    }
    for (ValueId v : node.out) {
      names.push_back(Name(v));
      types.push_back(from_.values[v].type);
    }
    if (node.out.empty()) names.push_back(node.name);
    Attrs attrs = node.attrs;
    if (keep_ == Keep::kNone && MustRun(from_, node)) {
      ASSIGN_OR_RETURN(attrs, AttrsWithoutEffects(node));
    }
    to_.scope = node.origin;
    ASSIGN_OR_RETURN(NodeId made, to_.AddNode(node.op, std::move(in), std::move(attrs), names, types));
    for (size_t i = 0; i < node.out.size(); i++)
      if (map_[node.out[i]] == kNoValue) map_[node.out[i]] = to_.nodes[made].out[i];
    return absl::OkStatus();
  }

  absl::StatusOr<Attrs> AttrsWithoutEffects(const Node& node) {
    if (HasEffect(*node.op))
      return Unimplemented("its gradient would recompute '", from_.ValueName(node.out[0]), "' (",
                           OpName(*node.op), "), which has an effect");
    std::vector<uint32_t> bodies = BodiesOf(*node.op, node.attrs);
    for (uint32_t& body : bodies) {
      ASSIGN_OR_RETURN(body, WithoutEffects(*from_.module, body));
    }
    return WithBodies(*node.op, node.attrs, bodies);
  }

  const Graph& from_;
  Graph& to_;
  const Keep keep_;
  std::vector<ValueId> map_;
};

}  // namespace

std::unique_ptr<Graph> CopyGraph(const Graph& graph) {
  auto copy = std::make_unique<Graph>(graph);
  copy->called = false;
  return copy;
}

absl::StatusOr<Graph*> NewGraph(Module& module, std::string_view stem) {
  return module.AddGraph(FreeName(
      stem, [&](const std::string& name) { return module.GraphNumber(name).ok(); }, ""));
}

absl::StatusOr<uint32_t> ExtractGraph(const Graph& from, std::span<const ValueId> params,
                                      std::span<const ValueId> results, Keep keep, std::string_view stem) {
  auto number = static_cast<uint32_t>(from.module->graphs.size());
  ASSIGN_OR_RETURN(Graph * to, NewGraph(*from.module, stem));
  RETURN_IF_ERROR(GraphExtractor(from, *to, keep).Run(params, results));
  to->scope = {};
  return number;
}

absl::StatusOr<uint32_t> WithoutEffects(Module& module, uint32_t number) {
  const Graph& graph = *module.graphs[number];
  if (!graph.effects.MustRun()) return number;
  return ExtractGraph(graph, graph.params, graph.results, Keep::kNone, absl::StrCat(graph.name, ".quiet"));
}

std::vector<bool> ReadBetween(const Graph& from, std::span<const ValueId> params,
                              std::span<const ValueId> results) {
  std::vector<bool> read(from.values.size()), needed = NeededNodes(from, params, results, {});
  for (ValueId v : results) read[v] = true;
  for (size_t n = 0; n < needed.size(); n++)
    for (ValueId v : from.nodes[n].in)
      if (needed[n] && v != kNoValue) read[v] = true;
  return read;
}

Attrs WithBodies(const OpDef& op, const Attrs& from, std::span<const uint32_t> bodies) {
  Attrs attrs = from;
  size_t next = 0;
  for (const AttrInfo& info : OpAttrs(op))
    for (Attr& a : attrs) {
      if (a.name != info.name) continue;
      if (a.value.kind == KEEL_ATTR_GRAPH) a.value.i = bodies[next++];
      if (a.value.kind == KEEL_ATTR_GRAPHS)
        for (int64_t& body : a.value.list) body = bodies[next++];
    }
  return attrs;
}

}  // namespace keel
