// plan_decline.cc: bindings and runs of a plan whose impls decline sizes (decline.h).
#include "kernel/runtime/plan/decline.h"
#include "kernel/runtime/plan/plan.h"

namespace keel {

absl::StatusOr<std::shared_ptr<Binding>> Plan::BindOrReplace(std::vector<int64_t> symbols,
                                                             std::shared_ptr<Lowered> own) const {
  for (;;) {
    size_t declined = kNoStep;
    const std::shared_ptr<Lowered>& tried = own ? own : lowered_;
    absl::StatusOr<std::shared_ptr<Binding>> made = Bind(*tried, symbols, options_, &declined);
    if (made.ok()) (*made)->own = own;
    if (made.ok() || declined == kNoStep) return made;
    absl::StatusOr<std::shared_ptr<Lowered>> next = ReplaceStep(tried, declined);
    if (!next.ok()) return made;
    own = *std::move(next);
    RETURN_IF_ERROR(PrepareSteps(&own));
  }
}

// False: the run cannot be repeated, or nothing can replace the step.
bool Plan::ReplaceDeclined(std::span<keel_array* const> in, const absl::Status& why) {
  if (split_) return false;
  absl::StatusOr<std::shared_ptr<Binding>> binding = FindBinding(in);
  if (!binding.ok()) return false;
  const std::shared_ptr<Lowered>& lowered = LoweredOf(**binding);
  const std::string name = ErrorFact(why, kErrorNode);
  size_t declined = kNoStep;
  for (size_t s = 0; s < lowered->steps.size(); s++) {
    const Step& step = lowered->steps[s];
    if (step.core || !step.bodies.empty()) return false;  // may have had effects
    if (declined == kNoStep && step.name == name) declined = s;
  }
  if (declined == kNoStep) return false;
  absl::StatusOr<std::shared_ptr<Lowered>> own = ReplaceStep(lowered, declined);
  if (!own.ok() || !PrepareSteps(&*own).ok()) return false;
  absl::StatusOr<std::shared_ptr<Binding>> made = BindOrReplace((*binding)->symbols, *std::move(own));
  if (!made.ok()) return false;
  std::lock_guard lock(mutex_);
  auto at = std::ranges::find(bindings_, *binding);
  if (at == bindings_.end()) return true;  // another thread has replaced it
  std::swap(*at, *made);                   // the old one is destroyed after the lock is released
  return true;
}

absl::Status Plan::RunWatched(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer,
                              void* arg, const Deadline* end) {
  absl::Status status = RunChosen(in, out, observer, arg, end);
  while (absl::IsUnimplemented(status) && ReplaceDeclined(in, status))
    status = RunChosen(in, out, observer, arg, end);
  return status;
}

}  // namespace keel
