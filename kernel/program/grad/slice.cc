#include "kernel/program/grad/slice.h"

#include "kernel/language/graph/copier.h"
#include "kernel/language/graph/node_effects.h"

namespace keel {
namespace {

class GraphExtractor : public GraphCopier {
 public:
  GraphExtractor(const Graph& from, Graph& to, Keep keep) : GraphCopier(from, to), keep_(keep) {}

  absl::Status Run(std::span<const ValueId> params, std::span<const ValueId> results) {
    for (ValueId v : params) RETURN_IF_ERROR(AddParam(v, from_.values[v].name));
    std::vector<NodeId> targets;
    if (keep_ == Keep::kEffects) targets = MustRunNodes(from_);
    RETURN_IF_ERROR(CopyNodes(NeededNodes(from_, params, results, targets)));
    return AddResults(results);
  }

 private:
  absl::Status Adapt(NodeId n, Draft* draft) override {
    if (keep_ == Keep::kEffects || !MustRun(from_, from_.nodes[n])) return absl::OkStatus();
    if (HasEffect(*draft->op)) return RepeatsEffect(from_, n);
    std::vector<uint32_t> bodies = BodiesOf(*draft->op, draft->attrs);
    for (uint32_t& body : bodies) {
      ASSIGN_OR_RETURN(body, WithoutEffects(*from_.module, body));
    }
    draft->attrs = WithBodies(*draft->op, draft->attrs, bodies);
    return absl::OkStatus();
  }

  const Keep keep_;
};

}  // namespace

std::unique_ptr<Graph> CopyGraph(const Graph& graph) {
  auto copy = std::make_unique<Graph>(graph);
  copy->called = false;
  return copy;
}

absl::StatusOr<uint32_t> ExtractGraph(const Graph& from, std::span<const ValueId> params,
                                      std::span<const ValueId> results, Keep keep, std::string_view stem) {
  auto number = static_cast<uint32_t>(from.module->graphs.size());
  ASSIGN_OR_RETURN(Graph * to, from.module->AddFreshGraph(stem, ""));
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
    for (Attr& a : attrs)
      if (a.name == info.name) ForEachBody(a, [&](int64_t& body) { body = bodies[next++]; });
  return attrs;
}

}  // namespace keel
