// control.h: steps that run bodies: cond, switch, while, scan. Each body is lowered separately
// (Step::bodies), bound with the sizes of the step's operands (bind_control.cc), and run by frames within the
// step's launch, on the step's scratch memory.
//
// How to read it: MakeControl builds the frames (control_run.cc). Carried values of a loop alternate between
// two buffers, the step's result and a buffer in its scratch, so an iteration copies nothing, allocates
// nothing and takes no lock. On a device with its own memory the host reads only predicates.
#pragma once

#include <memory>

#include "kernel/runtime/plan/binding.h"
#include "kernel/runtime/plan/own_launch.h"
#include "kernel/runtime/plan/run_state.h"

namespace keel {

std::unique_ptr<OwnLaunch> MakeControl(const Lowered& lowered, const Binding& binding, size_t step,
                                       RunState& state, char* scratch);

}  // namespace keel
