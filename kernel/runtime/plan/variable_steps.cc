#include "kernel/runtime/plan/variable_steps.h"

#include "kernel/language/graph/constant.h"
#include "kernel/runtime/device/move.h"
#include "kernel/runtime/plan/op_graph.h"
#include "kernel/runtime/plan/sized_bodies.h"
#include "kernel/runtime/plan/step.h"

namespace keel {
namespace {

absl::StatusOr<std::shared_ptr<Plan>> MakeSum(Device* device, std::shared_ptr<Catalogue> catalogue,
                                              const TensorType& type, bool subtract) {
  Module module(std::move(catalogue));
  ASSIGN_OR_RETURN(const OpDef* op, module.catalogue->Find(subtract ? "sub" : "add", 0));
  PlanOptions options;
  options.results_on_device = options.eager = true;
  ASSIGN_OR_RETURN(OpGraph sum, BuildOp(module, *op, {}, {type, type}));
  return Plan::Make(sum.On(device), options);
}

// The steps of one part in one run.
class Steps {
 public:
  Steps(const VariablePart& part, PendingRuns* pending)
      : lowered_(part.lowered), part_(part), pending_(*pending), made_(part.lowered.values.size()) {}

  absl::Status Run(const Step& step, FindDevice find, SumPlans& sums) {
    if (!step.plans.empty()) return RunPlans(step);
    const Core& core = *step.core;
    if (HasNewSize(*step.op)) {
      ASSIGN_OR_RETURN(made_[step.out[0]], Trim(step));
      return absl::OkStatus();
    }
    if (core.reads) {
      made_[step.out[0]] = core.variable->Read(&pending_);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(ArrayRef value, Operand(step.in[0], core.takes_array));
    if (core.takes_array) return core.variable->Assign(std::move(value), pending_);
    return AddToVariable(*core.variable, value.get(), core.subtract, find, sums, &pending_);
  }

  absl::StatusOr<ArrayRef> Result(uint32_t v) { return Operand(v, false); }

 private:
  // Waits for the count, if a device computes it.
  absl::StatusOr<ArrayRef> Trim(const Step& step) {
    ASSIGN_OR_RETURN(ArrayRef x, Operand(step.in[0], false));
    ASSIGN_OR_RETURN(ArrayRef count, Operand(step.in[1], false));
    ASSIGN_OR_RETURN(count, OnHost(std::move(count)));
    const int64_t number = IntegerOf(*count.get());
    const Dim want = lowered_.values[step.out[0]].type.dims[0];
    RETURN_IF_ERROR(CheckCount(number, x->dims[0]));
    if (!IsSymbolic(want) && number != want)
      return Error(absl::StatusCode::kOutOfRange, "count is ", number, ", but the attribute size is ", want);
    return ShareFirst(x.get(), number);
  }

  absl::Status RunPlans(const Step& step) {
    std::vector<std::span<const int64_t>> shapes;
    for (const keel_array* feed : part_.feeds) shapes.push_back(feed->shape());
    ASSIGN_OR_RETURN(const std::vector<int64_t> symbols, BindSymbols(lowered_, shapes));
    BodiesRun run{lowered_, step, {}, {}, symbols, part_.events, part_.end};
    for (uint32_t v : step.in) {
      ASSIGN_OR_RETURN(run.in.emplace_back(), Operand(v, false));
    }
    for (size_t i = 0; i < part_.feeds.size(); i++)
      if (MentionsSymbols(lowered_.values[lowered_.feeds[i]].type.dims)) run.sizes.push_back(part_.feeds[i]);
    ASSIGN_OR_RETURN(const std::vector<ArrayRef> made, RunBodies(std::move(run), &pending_));
    for (size_t i = 0; i < made.size(); i++) made_[step.out[i]] = made[i];
    return absl::OkStatus();
  }

  // owned: an array that nothing else writes.
  absl::StatusOr<ArrayRef> Operand(uint32_t v, bool owned) {
    const uint32_t root = lowered_.Root(v);
    const PlanValue& value = lowered_.values[root];
    if (value.where == Where::kConstant) return ArrayOf(lowered_.constants[value.index]);
    if (value.where != Where::kFeed) return made_[root];
    keel_array* feed = part_.feeds[value.index];
    bool copy = !feed->device_block() && (!feed->contiguous || (owned && part_.shared[value.index]));
    return copy ? CopyArray(feed->view) : ArrayRef::Share(feed);
  }

  const Lowered& lowered_;
  const VariablePart& part_;
  PendingRuns& pending_;
  std::vector<ArrayRef> made_;  // by value: what a step read
};

}  // namespace

absl::StatusOr<std::shared_ptr<Plan>> SumPlans::Find(Device* device, const keel_array* like, bool subtract) {
  Key key{device, subtract, like->dtype, {like->shape().begin(), like->shape().end()}};
  {
    std::lock_guard lock(mutex_);
    if (auto known = sums_.find(key); known != sums_.end()) return known->second;
  }
  auto made = MakeSum(device, catalogue_, {like->dtype, std::get<Dims>(key)}, subtract);
  if (!made.ok() && !absl::IsUnimplemented(made.status())) return made.status();
  std::lock_guard lock(mutex_);  // another thread may have been faster: its plan stays
  return sums_.emplace(std::move(key), made.ok() ? *made : nullptr).first->second;
}

absl::StatusOr<ArrayRef> SumPlans::Add(Device* device, keel_array* a, keel_array* b, bool subtract) {
  ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan, Find(device, a, subtract));
  if (!plan) return Unimplemented("");
  std::vector<ArrayRef> feeds;
  for (keel_array* x : {a, b}) {  // the plan uploads host arrays, both at once
    feeds.push_back(ArrayRef::Share(x));
    if (!x->device_block()) continue;
    ASSIGN_OR_RETURN(feeds.back(), MoveTo(x, device));
  }
  keel_array* in[] = {feeds[0].get(), feeds[1].get()};
  ArrayRef sum;
  RETURN_IF_ERROR(plan->Run(in, {&sum, 1}));
  return sum;
}

absl::Status AddToVariable(Variable& variable, keel_array* x, bool subtract, FindDevice find, SumPlans& sums,
                           PendingRuns* pending) {
  for (;;) {
    ArrayRef old = variable.Read(pending);
    Device* device = find(x);
    if (!device) device = find(old.get());
    absl::StatusOr<ArrayRef> sum = Unimplemented("");
    if (device) sum = sums.Add(device, old.get(), x, subtract);
    if (absl::IsUnimplemented(sum.status())) {
      old = {};  // so that the variable may be the only owner of its value
      ASSIGN_OR_RETURN(ArrayRef host, OnHost(ArrayRef::Share(x)));
      return variable.Add(host->data(), subtract, *pending);
    }
    RETURN_IF_ERROR(sum.status());
    pending->Add((*sum)->device_block()->outcome);
    ASSIGN_OR_RETURN(bool replaced, variable.Replace(old.get(), *std::move(sum), *pending));
    if (replaced) return absl::OkStatus();
  }
}

absl::Status RunVariablePart(const VariablePart& part, FindDevice find, SumPlans& sums,
                             PendingRuns* pending) {
  Steps steps(part, pending);
  for (const Step& step : part.lowered.steps) {
    absl::Status status = steps.Run(step, find, sums);
    if (status.ok()) continue;
    return ErrorFact(status, kErrorNode).empty() ? StepError(status, step) : status;
  }
  for (size_t i = 0; i < part.results.size(); i++) {
    ASSIGN_OR_RETURN(part.results[i], steps.Result(part.lowered.fetches[i]));
  }
  return absl::OkStatus();
}

}  // namespace keel
