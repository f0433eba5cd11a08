// control.h: steps that run bodies: cond, switch, while, scan. Each body is lowered separately
// (Step::bodies), bound with the sizes of the step's operands (bind_control.cc), and run by frames within the
// step's launch, on the step's scratch memory.
//
// How to read it: MakeControl builds the frames, RunControl is the launch (control_run.cc). Carried values of
// a loop alternate between two buffers, the step's result and a buffer in its scratch, so an iteration copies
// nothing, allocates nothing and takes no lock. On a device with its own memory the host reads only
// predicates.
#pragma once

#include <memory>

#include "kernel/runtime/plan/binding.h"
#include "kernel/runtime/plan/run_state.h"

namespace keel {

class Control {
 public:
  virtual ~Control() = default;
  virtual keel_rc Run(const keel_call& call) = 0;
};
std::unique_ptr<Control> MakeControl(const Lowered& lowered, const Binding& binding, size_t step,
                                     RunState& state, char* scratch);
keel_rc RunControl(const keel_call* call);  // call->state: a Control

}  // namespace keel
