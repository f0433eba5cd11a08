// jacobian.cc: Jacobians: the gradient for a symbolic seed becomes the body of a scan over the unit seeds.
#include <algorithm>

#include "kernel/program/grad/gradient.h"
#include "kernel/program/grad/node_writer.h"
#include "kernel/program/grad/slice.h"

namespace keel {
namespace {

using Values = std::vector<ValueId>;

// [m, dims of y]: entry i is 1 at element i of y and 0 elsewhere.
absl::StatusOr<ValueId> Units(GraphSink& sink, NodeWriter& writer, const TensorType& y) {
  Dim count = 1;
  for (Dim d : y.dims) {
    ASSIGN_OR_RETURN(count, sink.graph().module->dims.Mul(count, d));
  }
  Dims dims{count};
  dims.insert(dims.end(), y.dims.begin(), y.dims.end());
  ValueId eye = writer.Node(
      "eye", {}, {{"dtype", KEEL_ATTR_DTYPE, static_cast<int64_t>(y.dtype)}, {"rows", KEEL_ATTR_DIM, count}});
  return writer.Shaped("reshape", "to", eye, dims);
}

// Values defined before node `first` that the gradient reads.
Values ReadBefore(const Graph& graph, NodeId first, ValueId seed, ValueId dx) {
  Values before, read;
  for (ValueId v = 0; v < graph.values.size(); v++) {
    ValueKind kind = graph.values[v].kind;
    if (kind == ValueKind::kParam || (kind == ValueKind::kResult && graph.values[v].index < first))
      before.push_back(v);
  }
  std::vector<bool> reads = ReadBetween(graph, before, {&dx, 1});
  for (ValueId v : before)
    if (reads[v] && v != seed) read.push_back(v);
  return read;
}

}  // namespace

absl::StatusOr<ValueId> Jacobian(Graph& graph, ValueId y, ValueId x, bool zeros,
                                 const std::vector<bool>* through) {
  if (std::max(y, x) >= graph.values.size())
    return NotFound("y is value ", y, " and x is value ", x, ", but graph '", graph.name, "' has only ",
                    graph.values.size());
  GraphTransaction transaction(graph);
  GraphSink& sink = transaction.sink;
  TensorType of = graph.values[y].type, by = graph.values[x].type;
  absl::Status status;
  NodeWriter writer(graph, &status);
  ValueId seed = writer.Node("identity", {writer.Filled(of, 1)});  // a value with no other use
  RETURN_IF_ERROR(status);
  auto first = static_cast<NodeId>(graph.nodes.size());
  ASSIGN_OR_RETURN(Values dx, AppendGradient(sink, {{&y, 1}, {&seed, 1}, {&x, 1}, zeros, through}));
  if (dx[0] == kNoValue) return kNoValue;
  Values in = ReadBefore(graph, first, seed, dx[0]), params = in;
  params.push_back(seed);
  ASSIGN_OR_RETURN(uint32_t body, ExtractGraph(graph, params, dx, Keep::kNone, graph.name + ".jacobian"));
  auto invariants = static_cast<int64_t>(in.size());
  ASSIGN_OR_RETURN(in.emplace_back(), Units(sink, writer, of));
  Values rows = writer.Nodes(
      "scan", in, MakeAttrs({{"body", KEEL_ATTR_GRAPH, body}, {"invariants", KEEL_ATTR_I64, invariants}}));
  RETURN_IF_ERROR(status);
  Dims dims = of.dims;
  dims.insert(dims.end(), by.dims.begin(), by.dims.end());
  ValueId out = writer.Shaped("reshape", "to", rows[0], dims);
  RETURN_IF_ERROR(status);
  transaction.Commit();
  return out;
}

}  // namespace keel
