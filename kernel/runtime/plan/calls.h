// calls.h: the views and calls shared by host and device runs of a binding: a view of each value, without its
// data pointer, and the call of each step.
#pragma once

#include <vector>

#include "kernel/runtime/plan/binding.h"

namespace keel {

std::vector<keel_tensor> MakeViews(const Lowered& lowered, const Binding& binding, keel_devid device);

// One call per step. Calls point into `operands`, which this fills and which points into `views`; neither
// vector may reallocate afterwards. The caller sets the scratch, and the state of control and core steps.
std::vector<keel_call> MakeCalls(const Lowered& lowered, const Binding& binding,
                                 std::vector<keel_tensor>& views, const keel_env* env,
                                 std::vector<keel_tensor*>* operands);

}  // namespace keel
