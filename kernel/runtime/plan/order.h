// order.h: which earlier launches a launch has to wait for on a device with queues: keel_call.number and
// depends, from the memory plan.
#pragma once

#include "kernel/runtime/plan/binding.h"
#include "kernel/runtime/plan/options.h"

namespace keel {

// Launches are numbered from 1 again after so many steps, because other runs may encode in between.
inline constexpr size_t kLaunchesOfBatch = 256;

// Whether the step computes nothing, so that it is not launched.
inline bool IsEmpty(const Step& step, const Binding& b) {
  return step.bodies.empty() && step.out.size() == 1 && !b.counts[step.out[0]];
}

// Sets b->order, and lets launches with scratch take turns on up to three blocks, if these need at most an
// eighth of the memory of the run. Nothing for bodies, plans with control ops, and host memory. Copies and
// fills (moves.h) come after all work before them, and numbers begin again after them.
void OrderLaunches(const Lowered& lowered, const PlanOptions& options, Binding* b);

}  // namespace keel
