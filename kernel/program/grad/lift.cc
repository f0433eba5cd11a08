// lift.cc: see lift.h. Works on the graph and on copies of the changed bodies.
#include "kernel/program/grad/lift.h"

#include <algorithm>

#include "kernel/program/grad/node_writer.h"
#include "kernel/program/grad/slice.h"

namespace keel {
namespace {

using Values = std::vector<ValueId>;

bool ContainsConstant(const Module& m, uint32_t body, uint32_t constant) {
  const Graph& graph = *m.graphs[body];
  return graph.constant_values.contains(constant) || std::ranges::any_of(graph.nodes, [&](const Node& node) {
           return IsControl(*node.op) && std::ranges::any_of(BodiesOf(node.attrs), [&](uint32_t b) {
                    return ContainsConstant(m, b, constant);
                  });
         });
}

absl::Status Lift(GraphSink& sink, const std::vector<uint32_t>& constants);

// A copy of the body with parameters for these constants, inserted at index `at`.
absl::StatusOr<uint32_t> WithParams(const Graph& from, const std::vector<uint32_t>& constants, size_t at) {
  std::unique_ptr<Graph> graph = CopyGraph(from);
  Values params = from.params, lifted;
  for (uint32_t number : constants) {
    ASSIGN_OR_RETURN(ValueId constant, graph->AddConstant(number));
    ASSIGN_OR_RETURN(lifted.emplace_back(), graph->AddParam("", from.module->constants[number].type));
    for (Node& node : graph->nodes) std::ranges::replace(node.in, constant, lifted.back());
    std::ranges::replace(graph->results, constant, lifted.back());
    graph->constant_values[number] = lifted.back();  // for nested control ops
  }
  GraphSink sink(*graph);
  RETURN_IF_ERROR(Lift(sink, constants));
  params.insert(params.begin() + static_cast<ptrdiff_t>(at), lifted.begin(), lifted.end());
  return ExtractGraph(*graph, params, graph->results, Keep::kEffects, from.name + ".lift");
}

// Constants are inserted after the other operands, but before the scanned operands of a scan.
absl::Status LiftNode(GraphSink& sink, NodeId id, const std::vector<uint32_t>& constants) {
  Graph& graph = sink.graph();
  const Node node = graph.nodes[id];  // a copy, because the graph grows
  std::vector<uint32_t> bodies = BodiesOf(*node.op, node.attrs), held;
  std::ranges::copy_if(constants, std::back_inserter(held), [&](uint32_t constant) {
    return std::ranges::any_of(bodies,
                               [&](uint32_t b) { return ContainsConstant(*graph.module, b, constant); });
  });
  if (held.empty()) return absl::OkStatus();
  bool scan = OpName(*node.op) == "scan";
  int64_t invariants = IntAttr(node.attrs, "invariants");
  auto at = scan ? static_cast<size_t>(IntAttr(node.attrs, "carry") + invariants) : node.in.size();
  for (uint32_t& body : bodies) {
    const Graph& from = *graph.module->graphs[body];
    ASSIGN_OR_RETURN(body, WithParams(from, held, std::min(at, from.params.size())));
  }
  Values in = node.in;
  for (uint32_t number : held) {
    ASSIGN_OR_RETURN(ValueId constant, graph.AddConstant(number));
    in.insert(in.begin() + static_cast<ptrdiff_t>(at++), constant);
  }
  Attrs attrs = WithBodies(*node.op, node.attrs, bodies);
  if (scan) {
    std::erase_if(attrs, [](const Attr& a) { return a.name == "invariants"; });
    attrs.push_back(
        MakeAttrs({{"invariants", KEEL_ATTR_I64, invariants + static_cast<int64_t>(held.size())}})[0]);
  }
  return sink.ExtendNode(id, std::move(in), std::move(attrs));
}

absl::Status Lift(GraphSink& sink, const std::vector<uint32_t>& constants) {
  auto count = static_cast<NodeId>(sink.graph().nodes.size());
  for (NodeId n = 0; n < count; n++) {
    const Node& node = sink.graph().nodes[n];
    if (IsControl(*node.op) && !node.out.empty()) RETURN_IF_ERROR(LiftNode(sink, n, constants));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LiftConstants(Graph& graph, std::span<const ValueId> constants) {
  std::vector<uint32_t> numbers;
  for (ValueId v : constants) {
    uint32_t number = graph.values[v].index;
    if (IsFloating(graph.values[v].type.dtype) && std::ranges::find(numbers, number) == numbers.end())
      numbers.push_back(number);
  }
  if (numbers.empty()) return absl::OkStatus();
  GraphTransaction transaction(graph);
  RETURN_IF_ERROR(Lift(transaction.sink, numbers));
  transaction.Commit();
  return absl::OkStatus();
}

}  // namespace keel
