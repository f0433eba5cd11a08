// calls.h: views of values without data pointers, and calls of steps: common to runs in host and device
// memory.
#pragma once

#include <vector>

#include "kernel/plan/binding.h"

namespace keel {

std::vector<keel_tensor> MakeViews(const Lowered& lowered, const Binding& binding, keel_devid device);

// By step. The calls point into `operands`, which is filled here, and `operands` points into `views`: neither
// may be reallocated. The caller sets the scratch, and the state of steps that are not device launches.
std::vector<keel_call> MakeCalls(const Lowered& lowered, const Binding& binding,
                                 std::vector<keel_tensor>& views, const keel_env* env,
                                 std::vector<keel_tensor*>* operands);

}  // namespace keel
