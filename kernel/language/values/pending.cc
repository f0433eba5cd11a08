#include "kernel/language/values/pending.h"

#include <algorithm>

namespace keel {

void PendingRuns::Add(const std::shared_ptr<PendingRun>& run) {
  if (run && run->state() != PendingRun::State::kGood && std::ranges::find(runs_, run) == runs_.end())
    runs_.push_back(run);
}

void PendingRuns::Add(const PendingRuns& other) {
  for (const auto& run : other.runs_) Add(run);
}

std::shared_ptr<PendingRun> PendingRuns::First(PendingRun::State least) const {
  for (const auto& run : runs_)
    if (run->state() >= least) return run;
  return nullptr;
}

absl::Status PendingRuns::Get() const {
  for (const auto& run : runs_) RETURN_IF_ERROR(run->Get());
  return absl::OkStatus();
}

}  // namespace keel
