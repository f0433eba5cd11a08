// optimize.cc: see optimize.h.
#include "kernel/plan/optimize.h"

#include "kernel/graph/constant.h"

namespace keel {
namespace {

// A plan of the node alone.
absl::StatusOr<std::vector<Constant>> Evaluate(Device* device, const PlanOptions& options, const Graph& graph,
                                               NodeId number) {
  const Node& node = graph.nodes[number];
  Module module(graph.module->catalogue);
  ASSIGN_OR_RETURN(Graph * alone, module.AddGraph("eval"));
  std::vector<ValueId> in;
  for (ValueId v : node.in) {
    in.push_back(kNoValue);
    if (v == kNoValue) continue;
    Constant constant = graph.module->constants[graph.values[v].index];
    constant.name.clear();
    ASSIGN_OR_RETURN(uint32_t index, module.AddConstant(std::move(constant)));
    ASSIGN_OR_RETURN(in.back(), alone->AddConstant(index));
  }
  ASSIGN_OR_RETURN(NodeId made, alone->AddNode(node.op, std::move(in), node.attrs));
  PlanOptions plain;
  plain.threads = options.threads;
  plain.memory = options.memory;
  const std::vector<ValueId>& out = alone->nodes[made].out;
  ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan, Plan::Make(*alone, device, {}, out, {}, plain));
  std::vector<ArrayRef> results(out.size());
  RETURN_IF_ERROR(plan->Run({}, results));
  std::vector<Constant> constants;
  for (ArrayRef& array : results) constants.push_back(ConstantOf("", std::move(array)));
  return constants;
}

PassTarget TargetOf(Device* device, const PlanOptions& options) {
  return {device, [=](const Graph& graph, NodeId node) { return Evaluate(device, options, graph, node); }};
}

}  // namespace

absl::StatusOr<std::shared_ptr<Plan>> Optimizer::Make(const Graph& graph, Device* device,
                                                      std::span<const ValueId> feeds,
                                                      std::span<const ValueId> fetches,
                                                      std::span<const ValueId> targets,
                                                      PlanOptions options) const {
  PassGraph start{nullptr, &graph, {feeds.begin(), feeds.end()}, {fetches.begin(), fetches.end()}, {}, true};
  start.roots.insert(start.roots.end(), targets.begin(), targets.end());
  start.result_names.resize(start.roots.size());
  auto report = std::make_shared<PassReport>();
  ASSIGN_OR_RETURN(PassGraph end, passes->Run(start, TargetOf(device, options), choice, report.get()));
  options.passes = report;
  std::span<const ValueId> roots = end.roots;
  return Plan::Make(*end.graph, device, end.feeds, roots.first(fetches.size()), roots.subspan(fetches.size()),
                    options);
}

absl::StatusOr<std::shared_ptr<Module>> OptimizeModule(Passes& passes, const PassChoice& choice,
                                                       const Graph& graph, Device* device,
                                                       const PlanOptions& options, PassReport* report) {
  PassGraph start{nullptr, &graph, graph.params, graph.results, graph.result_names, false};
  ASSIGN_OR_RETURN(PassGraph end, passes.Run(start, TargetOf(device, options), choice, report));
  if (end.owner) DropUnused(end.owner.get(), graph.module->graphs.size());
  return end.owner;
}

void WriteReport(Json& json, const PassReport& report) {
  json.Key("level").Int(report.level);
  json.Key("passes").BeginArray();
  for (const PassRun& run : report.runs) {
    json.BeginObject();
    json.Key("name").String(run.name);
    json.Key("plugin").String(run.plugin);
    json.Key("ms").Double(run.ms);
    json.Key("edits").Int(static_cast<int64_t>(run.edits));
    for (const auto& [key, text] :
         {std::pair("error", &run.error), std::pair("diff", &run.diff), std::pair("skipped", &run.skipped)})
      if (!text->empty()) json.Key(key).String(*text);
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace keel
