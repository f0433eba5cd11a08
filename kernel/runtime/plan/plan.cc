// plan.cc: construction of plans and cold runs: finds the binding for the feeds, and a runner for the
// binding. Warm runs are in plan_run.cc.
#include "kernel/runtime/plan/plan.h"
#include "kernel/runtime/plan/lower.h"

#include "absl/container/inlined_vector.h"
#include "kernel/runtime/plan/decline.h"
#include "kernel/runtime/plan/device_runner.h"
#include "kernel/runtime/plan/step.h"

namespace keel {
namespace {

// Copies strided feeds to row-major arrays for the run.
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
};

bool Relay(void* arg, const Lowered& lowered, size_t step, const keel_call& call, const Moment& when) {
  auto* watch = static_cast<Watch*>(arg);
  return watch->observer(watch->arg, lowered, {lowered.steps[step], call, lowered.first_step + step, when});
}

}  // namespace

absl::StatusOr<std::shared_ptr<Plan>> Plan::Make(const PlanRequest& request, const PlanOptions& options) {
  RETURN_IF_ERROR(request.device->Open().status());
  ASSIGN_OR_RETURN(std::shared_ptr<Lowered> lowered, Lower(request, options));
  RETURN_IF_ERROR(PrepareSteps(&lowered));
  return std::make_shared<Plan>(std::move(lowered), options);
}

void Plan::SetPlacement(std::unique_ptr<Placement> placement) {
  placement_ = std::move(placement);
  split_ = !placement_->Plans().empty();
}

bool ForwardEvent(void* forwarder, const Lowered& lowered, const Event& event) {
  const auto* s = static_cast<EventForwarder*>(forwarder);
  return s->observer(s->arg, lowered, {event.step, event.call, s->before + event.index, event.when});
}

std::vector<const Plan*> Plan::Parts() const {
  return split_ ? placement_->Plans() : std::vector<const Plan*>{this};
}

uint32_t Plan::Launches() const {
  uint32_t count = 0;
  for (const Plan* part : Parts()) count += CountSteps(part->lowered());
  return count;
}

absl::Status Plan::CheckFeeds(std::span<keel_array* const> in) const {
  if (in.size() != inputs()) return Invalid("the plan takes ", inputs(), " inputs, got ", in.size());
  for (size_t i = 0; i < in.size(); i++) {
    const PlanValue& value = lowered_->values[lowered_->feeds[i]];
    if (in[i] && in[i]->dtype == value.type.dtype) {
      if (in[i]->symbolic() || (in[i]->device_block() && !lowered_->accelerator && !placement_))
        return NeedHostMemory(absl::StrCat("feed \"", value.name, "\""), in[i]);
      continue;
    }
    std::string wanted = Print(value.type, lowered_->dims);
    if (!in[i]) return Invalid("feed \"", value.name, "\" is missing; it is ", wanted);
    if (in[i]->dtype != value.type.dtype)
      return Annotate(
          Invalid("feed \"", value.name, "\": got dtype ", Name(in[i]->dtype), ", expected ", wanted),
          kErrorHint, "convert the array to that dtype");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> Plan::SolveSymbols(std::span<keel_array* const> in) const {
  absl::InlinedVector<std::span<const int64_t>, 8> shapes;
  for (keel_array* array : in) shapes.push_back(array->shape());
  return BindSymbols(*lowered_, {shapes.data(), shapes.size()});
}

absl::StatusOr<std::shared_ptr<Binding>> Plan::FindBinding(std::span<keel_array* const> in) {
  ASSIGN_OR_RETURN(std::vector<int64_t> symbols, SolveSymbols(in));
  std::shared_ptr<Binding> evicted;  // destroyed after the lock is released: it may wait for a device
  std::lock_guard lock(mutex_);
  for (auto it = bindings_.begin(); it != bindings_.end(); ++it) {
    if ((*it)->symbols != symbols) continue;
    bindings_.splice(bindings_.begin(), bindings_, it);
    return bindings_.front();
  }
  TimedBlock block("sizes", lowered_->name);
  ASSIGN_OR_RETURN(std::shared_ptr<Binding> made, BindOrReplace(std::move(symbols)));
  bindings_.push_front(made);
  if (bindings_.size() > kBindings) {
    evicted = std::move(bindings_.back());
    bindings_.pop_back();
  }
  return made;
}

absl::StatusOr<std::vector<int64_t>> Plan::Sizes(std::span<keel_array* const> in, const DimTable& symbols) {
  RETURN_IF_ERROR(CheckFeeds(in));
  std::vector<int64_t> solved;
  if (lowered_->new_sizes) {
    ASSIGN_OR_RETURN(solved, SolveSymbols(in));
  } else {
    ASSIGN_OR_RETURN(std::shared_ptr<Binding> binding, FindBinding(in));
    solved = binding->symbols;
  }
  std::vector<int64_t> numbers(symbols.symbol_count());
  for (size_t s = 0; s < numbers.size(); s++)
    if (std::optional<Dim> mine = lowered_->dims.FindSymbol(symbols.symbol_name(s)))
      numbers[s] = solved[*lowered_->dims.symbol_index(*mine)];
  return numbers;
}

absl::StatusOr<std::unique_ptr<Plan::Ready>> Plan::MakeReady(std::span<keel_array* const> in) {
  auto ready = std::make_unique<Ready>();
  ASSIGN_OR_RETURN(ready->binding, FindBinding(in));
  for (size_t i = 0; i < in.size(); i++) {
    const std::vector<int64_t>& shape = ready->binding->shapes[lowered_->feeds[i]];
    ready->feeds.push_back({TypeKey(in[i]->dtype, static_cast<int32_t>(shape.size())), shape.data()});
  }
  ASSIGN_OR_RETURN(ready->runner, Runner::Make(*LoweredOf(*ready->binding), *ready->binding, options_));
  return ready;
}

Plan::Plan(std::shared_ptr<Lowered> lowered, PlanOptions options)
    : lowered_(std::move(lowered)), options_(std::move(options)) {}

Plan::~Plan() = default;

// Runs on a device with its own memory, or on several devices.
absl::Status Plan::RunElsewhere(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer,
                                void* arg, const Deadline* end) {
  if (lowered_->new_sizes) {
    RETURN_IF_ERROR(SolveSymbols(in).status());
    Deadline limit = EndOfRun(options_, end);
    return placement_->Run(in, out, observer, arg, options_.timeout_ms ? &limit : nullptr);
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Binding> binding, FindBinding(in));
  if (!lowered_->accelerator) {
    Deadline limit = EndOfRun(options_, end);  // one deadline for all parts
    return placement_->Run(in, out, observer, arg, options_.timeout_ms ? &limit : nullptr);
  }
  absl::InlinedVector<keel_array*, 8> feeds;
  std::vector<ArrayRef> copies;
  RETURN_IF_ERROR(MakeContiguous(in, &feeds, &copies));
  Watch watch{observer, arg};
  return RunOnDevice(LoweredOf(*binding), *binding, options_, {feeds.data(), feeds.size()}, out,
                     observer ? Relay : nullptr, &watch, end);
}

absl::Status Plan::RunBound(Binding& binding, std::span<keel_array* const> in,
                            std::span<ArrayRef> out) const {
  return RunOnDevice(LoweredOf(binding), binding, options_, in, out, nullptr, nullptr, nullptr);
}

absl::Status Plan::RunCold(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer,
                           void* arg, const Deadline* end) {
  RETURN_IF_ERROR(CheckFeeds(in));
  return !observer && Timeline::ShowsRuns() ? RunShown(in, out, end)
                                            : RunWatched(in, out, observer, arg, end);
}

absl::Status Plan::RunChosen(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer,
                             void* arg, const Deadline* end) {
  if (lowered_->accelerator || split_) return RunElsewhere(in, out, observer, arg, end);
  absl::InlinedVector<keel_array*, 8> feeds;
  std::vector<ArrayRef> copies;
  ASSIGN_OR_RETURN(std::unique_ptr<Ready> ready, MakeReady(in));
  RETURN_IF_ERROR(MakeContiguous(in, &feeds, &copies));
  Watch watch{observer, arg};
  absl::Status status =
      ready->runner->Run({feeds.data(), feeds.size()}, out, observer ? Relay : nullptr, &watch, end);
  if (!absl::IsUnimplemented(status)) idle_.Put(std::move(ready));  // else another impl may run the next time
  return status;
}

}  // namespace keel
