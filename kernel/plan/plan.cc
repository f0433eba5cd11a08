// plan.cc: from fed arrays to a binding, from a binding to a runner, and the run.
#include "kernel/plan/plan.h"

#include "absl/container/inlined_vector.h"

namespace keel {
namespace {

// Strided feeds are made row-major for the run.
absl::Status MakeContiguous(std::span<keel_array* const> in, absl::InlinedVector<keel_array*, 8>* ready,
                            std::vector<ArrayRef>* copies) {
  for (keel_array* array : in) {
    ready->push_back(array);
    if (array->contiguous) continue;
    ASSIGN_OR_RETURN(ArrayRef copy, CopyArray(array->view));
    ready->back() = copy.get();
    copies->push_back(std::move(copy));
  }
  return absl::OkStatus();
}

struct Watch {
  Observer observer;
  void* arg;
  const Lowered* lowered;
};

bool Relay(void* arg, size_t step, const keel_call& call) {
  auto* watch = static_cast<Watch*>(arg);
  return watch->observer(watch->arg, *watch->lowered, {watch->lowered->steps[step], call, step});
}

}  // namespace

absl::StatusOr<std::shared_ptr<Plan>> Plan::Make(const Graph& graph, Device* device,
                                                 std::span<const ValueId> feeds,
                                                 std::span<const ValueId> fetches,
                                                 std::span<const ValueId> targets,
                                                 const PlanOptions& options) {
  RETURN_IF_ERROR(device->Open().status());
  ASSIGN_OR_RETURN(std::unique_ptr<Lowered> lowered, Lower(graph, device, feeds, fetches, targets, options));
  for (Step& step : lowered->steps) {
    if (step.needs_dims) continue;
    ASSIGN_OR_RETURN(keel_node node, ViewStep(*lowered, step, {}));
    ASSIGN_OR_RETURN(step.launch, Prepare(*lowered, step, node));
  }
  return std::shared_ptr<Plan>(new Plan(std::move(lowered), options));
}

absl::Status Plan::CheckFeeds(std::span<keel_array* const> in) const {
  if (in.size() != inputs()) return Invalid("the plan takes ", inputs(), " inputs, got ", in.size());
  for (size_t i = 0; i < in.size(); i++) {
    const PlanValue& value = lowered_->values[lowered_->feeds[i]];
    std::string wanted = Print(value.type, lowered_->dims);
    if (!in[i]) return Invalid("feed \"", value.name, "\" is missing; it is ", wanted);
    if (in[i]->dtype != value.type.dtype)
      return Annotate(
          Invalid("feed \"", value.name, "\": got dtype ", Name(in[i]->dtype), ", wanted ", wanted),
          kErrorHint, "convert the array; nothing is cast silently");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Binding>> Plan::FindBinding(std::span<keel_array* const> in) {
  absl::InlinedVector<std::span<const int64_t>, 8> shapes;
  for (keel_array* array : in) shapes.push_back(array->shape());
  ASSIGN_OR_RETURN(std::vector<int64_t> symbols, BindSymbols(*lowered_, {shapes.data(), shapes.size()}));
  std::lock_guard lock(mutex_);
  for (auto it = bindings_.begin(); it != bindings_.end(); ++it) {
    if ((*it)->symbols != symbols) continue;
    bindings_.splice(bindings_.begin(), bindings_, it);
    return bindings_.front();
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Binding> made, Bind(*lowered_, std::move(symbols), options_));
  bindings_.push_front(made);
  if (bindings_.size() > kBindings) bindings_.pop_back();
  return made;
}

absl::StatusOr<std::unique_ptr<Runner>> Plan::Borrow(const std::shared_ptr<Binding>& binding) {
  for (auto& slot : binding->pool)
    if (Runner* idle = slot.exchange(nullptr, std::memory_order_acquire))
      return std::unique_ptr<Runner>(idle);
  return Runner::Make(*lowered_, *binding, options_);
}

absl::Status Plan::Run(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer,
                       void* arg) {
  if (out.size() != outputs())
    return Invalid("the plan gives ", outputs(), " results, got room for ", out.size());
  RETURN_IF_ERROR(CheckFeeds(in));
  if (observer && !options_.observe && !options_.profile)
    return Error(absl::StatusCode::kFailedPrecondition,
                 "the plan was not made to be observed: set the session option observe=1");
  ASSIGN_OR_RETURN(std::shared_ptr<Binding> binding, FindBinding(in));
  absl::InlinedVector<keel_array*, 8> feeds;
  std::vector<ArrayRef> copies;
  RETURN_IF_ERROR(MakeContiguous(in, &feeds, &copies));
  ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner, Borrow(binding));
  Watch watch{observer, arg, lowered_.get()};
  absl::Status status = runner->Run({feeds.data(), feeds.size()}, out, observer ? Relay : nullptr, &watch);
  for (auto& slot : binding->pool) {
    Runner* empty = nullptr;
    if (slot.compare_exchange_strong(empty, runner.get(), std::memory_order_release)) {
      runner.release();
      break;
    }
  }
  return status;
}

}  // namespace keel
