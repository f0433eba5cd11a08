// runner.h: what one run of a binding needs: the arena, a view of each value, prebuilt calls. Built once,
// pooled, used by one thread at a time; a run only stores pointers and calls.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/plan/binding.h"

namespace keel {

// Called after each launch; false stops the run.
using Observe = bool (*)(void* arg, size_t step, const keel_call& call);

class Runner {
 public:
  static absl::StatusOr<std::unique_ptr<Runner>> Make(const Lowered& lowered, const Binding& binding,
                                                      const PlanOptions& options);
  // Feeds are contiguous and of the bound shapes; gives one new array for each fetch. `end`: of the run that
  // this one is a part of.
  absl::Status Run(std::span<keel_array* const> feeds, std::span<ArrayRef> out, Observe observe, void* arg,
                   const Deadline* end = nullptr);

 private:
  Runner(const Lowered& lowered, const Binding& binding) : lowered_(lowered), binding_(&binding) {}
  void BuildViews();
  void BuildCalls(const PlanOptions& options);
  void BuildCore();
  absl::Status MakeAssigned();
  absl::Status MakeOutputs(std::span<ArrayRef> out);
  void Connect(std::span<keel_array* const> feeds, std::span<ArrayRef> out);
  absl::Status Launches(Observe observe, void* arg);
  absl::Status EndEarly(const HostCall& host, keel_rc rc, size_t step) const;
  void CopyOutputs(std::span<ArrayRef> out);

  const Lowered& lowered_;
  const Binding* binding_;  // owns the pool that this goes back to
  Block arena_, scratch_;
  std::vector<keel_tensor> views_;  // by value
  std::vector<keel_tensor*> operands_;
  std::vector<keel_call> calls_;
  std::vector<uint32_t> outside_;  // values whose data changes with each run: feeds and outputs
  std::vector<keel_rc (*)(const keel_call*)> runs_;
  std::vector<std::unique_ptr<CoreRun>> core_;  // of core steps
  std::vector<CoreRun*> core_of_;               // by step, where there are any
  keel_env env_{};
  PlanOptions options_;
  StopFlag own_stop_{0};                   // of runs with a time limit
  const StopFlag* stop_ = &own_stop_;      // what launches look at
  const Stopper::Limit* limit_ = nullptr;  // of the run under way
};

}  // namespace keel
