// calls.h: what a run of a binding is built from, wherever its memory lies: a view of each value, without its
// data, and the call of each step.
#pragma once

#include <vector>

#include "kernel/plan/binding.h"

namespace keel {

std::vector<keel_tensor> MakeViews(const Lowered& lowered, const Binding& binding, keel_devid device);

// By step. They point into `operands`, which is filled, and that into `views`: neither may move any more. The
// scratch is the caller's to set, and the state of steps that are no launches of a device.
std::vector<keel_call> MakeCalls(const Lowered& lowered, const Binding& binding,
                                 std::vector<keel_tensor>& views, const keel_env* env,
                                 std::vector<keel_tensor*>* operands);

}  // namespace keel
