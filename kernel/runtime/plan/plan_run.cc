// plan_run.cc: warm runs: reuses an idle runner for the types and shapes of the feeds.
#include "kernel/runtime/plan/plan.h"

namespace keel {

bool Plan::Ready::Fits(std::span<keel_array* const> in) const {
  for (size_t i = 0; i < in.size(); i++) {
    const keel_array* a = in[i];
    if (!a || a->type_key != feeds[i].type_key || !a->contiguous) return false;
    for (int32_t d = 0; d < a->view.ndim; d++)
      if (a->dims[d] != feeds[i].dims[d]) return false;
  }
  return true;
}

std::unique_ptr<Plan::Ready> Plan::TakeIdle(std::span<keel_array* const> in) {
  if (in.size() != inputs()) return nullptr;
  return idle_.Take([&](const Ready& ready) { return ready.Fits(in); }, [](auto) {});
}

absl::Status Plan::Run(std::span<keel_array* const> in, std::span<ArrayRef> out, Observer observer, void* arg,
                       const Deadline* end) {
  if (out.size() != outputs())
    return Invalid("the plan returns ", outputs(), " results, but 'out' has room for ", out.size());
  std::unique_ptr<Ready> ready = observer || Timeline::ShowsRuns() ? nullptr : TakeIdle(in);
  if (ready) [[likely]] {
    absl::Status status = ready->runner->Run(in, out, nullptr, nullptr, end);
    if (absl::IsUnimplemented(status)) [[unlikely]]
      return RunCold(in, out, nullptr, nullptr, end);
    idle_.Put(std::move(ready));
    return status;
  }
  return RunCold(in, out, observer, arg, end);
}

}  // namespace keel
