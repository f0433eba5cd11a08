// make_plan.cc: see make_plan.h.
#include "kernel/runtime/plan/make_plan.h"
#include "kernel/runtime/plan/lower.h"
#include "kernel/runtime/plan/lower_checks.h"

#include "kernel/runtime/plan/parts.h"
#include "kernel/runtime/plan/variable_steps.h"

namespace keel {
namespace {

bool AnyIsWrittenOut(const PlanRequest& request) {
  const std::vector<bool> needed = request.Needed();
  for (NodeId n = 0; n < needed.size(); n++)
    if (needed[n] && IsWrittenOut(*request.graph, request.graph->nodes[n])) return true;
  return false;
}

std::shared_ptr<const PassReport> JoinPasses(const std::vector<const Plan*>& parts) {
  auto all = std::make_shared<PassReport>();
  for (const Plan* part : parts)
    if (part->options().passes) all->Add(*part->options().passes);
  return all;
}

// The whole graph for its sizes and names, without steps.
absl::StatusOr<std::unique_ptr<Lowered>> LowerWhole(const PlanRequest& request, PlanOptions options) {
  options.observe = options.probe = true;
  ASSIGN_OR_RETURN(std::unique_ptr<Lowered> whole, Lower(request, options));
  whole->new_sizes = HasNewSizes(*request.graph, request.Needed());
  whole->steps.clear();
  whole->accelerator.reset();
  return whole;
}

// The plan of a body (PlanOptions::plan_body). After the body's inputs it takes arrays of the types `sizes`:
// their shapes give it the symbols of the enclosing graph.
absl::StatusOr<PlannedBody> PlanBody(const Graph& body, std::span<const TensorType> sizes,
                                     const PlanOptions& of_step) {
  const std::unique_ptr<Module> own = CopyModule(*body.module, &body);
  ASSIGN_OR_RETURN(const uint32_t number, own->GraphNumber(body.name));
  Graph& graph = *own->graphs[number];
  graph.called = false;  // the copy gets parameters
  for (const TensorType& type : sizes) RETURN_IF_ERROR(graph.AddParam("", type).status());
  PlanOptions options = of_step;
  options.prefix = absl::StrCat(body.name, "/");
  options.results_on_device = true;
  options.passes = nullptr;
  const std::vector<NodeId> targets = BodyTargets(graph, options.strict);
  const PlanRequest request{&graph, options.bodies, graph.params, graph.results, targets};
  ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan, MakePlan(request, std::move(options), {}));
  const uint32_t launches = plan->Launches();
  return PlannedBody{std::move(plan), launches};
}

}  // namespace

absl::StatusOr<std::shared_ptr<Plan>> MakePlan(const PlanRequest& request, PlanOptions options,
                                               const Optimizer& optimizer) {
  if (request.graph->new_sizes && AnyIsWrittenOut(request)) {  // now, so that passes optimise these nodes
    ASSIGN_OR_RETURN(PlannedGraph flat, WriteOut(request));
    return MakePlan(flat.Request(request.device), std::move(options), optimizer);
  }
  TimedBlock block("plan", request.graph->name);
  block.Note("device", request.device->name());
  RETURN_IF_ERROR(request.device->Open().status());
  ASSIGN_OR_RETURN(PlannedGraph best, optimizer.Run(request, &options));
  const PlanRequest optimised = best.Request(request.device);
  const std::vector<bool> needed = optimised.Needed();
  const bool host = !request.device->host_memory() && NeedsHost(*optimised.graph, needed);
  if (host || HasNewSizes(*optimised.graph, needed)) return MakePlacedPlan(optimised, {}, {}, options);
  return Plan::Make(optimised, options);
}

absl::StatusOr<std::shared_ptr<Plan>> MakePlacedPlan(const PlanRequest& request, const Placing& placing,
                                                     const Optimizer& optimizer, PlanOptions options) {
  if (AnyIsWrittenOut(request)) {
    ASSIGN_OR_RETURN(PlannedGraph flat, WriteOut(request));
    return MakePlacedPlan(flat.Request(request.device), placing, optimizer, options);
  }
  options.plan_body = PlanBody;
  ASSIGN_OR_RETURN(std::vector<PlacedNode> placed, Place(request, placing, options));
  ASSIGN_OR_RETURN(std::unique_ptr<Parts> parts, Split(request, placed, optimizer, options));
  std::shared_ptr<Plan> plan;
  if (parts->parts.empty()) {
    ASSIGN_OR_RETURN(plan, optimizer.Make(request, options));
  } else {
    ASSIGN_OR_RETURN(std::unique_ptr<Lowered> whole, LowerWhole(request, options));
    parts->value_of = std::move(whole->value_of);
    options.passes = JoinPasses(parts->Plans());
    plan = std::make_shared<Plan>(std::move(whole), options);
  }
  plan->SetPlacement(std::move(parts));
  return plan;
}

}  // namespace keel
