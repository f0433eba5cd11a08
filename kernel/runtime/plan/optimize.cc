// optimize.cc: see optimize.h.
#include "kernel/runtime/plan/optimize.h"

#include <algorithm>

#include "kernel/language/graph/constant.h"
#include "kernel/language/graph/node_effects.h"
#include "kernel/runtime/plan/op_graph.h"
#include "kernel/runtime/plan/place.h"

namespace keel {
namespace {

// Evaluates a node with constant operands, using a plan of this node alone.
absl::StatusOr<std::vector<Constant>> Evaluate(Device* device, const PlanOptions& options, const Graph& graph,
                                               NodeId number) {
  const Node& node = graph.nodes[number];
  std::vector<const Constant*> operands;
  for (ValueId v : node.in)
    operands.push_back(v == kNoValue ? nullptr : &graph.module->constants[graph.values[v].index]);
  PlanOptions plain;
  plain.threads = options.threads;
  plain.memory = options.memory;
  plain.exact_convolution = options.exact_convolution;
  Module module(graph.module->catalogue);
  const std::vector<TensorType> omitted(node.in.size());
  ASSIGN_OR_RETURN(OpGraph alone, BuildOp(module, *node.op, node.attrs, omitted, operands));
  ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan, Plan::Make(alone.On(device), plain));
  std::vector<ArrayRef> results(plan->outputs());
  RETURN_IF_ERROR(plan->Run({}, results));
  std::vector<Constant> constants;
  for (ArrayRef& array : results) constants.push_back(ConstantOf("", std::move(array)));
  return constants;
}

PassTarget TargetOf(Device* device, const PlanOptions& options) {
  Device* on = device->host_memory() || !options.host ? device : options.host;
  return {device, [=](const Graph& graph, NodeId node) { return Evaluate(on, options, graph, node); }};
}

// The graph with feeds, fetches and targets as a PassGraph; ToPlannedGraph converts back.
PassGraph ToPassGraph(const PlanRequest& request) {
  const Graph& graph = *request.graph;
  PassGraph start{nullptr,
                  &graph,
                  {request.feeds.begin(), request.feeds.end()},
                  {request.fetches.begin(), request.fetches.end()},
                  {},
                  {},
                  true};
  for (NodeId n : request.targets) {
    const Node& node = graph.nodes[n];
    if (!node.out.empty()) start.roots.push_back(node.out[0]);
    if (MustRun(graph, node)) start.effects.push_back(n);
  }
  std::sort(start.effects.begin(), start.effects.end());
  start.result_names.resize(start.roots.size());
  return start;
}

NodeId CallWithEffects(Rewrite& work) {
  const Graph& graph = *work.edit()->graph;
  for (NodeId n : work.Nodes())
    if (CallsEffects(graph, graph.nodes[n])) return n;
  return kNoValue;
}

// A node with effects and a result that is a target is there once.
PlannedGraph ToPlannedGraph(const PassGraph& end, size_t fetches) {
  auto split = end.roots.begin() + static_cast<ptrdiff_t>(fetches);
  std::vector<NodeId> nodes = end.effects;
  for (auto root = split; root != end.roots.end(); ++root)
    if (const Value& v = end.graph->values[*root];
        v.kind == ValueKind::kResult && !MustRun(*end.graph, end.graph->nodes[v.index]))
      nodes.push_back(v.index);
  return {end.owner, end.graph, end.feeds, {end.roots.begin(), split}, std::move(nodes)};
}

// Passes read all constants, but planning rereads only few of them.
void DropAllPages(const Module& module) {
  for (const Constant& c : module.constants) DropPages(c);
}

}  // namespace

absl::StatusOr<PlannedGraph> Optimizer::Run(const PlanRequest& request, PlanOptions* options) const {
  PassGraph start = ToPassGraph(request), end;
  if (passes) {
    auto report = std::make_shared<PassReport>();
    ASSIGN_OR_RETURN(end, passes->Run(start, TargetOf(request.device, *options), choice, report.get()));
    DropAllPages(*request.graph->module);
    options->passes = report;
  }
  if (end.owner) return ToPlannedGraph(end, request.fetches.size());
  return PlannedGraph{nullptr,
                      request.graph,
                      {request.feeds.begin(), request.feeds.end()},
                      {request.fetches.begin(), request.fetches.end()},
                      {request.targets.begin(), request.targets.end()}};
}

absl::StatusOr<std::shared_ptr<Plan>> Optimizer::Make(const PlanRequest& request, PlanOptions options) const {
  ASSIGN_OR_RETURN(PlannedGraph best, Run(request, &options));
  return Plan::Make(best.Request(request.device), options);
}

absl::StatusOr<PlannedGraph> WriteOut(const PlanRequest& request) {
  Rewrite work(ToPassGraph(request), {request.device, nullptr});
  work.MakeCopy();
  for (NodeId n = CallWithEffects(work); n != kNoValue; n = CallWithEffects(work))
    RETURN_IF_ERROR(work.Inline(n));
  ASSIGN_OR_RETURN(PassGraph end, work.Finish());
  return ToPlannedGraph(end, request.fetches.size());
}

absl::StatusOr<std::shared_ptr<Module>> OptimizeModule(Passes& passes, const PassChoice& choice,
                                                       const Graph& graph, Device* device,
                                                       const PlanOptions& options, PassReport* report) {
  PassGraph start{nullptr, &graph, graph.params, graph.results, graph.result_names, MustRunNodes(graph),
                  false};
  ASSIGN_OR_RETURN(PassGraph end, passes.Run(start, TargetOf(device, options), choice, report));
  DropAllPages(*graph.module);
  if (end.owner) DropUnused(end.owner.get(), graph.module->graphs.size());
  return end.owner;
}

}  // namespace keel
