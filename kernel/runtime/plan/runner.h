// runner.h: one run of a binding: its memory, and a frame on it. Built once, pooled, used by one thread at a
// time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/runtime/plan/frame.h"
#include "kernel/runtime/plan/step.h"

namespace keel {

class Runner {
 public:
  static absl::StatusOr<std::unique_ptr<Runner>> Make(const Lowered& lowered, const Binding& binding,
                                                      const PlanOptions& options);
  // Feeds must be contiguous and have the shapes of the binding; creates an array for each fetch. `end`:
  // deadline of the enclosing run, or null.
  absl::Status Run(std::span<keel_array* const> feeds, std::span<ArrayRef> out, Observe observe, void* arg,
                   const Deadline* end = nullptr);

 private:
  Runner(const Lowered& lowered, const Binding& binding) : lowered_(lowered), binding_(&binding) {}
  absl::Status MakeOutputs(std::span<ArrayRef> out);

  const Lowered& lowered_;
  const Binding* binding_;  // owns the pool of this runner
  Block arena_, scratch_;
  PlanOptions options_;
  RunState state_;
  std::unique_ptr<Frame> frame_;
  StopFlag own_stop_{0};  // of runs with a time limit
};

}  // namespace keel
