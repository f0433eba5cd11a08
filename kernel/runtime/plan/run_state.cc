// run_state.cc: see run_state.h.
#include "kernel/runtime/plan/run_state.h"

namespace keel {

absl::Status RunState::Show(const Lowered& lowered, size_t step, const keel_call& call, const Moment* when) {
  const Moment last{0, shown, Now()};
  bool go_on = observe(arg, lowered, step, call, when ? *when : last);
  shown = Now();
  if (go_on) return absl::OkStatus();
  return Error(absl::StatusCode::kCancelled, "stopped after \"", lowered.steps[step].name,
               "\" by its observer");
}

}  // namespace keel
